//! Structure, in the words of the reference's validator (spec `config.md` §4.1).

use regex::Regex;
use serde_json::{Map, Value, json};

use super::choices;
use crate::value_path::{locate, texts};
use crate::{ConfigIssueKind, Issue, nearest};

/// Schema that `config.schema` answers with.
const SCHEMA: &str = include_str!("../../data/schema.json");
/// Places where more is accepted than clients are told, by dotted path (spec `config.md` §4.4).
const ACCEPTED: &str = include_str!("../../data/accepted.json");

/// Objects whose unknown keys are ignored (spec `config.md` §4.2).
const LENIENT: &[&str] = &["gateway.tls", "hooks.mappings.[].match"];

/// Patterns with a text of their own; others say that the string does not match.
const PATTERN_TEXTS: &[(&str, &str)] = &[("^#?[0-9a-fA-F]{6}$", "expected hex color (RRGGBB)")];

/// The document that `config.schema` serves.
pub(crate) fn served() -> Value {
    serde_json::from_str(SCHEMA).unwrap_or_default()
}

/// The sections of the schema, not read yet. The file has one on each line: whole, it takes milliseconds to read.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    SCHEMA.lines().filter_map(|line| line.strip_prefix('"')?.trim_end_matches(',').split_once("\":"))
}

fn section(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// The schema that files are checked against. It knows only the name of sections that are not
/// wanted: the whole schema takes megabytes and milliseconds, and a file has a few sections.
pub(crate) fn accepted(wanted: impl Fn(&str) -> bool) -> Value {
    let read = |(name, text): (&str, &str)| {
        (name.to_owned(), if wanted(name) { section(text) } else { Value::Object(Map::new()) })
    };
    let properties: Map<String, Value> = sections().map(read).collect();
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    let is_wanted = |path: &str| wanted(path.split('.').next().unwrap_or_default());
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

/// Mismatch with the schema, before it is put in words.
#[derive(Debug)]
pub(super) struct SchemaFault {
    path: String,
    kind: FaultKind,
}

#[derive(Debug)]
enum FaultKind {
    Type {
        expected: &'static str,
        received: &'static str,
    },
    /// Allowed choices and the value found, as one text.
    Union(String),
    OneOf {
        allowed: Vec<Value>,
        /// Value found, for people.
        found: String,
    },
    Unknown {
        keys: Vec<String>,
        suggestion: Option<String>,
    },
    RecordKey,
    /// The value has the right shape and misses a limit.
    Limit(String),
}

impl SchemaFault {
    /// True if the value only misses a limit. A union shows such a fault of its only such member.
    fn is_soft(&self) -> bool {
        matches!(self.kind, FaultKind::Limit(_))
    }

    /// The fault in words.
    pub(super) fn into_issue(self) -> Issue {
        let quote = |value: &Value| value.to_string();
        let mut suggested = None;
        let mut detail = None;
        let kind = match self.kind {
            FaultKind::Unknown { .. } => ConfigIssueKind::UnknownKey,
            _ => ConfigIssueKind::Other,
        };
        let message = match self.kind {
            FaultKind::Type { expected, received } => {
                format!("Invalid input: expected {expected}, received {received}")
            }
            FaultKind::Union(explained) => {
                detail = Some(explained);
                "Invalid input".to_owned()
            }
            FaultKind::OneOf { allowed, found } => {
                detail = Some(format!("found {found}"));
                match allowed.as_slice() {
                    [only] => format!("Invalid input: expected {}", quote(only)),
                    many => {
                        let list = many.iter().map(quote).collect::<Vec<_>>().join("|");
                        format!("Invalid option: expected one of {list}")
                    }
                }
            }
            FaultKind::Unknown { keys, suggestion } => {
                suggested = suggestion;
                let list = keys.iter().map(|key| format!("\"{key}\"")).collect::<Vec<_>>().join(", ");
                format!("Unrecognized key{}: {list}", if keys.len() > 1 { "s" } else { "" })
            }
            FaultKind::Limit(text) => text,
            FaultKind::RecordKey => "Invalid key in record".to_owned(),
        };
        Issue { kind, path: self.path, message, suggestion: suggested, detail }
    }
}

/// Checks a whole document.
pub(crate) fn check(document: &Value) -> Vec<Issue> {
    let schema = accepted(|section| document.get(section).is_some());
    check_against(&schema, document, "").into_iter().map(SchemaFault::into_issue).collect()
}

/// The paths of the keys that the schema does not know.
pub(crate) fn unknown_keys(document: &Value) -> Vec<Vec<String>> {
    let schema = accepted(|section| document.get(section).is_some());
    let of_fault = |fault: SchemaFault| -> Vec<Vec<String>> {
        let FaultKind::Unknown { keys, .. } = fault.kind else { return Vec::new() };
        let (above, _) = locate(document, &fault.path);
        keys.into_iter().map(|key| above.iter().cloned().chain([key]).collect()).collect()
    };
    check_against(&schema, document, "").into_iter().flat_map(of_fault).collect()
}

/// Checks a plugin's own settings against the plugin's schema; the texts are those of the validator the reference uses there.
pub(crate) fn check_plugin_config(plugin: &str, config: &Value) -> Vec<String> {
    let plugins =
        sections().find(|(name, _)| *name == "plugins").map_or(Value::Null, |(_, text)| section(text));
    let schema = plugins
        .pointer("/properties/entries/properties")
        .and_then(|plugins| plugins.get(plugin)?.pointer("/properties/config"));
    let Some(schema) = schema else { return Vec::new() };
    let say = |fault: SchemaFault| {
        let text = match fault.kind {
            FaultKind::OneOf { .. } | FaultKind::Union(_) => {
                "must be equal to one of the allowed values".to_owned()
            }
            FaultKind::Type { received: "undefined", .. } => "must be present".to_owned(),
            FaultKind::Type { expected, .. } => format!("must be {expected}"),
            FaultKind::Unknown { .. } => "must NOT have additional properties".to_owned(),
            FaultKind::Limit(text) => text,
            FaultKind::RecordKey => "property name must be valid".to_owned(),
        };
        format!("{}: {text}", if fault.path.is_empty() { "<root>" } else { &fault.path })
    };
    check_against(schema, config, "").into_iter().map(say).collect()
}

/// Checks a value against its schema.
pub(super) fn check_against(schema: &Value, value: &Value, path: &str) -> Vec<SchemaFault> {
    let fault = |kind| vec![SchemaFault { path: path.to_owned(), kind }];
    let one_of = |allowed| FaultKind::OneOf { allowed, found: choices::found(value, path) };
    if let Some(members) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        return check_union(members, value, path);
    }
    if let Some(kinds) = schema.get("type").and_then(Value::as_array) {
        let members: Vec<Value> = kinds.iter().map(|kind| json!({"type": kind})).collect();
        return check_union(&members, value, path);
    }
    if let Some(only) = schema.get("const") {
        return if only == value { Vec::new() } else { fault(one_of(vec![only.clone()])) };
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return if values.contains(value) { Vec::new() } else { fault(one_of(values.clone())) };
    }
    let wrong = |expected| fault(FaultKind::Type { expected, received: type_name(value) });
    match (schema.get("type").and_then(Value::as_str), value) {
        (Some("object"), Value::Object(map)) => check_object(schema, map, path),
        (Some("object"), _) => wrong("object"),
        (Some("array"), Value::Array(items)) => check_array(schema, items, path),
        (Some("array"), _) => wrong("array"),
        (Some("string"), Value::String(text)) => soft(check_string(schema, text), path),
        (Some("string"), _) => wrong("string"),
        (Some("boolean"), Value::Bool(_)) => Vec::new(),
        (Some("boolean"), _) => wrong("boolean"),
        (Some("integer"), Value::Number(number))
            if number.as_i64().is_none() && number.as_u64().is_none() =>
        {
            wrong("int")
        }
        (Some("number" | "integer"), Value::Number(number)) => {
            soft(check_number(schema, number.as_f64()), path)
        }
        (Some("number" | "integer"), _) => wrong("number"),
        _ => Vec::new(),
    }
}

fn soft(found: Option<FaultKind>, path: &str) -> Vec<SchemaFault> {
    found.into_iter().map(|kind| SchemaFault { path: path.to_owned(), kind }).collect()
}

fn check_union(members: &[Value], value: &Value, path: &str) -> Vec<SchemaFault> {
    let mut near: Vec<Vec<SchemaFault>> = Vec::new();
    for member in members {
        let faults = check_against(member, value, path);
        if faults.is_empty() {
            return faults;
        }
        if faults.iter().all(SchemaFault::is_soft) {
            near.push(faults);
        }
    }
    match near.pop() {
        Some(only) if near.is_empty() => only,
        Some(_) | None => {
            let kind = FaultKind::Union(choices::explain(members, value, path));
            vec![SchemaFault { path: path.to_owned(), kind }]
        }
    }
}

fn check_object(schema: &Value, map: &Map<String, Value>, path: &str) -> Vec<SchemaFault> {
    let mut faults = Vec::new();
    let known = schema.get("properties").and_then(Value::as_object);
    for (key, property) in known.into_iter().flatten() {
        match map.get(key) {
            Some(value) => faults.extend(check_against(property, value, &join(path, key))),
            None if is_required(schema, key, property) => faults.push(missing(property, &join(path, key))),
            None => {}
        }
    }
    let is_unknown = |key: &str| known.is_none_or(|properties| !properties.contains_key(key));
    let extra = map.iter().filter(|(key, _)| is_unknown(key));
    match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => {
            let keys: Vec<String> = extra.map(|(key, _)| key.clone()).collect();
            if let Some(first) = keys.first() {
                let names = known.into_iter().flat_map(|properties| properties.keys());
                let suggestion = nearest(first, names.map(String::as_str)).map(str::to_owned);
                faults.push(SchemaFault {
                    path: path.to_owned(),
                    kind: FaultKind::Unknown { keys, suggestion },
                });
            }
        }
        Some(Value::Object(_)) => {
            let values = schema.get("additionalProperties").unwrap_or(&Value::Null);
            for (key, value) in extra {
                if is_valid_key(schema, key) {
                    faults.extend(check_against(values, value, &join(path, key)));
                } else {
                    faults.push(SchemaFault { path: join(path, key), kind: FaultKind::RecordKey });
                }
            }
        }
        _ => {}
    }
    faults
}

/// Fields with a default are listed as required in the schema; on input they are not.
fn is_required(schema: &Value, key: &str, property: &Value) -> bool {
    texts(schema.get("required")).any(|required| required == key) && property.get("default").is_none()
}

fn missing(property: &Value, path: &str) -> SchemaFault {
    let kind = match property.get("type").and_then(Value::as_str) {
        Some("string") if property.get("enum").is_none() && property.get("const").is_none() => {
            FaultKind::Type { expected: "string", received: "undefined" }
        }
        Some("object") => FaultKind::Type { expected: "object", received: "undefined" },
        Some("array") => FaultKind::Type { expected: "array", received: "undefined" },
        Some("number" | "integer") => FaultKind::Type { expected: "number", received: "undefined" },
        Some("boolean") => FaultKind::Type { expected: "boolean", received: "undefined" },
        _ => {
            let nothing = |allowed| FaultKind::OneOf { allowed, found: "nothing".to_owned() };
            let values = property.get("enum").and_then(Value::as_array).cloned();
            let only = property.get("const").map(|only| vec![only.clone()]);
            values.or(only).map_or_else(|| FaultKind::Union(choices::missing(property)), nothing)
        }
    };
    SchemaFault { path: path.to_owned(), kind }
}

fn is_valid_key(schema: &Value, key: &str) -> bool {
    schema
        .pointer("/propertyNames/pattern")
        .and_then(Value::as_str)
        .is_none_or(|pattern| matches(pattern, key))
}

fn check_array(schema: &Value, items: &[Value], path: &str) -> Vec<SchemaFault> {
    let Some(item_schema) = schema.get("items") else { return Vec::new() };
    let check_one =
        |(index, item): (usize, &Value)| check_against(item_schema, item, &join(path, &index.to_string()));
    items.iter().enumerate().flat_map(check_one).collect()
}

fn check_string(schema: &Value, text: &str) -> Option<FaultKind> {
    let limit = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    let length = text.encode_utf16().count() as u64;
    if let Some(least) = limit("minLength").filter(|least| length < *least) {
        return Some(FaultKind::Limit(format!("Too small: expected string to have >={least} characters")));
    }
    if let Some(most) = limit("maxLength").filter(|most| length > *most) {
        return Some(FaultKind::Limit(format!("Too big: expected string to have <={most} characters")));
    }
    let pattern = schema.get("pattern").and_then(Value::as_str)?;
    if matches(pattern, text) {
        return None;
    }
    let own = PATTERN_TEXTS.iter().find(|(known, _)| *known == pattern);
    let text = own.map_or_else(
        || format!("Invalid string: must match pattern /{pattern}/"),
        |(_, text)| (*text).to_owned(),
    );
    Some(FaultKind::Limit(text))
}

fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|regex| regex.is_match(text))
}

fn check_number(schema: &Value, number: Option<f64>) -> Option<FaultKind> {
    let number = number?;
    let rows = [
        ("exclusiveMinimum", "Too small", ">", number > bound(schema, "exclusiveMinimum", f64::NEG_INFINITY)),
        ("minimum", "Too small", ">=", number >= bound(schema, "minimum", f64::NEG_INFINITY)),
        ("exclusiveMaximum", "Too big", "<", number < bound(schema, "exclusiveMaximum", f64::INFINITY)),
        ("maximum", "Too big", "<=", number <= bound(schema, "maximum", f64::INFINITY)),
    ];
    let (keyword, size, sign, _) = rows.into_iter().find(|(_, _, _, holds)| !holds)?;
    let limit = schema.get(keyword)?;
    Some(FaultKind::Limit(format!("{size}: expected number to be {sign}{limit}")))
}

fn bound(schema: &Value, keyword: &str, absent: f64) -> f64 {
    schema.get(keyword).and_then(Value::as_f64).unwrap_or(absent)
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

/// Appends a segment to a dotted path.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
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
        let schema = accepted(|section| section == "channels");
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

    /// Spec `channels.md` §7.1: newer versions of OpenClaw have them.
    #[test]
    fn keys_of_newer_versions_in_telegrams_section_are_taken() {
        let topics = json!({"5": {"errorPolicy": "always"}});
        let groups = json!({"-1": {"errorPolicy": "silent", "topics": topics}});
        let keys = json!({"errorPolicy": "once", "silentErrorReplies": true, "groups": groups});
        for section in [keys.clone(), json!({"accounts": {"b": keys}})] {
            let document = json!({"channels": {"telegram": section}});
            assert_eq!(check(&document), [], "{document}");
        }
        assert_eq!(check(&json!({"channels": {"telegram": {"errorPolicy": "never"}}})).len(), 1);
    }

    #[test]
    fn unknown_keys_come_with_the_key_that_was_meant() {
        let rows = [
            (json!({"gateway": {"prot": 1}}), Some("port")),
            (json!({"gatway": {}}), Some("gateway")),
            (json!({"agents": {"defaults": {"workspce": "x"}}}), Some("workspace")),
            (json!({"zzz": 1}), None),
        ];
        for (document, expect) in rows {
            let issues = check(&document);
            assert_eq!(issues.len(), 1, "{document}");
            assert_eq!(issues[0].suggestion.as_deref(), expect, "{document}");
        }
    }

    #[test]
    fn a_union_shows_the_limit_that_its_only_fitting_member_misses() {
        let schema = json!({"anyOf": [{"type": "string"}, {"type": "number", "minimum": 3}]});
        let messages = |value| -> Vec<String> {
            check_against(&schema, &value, "x").into_iter().map(|fault| fault.into_issue().message).collect()
        };
        assert_eq!(messages(json!(1)), ["Too small: expected number to be >=3"]);
        assert_eq!(messages(json!(true)), ["Invalid input"]);
        assert_eq!(messages(json!("a")), Vec::<String>::new());
    }

    #[test]
    fn every_section_is_a_line_of_the_embedded_schema() {
        let read: Map<String, Value> =
            sections().map(|(name, text)| (name.to_owned(), section(text))).collect();
        assert_eq!(Some(&Value::Object(read)), served().get("properties"));
    }

    #[test]
    fn the_embedded_documents_are_json() {
        assert!(served().get("properties").is_some_and(Value::is_object));
        assert!(serde_json::from_str::<Map<String, Value>>(ACCEPTED).is_ok());
    }
}
