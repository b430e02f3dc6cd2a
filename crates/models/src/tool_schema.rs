//! Tool schemas in the part of JSON Schema that every provider takes (spec `tools.md` §8.3).
//!
//! Google refuses most keywords, OpenAI wants an object at the top, Mistral and others stumble over references. All are sent
//! the same schema, so that a conversation can change its model without its tools changing.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use openclaw_protocol::text_length::utf16_len;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

/// The JSON Schema of a tool's arguments, as its author wrote it. The form for providers is
/// computed once for all calls: clones share it.
#[derive(Clone)]
pub struct ToolSchema(Arc<SchemaForms>);

struct SchemaForms {
    written: Value,
    cleaned: OnceLock<Value>,
    sent: OnceLock<SentSchema>,
    chars: OnceLock<usize>,
}

/// Schema in the serialized form that providers are sent.
pub(crate) struct SentSchema {
    /// All of it.
    pub(crate) whole: Box<RawValue>,
    /// Serialized `properties`.
    pub(crate) properties: Box<RawValue>,
    /// Serialized `required`; an empty list if there is none.
    pub(crate) required: Box<RawValue>,
}

impl ToolSchema {
    /// Schema as models see it, against which arguments are therefore checked: a limit that no
    /// provider is sent refuses nothing. The tool judges the rest.
    pub fn cleaned(&self) -> &Value {
        self.0.cleaned.get_or_init(|| normalise(&self.0.written))
    }

    /// Serialized form for providers: see the module.
    pub(crate) fn sent(&self) -> &SentSchema {
        self.0.sent.get_or_init(|| {
            let whole = self.cleaned();
            // Values can always be written.
            let raw = |value: &Value| to_raw_value(value).unwrap_or_default();
            SentSchema {
                properties: raw(whole.get("properties").unwrap_or(&json!({}))),
                required: raw(whole.get("required").unwrap_or(&json!([]))),
                whole: raw(whole),
            }
        })
    }

    /// Size of the schema as compact JSON, in UTF-16 units.
    pub fn chars(&self) -> usize {
        *self.0.chars.get_or_init(|| utf16_len(&self.0.written.to_string()))
    }
}

impl From<Value> for ToolSchema {
    fn from(written: Value) -> Self {
        Self(Arc::new(SchemaForms {
            written,
            cleaned: OnceLock::new(),
            sent: OnceLock::new(),
            chars: OnceLock::new(),
        }))
    }
}

impl Deref for ToolSchema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.written
    }
}

impl fmt::Debug for ToolSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.written.fmt(f)
    }
}

impl PartialEq for ToolSchema {
    fn eq(&self, other: &Self) -> bool {
        self.0.written == other.0.written
    }
}

/// Keywords that are refused somewhere.
const DROPPED: &[&str] = &[
    "patternProperties",
    "additionalProperties",
    "$schema",
    "$id",
    "$ref",
    "$defs",
    "definitions",
    "examples",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "multipleOf",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];
/// Keywords that stay beside a definition that is put in the place of its reference, or of its only variant.
const KEPT_BESIDE: &[&str] = &["description", "title", "default"];
/// Deepest schema that is followed.
const MAX_DEPTH: usize = 64;
/// Largest number of parts of a schema once its references are resolved: with references a short
/// text can stand for an endless one.
const MAX_PARTS: usize = 10_000;

/// The schema of a tool's arguments as it is sent: an object with `properties`, without what is refused somewhere, and of the
/// same meaning as far as that can be said.
fn normalise(schema: &Value) -> Value {
    let merged = ["anyOf", "oneOf"].iter().find_map(|name| merge_variants(schema, name));
    let mut cleaned = clean(merged.as_ref().unwrap_or(schema));
    let Some(fields) = cleaned.as_object_mut() else { return json!({"type": "object", "properties": {}}) };
    if fields.get("type").and_then(Value::as_str) != Some("object") {
        fields.insert("type".to_owned(), json!("object"));
    }
    if !fields.get("properties").is_some_and(Value::is_object) {
        fields.insert("properties".to_owned(), json!({}));
    }
    cleaned
}

fn clean(schema: &Value) -> Value {
    Cleaner { root: schema, followed: Vec::new(), left: MAX_PARTS }.schema(schema, 0)
}

/// Merges several variants of the arguments into one object: it has the properties of all of them
/// and requires what all of them require. `None` if the schema has no such variants.
fn merge_variants(schema: &Value, name: &str) -> Option<Value> {
    let base = schema.as_object()?;
    let variants = base.get(name)?.as_array()?;
    let objects: Vec<&Map<String, Value>> = variants
        .iter()
        .filter_map(|variant| followed(schema, variant).as_object())
        .filter(|variant| variant.contains_key("properties"))
        .collect();
    let mut properties = base.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for variant in &objects {
        for (name, value) in variant.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let known = properties.get(name).map(|known| merge_property(known, value));
            properties.insert(name.clone(), known.unwrap_or_else(|| value.clone()));
        }
    }
    let mut out = base.clone();
    out.shift_remove(name);
    out.insert("type".to_owned(), json!("object"));
    out.insert("properties".to_owned(), Value::Object(properties));
    if !base.contains_key("required") {
        let required = required_by_all(&objects);
        if !required.is_empty() {
            out.insert("required".to_owned(), json!(required));
        }
    }
    Some(Value::Object(out))
}

/// A variant, or what its reference stands for.
fn followed<'a>(root: &'a Value, variant: &'a Value) -> &'a Value {
    let place = variant.get("$ref").and_then(Value::as_str).and_then(|place| place.strip_prefix('#'));
    place.and_then(|pointer| root.pointer(pointer)).unwrap_or(variant)
}

fn required_by_all<'a>(variants: &[&'a Map<String, Value>]) -> Vec<&'a str> {
    let required = |variant: &&'a Map<String, Value>| -> Vec<&'a str> {
        variant
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    };
    let mut all = variants.iter().map(required);
    let first = all.next().unwrap_or_default();
    all.fold(first, |kept, next| kept.into_iter().filter(|name| next.contains(name)).collect())
}

/// A property of two variants: what either lists where both are lists of literals, else as the first has it.
fn merge_property(known: &Value, other: &Value) -> Value {
    let listed = |property: &Value| match (property.get("enum"), property.get("const")) {
        (Some(values), _) => values.as_array().cloned(),
        (None, Some(value)) => Some(vec![value.clone()]),
        (None, None) => None,
    };
    let (Some(mut values), Some(more)) = (listed(known), listed(other)) else { return known.clone() };
    for value in more {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let mut merged = known.clone();
    if let Some(fields) = merged.as_object_mut() {
        fields.shift_remove("const");
        fields.insert("enum".to_owned(), Value::Array(values));
    }
    merged
}

struct Cleaner<'a> {
    root: &'a Value,
    /// References being followed, so that a circle ends.
    followed: Vec<&'a str>,
    /// Parts that may still be written.
    left: usize,
}

impl<'a> Cleaner<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Value {
        let Some(fields) = schema.as_object() else {
            // `true` and `false` are schemas too.
            return json!({});
        };
        if depth > MAX_DEPTH || self.left == 0 {
            return json!({});
        }
        self.left -= 1;
        if let Some(place) = fields.get("$ref").and_then(Value::as_str) {
            return beside(fields, self.reference(place, depth));
        }
        let mut out = Map::new();
        for (name, value) in fields {
            match name.as_str() {
                name if DROPPED.contains(&name) => {}
                "const" => {
                    out.insert("enum".to_owned(), json!([value]));
                }
                "type" => {
                    if !fields.contains_key("anyOf") && !fields.contains_key("oneOf") {
                        out.insert("type".to_owned(), without_null(value));
                    }
                }
                "properties" => {
                    let properties = value.as_object().into_iter().flatten();
                    let cleaned = properties.map(|(name, v)| (name.clone(), self.schema(v, depth + 1)));
                    let cleaned: Map<String, Value> = cleaned.collect();
                    out.insert("properties".to_owned(), Value::Object(cleaned));
                }
                "items" if value.is_object() => {
                    out.insert("items".to_owned(), self.schema(value, depth + 1));
                }
                "anyOf" | "oneOf" | "allOf" => self.variants(name, value, depth, &mut out),
                _ => {
                    out.insert(name.clone(), value.clone());
                }
            }
        }
        Value::Object(out)
    }

    fn reference(&mut self, place: &'a str, depth: usize) -> Value {
        let target = place.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let Some(target) = target.filter(|_| !self.followed.contains(&place)) else { return json!({}) };
        self.followed.push(place);
        let cleaned = self.schema(target, depth + 1);
        self.followed.pop();
        cleaned
    }

    /// Null is no variant; a single one stands for itself; literals become one list.
    fn variants(&mut self, name: &str, value: &'a Value, depth: usize, out: &mut Map<String, Value>) {
        let all = value.as_array().into_iter().flatten();
        let mut variants: Vec<Value> = all
            .filter(|variant| variant.get("type") != Some(&json!("null")))
            .map(|variant| self.schema(variant, depth + 1))
            .collect();
        if name != "allOf"
            && let Some(literals) = literals(&variants)
        {
            out.extend(literals);
        } else if variants.len() == 1 {
            let only = variants.pop().and_then(|only| only.as_object().cloned()).unwrap_or_default();
            for (field, value) in only {
                out.entry(field).or_insert(value);
            }
        } else if !variants.is_empty() {
            out.insert(name.to_owned(), Value::Array(variants));
        }
    }
}

fn beside(fields: &Map<String, Value>, mut target: Value) -> Value {
    if let Some(target) = target.as_object_mut() {
        for name in KEPT_BESIDE {
            if let Some(value) = fields.get(*name) {
                target.insert((*name).to_owned(), value.clone());
            }
        }
    }
    target
}

fn without_null(kind: &Value) -> Value {
    let Some(kinds) = kind.as_array() else { return kind.clone() };
    let kept: Vec<&Value> = kinds.iter().filter(|kind| **kind != "null").collect();
    match kept.as_slice() {
        [only] => (*only).clone(),
        _ => json!(kept),
    }
}

/// `type` and `enum` of variants that are literals of one type.
fn literals(variants: &[Value]) -> Option<Map<String, Value>> {
    let mut values = Vec::new();
    let mut kind = None;
    for variant in variants {
        let listed = variant.get("enum")?.as_array()?;
        for value in listed {
            let is = kind_of(value)?;
            if *kind.get_or_insert(is) != is {
                return None;
            }
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
    }
    let mut out = Map::new();
    out.insert("type".to_owned(), json!(kind?));
    out.insert("enum".to_owned(), Value::Array(values));
    Some(out)
}

fn kind_of(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(_) => Some("string"),
        Value::Number(_) => Some("number"),
        Value::Bool(_) => Some("boolean"),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_google_refuses_is_left_out_or_said_otherwise() {
        let rows = [
            (
                json!({"$schema": "x", "type": "object", "additionalProperties": false, "required": ["a"],
                    "properties": {"a": {"type": "string", "minLength": 1, "format": "uri", "description": "d"},
                        "format": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 3}}}),
                json!({"type": "object", "required": ["a"],
                    "properties": {"a": {"type": "string", "description": "d"},
                        "format": {"type": "array", "items": {"type": "integer"}}}}),
            ),
            (json!({"const": "x"}), json!({"enum": ["x"]})),
            (json!({"type": ["string", "null"]}), json!({"type": "string"})),
            (json!({"type": ["string", "number", "null"]}), json!({"type": ["string", "number"]})),
            (
                json!({"description": "d", "anyOf": [{"const": "a"}, {"enum": ["b", "a"]}, {"type": "null"}]}),
                json!({"description": "d", "type": "string", "enum": ["a", "b"]}),
            ),
            (
                json!({"type": "string", "oneOf": [{"type": "string", "pattern": "x"}, {"type": "number"}]}),
                json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            ),
            (
                json!({"description": "mine", "anyOf": [{"type": "number", "description": "its"}, {"type": "null"}]}),
                json!({"description": "mine", "type": "number"}),
            ),
            (
                json!({"anyOf": [{"const": 1}, {"const": "a"}]}),
                json!({"anyOf": [{"enum": [1]}, {"enum": ["a"]}]}),
            ),
            (
                json!({"$defs": {"P": {"type": "object", "properties": {"next": {"$ref": "#/$defs/P"}}}},
                    "type": "object", "properties": {"p": {"$ref": "#/$defs/P", "description": "d", "x": 1},
                        "gone": {"$ref": "#/$defs/Q"}, "far": {"$ref": "https://x"}}}),
                json!({"type": "object", "properties": {
                    "p": {"type": "object", "properties": {"next": {}}, "description": "d"}, "gone": {}, "far": {}}}),
            ),
            (
                json!({"type": "object", "properties": {"any": true}}),
                json!({"type": "object", "properties": {"any": {}}}),
            ),
        ];
        for (schema, expect) in rows {
            assert_eq!(clean(&schema), expect, "{schema}");
            assert_eq!(clean(&expect), expect, "twice is once: {schema}");
        }
    }

    /// The table of `tools.md` §8.3.
    #[test]
    fn the_table_of_the_specification_holds() {
        for (schema, expect) in [
            (
                json!({"anyOf": [{"const": "a", "type": "string"}, {"const": "b", "type": "string"}]}),
                json!({"type": "string", "enum": ["a", "b"]}),
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "null"}], "description": "d"}),
                json!({"type": "string", "description": "d"}),
            ),
            (json!({"type": ["string", "null"]}), json!({"type": "string"})),
            (json!({"type": "number", "minimum": 1}), json!({"type": "number"})),
        ] {
            assert_eq!(clean(&schema), expect, "{schema}");
        }
        let dropped = "patternProperties additionalProperties $schema $id $defs definitions examples minLength maxLength minimum \
                       maximum multipleOf pattern format minItems maxItems uniqueItems minProperties maxProperties";
        for name in dropped.split_whitespace() {
            let schema = json!({"type": "object", name: {}});
            assert_eq!(clean(&schema), json!({"type": "object"}), "{name}");
        }
    }

    /// The three cases of `tools.md` §8.3.
    #[test]
    fn the_arguments_are_one_object_whatever_the_schema_says() {
        let rows = [
            (
                json!({"type": "object", "properties": {"a": {"type": "number", "minimum": 1}}, "required": ["a"]}),
                json!({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}),
            ),
            (
                json!({"properties": {"a": {"const": "x"}}}),
                json!({"type": "object", "properties": {"a": {"enum": ["x"]}}}),
            ),
            (json!({"required": ["a"]}), json!({"type": "object", "required": ["a"], "properties": {}})),
            (json!({}), json!({"type": "object", "properties": {}})),
            (json!(true), json!({"type": "object", "properties": {}})),
            (
                json!({"description": "d", "anyOf": [
                    {"type": "object", "required": ["action", "id"], "properties":
                        {"action": {"const": "get"}, "id": {"type": "string", "format": "uuid"}}},
                    {"$ref": "#/$defs/list"}, {"type": "null"}],
                    "$defs": {"list": {"type": "object", "required": ["limit", "action"], "additionalProperties": false,
                        "properties": {"action": {"enum": ["list", "get"]}, "limit": {"type": "integer", "maximum": 9}}}}}),
                json!({"description": "d", "type": "object", "required": ["action"], "properties": {
                    "action": {"enum": ["get", "list"]}, "id": {"type": "string"}, "limit": {"type": "integer"}}}),
            ),
            (
                json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}},
                    "oneOf": [{"properties": {"b": {"type": "string"}}, "required": ["b"]},
                        {"properties": {"a": {"type": "number"}}}]}),
                json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"},
                    "b": {"type": "string"}}}),
            ),
        ];
        for (schema, expect) in rows {
            assert_eq!(normalise(&schema), expect, "{schema}");
            assert_eq!(normalise(&expect), expect, "twice is once: {schema}");
        }
    }

    #[test]
    fn references_that_multiply_end_somewhere() {
        let deep =
            (0..200).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
        assert!(clean(&deep).to_string().len() < deep.to_string().len());
        let names: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        let all: Map<_, _> =
            names.iter().map(|n| (n.clone(), json!({"$ref": format!("#/$defs/{n}")}))).collect();
        let each = json!({"type": "object", "properties": all});
        let defs: Map<_, _> = names.iter().map(|n| (n.clone(), each.clone())).collect();
        let written = clean(&json!({"$defs": defs, "type": "object", "properties": all})).to_string();
        assert!(written.len() < 1024 * 1024, "{}", written.len());
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(true)),
            Just(json!(null)),
            Just(json!({"$ref": "#"})),
            Just(json!({"$ref": "#/properties/a"})),
            Just(json!({"const": 1})),
            Just(json!({"type": ["null"]})),
            Just(json!({"enum": []})),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            (prop::sample::select(vec!["anyOf", "oneOf", "allOf", "items", "properties"]), prop::collection::vec(inner, 0..4))
                .prop_map(|(name, parts)| match name {
                    "items" => json!({"type": "array", "items": parts.first()}),
                    "properties" => {
                        let named = ["a", "b", "c", "d"].iter().zip(parts);
                        json!({"type": "object", "properties": named.map(|(n, v)| ((*n).to_owned(), v)).collect::<Map<_, _>>()})
                    }
                    name => json!({name: parts, "type": "string"}),
                })
        })
    }

    proptest! {
        #[test]
        fn any_schema_is_cleaned(schema in any_schema()) {
            let text = clean(&schema).to_string();
            prop_assert!(!text.contains("$ref") && !text.contains("\"const\""), "{}", text);
            let whole = normalise(&schema);
            prop_assert!(whole["type"] == "object" && whole["properties"].is_object(), "{}", whole);
        }
    }
}
