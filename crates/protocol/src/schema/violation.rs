//! Findings of a validation.

use serde_json::{Number, Value};

use super::{LengthLimit, NumberLimit, Rule, Type};

/// Violations of a value, in order. Empty means valid.
#[derive(Debug, Clone, Default)]
pub struct Violations<'a>(pub(super) Vec<Violation<'a>>);

impl<'a> Violations<'a> {
    /// True if the value is valid.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The violations, those of alternatives inside that of their union.
    pub fn as_slice(&self) -> &[Violation<'a>] {
        &self.0
    }

    /// The violations in AJV's order, repetitions included: those of alternatives come before that
    /// of their union.
    pub fn flat(&self) -> Vec<&Violation<'a>> {
        let mut all = Vec::new();
        flatten(&self.0, &mut all);
        all
    }
}

fn flatten<'s, 'a>(violations: &'s [Violation<'a>], all: &mut Vec<&'s Violation<'a>>) {
    for violation in violations {
        if let ViolationKind::AnyOf(branches) | ViolationKind::OneOf(branches) = &violation.kind {
            branches.iter().for_each(|branch| flatten(branch, all));
        }
        all.push(violation);
    }
}

/// Violation of a schema at one place.
#[derive(Debug, Clone)]
pub struct Violation<'a> {
    /// Steps from the root to the value.
    pub path: Vec<PathStep<'a>>,
    /// The value.
    pub value: &'a Value,
    /// The rule that it violates.
    pub rule: &'a Rule,
    /// Kind of fault.
    pub kind: ViolationKind<'a>,
}

/// PathStep from a value to one inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStep<'a> {
    /// Key of an object.
    Key(&'a str),
    /// Place in a list.
    Index(usize),
}

impl std::fmt::Display for PathStep<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key(key) => f.write_str(key),
            Self::Index(index) => index.fmt(f),
        }
    }
}

/// Fault of a value.
#[derive(Debug, Clone)]
pub enum ViolationKind<'a> {
    /// No value is allowed here.
    Never,
    /// The value has another type than these.
    Type(&'a [Type]),
    /// A number misses a limit.
    NumberLimit(NumberLimit, &'a Number),
    /// A length misses a limit.
    LengthLimit(LengthLimit, u64),
    /// Text does not match the pattern.
    Pattern(&'a str),
    /// The value is another than this one.
    Constant(&'a Value),
    /// The value is none of these.
    Choice(&'a [Value]),
    /// The value fits what it must not fit.
    Not,
    /// The value fits no member of `anyOf`. Has the violations of each member.
    AnyOf(Vec<Vec<Violation<'a>>>),
    /// The value fits no member of `oneOf`, or several. Has the violations of each member if it
    /// fits none.
    OneOf(Vec<Vec<Violation<'a>>>),
    /// Two items are equal.
    Duplicate {
        /// Place of the first one.
        earlier: usize,
        /// Place of the second one.
        later: usize,
    },
    /// A required key is missing.
    Missing(&'a str),
    /// A key that the schema does not know.
    Unexpected(&'a str),
    /// A key whose name is not allowed; the path leads to its value.
    Name,
    /// The value has too many parts to be checked to the end.
    TooLarge,
}
