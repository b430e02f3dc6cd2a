//! Choices for a value that fits no member of a union. For people: the message on the wire stays
//! the reference's.

use indexmap::IndexSet;
use openclaw_protocol::schema::{Rule, Type};
use serde_json::Value;

use crate::redact::is_secret_name;

/// Characters of a found value that are shown.
const SHOWN: usize = 40;

/// `allowed: "auto", "lan"; found "public"`.
pub(super) fn of_members(members: &[Rule], value: &Value, path: &str) -> String {
    allowed(members.iter().flat_map(choices_of), &found(value, path))
}

/// The same for a value that has none of these types.
pub(super) fn of_types(types: &[Type], value: &Value, path: &str) -> String {
    allowed(types.iter().map(|kind| words(*kind).to_owned()), &found(value, path))
}

/// The same for a value that is not there.
pub(super) fn missing(property: &Rule) -> String {
    allowed(choices_of(property).into_iter(), "nothing")
}

fn allowed(choices: impl Iterator<Item = String>, found: &str) -> String {
    let choices: Vec<String> = choices.collect::<IndexSet<_>>().into_iter().collect();
    format!("allowed: {}; found {found}", choices.join(", "))
}

/// Values that one member of a union allows.
fn choices_of(member: &Rule) -> Vec<String> {
    if !member.branches().is_empty() {
        return member.branches().iter().flat_map(choices_of).collect();
    }
    if let Some(only) = member.constant() {
        return vec![only.to_string()];
    }
    if let Some(values) = member.choices() {
        return values.iter().map(Value::to_string).collect();
    }
    match member.types() {
        [only] => vec![words(*only).to_owned()],
        _ => vec!["another kind of value".to_owned()],
    }
}

fn words(kind: Type) -> &'static str {
    match kind {
        Type::Boolean => "true, false",
        Type::String => "a text",
        Type::Number => "a number",
        Type::Integer => "a whole number",
        Type::Array => "a list",
        Type::Object => "an object",
        Type::Null => "null",
    }
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
