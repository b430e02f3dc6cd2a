//! Choices for a value that fits no member of a union. For people: the message on the wire stays
//! the reference's.

use indexmap::IndexSet;
use serde_json::Value;

use super::schema::{SchemaFault, check_against, type_name};
use crate::redact::is_secret_name;

/// Characters of a found value that are shown.
const SHOWN: usize = 40;

/// `allowed: "auto", "lan"; found "public"`, or the fault by the only member of the value's kind.
pub(super) fn explain(members: &[Value], value: &Value, path: &str) -> String {
    if value.is_object() || value.is_array() {
        let of_kind: Vec<&Value> = members.iter().filter(|member| takes(member, type_name(value))).collect();
        if let [only] = of_kind.as_slice()
            && let Some(fault) =
                check_against(only, value, path).into_iter().next().map(SchemaFault::into_issue)
        {
            return fault.line();
        }
    }
    format!("allowed: {}; found {}", list(members.iter().flat_map(choices_of)), found(value, path))
}

/// The same for a value that is not there.
pub(super) fn missing(property: &Value) -> String {
    format!("allowed: {}; found nothing", list(choices_of(property).into_iter()))
}

fn list(choices: impl Iterator<Item = String>) -> String {
    choices.collect::<IndexSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}

fn takes(member: &Value, kind: &str) -> bool {
    member.get("type").and_then(Value::as_str) == Some(kind)
}

/// Values that one member of a union allows.
fn choices_of(member: &Value) -> Vec<String> {
    if let Some(members) = member.get("anyOf").or_else(|| member.get("oneOf")).and_then(Value::as_array) {
        return members.iter().flat_map(choices_of).collect();
    }
    if let Some(only) = member.get("const") {
        return vec![only.to_string()];
    }
    if let Some(values) = member.get("enum").and_then(Value::as_array) {
        return values.iter().map(Value::to_string).collect();
    }
    let name = match member.get("type").and_then(Value::as_str) {
        Some("boolean") => "true, false",
        Some("string") => "a text",
        Some("number") => "a number",
        Some("integer") => "a whole number",
        Some("array") => "a list",
        Some("object") => "an object",
        Some(other) => other,
        None => "another kind of value",
    };
    vec![name.to_owned()]
}

/// The value, unless it is large or its key names a secret.
pub(super) fn found(value: &Value, path: &str) -> String {
    let is_secret = path.split('.').any(is_secret_name);
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(_) if is_secret => "a text".to_owned(),
        Value::String(text) if text.chars().count() > SHOWN => {
            format!("\"{}…\"", text.chars().take(SHOWN).collect::<String>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}
