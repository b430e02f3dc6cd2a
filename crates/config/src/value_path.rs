//! Dotted paths into a config document, as `config get|set|unset` take them (spec `cli.md` §4.1).

use serde_json::{Map, Value};

/// A path that names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Blank, or a blank segment.
    #[error("Invalid path. Use dot notation (e.g. foo.bar).")]
    Blank,
    /// A name with a meaning of its own in JavaScript.
    #[error("Invalid path segment.")]
    Reserved,
}

/// Names that JavaScript readers of the file must not meet as keys.
const RESERVED: &[&str] = &["__proto__", "prototype", "constructor"];

/// Splits `a.b[0].c` or `a.b.0.c` into its segments.
///
/// # Errors
/// [`PathError`] for a blank or reserved segment.
pub fn parse_path(text: &str) -> Result<Vec<String>, PathError> {
    let mut segments = Vec::new();
    for part in text.split('.') {
        let (name, indices) = part.split_at(part.find('[').unwrap_or(part.len()));
        let name = name.trim();
        if name.is_empty() {
            return Err(PathError::Blank);
        }
        segments.push(name.to_owned());
        for index in indices.split('[').skip(1) {
            let index = index.trim_end().strip_suffix(']').map(str::trim).filter(|index| !index.is_empty());
            segments.push(index.ok_or(PathError::Blank)?.trim_matches(['"', '\'']).to_owned());
        }
    }
    if segments.iter().any(|segment| RESERVED.contains(&segment.as_str())) {
        return Err(PathError::Reserved);
    }
    Ok(segments)
}

/// The value at a path.
pub fn get<'a>(root: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(root, |node, key| match node {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        other => other.get(key),
    })
}

/// The same, to change it.
pub fn get_mut<'a>(root: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(root, |node, key| match node {
        Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
        other => other.get_mut(key),
    })
}

/// The entries of a value that is a list; none of another.
pub(crate) fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// The texts among them.
pub(crate) fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    items(value).filter_map(Value::as_str)
}

/// Puts a value at a path. Objects are made on the way; something else in the way is replaced. An index may be at most one
/// past the end of a list.
pub fn set(root: &mut Value, path: &[String], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *root = value;
        return;
    };
    if let Value::Array(items) = root
        && let Ok(index) = first.parse::<usize>()
        && index <= items.len()
    {
        if index == items.len() {
            items.push(Value::Null);
        }
        if let Some(slot) = items.get_mut(index) {
            set(slot, rest, value);
        }
        return;
    }
    if !root.is_object() {
        *root = Value::Object(Map::new());
    }
    if let Value::Object(map) = root {
        set(map.entry(first.clone()).or_insert(Value::Null), rest, value);
    }
}

/// Removes the value at a path, and objects that become empty by it. Returns whether there was one.
pub fn unset(root: &mut Value, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    match root {
        Value::Array(items) => match first.parse::<usize>().ok().filter(|index| *index < items.len()) {
            Some(index) if rest.is_empty() => {
                items.remove(index);
                true
            }
            Some(index) => items.get_mut(index).is_some_and(|item| unset(item, rest)),
            None => false,
        },
        Value::Object(map) if rest.is_empty() => map.shift_remove(first).is_some(),
        Value::Object(map) => {
            let Some(child) = map.get_mut(first) else { return false };
            let removed = unset(child, rest);
            if removed && child.as_object().is_some_and(Map::is_empty) {
                map.shift_remove(first);
            }
            removed
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
