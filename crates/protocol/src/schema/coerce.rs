//! Type coercion of tool arguments: models write `"5"` where a number is wanted (spec `agent-runtime.md` §2).

use serde_json::{Map, Value};

use super::rule::{Additional, ObjectRule};
use super::{Dialect, Rule, Schema, Type};

/// Depth to which values are looked into.
const MAX_DEPTH: u32 = 64;

/// Rules applied before giving up: a schema may branch into itself without end.
const MAX_STEPS: u32 = 100_000;

/// Cost of trying an alternative, in steps: the value is copied and validated.
const ALTERNATIVE: u32 = 100;

/// Rewrites scalars in place whose type is wrong but whose meaning is plain: `"5"` to `5`, `"true"`
/// to `true`, `5` to `"5"`, as AJV's `coerceTypes` does; and one text to a list of it where texts
/// are listed, as OpenClaw's tools read it. A value that can't be read as the wanted type stays for
/// the validator to report.
pub fn coerce(schema: &Schema, value: &mut Value) {
    let mut walk = Walk { schema, steps: MAX_STEPS };
    walk.rule(&schema.root, value, 0);
}

struct Walk<'a> {
    schema: &'a Schema,
    /// Number of rules that may still be applied.
    steps: u32,
}

impl<'a> Walk<'a> {
    fn rule(&mut self, rule: &'a Rule, value: &mut Value, depth: u32) {
        if depth >= MAX_DEPTH || self.steps == 0 {
            return;
        }
        self.steps -= 1;
        if let Some(target) = rule.reference().and_then(|key| self.schema.definitions.get(key)) {
            self.rule(target, value, depth + 1);
        }
        let types = rule.types();
        if !types.is_empty()
            && !types.iter().any(|kind| is_of(*kind, value))
            && let Some(other) =
                types.iter().find_map(|kind| converted(*kind, value)).or_else(|| listed(rule, value))
        {
            *value = other;
        }
        match value {
            Value::Object(fields) => {
                if let Some(object) = rule.object() {
                    self.object(object, fields, depth);
                }
            }
            Value::Array(items) => {
                if let Some(each) = rule.items() {
                    items.iter_mut().for_each(|item| self.rule(each, item, depth + 1));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        rule.all_of().iter().for_each(|part| self.rule(part, value, depth + 1));
        self.alternative(rule, value, depth);
    }

    fn object(&mut self, object: &'a ObjectRule, fields: &mut Map<String, Value>, depth: u32) {
        for (name, value) in fields.iter_mut() {
            match (object.property(name), &object.additional) {
                (Some(property), _) => self.rule(property, value, depth + 1),
                (None, Additional::Checked(each)) => self.rule(each, value, depth + 1),
                (None, Additional::Allowed | Additional::Forbidden) => {}
            }
        }
    }

    /// Leaves a value that satisfies one of the alternatives; else takes the first it satisfies when coerced.
    fn alternative(&mut self, rule: &'a Rule, value: &mut Value, depth: u32) {
        let branches = rule.branches();
        if branches.iter().any(|branch| self.schema.fits(branch, value)) {
            return;
        }
        for branch in branches {
            self.steps = self.steps.saturating_sub(ALTERNATIVE);
            let mut candidate = value.clone();
            self.rule(branch, &mut candidate, depth + 1);
            if self.schema.fits(branch, &candidate) {
                *value = candidate;
                return;
            }
        }
    }
}

/// Tool arguments are read as AJV reads them.
fn is_of(kind: Type, value: &Value) -> bool {
    kind.admits(value, Dialect::Ajv)
}

fn converted(kind: Type, value: &Value) -> Option<Value> {
    match (kind, value) {
        (Type::String, Value::Number(number)) => Some(Value::String(number.to_string())),
        (Type::String, Value::Bool(flag)) => Some(Value::String(flag.to_string())),
        (Type::String, Value::Null) => Some(Value::String(String::new())),
        (Type::Number | Type::Integer, Value::String(text)) => parsed(text).filter(|n| is_of(kind, n)),
        (Type::Number | Type::Integer, Value::Bool(flag)) => Some(Value::from(i64::from(*flag))),
        (Type::Number | Type::Integer, Value::Null) => Some(Value::from(0)),
        (Type::Boolean, Value::String(text)) => match text.as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        (Type::Boolean, Value::Number(number)) => match number.as_f64() {
            Some(0.0) => Some(Value::Bool(false)),
            Some(1.0) => Some(Value::Bool(true)),
            _ => None,
        },
        (Type::Boolean, Value::Null) => Some(Value::Bool(false)),
        (Type::Null, Value::String(text)) if text.is_empty() => Some(Value::Null),
        (Type::Null, Value::Bool(false)) => Some(Value::Null),
        (Type::Null, Value::Number(number)) if number.as_f64() == Some(0.0) => Some(Value::Null),
        _ => None,
    }
}

/// Wraps a text where a list of texts is wanted: a list with this one item, or an empty list for
/// blank text. Text that is a list itself stays: it would be one item that nobody meant.
fn listed(rule: &Rule, value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    let is_text = |items: &Rule| items.types().contains(&Type::String);
    if !rule.types().contains(&Type::Array) || !rule.items().is_some_and(is_text) {
        return None;
    }
    if serde_json::from_str::<Vec<Value>>(text).is_ok() {
        return None;
    }
    let items = if text.trim().is_empty() { Vec::new() } else { vec![value.clone()] };
    Some(Value::Array(items))
}

/// A number as JavaScript's unary plus reads it, without its surprises: blank text is not zero.
fn parsed(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::from(whole));
    }
    let float = text.parse::<f64>().ok().filter(|f| f.is_finite())?;
    let mut value = Value::from(float);
    super::whole_numbers(&mut value);
    Some(value)
}
