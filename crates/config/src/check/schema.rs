//! The embedded schema of the file: what `config.schema` answers with, what a file is checked against, and the defaults that it gives.

use serde_json::{Map, Value, json};

use crate::registry;

/// Schema that `config.schema` answers with.
const SCHEMA: &str = include_str!("../../data/schema.json");
/// Places where more is accepted than clients are told, by dotted path (spec `config.md` §4.4).
const ACCEPTED: &str = include_str!("../../data/accepted.json");

/// Objects whose unknown keys are ignored (spec `config.md` §4.2).
const LENIENT: &[&str] = &["gateway.tls", "hooks.mappings.[].match"];

/// The document that `config.schema` serves.
pub(crate) fn served() -> Value {
    serde_json::from_str(SCHEMA).unwrap_or_default()
}

/// Section whose keys are not read as a whole: it has as much text as all others.
const CHANNELS: &str = "channels";

/// The sections of the schema, not read yet. The file has one on each line: whole, it takes
/// milliseconds to read.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    SCHEMA.lines().filter_map(named)
}

/// The sections of chat platforms, not read yet. Their lines begin with a blank.
fn platforms() -> impl Iterator<Item = (&'static str, &'static str)> {
    SCHEMA.lines().filter_map(|line| named(line.strip_prefix(' ')?))
}

/// Name and text of a section in its line.
fn named(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix('"')?.trim_end_matches(',').split_once("\":")
}

fn section(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// The section of chat platforms, with those that are wanted.
fn channels(head: &str, wanted: impl Fn(&str) -> bool) -> Value {
    let mut channels = section(&format!("{head}}}}}"));
    if let Some(properties) = channels.get_mut("properties").and_then(Value::as_object_mut) {
        let read = |(name, text): (&str, &str)| {
            let schema = if wanted(name) { section(text) } else { Value::Object(Map::new()) };
            (name.to_owned(), schema)
        };
        properties.extend(platforms().map(read));
    }
    channels
}

/// The schema that files are checked against. It knows only the name of sections, and of chat
/// platforms in `channels`, whose path is not wanted: the whole schema takes megabytes and
/// milliseconds, and a file has a few sections. Nor does it say more of platforms whose sections are
/// not checked ([`registry`]).
pub(crate) fn accepted(wanted: impl Fn(&[&str]) -> bool) -> Value {
    let read = |(name, text): (&str, &str)| {
        let schema = match name {
            _ if !wanted(&[name]) => Value::Object(Map::new()),
            CHANNELS => channels(text, |platform| {
                registry::is_section_checked(platform) && wanted(&[CHANNELS, platform])
            }),
            _ => section(text),
        };
        (name.to_owned(), schema)
    };
    let properties: Map<String, Value> = sections().map(read).collect();
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    let is_wanted = |path: &str| wanted(&[path.split('.').next().unwrap_or_default()]);
    let more: Map<String, Value> = serde_json::from_str(ACCEPTED).unwrap_or_default();
    for (path, replacement) in more.into_iter().filter(|(path, _)| is_wanted(path)) {
        if let Some(slot) = slot_at(&mut schema, &path) {
            *slot = replacement;
        }
    }
    for path in LENIENT.iter().filter(|path| is_wanted(path)) {
        if let Some(slot) = slot_at(&mut schema, &format!("{path}.additionalProperties!")) {
            *slot = Value::Bool(true);
        }
    }
    schema
}

/// Keys accepted beyond those that clients are told of, by path; `*` is any name or entry.
pub(crate) fn unlisted() -> Vec<(String, Value)> {
    let more: Map<String, Value> = serde_json::from_str(ACCEPTED).unwrap_or_default();
    let mut served = served();
    let mut is_unlisted = |path: &str| slot_at(&mut served, path).is_none_or(|slot| slot.is_null());
    more.into_iter()
        .filter(|(path, _)| is_unlisted(path))
        .map(|(path, schema)| (path.replace("[]", "*"), schema))
        .collect()
}

/// The place of a dotted schema path: `[]` is the items of an array, `*` the values of a record, `key!` a keyword.
fn slot_at<'a>(schema: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut node = schema;
    for part in path.split('.') {
        node = match part {
            "[]" => node.get_mut("items")?,
            "*" => node.get_mut("additionalProperties")?,
            _ => match part.strip_suffix('!') {
                Some(keyword) => node.get_mut(keyword)?,
                None => node.get_mut("properties")?.as_object_mut()?.entry(part).or_insert(Value::Null),
            },
        };
    }
    Some(node)
}

/// The schema of a plugin's own settings, if it is a plugin of OpenClaw's.
pub(super) fn of_plugin(plugin: &str) -> Option<Value> {
    let (_, text) = sections().find(|(name, _)| *name == "plugins")?;
    section(text)
        .pointer("/properties/entries/properties")?
        .get(plugin)?
        .pointer("/properties/config")
        .cloned()
}

/// The name of a value's type in messages.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Adds the schema's defaults to objects that are present. Returns nothing for absent objects: an absent section stays
/// absent (spec `config.md` §5.3).
pub(crate) fn fill_defaults(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let known = schema.get("properties").and_then(Value::as_object);
            for (key, property) in known.into_iter().flatten() {
                match map.get_mut(key) {
                    Some(present) => fill_defaults(property, present),
                    None => {
                        if let Some(default) = property.get("default") {
                            map.insert(key.clone(), default.clone());
                        }
                    }
                }
            }
            if let Some(values @ Value::Object(_)) = schema.get("additionalProperties") {
                let is_unknown = |key: &str| known.is_none_or(|properties| !properties.contains_key(key));
                map.iter_mut()
                    .filter(|(key, _)| is_unknown(key))
                    .for_each(|(_, each)| fill_defaults(values, each));
            }
        }
        Value::Array(items) => {
            if let Some(each) = schema.get("items") {
                items.iter_mut().for_each(|item| fill_defaults(each, item));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value_path::join;

    /// Paths of the keys of a schema; `*` is any name or entry.
    fn keys(schema: &Value, path: &str, found: &mut std::collections::BTreeSet<String>) {
        for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
            let path = join(path, key);
            keys(schema, &path, found);
            found.insert(path);
        }
        for schema in ["additionalProperties", "items"].iter().filter_map(|keyword| schema.get(keyword)) {
            keys(schema, &join(path, "*"), found);
        }
        for schema in
            ["anyOf", "oneOf", "allOf"].iter().filter_map(|keyword| schema[*keyword].as_array()).flatten()
        {
            keys(schema, path, found);
        }
    }

    /// OpenClaw 2026.2.9 refuses a file with a key that it does not know. The keys it knows of Telegram's section are recorded.
    #[test]
    fn keys_of_our_own_in_telegrams_section_are_named_in_the_documents() {
        const THEIRS: &str = include_str!("../../../../tests/golden/config-telegram-keys.json");
        const PAGE: &str = include_str!("../../../../docs/compatibility.md");
        let theirs: Vec<String> = serde_json::from_str(THEIRS).unwrap();
        let schema = accepted(|path| path.starts_with(&["channels"]));
        let section = &schema["properties"]["channels"]["properties"]["telegram"]["properties"];
        let mut found = std::collections::BTreeSet::new();
        for (key, schema) in section.as_object().unwrap().iter().filter(|(key, _)| *key != "accounts") {
            found.insert(key.clone());
            keys(schema, key, &mut found);
        }
        let ours: Vec<&String> = found.iter().filter(|key| !theirs.contains(key)).collect();
        assert!(ours.iter().any(|key| *key == "apiRoot"), "{ours:?}");
        let unnamed: Vec<&&String> = ours.iter().filter(|key| !PAGE.contains(&format!("`{key}`"))).collect();
        assert!(unnamed.is_empty(), "docs/compatibility.md does not name {unnamed:?}");
    }

    fn whole(name: &str, text: &str) -> Value {
        if name == CHANNELS { channels(text, |_| true) } else { section(text) }
    }

    #[test]
    fn every_section_is_a_line_of_the_embedded_schema() {
        let read: Map<String, Value> =
            sections().map(|(name, text)| (name.to_owned(), whole(name, text))).collect();
        assert_eq!(Some(&Value::Object(read)), served().get("properties"));
    }

    #[test]
    fn the_embedded_documents_are_json() {
        assert!(served().get("properties").is_some_and(Value::is_object));
        assert!(serde_json::from_str::<Map<String, Value>>(ACCEPTED).is_ok());
    }
}
