//! Violations in AJV's words, which OpenClaw's clients show and match.

use std::fmt;

use serde_json::Number;

use super::{LengthLimit, NumberLimit, PathStep, Violation, ViolationKind, Violations};

impl Violations<'_> {
    /// The text of the gateway: parts joined with `; `, each once.
    pub fn text(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for violation in self.flat() {
            let part = violation.to_string();
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts.join("; ")
    }
}

impl Violation<'_> {
    /// JSON pointer of the value; empty for the root.
    pub fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.path {
            pointer.push('/');
            match step {
                PathStep::Key(key) => pointer.push_str(&key.replace('~', "~0").replace('/', "~1")),
                PathStep::Index(index) => pointer.push_str(&index.to_string()),
            }
        }
        pointer
    }

    /// AJV's own sentence, without the path: what tool-argument errors show.
    pub fn message(&self) -> String {
        match &self.kind {
            ViolationKind::Never => "boolean schema is false".to_owned(),
            ViolationKind::Type(types) => {
                let names: Vec<&str> = types.iter().map(|kind| kind.name()).collect();
                format!("must be {}", names.join(","))
            }
            ViolationKind::NumberLimit(bound, limit) => {
                format!("must be {} {}", relation(*bound), spelled(limit))
            }
            ViolationKind::LengthLimit(count, limit) => {
                let than = if count.is_most() { "more" } else { "fewer" };
                format!("must NOT have {than} than {limit} {}", counted(*count))
            }
            ViolationKind::Pattern(pattern) => format!("must match pattern \"{pattern}\""),
            ViolationKind::Constant(_) => "must be equal to constant".to_owned(),
            ViolationKind::Choice(_) => "must be equal to one of the allowed values".to_owned(),
            ViolationKind::Not => "must NOT be valid".to_owned(),
            ViolationKind::AnyOf(_) => "must match a schema in anyOf".to_owned(),
            ViolationKind::OneOf(_) => "must match exactly one schema in oneOf".to_owned(),
            ViolationKind::Duplicate { earlier, later } => {
                format!("must NOT have duplicate items (items ## {earlier} and {later} are identical)")
            }
            ViolationKind::Missing(name) => format!("must have required property '{name}'"),
            ViolationKind::Unexpected(_) => "must NOT have additional properties".to_owned(),
            ViolationKind::Name => "property name must be valid".to_owned(),
            ViolationKind::TooLarge => "is too large to be validated".to_owned(),
        }
    }
}

/// The gateway's wording.
impl fmt::Display for Violation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = self.pointer();
        match &self.kind {
            ViolationKind::Unexpected(name) => {
                let at = if pointer.is_empty() { "root" } else { &pointer };
                write!(f, "at {at}: unexpected property '{name}'")
            }
            _ if pointer.is_empty() => f.write_str(&self.message()),
            _ => write!(f, "at {pointer}: {}", self.message()),
        }
    }
}

fn relation(bound: NumberLimit) -> &'static str {
    match bound {
        NumberLimit::Maximum => "<=",
        NumberLimit::Minimum => ">=",
        NumberLimit::ExclusiveMaximum => "<",
        NumberLimit::ExclusiveMinimum => ">",
        NumberLimit::MultipleOf => "multiple of",
    }
}

/// A number as JavaScript spells it.
fn spelled(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => format!("{float}"),
        Some(_) | None => number.to_string(),
    }
}

fn counted(count: LengthLimit) -> &'static str {
    match count {
        LengthLimit::MaxLength | LengthLimit::MinLength => "characters",
        LengthLimit::MaxItems | LengthLimit::MinItems => "items",
        LengthLimit::MaxProperties | LengthLimit::MinProperties => "properties",
    }
}
