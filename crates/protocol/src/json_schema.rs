//! JSON Schemas of types, in the form that OpenClaw's own have.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// JSON Schema of what a method accepts, every part in place, in the form the validator expects: an optional field does
/// not accept `null`, and a closed set of texts is an `anyOf` of constants.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut value = settings.into_generator().into_root_schema_for::<T>().to_value();
    normalise(&mut value);
    value
}

/// The schema of a type inside a document whose definitions the generator collects.
pub(crate) fn schema_in<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

/// Brings generated schemas into the form OpenClaw's own have.
pub(crate) fn normalise(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(normalise);
            constants(fields);
            flat_choice(fields);
            without_optional_null(fields);
            without_number_format(fields);
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A closed set of texts becomes an `anyOf` of constants.
fn constants(schema: &mut Map<String, Value>) {
    let texts =
        schema.get("enum").and_then(Value::as_array).filter(|_| schema.get("type") == Some(&json!("string")));
    if let Some(texts) = texts {
        let branches: Vec<Value> =
            texts.iter().map(|text| json!({"const": text, "type": "string"})).collect();
        schema.shift_remove("enum");
        schema.shift_remove("type");
        if let [only] = branches.as_slice() {
            schema.extend(only.as_object().cloned().unwrap_or_default());
        } else {
            schema.insert("anyOf".to_owned(), Value::Array(branches));
        }
    }
    let literal = |branch: &Value| branch.get("const").is_some() || branch.get("anyOf").is_some();
    if schema.get("oneOf").and_then(Value::as_array).is_some_and(|branches| branches.iter().all(literal))
        && let Some(branches) = schema.shift_remove("oneOf")
    {
        schema.insert("anyOf".to_owned(), branches);
    }
}

/// An `anyOf` directly inside an `anyOf` is spread out.
fn flat_choice(schema: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = schema.get_mut("anyOf") else { return };
    let mut flat = Vec::with_capacity(branches.len());
    for mut branch in branches.drain(..) {
        match branch.as_object_mut().map(|fields| (fields.contains_key("type"), fields.get_mut("anyOf"))) {
            Some((false, Some(Value::Array(inner)))) => flat.append(inner),
            _ => flat.push(branch),
        }
    }
    *branches = flat;
}

/// A key that may be absent may not be `null`, unless [`crate::params::Change`] says that it clears.
fn without_optional_null(schema: &mut Map<String, Value>) {
    let required: Vec<String> = schema
        .get("required")
        .and_then(|names| serde_json::from_value(names.clone()).ok())
        .unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (name, property) in properties.iter_mut() {
        let Value::Object(property) = property else { continue };
        if !required.contains(name) {
            without_null(property);
        }
        property.shift_remove(CLEARS);
    }
}

/// Marks a schema whose `null` has a meaning of its own; not exported.
pub(crate) const CLEARS: &str = "x-clears";

fn without_null(schema: &mut Map<String, Value>) {
    if schema.contains_key(CLEARS) {
        return;
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    let null = |branch: &Value| branch.get("type") == Some(&json!("null"));
    let Some(Value::Array(branches)) = schema.get_mut("anyOf") else { return };
    branches.retain(|branch| !null(branch));
    if let [only] = branches.as_slice()
        && let Value::Object(only) = only.clone()
    {
        schema.shift_remove("anyOf");
        for (key, value) in only {
            schema.entry(key).or_insert(value);
        }
    }
}

/// `int64` and the like say nothing to a client.
fn without_number_format(schema: &mut Map<String, Value>) {
    const FORMATS: [&str; 8] = ["uint", "uint8", "uint16", "uint32", "uint64", "int32", "int64", "double"];
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| FORMATS.contains(&format)) {
        schema.shift_remove("format");
    }
}
