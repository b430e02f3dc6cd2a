//! Keys that the product acts on. All others of OpenClaw are accepted and reported once at start,
//! never silently ignored.

use serde_json::Value;

use crate::Loaded;
use crate::check::structure;
use crate::legacy;
use crate::registry::CHANNELS;
use crate::value_path::join;

/// Paths of the keys that the product acts on, one a line; `*` is any name or entry. Keys below them
/// are acted on too. Generated from the typed settings by `tests/generated.rs`; the keys of a chat
/// platform are in its row of [`CHANNELS`].
const ACTED_ON: &str = include_str!("../data/acted_on/settings.txt");

/// Keys that are acted on and read from the document itself, without a type in [`crate::settings`].
pub const READ_WITHOUT_TYPE: &[&str] = &[
    "$schema",
    "meta",
    "wizard",
    "env",
    "commands.native",
    "commands.nativeSkills",
    "commands.ownerAllowFrom",
    // There is one driver, and nothing to load for it.
    "agents.defaults.memorySearch.store.driver",
    "agents.defaults.memorySearch.store.vector.extensionPath",
    "agents.list.*.memorySearch.store.driver",
    "agents.list.*.memorySearch.store.vector.extensionPath",
    "hooks.internal.entries",
    "hooks.internal.installs",
    "plugins.enabled",
    "plugins.allow",
    "plugins.deny",
    "plugins.entries.memory-core.enabled",
    "plugins.entries.telegram.enabled",
    "plugins.slots.memory",
    "channels.defaults.groupPolicy",
];

/// Keys that have a type and are not acted on, and why.
pub const NOT_ACTED_ON: &[(&str, &str)] = &[
    ("agents.list.*.groupChat.historyLimit", "of one type with messages.groupChat, which is acted on"),
    ("gateway.tailscale", "a protection: refused"),
    ("gateway.tls", "a protection: refused"),
];

/// Table of keys that are acted on.
#[derive(Debug, Clone)]
pub struct SupportedKeys<'a>(Vec<&'a str>);

impl SupportedKeys<'static> {
    /// The keys of this build.
    pub fn of_build() -> Self {
        Self::new([ACTED_ON].into_iter().chain(CHANNELS.iter().map(|channel| channel.keys)))
    }
}

impl<'a> SupportedKeys<'a> {
    /// Reads tables with one key a line.
    pub fn new(tables: impl IntoIterator<Item = &'a str>) -> Self {
        Self(tables.into_iter().flat_map(str::lines).collect())
    }

    /// True if the product acts on the key at this path.
    pub fn acts_on(&self, path: &[String]) -> bool {
        self.support_of(path) == Support::Full
    }

    /// True if the product acts on the key at this path, or on one below it.
    pub fn acts_below(&self, path: &[String]) -> bool {
        self.support_of(path) != Support::None
    }

    fn support_of(&self, path: &[String]) -> Support {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match path.as_slice() {
            // An account has the keys of its channel.
            ["channels", _, "accounts"] | ["channels", _, "accounts", _] => Support::Partial,
            ["channels", channel, "accounts", _, rest @ ..] => {
                self.lookup(&[&["channels", channel], rest].concat())
            }
            _ => self.lookup(&path),
        }
    }

    fn lookup(&self, path: &[&str]) -> Support {
        self.0.iter().map(|key| support_by(key, path)).max().unwrap_or(Support::None)
    }
}

/// Support for a path by one key of the table.
fn support_by(key: &str, path: &[&str]) -> Support {
    let mut steps = path.iter();
    for part in key.split('.') {
        match steps.next() {
            Some(step) if part == "*" || part == *step => {}
            Some(_) => return Support::None,
            None => return Support::Partial,
        }
    }
    Support::Full
}

/// The paths of the file that are accepted but not acted on yet, the shortest that says it. Keys
/// that nobody knows are none of them: no later version will act on them.
pub fn unsupported(loaded: &Loaded) -> Vec<String> {
    let is_sound = loaded.snapshot.issues.is_empty();
    let unknown: fn(&Value) -> Vec<Vec<String>> =
        if is_sound { |_| Vec::new() } else { structure::unknown_keys };
    unsupported_in(&loaded.snapshot.parsed, unknown)
}

fn unsupported_in(document: &Value, unknown_keys: fn(&Value) -> Vec<Vec<String>>) -> Vec<String> {
    let mut found = Vec::new();
    // Keys that are moved in memory are judged by their new place.
    let moved = legacy::migrate(document).map(|(moved, _)| moved);
    let document = moved.as_ref().unwrap_or(document);
    let keys = SupportedKeys::of_build();
    walk(&keys, document, &unknown_keys(document), &mut Vec::new(), &mut found);
    found
}

/// True if anything below is acted on; paths that are not go to `found`, but for `unknown` ones.
fn walk(
    keys: &SupportedKeys<'_>,
    value: &Value,
    unknown: &[Vec<String>],
    path: &mut Vec<String>,
    found: &mut Vec<String>,
) -> bool {
    let mut any = false;
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, each)| (key.clone(), each)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, each)| (at.to_string(), each)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return false,
    };
    for (key, each) in children.into_iter().filter(|(key, _)| key != "$include") {
        path.push(key);
        match keys.support_of(path) {
            Support::Full => any |= !is_blank(each),
            // An empty value asks for nothing.
            Support::Partial if is_empty(each) => {}
            Support::Partial => {
                let before = found.len();
                let is_acted_on = walk(keys, each, unknown, path, found);
                // A platform of which nothing is acted on gets one line, not one for each of its
                // keys.
                let asks_for_something = found.len() > before;
                let is_channel = path.first().is_some_and(|section| section == "channels");
                if !is_acted_on && asks_for_something && is_channel {
                    found.truncate(before);
                    found.push(dotted(path));
                }
                any |= is_acted_on;
            }
            Support::None if unknown.contains(path) => {}
            Support::None => found.push(dotted(path)),
        }
        path.pop();
    }
    any
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// True if a value has nothing but empty values inside.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().all(is_blank),
        Value::Array(items) => items.iter().all(is_blank),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn dotted(path: &[String]) -> String {
    path.iter().fold(String::new(), |text, part| join(&text, part))
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Support {
    None,
    /// Something below is acted on.
    Partial,
    Full,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_moved_on_load_is_named_by_its_new_place() {
        let rows = [
            (json!({"telegram": {"botToken": "t"}}), vec![]),
            (json!({"telegram": {"botToken": "t", "x": 1}}), vec!["channels.telegram.x"]),
            (json!({"telegram": {"botToken": "t"}, "channels": {"telegram": {"enabled": true}}}), vec![]),
            (json!({"slack": {"botToken": "t"}}), vec!["channels"]),
        ];
        for (document, expect) in rows {
            assert_eq!(unsupported_in(&document, |_| Vec::new()), expect, "{document}");
        }
    }

    #[test]
    fn misspelt_keys_are_none_that_a_later_version_will_act_on() {
        let document = json!({
            "gatway": {"port": 1},
            "gateway": {"prot": 1, "tls": {"enabled": true}},
            "telegram": {"botTokn": "t"},
            "agents": {"defaults": {"thinking": "low", "imageModel": {"primary": "a/b"}}},
        });
        assert_eq!(unsupported_in(&document, structure::unknown_keys), ["gateway.tls"]);
    }

    #[test]
    fn the_shortest_unsupported_path_is_named_once() {
        let document = json!({
            "gateway": {"port": 1, "tls": {"enabled": true, "certPath": "x"}},
            "env": {"FOO": "1", "shellEnv": {"enabled": true}},
            "agents": {"list": [{"id": "a", "groupChat": {"historyLimit": 5}}]},
            "cron": {"enabled": true},
            "channels": {"discord": {"token": "t"}},
        });
        let mut found = Vec::new();
        let keys = SupportedKeys::of_build();
        walk(&keys, &document, &[], &mut Vec::new(), &mut found);
        assert_eq!(found, ["gateway.tls", "agents.list.0.groupChat.historyLimit", "cron", "channels"]);
        let telegram = json!({"botToken": "t", "x": {"y": 1}, "accounts": {"a": {"name": "A", "z": {"5": {"historyLimit": 1}}}, "default": {}}});
        let document = json!({"channels": {"telegram": telegram, "slack": {"botToken": "t", "dms": {}}}});
        found.clear();
        walk(&keys, &document, &[], &mut Vec::new(), &mut found);
        let expect = ["channels.telegram.x", "channels.telegram.accounts.a.z", "channels.slack"];
        assert_eq!(found, expect);
        // Keys that OpenClaw 2026.2.9 refuses and that are acted on here are not listed.
        let groups = json!({"-1": {"errorPolicy": "silent", "topics": {"5": {"errorPolicy": "once"}}}});
        let telegram =
            json!({"botToken": "t", "errorPolicy": "once", "silentErrorReplies": true, "groups": groups});
        found.clear();
        walk(&keys, &json!({"channels": {"telegram": telegram}}), &[], &mut Vec::new(), &mut found);
        assert_eq!(found, [""; 0]);
    }
}
