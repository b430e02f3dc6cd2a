//! Comparison of a live frame with a recorded one: equal but for what no two runs share.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

/// Numbers that are moments, ages or durations.
const VOLATILE_NUMBERS: &[&str] = &[
    "ts",
    "timestamp",
    "startedAt",
    "endedAt",
    "acceptedAt",
    "durationMs",
    "uptimeMs",
    "updatedAt",
    "updatedAtMs",
    "age",
    "ageMs",
    "issuedAtMs",
    "createdAtMs",
    "expiresAtMs",
    "approvedAtMs",
    "lastUsedAtMs",
    "rotatedAtMs",
    "revokedAtMs",
    "generatedAt",
    "lastInputSeconds",
    // Byte sizes of prompts and files.
    "size",
    "chars",
    "rawChars",
    "injectedChars",
    "schemaChars",
    "projectContextChars",
    "nonProjectContextChars",
    "blockChars",
    "listChars",
    "summaryChars",
    "propertiesCount",
];

/// Texts that say which machine, build or moment it was.
const VOLATILE_TEXTS: &[&str] =
    &["nonce", "connId", "commit", "ip", "hash", "token", "deviceToken", "issuedAt"];

/// Texts of the gateway's own presence entry, and of `server` in hello-ok, that say which machine and build it is.
const SELF: &[&str] = &["host", "ip", "version", "platform", "deviceFamily", "modelIdentifier", "text"];

static UUID: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").ok());
static MOMENT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d[:-]\d\d(\.\d+)?Z?").ok());
static SHORT_ID: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b[0-9a-f]{8}\b").ok());

/// Recorded text to live text.
pub(super) type Bindings = HashMap<String, String>;

/// Known values of the live side.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// Live text to what stands for it in recordings: paths, ports, the host's name.
    pub(super) names: Vec<(String, String)>,
}

/// Compares. A difference is told with its place.
pub(super) fn compare(recorded: &Value, live: &Value, known: &Live) -> Result<(), String> {
    like(&plain(recorded, &Live::default()), &plain(live, known), "")
}

/// Remembers which live ids stand where the recording has its own.
pub(super) fn bind(recorded: &Value, live: &Value, bindings: &mut Bindings) {
    match (recorded, live) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, a) in a {
                if let Some(b) = b.get(key) {
                    bind(a, b, bindings);
                }
            }
        }
        (Value::Array(a), Value::Array(b)) => a.iter().zip(b).for_each(|(a, b)| bind(a, b, bindings)),
        (Value::String(a), Value::String(b)) if a != b && a.len() > 5 => {
            bindings.insert(a.clone(), b.clone());
        }
        _ => {}
    }
}

/// Puts live ids where a recorded frame has recorded ones.
pub(super) fn substitute(value: &mut Value, bindings: &Bindings) {
    match value {
        Value::String(text) => {
            let within = |(place, _): &(&String, &String)| {
                text.strip_prefix(place.as_str()).is_some_and(|rest| rest.starts_with('/'))
            };
            if let Some(live) = bindings.get(text.as_str()) {
                text.clone_from(live);
            } else if let Some((place, live)) = bindings.iter().find(within) {
                // A path below one that is somewhere else now.
                *text = text.replacen(place.as_str(), live, 1);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| substitute(item, bindings)),
        Value::Object(fields) => fields.values_mut().for_each(|field| substitute(field, bindings)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A frame without what differs from run to run. Numbering of events is checked elsewhere.
fn plain(value: &Value, known: &Live) -> Value {
    match value {
        Value::Object(fields) => {
            let about_itself =
                fields.get("reason").and_then(Value::as_str) == Some("self") || fields.contains_key("connId");
            let is_event = fields.get("type").and_then(Value::as_str) == Some("event");
            let mut out = Map::new();
            for (key, field) in fields {
                if key == "stateVersion" || (is_event && key == "seq") {
                    continue;
                }
                let volatile_text =
                    VOLATILE_TEXTS.contains(&key.as_str()) || about_itself && SELF.contains(&key.as_str());
                let field = match field {
                    Value::Number(_) | Value::Null if VOLATILE_NUMBERS.contains(&key.as_str()) => {
                        "<number>".into()
                    }
                    Value::String(_) if volatile_text => "<text>".into(),
                    field => plain(field, known),
                };
                out.insert(key.clone(), field);
            }
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(|item| plain(item, known)).collect(),
        Value::String(text) => Value::String(plain_text(text, known)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn plain_text(text: &str, known: &Live) -> String {
    let mut text = text.to_owned();
    for (live, recorded) in &known.names {
        text = text.replace(live, recorded);
    }
    for (pattern, stands_for) in [(&UUID, "<uuid>"), (&MOMENT, "<moment>"), (&SHORT_ID, "<id>")] {
        if let Some(pattern) = pattern.as_ref() {
            text = pattern.replace_all(&text, stands_for).into_owned();
        }
    }
    text
}

/// Equality, but a recorded `…` stands for anything: as an array item for the rest of the array, as a key for other
/// fields, within a text for any text.
fn like(recorded: &Value, live: &Value, at: &str) -> Result<(), String> {
    let differs = || Err(format!("at {at}: recorded {recorded}, live {live}"));
    match (recorded, live) {
        (Value::Object(a), Value::Object(b)) => {
            let open = a.keys().any(|key| key.starts_with('…'));
            for (key, value) in a.iter().filter(|(key, _)| !key.starts_with('…')) {
                let Some(other) = b.get(key) else { return Err(format!("at {at}: no \"{key}\" in {live}")) };
                like(value, other, &format!("{at}/{key}"))?;
            }
            match b.keys().find(|key| !a.contains_key(*key)) {
                Some(extra) if !open => Err(format!("at {at}: \"{extra}\" is not in the recording: {live}")),
                Some(_) | None => Ok(()),
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for (index, value) in a.iter().enumerate() {
                if value.as_str().is_some_and(|text| text.starts_with('…')) {
                    return Ok(());
                }
                let Some(other) = b.get(index) else { return differs() };
                like(value, other, &format!("{at}/{index}"))?;
            }
            if a.len() == b.len() { Ok(()) } else { differs() }
        }
        (Value::String(a), Value::String(b)) if a == b || cut_like(a, b) => Ok(()),
        (a, b) if a == b => Ok(()),
        _ => differs(),
    }
}

/// True if a recorded text that was cut (`begin…<12 chars>`) begins like the live one.
fn cut_like(recorded: &str, live: &str) -> bool {
    recorded.split_once('…').is_some_and(|(begin, rest)| {
        (rest.is_empty() || rest.starts_with('<')) && live.starts_with(begin.trim_end())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_may_differ_may_differ() {
        let known = Live { names: vec![("/tmp/x/.openclaw".into(), "/home/user/.openclaw".into())] };
        for (recorded, live, same) in [
            (json!({"ts": 5, "a": "b"}), json!({"ts": 6, "a": "b"}), true),
            (json!({"ts": 5}), json!({"ts": "6"}), false),
            (json!({"ts": 5}), json!({}), false),
            (json!({}), json!({"ts": 5}), false),
            (json!({"a": 1}), json!({"a": 2}), false),
            (json!({"path": "/home/user/.openclaw/x"}), json!({"path": "/tmp/x/.openclaw/x"}), true),
            (json!({"path": "/home/user/.openclaw/x"}), json!({"path": "/tmp/y/x"}), false),
            (json!(["a", "…"]), json!(["a", "b", "c"]), true),
            (json!(["a", "…"]), json!(["b", "b"]), false),
            (json!({"…": "…", "a": 1}), json!({"a": 1, "b": 2}), true),
            (json!({"…": "…", "a": 1}), json!({"b": 2}), false),
            (json!("begin …<17 chars>"), json!("begin anything"), true),
            (json!("it is … here"), json!("it is there"), false),
            (json!({"type": "event", "seq": 4}), json!({"type": "event", "seq": 9}), true),
            (json!({"type": "res", "seq": 4}), json!({"type": "res", "seq": 9}), false),
            (json!({"reason": "self", "host": "a"}), json!({"reason": "self", "host": "b"}), true),
            (json!({"reason": "x", "host": "a"}), json!({"reason": "x", "host": "b"}), false),
            (
                json!("2e158d2b-e08d-4fb7-9d48-8960b2c77a10.jsonl"),
                json!("611937ad-705f-429c-8168-d2aff0f76139.jsonl"),
                true,
            ),
        ] {
            assert_eq!(compare(&recorded, &live, &known).is_ok(), same, "{recorded} and {live}");
        }
    }

    #[test]
    fn live_ids_take_the_place_of_recorded_ones() {
        let mut bindings = Bindings::new();
        bind(
            &json!({"a": ["recorded-1"], "b": "same-text"}),
            &json!({"a": ["live-1"], "b": "same-text"}),
            &mut bindings,
        );
        let mut frame = json!({"params": {"id": "recorded-1", "other": "same-text"}});
        substitute(&mut frame, &bindings);
        assert_eq!(frame, json!({"params": {"id": "live-1", "other": "same-text"}}));
        bindings.insert("/home/user".to_owned(), "/tmp/x".to_owned());
        let mut paths = json!(["/home/user", "/home/user/a", "/home/users/a"]);
        substitute(&mut paths, &bindings);
        assert_eq!(paths, json!(["/tmp/x", "/tmp/x/a", "/home/users/a"]));
    }
}
