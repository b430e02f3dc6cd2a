//! Structure, in the words of the reference's validator (spec `config.md` §4.1).

use openclaw_protocol::schema::{
    Dialect, LengthLimit, NumberLimit, PathStep, Rule, Schema, Type, Violation, ViolationKind,
};
use serde_json::{Number, Value};

use super::choices;
use super::schema::{accepted, of_plugin, type_name};
use crate::value_path::join;
use crate::{ConfigIssueKind, Issue, nearest};

/// Patterns with a text of their own; others say that the string does not match.
const PATTERN_TEXTS: &[(&str, &str)] = &[("^#?[0-9a-fA-F]{6}$", "expected hex color (RRGGBB)")];

/// Checks a whole document.
pub(crate) fn check(document: &Value) -> Vec<Issue> {
    let schema = schema_for(document);
    faults(schema.validate(document).as_slice()).into_iter().map(SchemaFault::into_issue).collect()
}

/// The paths of the keys that the schema does not know.
pub(crate) fn unknown_keys(document: &Value) -> Vec<Vec<String>> {
    let schema = schema_for(document);
    let of_violation = |violation: &Violation<'_>| match violation.kind {
        ViolationKind::Unexpected(key) => {
            let above = violation.path.iter().map(PathStep::to_string);
            Some(above.chain([key.to_owned()]).collect())
        }
        _ => None,
    };
    schema.validate(document).as_slice().iter().filter_map(of_violation).collect()
}

fn schema_for(document: &Value) -> Schema {
    let wanted = |path: &[&str]| path.iter().try_fold(document, |value, key| value.get(key)).is_some();
    Schema::compile_as(Dialect::Zod, &accepted(wanted))
}

/// Checks a plugin's own settings against the plugin's schema; the texts are those of the validator the reference uses there.
pub(crate) fn check_plugin_config(plugin: &str, config: &Value) -> Vec<String> {
    let Some(schema) = of_plugin(plugin) else { return Vec::new() };
    let say = |fault: SchemaFault| {
        let text = match fault.kind {
            FaultKind::OneOf { .. } | FaultKind::Union(_) => {
                "must be equal to one of the allowed values".to_owned()
            }
            FaultKind::Type { received: "undefined", .. } => "must be present".to_owned(),
            FaultKind::Type { expected, .. } => format!("must be {expected}"),
            FaultKind::Unknown { .. } => "must NOT have additional properties".to_owned(),
            FaultKind::Limit(text) | FaultKind::Other(text) => text,
            FaultKind::RecordKey => "property name must be valid".to_owned(),
        };
        format!("{}: {text}", if fault.path.is_empty() { "<root>" } else { &fault.path })
    };
    let schema = Schema::compile_as(Dialect::Zod, &schema);
    faults(schema.validate(config).as_slice()).into_iter().map(say).collect()
}

/// Mismatch with the schema, before it is put in words.
#[derive(Debug)]
struct SchemaFault {
    path: String,
    kind: FaultKind,
}

#[derive(Debug)]
enum FaultKind {
    Type {
        expected: &'static str,
        received: &'static str,
    },
    /// Allowed choices and the value found, as one text.
    Union(String),
    OneOf {
        allowed: Vec<Value>,
        /// Value found, for people.
        found: String,
    },
    Unknown {
        keys: Vec<String>,
        suggestion: Option<String>,
    },
    RecordKey,
    /// The value has the right shape and misses a limit.
    Limit(String),
    /// Any other fault, in words.
    Other(String),
}

impl SchemaFault {
    /// True if the value only misses a limit. A union shows such a fault of its only such member.
    fn is_soft(&self) -> bool {
        matches!(self.kind, FaultKind::Limit(_))
    }

    /// The fault in words.
    fn into_issue(self) -> Issue {
        let quote = |value: &Value| value.to_string();
        let mut suggested = None;
        let mut detail = None;
        let kind = match self.kind {
            FaultKind::Unknown { .. } => ConfigIssueKind::UnknownKey,
            _ => ConfigIssueKind::Other,
        };
        let message = match self.kind {
            FaultKind::Type { expected, received } => {
                format!("Invalid input: expected {expected}, received {received}")
            }
            FaultKind::Union(explained) => {
                detail = Some(explained);
                "Invalid input".to_owned()
            }
            FaultKind::OneOf { allowed, found } => {
                detail = Some(format!("found {found}"));
                match allowed.as_slice() {
                    [only] => format!("Invalid input: expected {}", quote(only)),
                    many => {
                        let list = many.iter().map(quote).collect::<Vec<_>>().join("|");
                        format!("Invalid option: expected one of {list}")
                    }
                }
            }
            FaultKind::Unknown { keys, suggestion } => {
                suggested = suggestion;
                let list = keys.iter().map(|key| format!("\"{key}\"")).collect::<Vec<_>>().join(", ");
                format!("Unrecognized key{}: {list}", if keys.len() > 1 { "s" } else { "" })
            }
            FaultKind::Limit(text) | FaultKind::Other(text) => text,
            FaultKind::RecordKey => "Invalid key in record".to_owned(),
        };
        Issue { kind, path: self.path, message, suggestion: suggested, detail }
    }
}

/// Puts violations in the reference's words. Of several violations of one value, the first in
/// [`precedence`] counts.
fn faults(violations: &[Violation<'_>]) -> Vec<SchemaFault> {
    let belong_together = |a: &Violation<'_>, b: &Violation<'_>| {
        let topic = topic(&a.kind);
        topic != Topic::Key && topic == self::topic(&b.kind) && a.path == b.path
    };
    violations.chunk_by(belong_together).flat_map(faults_of_value).collect()
}

/// Subject of a violation.
#[derive(PartialEq, Eq)]
enum Topic {
    /// The value itself.
    Value,
    /// The unknown keys of an object, which are told together.
    UnknownKeys,
    /// One key of an object.
    Key,
}

fn topic(kind: &ViolationKind<'_>) -> Topic {
    match kind {
        ViolationKind::Unexpected(_) => Topic::UnknownKeys,
        ViolationKind::Missing(_) | ViolationKind::Name => Topic::Key,
        _ => Topic::Value,
    }
}

/// Order in which the reference looks at a value. It stops at the first violation.
fn precedence(kind: &ViolationKind<'_>) -> u8 {
    match kind {
        ViolationKind::AnyOf(_) | ViolationKind::OneOf(_) => 0,
        ViolationKind::Constant(_) => 1,
        ViolationKind::Choice(_) => 2,
        ViolationKind::Type(_) => 3,
        ViolationKind::NumberLimit(NumberLimit::ExclusiveMinimum, _) => 4,
        ViolationKind::NumberLimit(NumberLimit::Minimum, _) => 5,
        ViolationKind::NumberLimit(NumberLimit::ExclusiveMaximum, _) => 6,
        ViolationKind::NumberLimit(NumberLimit::Maximum | NumberLimit::MultipleOf, _) => 7,
        ViolationKind::LengthLimit(count, _) => 4 + u8::from(count.is_most()),
        _ => 8,
    }
}

fn faults_of_value(violations: &[Violation<'_>]) -> Vec<SchemaFault> {
    let Some(first) = violations.iter().min_by_key(|violation| precedence(&violation.kind)) else {
        return Vec::new();
    };
    let (path, value) = (dotted(&first.path), first.value);
    let one_of = |allowed| FaultKind::OneOf { allowed, found: choices::found(value, &path) };
    let kind = match &first.kind {
        ViolationKind::AnyOf(branches) | ViolationKind::OneOf(branches) => {
            return union(first, branches, path);
        }
        ViolationKind::Missing(name) => {
            let kind = first.rule.property(name).map_or(FaultKind::RecordKey, missing);
            return vec![SchemaFault { path: join(&path, name), kind }];
        }
        ViolationKind::Constant(only) => one_of(vec![(*only).clone()]),
        ViolationKind::Choice(values) => one_of(values.to_vec()),
        ViolationKind::Type([only]) => {
            FaultKind::Type { expected: expected(*only, value), received: type_name(value) }
        }
        ViolationKind::Type(types) => FaultKind::Union(choices::of_types(types, value, &path)),
        ViolationKind::NumberLimit(bound, limit) => {
            bound_text(*bound, limit).map_or_else(|| FaultKind::Other(first.message()), FaultKind::Limit)
        }
        ViolationKind::LengthLimit(count, limit) => FaultKind::Limit(count_text(*count, *limit)),
        ViolationKind::Pattern(pattern) => FaultKind::Limit(pattern_text(pattern)),
        ViolationKind::Unexpected(unexpected) => {
            let known = first.rule.properties().iter().map(|(name, _)| name.as_str());
            FaultKind::Unknown {
                keys: keys(violations),
                suggestion: nearest(unexpected, known).map(str::to_owned),
            }
        }
        ViolationKind::Name => FaultKind::RecordKey,
        ViolationKind::Never
        | ViolationKind::Not
        | ViolationKind::Duplicate { .. }
        | ViolationKind::TooLarge => FaultKind::Other(first.message()),
    };
    vec![SchemaFault { path, kind }]
}

/// A value that fits no member: the limit that it misses in its only near member, or all that is allowed.
fn union(violation: &Violation<'_>, branches: &[Vec<Violation<'_>>], path: String) -> Vec<SchemaFault> {
    let of_branches = branches.iter().map(|branch| faults(branch));
    let mut near = of_branches.filter(|faults| faults.iter().all(SchemaFault::is_soft));
    match (near.next(), near.next()) {
        (Some(only), None) => only,
        (Some(_), Some(_)) | (None, _) => {
            let value = violation.value;
            let explained = of_kind(violation, branches)
                .unwrap_or_else(|| choices::of_members(violation.rule.branches(), value, &path));
            vec![SchemaFault { path, kind: FaultKind::Union(explained) }]
        }
    }
}

/// The fault of an object or list by the only member that takes one.
fn of_kind(violation: &Violation<'_>, branches: &[Vec<Violation<'_>>]) -> Option<String> {
    let value = violation.value;
    if !value.is_object() && !value.is_array() {
        return None;
    }
    let takes = |rule: &Rule| matches!(rule.types(), [only] if only.name() == type_name(value));
    let members = violation.rule.branches().iter().zip(branches);
    let mut of_kind = members.filter(|(rule, _)| takes(rule)).map(|(_, violations)| violations);
    match (of_kind.next(), of_kind.next()) {
        (Some(only), None) => Some(faults(only).into_iter().next()?.into_issue().line()),
        (Some(_), Some(_)) | (None, _) => None,
    }
}

fn missing(property: &Rule) -> FaultKind {
    let absent = |expected| FaultKind::Type { expected, received: "undefined" };
    let is_listed = property.constant().is_some() || property.choices().is_some();
    match property.types() {
        [Type::String] if !is_listed => absent("string"),
        [only @ (Type::Object | Type::Array | Type::Boolean | Type::Number)] => absent(only.name()),
        [Type::Integer] => absent("number"),
        _ => {
            let nothing = |allowed| FaultKind::OneOf { allowed, found: "nothing".to_owned() };
            let values = property.choices().map(<[Value]>::to_vec);
            let only = property.constant().map(|only| vec![only.clone()]);
            values.or(only).map_or_else(|| FaultKind::Union(choices::missing(property)), nothing)
        }
    }
}

fn keys(violations: &[Violation<'_>]) -> Vec<String> {
    let key = |violation: &Violation<'_>| match violation.kind {
        ViolationKind::Unexpected(key) => Some(key.to_owned()),
        _ => None,
    };
    violations.iter().filter_map(key).collect()
}

/// A type as the reference calls it. A number that is not whole is told to be no `int`.
fn expected(kind: Type, found: &Value) -> &'static str {
    match kind {
        Type::Integer if found.is_number() => "int",
        Type::Integer => "number",
        other => other.name(),
    }
}

fn bound_text(bound: NumberLimit, limit: &Number) -> Option<String> {
    let (size, sign) = match bound {
        NumberLimit::ExclusiveMinimum => ("Too small", ">"),
        NumberLimit::Minimum => ("Too small", ">="),
        NumberLimit::ExclusiveMaximum => ("Too big", "<"),
        NumberLimit::Maximum => ("Too big", "<="),
        NumberLimit::MultipleOf => return None,
    };
    Some(format!("{size}: expected number to be {sign}{limit}"))
}

fn count_text(count: LengthLimit, limit: u64) -> String {
    let (kind, unit) = match count {
        LengthLimit::MinLength | LengthLimit::MaxLength => ("string", "characters"),
        LengthLimit::MinItems | LengthLimit::MaxItems => ("array", "items"),
        LengthLimit::MinProperties | LengthLimit::MaxProperties => ("object", "properties"),
    };
    let (size, sign) = if count.is_most() { ("Too big", "<=") } else { ("Too small", ">=") };
    format!("{size}: expected {kind} to have {sign}{limit} {unit}")
}

fn pattern_text(pattern: &str) -> String {
    let own = PATTERN_TEXTS.iter().find(|(known, _)| *known == pattern);
    own.map_or_else(
        || format!("Invalid string: must match pattern /{pattern}/"),
        |(_, text)| (*text).to_owned(),
    )
}

fn dotted(path: &[PathStep<'_>]) -> String {
    path.iter().fold(String::new(), |text, step| join(&text, &step.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Spec `channels.md` §7.1: newer versions of OpenClaw have them.
    #[test]
    fn keys_of_newer_versions_in_telegrams_section_are_taken() {
        let topics = json!({"5": {"errorPolicy": "always"}});
        let groups = json!({"-1": {"errorPolicy": "silent", "topics": topics}});
        let keys = json!({"errorPolicy": "once", "silentErrorReplies": true, "groups": groups});
        for section in [keys.clone(), json!({"accounts": {"b": keys}})] {
            let document = json!({"channels": {"telegram": section}});
            assert_eq!(check(&document), [], "{document}");
        }
        assert_eq!(check(&json!({"channels": {"telegram": {"errorPolicy": "never"}}})).len(), 1);
    }

    #[test]
    fn unknown_keys_come_with_the_key_that_was_meant() {
        let rows = [
            (json!({"gateway": {"prot": 1}}), Some("port")),
            (json!({"gatway": {}}), Some("gateway")),
            (json!({"agents": {"defaults": {"workspce": "x"}}}), Some("workspace")),
            (json!({"zzz": 1}), None),
        ];
        for (document, expect) in rows {
            let issues = check(&document);
            assert_eq!(issues.len(), 1, "{document}");
            assert_eq!(issues[0].suggestion.as_deref(), expect, "{document}");
        }
    }

    #[test]
    fn a_union_shows_the_limit_that_its_only_fitting_member_misses() {
        let schema = json!({"anyOf": [{"type": "string"}, {"type": "number", "minimum": 3}]});
        let schema = Schema::compile_as(Dialect::Zod, &schema);
        let messages = |value| -> Vec<String> {
            let found = faults(schema.validate(&value).as_slice());
            found.into_iter().map(|fault| fault.into_issue().message).collect()
        };
        assert_eq!(messages(json!(1)), ["Too small: expected number to be >=3"]);
        assert_eq!(messages(json!(true)), ["Invalid input"]);
        assert_eq!(messages(json!("a")), Vec::<String>::new());
    }

    #[test]
    fn a_union_of_choices_and_texts_names_both() {
        let choices = json!({"type": "string", "enum": ["feishu", "lark"]});
        let schema = json!({"oneOf": [choices, {"type": "string", "pattern": "^https://"}]});
        let value = json!(true);
        let found = faults(Schema::compile_as(Dialect::Zod, &schema).validate(&value).as_slice());
        let lines: Vec<String> = found.into_iter().map(|fault| fault.into_issue().line()).collect();
        assert_eq!(lines, ["<root>: Invalid input (allowed: \"feishu\", \"lark\", a text; found true)"]);
    }

    /// A pattern that can't be compiled would match everything.
    #[test]
    fn every_pattern_of_the_schema_can_be_compiled() {
        fn patterns<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
            match schema {
                Value::Object(fields) => {
                    found.extend(fields.get("pattern").and_then(Value::as_str));
                    fields.values().for_each(|each| patterns(each, found));
                }
                Value::Array(items) => items.iter().for_each(|each| patterns(each, found)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let schema = accepted(|_| true);
        let mut found = Vec::new();
        patterns(&schema, &mut found);
        assert!(found.contains(&PATTERN_TEXTS[0].0), "{found:?}");
        for pattern in found {
            assert!(regex::Regex::new(pattern).is_ok(), "{pattern}");
        }
    }
}
