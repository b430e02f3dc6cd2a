//! [`Rule`]s against a value: every violation, in AJV's order.

use std::fmt;

use serde_json::{Map, Number, Value};

use super::{Additional, Rule, Schema, Type};

/// Nesting limit for schema and value; what lies deeper is not looked at. (JSON text itself is read
/// to 128 levels.)
const MAX_DEPTH: u32 = 256;

/// Rules applied to values before giving up: a schema may branch into itself without end.
const MAX_STEPS: u32 = 2_000_000;

/// Maximum number of violations collected: an answer is for people.
const MAX_VIOLATIONS: usize = 200;

impl Schema {
    /// Checks a value and reports everything that is wrong with it.
    pub fn validate(&self, value: &Value) -> Violations {
        self.run(&self.root, value, MAX_STEPS)
    }

    /// True if a value satisfies one part of this schema.
    pub(super) fn fits(&self, rule: &Rule, value: &Value) -> bool {
        const STEPS: u32 = 10_000;
        self.run(rule, value, STEPS).is_empty()
    }

    fn run(&self, rule: &Rule, value: &Value, steps: u32) -> Violations {
        let mut check = Check { schema: self, path: String::new(), found: Vec::new(), depth: 0, steps };
        check.rule(rule, value);
        if check.steps == 0 {
            check.say("is too large to be validated");
        }
        Violations(check.found)
    }
}

/// Violations of a value, in order. Empty means valid.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// True if the value is valid.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The violations in order, repetitions included.
    pub fn iter(&self) -> impl Iterator<Item = &Violation> {
        self.0.iter()
    }

    /// The text of the gateway: parts joined with `; `, each once.
    pub fn text(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for violation in &self.0 {
            let part = violation.to_string();
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts.join("; ")
    }
}

/// Violation of the schema at one place. `Display` is the gateway's wording.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// JSON pointer of the value; empty for the root.
    pub path: String,
    /// Kind of fault.
    pub kind: ViolationKind,
}

/// Fault of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum ViolationKind {
    /// A required key is missing.
    Missing(String),
    /// A key that the schema does not know.
    Unexpected(String),
    /// Anything else: the validator's sentence.
    Other(String),
}

impl Violation {
    /// AJV's own sentence, without the path: what tool-argument errors show.
    pub fn message(&self) -> String {
        match &self.kind {
            ViolationKind::Missing(name) => format!("must have required property '{name}'"),
            ViolationKind::Unexpected(_) => "must NOT have additional properties".to_owned(),
            ViolationKind::Other(text) => text.clone(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.path.is_empty() { "root" } else { &self.path };
        match &self.kind {
            ViolationKind::Unexpected(name) => write!(f, "at {at}: unexpected property '{name}'"),
            _ if self.path.is_empty() => f.write_str(&self.message()),
            _ => write!(f, "at {at}: {}", self.message()),
        }
    }
}

struct Check<'a> {
    schema: &'a Schema,
    path: String,
    found: Vec<Violation>,
    depth: u32,
    /// Number of rules that may still be applied.
    steps: u32,
}

impl<'a> Check<'a> {
    fn report(&mut self, kind: ViolationKind) {
        if self.found.len() < MAX_VIOLATIONS {
            self.found.push(Violation { path: self.path.clone(), kind });
        }
    }

    fn say(&mut self, text: impl Into<String>) {
        self.report(ViolationKind::Other(text.into()));
    }

    fn rule(&mut self, rule: &'a Rule, value: &Value) {
        if self.depth >= MAX_DEPTH || self.steps == 0 {
            return;
        }
        self.steps -= 1;
        self.depth += 1;
        self.checks(rule, value);
        self.depth -= 1;
    }

    fn checks(&mut self, rule: &'a Rule, value: &Value) {
        if rule.never {
            self.say("boolean schema is false");
        }
        if let Some(target) = rule.reference.as_ref().and_then(|key| self.schema.definitions.get(key)) {
            self.rule(target, value);
        }
        if !rule.types.is_empty() && !rule.types.iter().any(|kind| kind.admits(value)) {
            let names: Vec<&str> = rule.types.iter().map(|kind| kind.name()).collect();
            self.say(format!("must be {}", names.join(",")));
        }
        match value {
            Value::Number(number) => self.number(rule, number),
            Value::String(text) => self.string(rule, text),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {}
        }
        self.untyped(rule, value);
        match value {
            Value::Array(items) => self.array(rule, items),
            Value::Object(fields) => self.object(rule, fields),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn number(&mut self, rule: &Rule, number: &Number) {
        let Some(float) = number.as_f64() else { return };
        let broken = |bound: &Option<Number>, holds: fn(f64, f64) -> bool| {
            let (bound, text) = bound.as_ref().and_then(|number| Some((number.as_f64()?, number)))?;
            (!holds(float, bound)).then(|| spelled(bound, text))
        };
        let found = [
            ("<=", broken(&rule.maximum, |value, bound| value <= bound)),
            (">=", broken(&rule.minimum, |value, bound| value >= bound)),
            ("<", broken(&rule.exclusive_maximum, |value, bound| value < bound)),
            (">", broken(&rule.exclusive_minimum, |value, bound| value > bound)),
            ("multiple of", broken(&rule.multiple_of, |value, step| (value / step).fract() == 0.0)),
        ];
        for (relation, bound) in found {
            if let Some(bound) = bound {
                self.say(format!("must be {relation} {bound}"));
            }
        }
    }

    fn string(&mut self, rule: &Rule, text: &str) {
        if rule.max_length.is_some() || rule.min_length.is_some() {
            let length = text.chars().count() as u64;
            self.size(length, rule.max_length, rule.min_length, "characters");
        }
        if let Some(pattern) = rule.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            self.say(format!("must match pattern \"{}\"", pattern.as_str()));
        }
    }

    fn size(&mut self, length: u64, most: Option<u64>, least: Option<u64>, what: &str) {
        if let Some(most) = most.filter(|most| length > *most) {
            self.say(format!("must NOT have more than {most} {what}"));
        }
        if let Some(least) = least.filter(|least| length < *least) {
            self.say(format!("must NOT have fewer than {least} {what}"));
        }
    }

    /// Keywords that look at any value.
    fn untyped(&mut self, rule: &'a Rule, value: &Value) {
        if rule.constant.as_ref().is_some_and(|constant| !same(constant, value)) {
            self.say("must be equal to constant");
        }
        if rule.choices.as_ref().is_some_and(|choices| !choices.iter().any(|choice| same(choice, value))) {
            self.say("must be equal to one of the allowed values");
        }
        if let Some(not) = &rule.not
            && self.branch(not, value).is_empty()
        {
            self.say("must NOT be valid");
        }
        self.any_of(rule, value);
        self.one_of(rule, value);
        for part in &rule.all_of {
            self.rule(part, value);
        }
    }

    fn any_of(&mut self, rule: &'a Rule, value: &Value) {
        let mut all = Vec::new();
        for branch in &rule.any_of {
            let found = self.branch(branch, value);
            if found.is_empty() {
                return;
            }
            all.extend(found);
        }
        if !rule.any_of.is_empty() {
            self.found.extend(all);
            self.say("must match a schema in anyOf");
        }
    }

    fn one_of(&mut self, rule: &'a Rule, value: &Value) {
        if rule.one_of.is_empty() {
            return;
        }
        let results: Vec<_> = rule.one_of.iter().map(|branch| self.branch(branch, value)).collect();
        let matching = results.iter().filter(|found| found.is_empty()).count();
        if matching == 1 {
            return;
        }
        if matching == 0 {
            self.found.extend(results.into_iter().flatten());
        }
        self.say("must match exactly one schema in oneOf");
    }

    /// The violations of one alternative, kept apart.
    fn branch(&mut self, rule: &'a Rule, value: &Value) -> Vec<Violation> {
        let outer = std::mem::take(&mut self.found);
        self.rule(rule, value);
        std::mem::replace(&mut self.found, outer)
    }

    fn array(&mut self, rule: &'a Rule, items: &[Value]) {
        self.size(items.len() as u64, rule.max_items, rule.min_items, "items");
        if rule.unique_items
            && let Some((later, earlier)) = repeated(items)
        {
            self.say(format!("must NOT have duplicate items (items ## {earlier} and {later} are identical)"));
        }
        if let Some(each) = &rule.items {
            for (index, item) in items.iter().enumerate() {
                self.at(&index.to_string(), |check| check.rule(each, item));
            }
        }
    }

    fn object(&mut self, rule: &'a Rule, fields: &Map<String, Value>) {
        self.size(fields.len() as u64, rule.max_properties, rule.min_properties, "properties");
        for name in rule.required.iter().filter(|name| !fields.contains_key(*name)) {
            self.report(ViolationKind::Missing(name.clone()));
        }
        let known = |name: &str| rule.properties.iter().any(|(property, _)| property == name);
        for (name, value) in fields.iter().filter(|(name, _)| !known(name)) {
            match &rule.additional {
                Additional::Allowed => {}
                Additional::Forbidden => self.report(ViolationKind::Unexpected(name.clone())),
                Additional::Checked(each) => self.at(name, |check| check.rule(each, value)),
            }
        }
        for (name, property) in &rule.properties {
            if let Some(value) = fields.get(name) {
                self.at(name, |check| check.rule(property, value));
            }
        }
    }

    fn at(&mut self, step: &str, inner: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(&step.replace('~', "~0").replace('/', "~1"));
        inner(self);
        self.path.truncate(length);
    }
}

/// Equality as JavaScript sees it: `1` and `1.0` are one number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// The first pair of equal items: positions of the later and the earlier one.
fn repeated(items: &[Value]) -> Option<(usize, usize)> {
    items.iter().enumerate().find_map(|(later, item)| {
        let earlier = items.iter().take(later).position(|other| same(other, item))?;
        Some((later, earlier))
    })
}

fn spelled(value: f64, number: &Number) -> String {
    if number.is_f64() { format!("{value}") } else { number.to_string() }
}

/// True if a value is of one of the types, for coercion.
pub(super) fn admits(types: &[Type], value: &Value) -> bool {
    types.is_empty() || types.iter().any(|kind| kind.admits(value))
}
