//! Validation against the JSON Schema subset that params and tool arguments use, with the texts OpenClaw's clients show
//! and match (spec `gateway-protocol.md` §2.2). The texts, their order and their de-duplication are the reason this is
//! not a general validator: they are those of AJV with all errors collected.
//!
//! Understood: `type`, `const`, `enum`, lengths, ranges, `multipleOf`, `pattern`, `items`, `uniqueItems`, `required`,
//! `properties`, `additionalProperties`, `anyOf`, `oneOf`, `allOf`, `not`, and `$ref` into the same document. Anything
//! else is ignored.

mod coerce;
mod compile;
mod validate;

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

pub use coerce::coerce;
pub use validate::{Violation, ViolationKind, Violations};

/// A compiled JSON Schema.
#[derive(Debug, Clone)]
pub struct Schema {
    root: Rule,
    /// Targets of `$ref`s, by their pointer.
    definitions: BTreeMap<String, Rule>,
}

/// Compiled schema object.
#[derive(Debug, Clone, Default)]
struct Rule {
    /// The schema `false`.
    never: bool,
    reference: Option<String>,
    types: Vec<Type>,
    constant: Option<Value>,
    choices: Option<Vec<Value>>,
    maximum: Option<serde_json::Number>,
    minimum: Option<serde_json::Number>,
    exclusive_maximum: Option<serde_json::Number>,
    exclusive_minimum: Option<serde_json::Number>,
    multiple_of: Option<serde_json::Number>,
    max_length: Option<u64>,
    min_length: Option<u64>,
    pattern: Option<Regex>,
    max_items: Option<u64>,
    min_items: Option<u64>,
    unique_items: bool,
    items: Option<Box<Rule>>,
    max_properties: Option<u64>,
    min_properties: Option<u64>,
    required: Vec<String>,
    properties: Vec<(String, Rule)>,
    additional: Additional,
    not: Option<Box<Rule>>,
    any_of: Vec<Rule>,
    one_of: Vec<Rule>,
    all_of: Vec<Rule>,
}

/// Rule for keys outside `properties`.
#[derive(Debug, Clone, Default)]
enum Additional {
    #[default]
    Allowed,
    Forbidden,
    Checked(Box<Rule>),
}

/// The types of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Type {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Null, "null"),
        (Self::Boolean, "boolean"),
        (Self::Integer, "integer"),
        (Self::Number, "number"),
        (Self::String, "string"),
        (Self::Array, "array"),
        (Self::Object, "object"),
    ];

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, text)| *text == name).map(|(kind, _)| *kind)
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, text)| text)
    }

    /// True if a value is of this type. A number without fraction is an integer however it is
    /// spelled.
    fn admits(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Null, Value::Null)
            | (Self::Boolean, Value::Bool(_))
            | (Self::Number, Value::Number(_))
            | (Self::String, Value::String(_))
            | (Self::Array, Value::Array(_))
            | (Self::Object, Value::Object(_)) => true,
            (Self::Integer, Value::Number(n)) => {
                n.is_i64() || n.is_u64() || n.as_f64().is_some_and(|f| f.is_finite() && f.fract() == 0.0)
            }
            _ => false,
        }
    }
}

/// Rewrites numbers such as `5.0` and `1e3` as the integers they are: JavaScript knows no difference, Rust's types do.
pub fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
            if let Some(float) =
                number.as_f64().filter(|f| number.is_f64() && f.fract() == 0.0 && f.abs() < EXACT)
            {
                #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
                let whole = float as i64;
                *number = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
