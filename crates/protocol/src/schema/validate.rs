//! [`Rule`]s against a value: every violation, in the order of the schema's dialect.

use serde_json::{Map, Number, Value};

use super::rule::{Additional, Keyword, ObjectRule};
use super::{
    Dialect, LengthLimit, NumberLimit, PathStep, Rule, Schema, Violation, ViolationKind, Violations,
};

/// Nesting limit for schema and value; what lies deeper is not looked at. (JSON text itself is read
/// to 128 levels.)
const MAX_DEPTH: u32 = 256;

/// Rules applied to values before giving up: a schema may branch into itself without end.
const MAX_STEPS: u32 = 2_000_000;

impl Schema {
    /// Checks a value and reports everything that is wrong with it.
    pub fn validate<'a>(&'a self, value: &'a Value) -> Violations<'a> {
        self.run(&self.root, value, MAX_STEPS)
    }

    /// True if a value satisfies one part of this schema.
    pub(super) fn fits(&self, rule: &Rule, value: &Value) -> bool {
        const STEPS: u32 = 10_000;
        self.run(rule, value, STEPS).is_empty()
    }

    fn run<'a>(&'a self, rule: &'a Rule, value: &'a Value, steps: u32) -> Violations<'a> {
        let mut check = Check { schema: self, path: Vec::new(), found: Found::default(), depth: 0, steps };
        check.rule(rule, value);
        if check.steps == 0 {
            check.report(rule, value, ViolationKind::TooLarge);
        }
        Violations(check.found.list)
    }
}

struct Check<'a> {
    schema: &'a Schema,
    path: Vec<PathStep<'a>>,
    found: Found<'a>,
    depth: u32,
    /// Number of rules that may still be applied.
    steps: u32,
}

/// Violations of a value, or of one alternative for it.
#[derive(Default)]
struct Found<'a> {
    list: Vec<Violation<'a>>,
    /// Number of violations, with those of alternatives.
    count: usize,
}

impl<'a> Check<'a> {
    fn report(&mut self, rule: &'a Rule, value: &'a Value, kind: ViolationKind<'a>) {
        // However many there are, the list is never empty where something is wrong, and a union
        // stands for the violations of its branches, which are counted already.
        let is_union = matches!(kind, ViolationKind::AnyOf(_) | ViolationKind::OneOf(_));
        let is_due = is_union || self.found.list.is_empty();
        if is_due || self.found.count < self.schema.dialect.max_violations() {
            self.found.count += 1;
            self.found.list.push(Violation { path: self.path.clone(), value, rule, kind });
        }
    }

    fn rule(&mut self, rule: &'a Rule, value: &'a Value) {
        if self.depth >= MAX_DEPTH || self.steps == 0 {
            return;
        }
        self.steps -= 1;
        self.depth += 1;
        for keyword in &rule.0 {
            if let Some(kind) = self.keyword(rule, keyword, value) {
                self.report(rule, value, kind);
            }
        }
        self.depth -= 1;
    }

    /// Applies a keyword. Returns the violation of the value itself; those of its parts are
    /// reported.
    fn keyword(
        &mut self,
        rule: &'a Rule,
        keyword: &'a Keyword,
        value: &'a Value,
    ) -> Option<ViolationKind<'a>> {
        match (keyword, value) {
            (Keyword::Never, _) => return Some(ViolationKind::Never),
            (Keyword::Reference(key), _) => {
                if let Some(target) = self.schema.definitions.get(key) {
                    self.rule(target, value);
                }
            }
            (Keyword::Types(types), _) => {
                let is_admitted = types.iter().any(|kind| kind.admits(value, self.schema.dialect));
                return (!is_admitted).then_some(ViolationKind::Type(types));
            }
            (Keyword::NumberLimit(bound, limit), Value::Number(number)) => {
                return (!holds(*bound, number, limit)).then_some(ViolationKind::NumberLimit(*bound, limit));
            }
            (Keyword::LengthLimit(count, limit), _) => {
                let length = self.length(*count, value)?;
                let holds = if count.is_most() { length <= *limit } else { length >= *limit };
                return (!holds).then_some(ViolationKind::LengthLimit(*count, *limit));
            }
            (Keyword::Pattern(pattern), Value::String(text)) => {
                return (!pattern.matches(text)).then(|| ViolationKind::Pattern(pattern.as_str()));
            }
            (Keyword::Constant(constant), _) => {
                return (!same(constant, value)).then_some(ViolationKind::Constant(constant));
            }
            (Keyword::Choices(choices), _) => {
                let is_choice = choices.iter().any(|choice| same(choice, value));
                return (!is_choice).then_some(ViolationKind::Choice(choices));
            }
            (Keyword::Not(not), _) => {
                return self.branch(not, value).list.is_empty().then_some(ViolationKind::Not);
            }
            (Keyword::AnyOf(branches), _) => return self.any_of(branches, value),
            (Keyword::OneOf(branches), _) => return self.one_of(branches, value),
            (Keyword::AllOf(parts), _) => parts.iter().for_each(|part| self.rule(part, value)),
            (Keyword::UniqueItems, Value::Array(items)) => {
                let (later, earlier) = repeated(items)?;
                return Some(ViolationKind::Duplicate { earlier, later });
            }
            (Keyword::Items(each), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.at(PathStep::Index(index), |check| check.rule(each, item));
                }
            }
            (Keyword::Object(object), Value::Object(fields)) => {
                self.object(rule, object, value, fields);
            }
            (
                Keyword::NumberLimit(..)
                | Keyword::Pattern(_)
                | Keyword::UniqueItems
                | Keyword::Items(_)
                | Keyword::Object(_),
                _,
            ) => {}
        }
        None
    }

    /// Length that a limit is about; `None` if the value has no such length.
    fn length(&self, count: LengthLimit, value: &Value) -> Option<u64> {
        let length = match (count, value) {
            (LengthLimit::MaxLength | LengthLimit::MinLength, Value::String(text)) => {
                match self.schema.dialect {
                    Dialect::Ajv => text.chars().count(),
                    Dialect::Zod => text.encode_utf16().count(),
                }
            }
            (LengthLimit::MaxItems | LengthLimit::MinItems, Value::Array(items)) => items.len(),
            (LengthLimit::MaxProperties | LengthLimit::MinProperties, Value::Object(fields)) => fields.len(),
            _ => return None,
        };
        u64::try_from(length).ok()
    }

    fn any_of(&mut self, branches: &'a [Rule], value: &'a Value) -> Option<ViolationKind<'a>> {
        let mut all = Vec::with_capacity(branches.len());
        let mut count = 0;
        for branch in branches {
            let found = self.branch(branch, value);
            if found.list.is_empty() {
                return None;
            }
            count += found.count;
            all.push(found.list);
        }
        self.found.count += count;
        Some(ViolationKind::AnyOf(all))
    }

    fn one_of(&mut self, branches: &'a [Rule], value: &'a Value) -> Option<ViolationKind<'a>> {
        let results: Vec<_> = branches.iter().map(|branch| self.branch(branch, value)).collect();
        match results.iter().filter(|found| found.list.is_empty()).count() {
            0 => {
                self.found.count += results.iter().map(|found| found.count).sum::<usize>();
                Some(ViolationKind::OneOf(results.into_iter().map(|found| found.list).collect()))
            }
            1 => None,
            _ => Some(ViolationKind::OneOf(Vec::new())),
        }
    }

    /// The violations of one alternative, kept apart.
    fn branch(&mut self, rule: &'a Rule, value: &'a Value) -> Found<'a> {
        let outer = std::mem::take(&mut self.found);
        self.rule(rule, value);
        std::mem::replace(&mut self.found, outer)
    }

    /// Checks the keys of an object, in the order of the dialect.
    fn object(
        &mut self,
        rule: &'a Rule,
        object: &'a ObjectRule,
        value: &'a Value,
        fields: &'a Map<String, Value>,
    ) {
        let is_missing = |name: &str| !fields.contains_key(name);
        match self.schema.dialect {
            Dialect::Ajv => {
                for name in object.required.iter().filter(|name| is_missing(name)) {
                    self.report(rule, value, ViolationKind::Missing(name));
                }
                self.other_keys(rule, object, value, fields);
                for (name, property) in &object.properties {
                    if let Some(value) = fields.get(name) {
                        self.key(object, name, property, value);
                    }
                }
            }
            Dialect::Zod => {
                for (name, property) in &object.properties {
                    match fields.get(name) {
                        Some(value) => self.key(object, name, property, value),
                        None if object.required.contains(name) => {
                            self.report(rule, value, ViolationKind::Missing(name));
                        }
                        None => {}
                    }
                }
                self.other_keys(rule, object, value, fields);
            }
        }
    }

    /// Checks keys that are no properties of the schema.
    fn other_keys(
        &mut self,
        rule: &'a Rule,
        object: &'a ObjectRule,
        value: &'a Value,
        fields: &'a Map<String, Value>,
    ) {
        for (name, each) in fields.iter().filter(|(name, _)| object.property(name).is_none()) {
            match &object.additional {
                Additional::Allowed => {}
                Additional::Forbidden => self.report(rule, value, ViolationKind::Unexpected(name)),
                Additional::Checked(other) => self.key(object, name, other, each),
            }
        }
    }

    fn key(&mut self, object: &'a ObjectRule, name: &'a str, rule: &'a Rule, value: &'a Value) {
        let is_name = object.names.as_ref().is_none_or(|names| names.matches(name));
        self.at(PathStep::Key(name), |check| {
            if is_name {
                check.rule(rule, value);
            } else {
                check.report(rule, value, ViolationKind::Name);
            }
        });
    }

    fn at(&mut self, step: PathStep<'a>, inner: impl FnOnce(&mut Self)) {
        self.path.push(step);
        inner(self);
        self.path.pop();
    }
}

/// True if a number keeps to a limit. Numbers that JavaScript can't hold have none.
fn holds(bound: NumberLimit, number: &Number, limit: &Number) -> bool {
    match (number.as_f64(), limit.as_f64()) {
        (Some(number), Some(limit)) => bound.holds(number, limit),
        _ => true,
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
