//! Frames from clients, read in two steps: first the sender and the method, then the params when
//! the call is allowed.
//!
//! A JSON text of many small values takes fifty times its size in memory once it is read. A client
//! that may not call a method must not make the gateway pay that.

use std::fmt;
use std::sync::LazyLock;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::error::ErrorShape;
use crate::schema::{Schema, Violations};
use crate::text_length::utf16_head;

/// Values that params may hold, those in lists and objects counted. No method needs a tenth of it.
const MOST_VALUES: usize = 20_000;
/// Unknown members of an envelope that a refusal names.
const MOST_UNKNOWN: usize = 16;
/// Characters of the name of one.
const MOST_NAME: usize = 200;

/// Text frame of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Inbound<'a> {
    /// A request.
    Request(Envelope<'a>),
    /// JSON, but not a request: after the handshake it is answered with this id and error.
    Invalid {
        /// The frame's own id where it has one, else `invalid`.
        id: String,
        /// `invalid request frame: …`
        error: ErrorShape,
    },
    /// Not JSON: after the handshake it gets no answer.
    NotJson,
}

/// A request whose params are not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Opaque; the answer carries it.
    pub id: String,
    /// Name of the method.
    pub method: String,
    params: Option<&'a str>,
}

impl Envelope<'_> {
    /// Reads the params; absent ones are `{}`.
    ///
    /// # Errors
    /// `invalid <method> params: …` for more values or deeper nesting than any method needs.
    pub fn params(&self) -> Result<Value, ErrorShape> {
        let Some(params) = self.params else { return Ok(Value::Object(Map::new())) };
        let refuse = |what: &str| ErrorShape::invalid_params(utf16_head(&self.method, MOST_NAME), what);
        // A value takes two bytes, but for the last.
        if params.len() > 2 * MOST_VALUES && count_values(params) > MOST_VALUES {
            return Err(refuse(&format!("must NOT have more than {MOST_VALUES} values")));
        }
        serde_json::from_str(params).map_err(|error| refuse(&error.to_string()))
    }
}

/// Reads what a client sent, except params. The envelope is strict: unknown members are refused.
pub fn parse_inbound(text: &str) -> Inbound<'_> {
    let Ok(Members { mut shallow, params }) = serde_json::from_str(text) else {
        let is_other_json =
            !text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok();
        return if is_other_json { invalid(None, &REQUEST.validate(&Value::Null)) } else { Inbound::NotJson };
    };
    let document = Value::Object(shallow.clone());
    let violations = REQUEST.validate(&document);
    let mut text = |name: &str| match shallow.get_mut(name).map(Value::take) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    match (text("id"), text("method")) {
        (Some(id), Some(method)) if violations.is_empty() => {
            Inbound::Request(Envelope { id, method, params })
        }
        (id, _) => invalid(id, &violations),
    }
}

fn invalid(id: Option<String>, violations: &Violations<'_>) -> Inbound<'static> {
    let error = ErrorShape::invalid(format!("invalid request frame: {}", violations.text()));
    Inbound::Invalid { id: id.unwrap_or_else(|| "invalid".to_owned()), error }
}

static REQUEST: LazyLock<Schema> = LazyLock::new(|| {
    Schema::compile(&json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "const": "req"},
            "id": {"type": "string", "minLength": 1},
            "method": {"type": "string", "minLength": 1},
            "params": {},
        },
        "required": ["type", "id", "method"],
        "additionalProperties": false,
    }))
});

/// The members of an envelope, as deep as its schema looks.
struct Members<'a> {
    shallow: Map<String, Value>,
    params: Option<&'a str>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut shallow, mut params) = (Map::new(), None);
        let mut unknown = 0;
        // As everywhere in JSON, the last of members with one name counts.
        while let Some(name) = map.next_key::<String>()? {
            let value: &'de RawValue = map.next_value()?;
            match name.as_str() {
                "params" => {
                    params = Some(value.get());
                    shallow.insert(name, Value::Null);
                }
                "type" | "id" | "method" => {
                    shallow.insert(name, scalar(value));
                }
                _ if unknown < MOST_UNKNOWN => {
                    unknown += 1;
                    shallow.insert(utf16_head(&name, MOST_NAME).to_owned(), Value::Null);
                }
                _ => {}
            }
        }
        Ok(Members { shallow, params })
    }
}

/// A value without what is in it.
fn scalar(value: &RawValue) -> Value {
    match value.get().as_bytes().first() {
        Some(b'{') => Value::Object(Map::new()),
        Some(b'[') => Value::Array(Vec::new()),
        // Only a text that escapes half a character can't be read; it is no text then.
        _ => serde_json::from_str(value.get()).unwrap_or_default(),
    }
}

/// Number of values in a valid JSON text.
fn count_values(json: &str) -> usize {
    let opened = |text: &str| text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    let (mut count, mut rest) = (1, json);
    while let Some((before, string)) = rest.split_once('"') {
        count += opened(before);
        rest = after_string(string);
    }
    count + opened(rest)
}

/// Rest of the text after a string whose opening quote was read.
fn after_string(text: &str) -> &str {
    let mut quotes = text.match_indices('"');
    let is_end = |at: usize| {
        let before = text.as_bytes().get(..at).unwrap_or_default();
        before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0
    };
    let end = quotes.find(|(at, _)| is_end(*at)).map_or(text.len(), |(at, _)| at + 1);
    text.get(end..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Envelope<'_> {
        match parse_inbound(text) {
            Inbound::Request(request) => request,
            other => panic!("{other:?}"),
        }
    }

    /// Vectors of spec §2.2.
    #[test]
    fn malformed_frames_are_answered_with_the_texts_clients_know() {
        let rows = [
            (
                r#"{"type":"req","id":"","method":"health"}"#,
                "",
                "at /id: must NOT have fewer than 1 characters",
            ),
            (r#"{"type":"req","method":"health"}"#, "invalid", "must have required property 'id'"),
            (
                r#"{"type":"req","id":"xx1","method":"health","extra":1}"#,
                "xx1",
                "at root: unexpected property 'extra'",
            ),
            (
                r#"{"type":"event","event":"foo"}"#,
                "invalid",
                "must have required property 'id'; must have required property 'method'; at root: unexpected \
                 property 'event'; at /type: must be equal to constant",
            ),
            (r#"{"type":"req","id":{"a":[1]},"method":"health"}"#, "invalid", "at /id: must be string"),
            ("[]", "invalid", "must be object"),
            ("null", "invalid", "must be object"),
            (" 1 ", "invalid", "must be object"),
        ];
        for (text, id, what) in rows {
            let error = ErrorShape::invalid(format!("invalid request frame: {what}"));
            assert_eq!(parse_inbound(text), Inbound::Invalid { id: id.to_owned(), error }, "{text}");
        }
        for text in ["not json at all", "", "{", &"[".repeat(100_000), r#"{"type":"req","id":"1"} x"#] {
            assert_eq!(parse_inbound(text), Inbound::NotJson);
        }
    }

    #[test]
    fn params_are_read_when_they_are_asked_for() {
        let rows = [
            (r#"{"type":"req","id":"1","method":"m"}"#, json!({})),
            (r#"{"params":null,"type":"req","id":"1","method":"m"}"#, json!(null)),
            (r#" {"type":"req","id":"1","params":{"a":[1,"\u00e9"]},"method":"m"} "#, json!({"a": [1, "é"]})),
            (r#"{"type":"req","id":"1","method":"m","params":1,"params":2}"#, json!(2)),
        ];
        for (text, expect) in rows {
            let request = read(text);
            assert_eq!((request.id.as_str(), request.method.as_str()), ("1", "m"));
            assert_eq!(request.params().unwrap(), expect, "{text}");
        }
    }

    #[test]
    fn params_of_too_many_values_or_too_deep_ones_are_refused_and_the_request_is_known() {
        let with = |params: &str| format!(r#"{{"type":"req","id":"1","method":"m","params":{params}}}"#);
        let list = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
        assert!(read(&with(&list(MOST_VALUES - 1))).params().is_ok());
        let refused = |params: &str| read(&with(params)).params().map(drop).unwrap_err().message;
        assert_eq!(refused(&list(MOST_VALUES)), "invalid m params: must NOT have more than 20000 values");
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(refused(&deep).starts_with("invalid m params: recursion limit exceeded"));
    }

    #[test]
    fn values_are_counted_outside_of_texts() {
        let rows = [
            ("1", 1),
            ("[1,2]", 3),
            (r#"{"a":1,"b":[{}]}"#, 5),
            (r#"",[{\",[{\\""#, 1),
            (r#"["\\","\"",","]"#, 4),
            (r#"{"a,[":"]"}"#, 2),
        ];
        for (json, least) in rows {
            assert!(serde_json::from_str::<IgnoredAny>(json).is_ok(), "{json}");
            let count = count_values(json);
            assert!((least..=least + 1).contains(&count), "{json}: {count}");
        }
    }

    #[test]
    fn a_refusal_has_an_end_however_many_members_there_are() {
        let members: Vec<String> =
            (0..1_000).map(|number| format!(r#""{number}{}":1"#, "x".repeat(1_000))).collect();
        let Inbound::Invalid { id, error } = parse_inbound(&format!(r#"{{{},"id":"7"}}"#, members.join(",")))
        else {
            panic!("it is no request")
        };
        assert!(id == "7" && error.message.len() < 5_000, "{}", error.message.len());
    }
}
