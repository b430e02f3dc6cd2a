//! Validation against the JSON Schema subset that params, tool arguments and the configuration use.
//!
//! One walk over a compiled schema finds typed [`Violation`]s, in the order of the validator that
//! OpenClaw uses in that place (a [`Dialect`]). Their texts, their order and their de-duplication
//! are what its clients show and match (spec `gateway-protocol.md` §2.2), and the reason this is not
//! a general validator. The texts for params and tool arguments are in `texts`; those for the
//! configuration are in the crate that reads it.
//!
//! Understood: `type`, `const`, `enum`, lengths, ranges, `multipleOf`, `pattern`, `items`, `uniqueItems`, `required`,
//! `properties`, `additionalProperties`, `pattern` in `propertyNames`, `anyOf`, `oneOf`, `allOf`, `not`, and `$ref`
//! into the same document. Anything else is ignored.

mod coerce;
mod compile;
mod rule;
mod texts;
mod validate;
mod violation;

use std::collections::BTreeMap;

use serde_json::Value;

pub use coerce::coerce;
pub use rule::{LengthLimit, NumberLimit, Rule, Type};
pub use violation::{PathStep, Violation, ViolationKind, Violations};

/// A compiled JSON Schema.
#[derive(Debug, Clone)]
pub struct Schema {
    root: Rule,
    /// Targets of `$ref`s, by their pointer.
    definitions: BTreeMap<String, Rule>,
    dialect: Dialect,
}

/// Reading of a schema: that of the validator which OpenClaw uses in the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// AJV, for params and tool arguments.
    Ajv,
    /// Zod, for the configuration. A schema made from Zod's types describes their output, so a
    /// required key with a default may be absent. Lengths are UTF-16 units, `oneOf` is `anyOf`,
    /// and violations of an object come in the order of its properties, unknown keys last.
    Zod,
}

impl Dialect {
    /// Maximum number of violations collected. An answer to a client is for people; the file
    /// belongs to the owner, who is told everything.
    const fn max_violations(self) -> usize {
        match self {
            Self::Ajv => 200,
            Self::Zod => usize::MAX,
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
