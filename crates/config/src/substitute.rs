//! `${NAME}` in string values (spec `config.md` §2.3), and the config's own `env` section (§2.1).

use serde_json::Value;

use crate::Environment;

/// A variable that a value needs and that has none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Missing env var \"{name}\" referenced at config path: {path}")]
pub(crate) struct MissingVariable {
    /// The variable.
    pub(crate) name: String,
    /// Path of the reference, with `[n]` for indices.
    pub(crate) path: String,
}

/// Treatment of a string whose variable has no value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unresolved {
    /// The string stays as it is, so that the rest can be checked.
    Keep,
    /// The string is taken out.
    Remove,
}

/// Replaces all references in place and lists every variable that has no value.
pub(crate) fn substitute(
    value: &mut Value,
    env: &Environment,
    unresolved: Unresolved,
) -> Vec<MissingVariable> {
    let mut walk = SubstitutionWalk { env, unresolved, missing: Vec::new() };
    walk.value(value, "");
    walk.missing
}

struct SubstitutionWalk<'a> {
    env: &'a Environment,
    unresolved: Unresolved,
    missing: Vec<MissingVariable>,
}

impl SubstitutionWalk<'_> {
    /// Returns whether the value stays.
    fn value(&mut self, value: &mut Value, path: &str) -> bool {
        match value {
            Value::String(text) if text.contains("${") => match expand(text, self.env) {
                Ok(expanded) => *text = expanded,
                Err(names) => {
                    let missing = |name| MissingVariable { name, path: path.to_owned() };
                    self.missing.extend(names.into_iter().map(missing));
                    return self.unresolved == Unresolved::Keep;
                }
            },
            Value::Object(map) => map.retain(|key, each| {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                self.value(each, &path)
            }),
            Value::Array(items) => {
                let mut index = 0;
                items.retain_mut(|each| {
                    let path = format!("{path}[{index}]");
                    index += 1;
                    self.value(each, &path)
                });
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        true
    }
}

/// The text with its references replaced, or the names that have no value.
fn expand(text: &str, env: &Environment) -> Result<String, Vec<String>> {
    let mut out = String::with_capacity(text.len());
    let mut missing = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        let is_escaped = before.ends_with('$');
        match reference(from) {
            Some((name, after)) => {
                if is_escaped {
                    out.push_str(before.strip_suffix('$').unwrap_or(before));
                    out.push_str(from.get(..from.len() - after.len()).unwrap_or_default());
                } else {
                    out.push_str(before);
                    match env.get(name).filter(|value| !value.is_empty()) {
                        Some(value) => out.push_str(value),
                        None => missing.push(name.to_owned()),
                    }
                }
                rest = after;
            }
            None => {
                out.push_str(before);
                out.push_str("${");
                rest = from.get(2..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    if missing.is_empty() { Ok(out) } else { Err(missing) }
}

/// The name of a well-formed `${NAME}` at the start, and the text after it.
fn reference(text: &str) -> Option<(&str, &str)> {
    let (name, after) = text.strip_prefix("${")?.split_once('}')?;
    let starts_well = name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
    let is_plain = name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    (starts_well && is_plain).then_some((name, after))
}

/// Adds the config's `env.vars` and other string entries of `env` where the environment has no value.
pub(crate) fn apply_config_env(document: &Value, env: &mut Environment) {
    let Some(section) = document.get("env").and_then(Value::as_object) else { return };
    let vars = section.get("vars").and_then(Value::as_object);
    let direct = section.iter().filter(|(key, _)| *key != "vars" && *key != "shellEnv");
    for (name, value) in vars.into_iter().flatten().chain(direct) {
        if let Some(text) = value.as_str().filter(|text| !text.trim().is_empty()) {
            env.fill(name, text);
        }
    }
}
