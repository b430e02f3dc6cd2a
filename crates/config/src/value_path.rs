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

/// Splits `a.b[0].c` or `a.b.0.c` into its segments. A key that holds a dot is written `models.openai/gpt-5\.2`,
/// `models[openai/gpt-5.2]` or `models["openai/gpt-5.2"]`; a backslash also stands before a bracket, a quote and itself.
///
/// # Errors
/// [`PathError`] for a blank or reserved segment, and for a bracket or a quote that is not closed.
pub fn parse_path(text: &str) -> Result<Vec<String>, PathError> {
    let mut segments = Vec::new();
    let mut rest = text.trim();
    loop {
        let (segment, after) = match rest.strip_prefix('[') {
            Some(inner) => bracketed(inner)?,
            None => plain(rest)?,
        };
        if segment.trim().is_empty() {
            return Err(PathError::Blank);
        }
        segments.push(segment);
        rest = match after.strip_prefix('.') {
            Some(next) if !next.starts_with('[') => next,
            None if after.is_empty() => break,
            None if after.starts_with('[') => after,
            Some(_) | None => return Err(PathError::Blank),
        };
    }
    if segments.iter().any(|segment| RESERVED.contains(&segment.as_str())) {
        return Err(PathError::Reserved);
    }
    Ok(segments)
}

/// Appends a segment to a dotted path.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The path as [`parse_path`] reads it: keys with a dot or a bracket in brackets.
pub fn path_text(segments: &[String]) -> String {
    segments.iter().fold(String::new(), |text, segment| {
        if segment.contains(['.', '[', ']', '\\']) {
            let quoted = segment.replace('\\', r"\\").replace('"', "\\\"");
            format!("{text}[\"{quoted}\"]")
        } else if text.is_empty() {
            segment.clone()
        } else {
            format!("{text}.{segment}")
        }
    })
}

/// Splits off a segment up to the next dot or bracket. Returns it and the rest.
fn plain(text: &str) -> Result<(String, &str), PathError> {
    let end = unescaped(text, &['.', '[']).unwrap_or(text.len());
    let (segment, after) = text.split_at(end);
    Ok((without_escapes(segment.trim())?, after))
}

/// Splits off the segment in a bracket, with or without quotes. Returns it and the rest. `text` begins behind the opening bracket.
fn bracketed(text: &str) -> Result<(String, &str), PathError> {
    let inner = text.trim_start();
    let Some(quote) = inner.chars().next().filter(|first| matches!(first, '"' | '\'')) else {
        let (segment, after) = inner.split_once(']').ok_or(PathError::Blank)?;
        return Ok((segment.trim().to_owned(), after.trim_start()));
    };
    let inner = inner.strip_prefix(quote).unwrap_or(inner);
    let end = unescaped(inner, &[quote]).ok_or(PathError::Blank)?;
    let (segment, after) = inner.split_at(end);
    let after = after.strip_prefix(quote).unwrap_or(after).trim_start();
    let after = after.strip_prefix(']').ok_or(PathError::Blank)?;
    Ok((without_escapes(segment)?, after.trim_start()))
}

/// Returns the byte position of the first wanted character that no backslash escapes.
fn unescaped(text: &str, wanted: &[char]) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if wanted.contains(&c) => return Some(at),
            _ => {}
        }
    }
    None
}

/// Returns the text without the backslashes that escape a character. A backslash at the end is an error: it escapes nothing.
fn without_escapes(text: &str) -> Result<String, PathError> {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        plain.push(match c {
            '\\' => letters.next().ok_or(PathError::Blank)?,
            other => other,
        });
    }
    Ok(plain)
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

/// The keys of a document that a dotted text names, as far as they are there, and the rest of the text. Keys may hold dots: of those
/// that fit the longest counts.
fn locate<'a>(root: &Value, mut dotted: &'a str) -> (Vec<String>, &'a str) {
    let mut found = Vec::new();
    let mut node = root;
    while !dotted.is_empty() {
        let (key, child) = match node {
            Value::Object(map) => {
                let fits = |key: &str| {
                    dotted.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                };
                let known = map.iter().filter(|(key, _)| !key.is_empty() && fits(key));
                let Some((key, child)) = known.max_by_key(|(key, _)| key.len()) else { break };
                (key.clone(), child)
            }
            Value::Array(items) => {
                let key = dotted.split('.').next().unwrap_or_default();
                let Some(child) = key.parse::<usize>().ok().and_then(|index| items.get(index)) else { break };
                (key.to_owned(), child)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => break,
        };
        dotted = dotted.get(key.len()..).unwrap_or_default().trim_start_matches('.');
        found.push(key);
        node = child;
    }
    (found, dotted)
}

/// The path that was meant by one whose dots part a key that is there.
pub fn key_with_dots(root: &Value, path: &[String]) -> Option<Vec<String>> {
    let dotted = path.join(".");
    let (mut found, rest) = locate(root, &dotted);
    if !found.iter().any(|key| key.contains('.') && !path.contains(key)) {
        return None;
    }
    found.extend(rest.split('.').filter(|part| !part.is_empty()).map(str::to_owned));
    Some(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_with_dots_are_written_with_a_backslash_or_in_brackets() {
        let rows: [(&str, &[&str]); 14] = [
            ("a.b[0].c", &["a", "b", "0", "c"]),
            ("agents.list.0.id", &["agents", "list", "0", "id"]),
            (r"models.openai/gpt-5\.2.alias", &["models", "openai/gpt-5.2", "alias"]),
            ("models[openai/gpt-5.2].alias", &["models", "openai/gpt-5.2", "alias"]),
            (r#"models["openai/gpt-5.2"].alias"#, &["models", "openai/gpt-5.2", "alias"]),
            ("models['openai/gpt-5.2']", &["models", "openai/gpt-5.2"]),
            (r#"m["a]b"]["c\"d"]"#, &["m", "a]b", "c\"d"]),
            (r"m.a\[b\].c\\d", &["m", "a[b]", r"c\d"]),
            ("[a.b].c", &["a.b", "c"]),
            ("m[ 0 ] [ 'x.y' ]", &["m", "0", "x.y"]),
            (r"env.vars.MY\.NAME", &["env", "vars", "MY.NAME"]),
            ("hosts[::1]", &["hosts", "::1"]),
            (" a . b ", &["a", "b"]),
            ("m['it\\'s.x']", &["m", "it's.x"]),
        ];
        for (text, expect) in rows {
            assert_eq!(parse_path(text).unwrap(), expect, "{text}");
        }
        let blank = [
            "", " ", ".", "a.", ".a", "a..b", "a[", "a[]", "a['x]", "a[\"\"]", "a[0]b", "a.[0]", r"a\",
            "a['x'y]",
        ];
        for text in blank {
            assert_eq!(parse_path(text), Err(PathError::Blank), "{text:?}");
        }
        for text in ["__proto__.x", "a[constructor]", r"a.proto\type"] {
            assert_eq!(parse_path(text), Err(PathError::Reserved), "{text:?}");
        }
    }

    #[test]
    fn a_path_is_written_as_it_is_read() {
        for segments in
            [&["a", "0", "b"][..], &["m", "openai/gpt-5.2", "alias"], &["x.y"], &["m", r#"a["b\.c"#, "d"]]
        {
            let segments: Vec<String> = segments.iter().map(|segment| (*segment).to_owned()).collect();
            assert_eq!(parse_path(&path_text(&segments)).unwrap(), segments);
        }
    }

    #[test]
    fn the_key_that_was_meant_is_found() {
        let root = json!({"models": {"openai/gpt-5.2": {"alias": "g"}, "llama.cpp": {}}});
        let rows = [
            ("models.openai/gpt-5.2.alias", Some(r#"models["openai/gpt-5.2"].alias"#)),
            ("models.llama.cpp.baseUrl", Some(r#"models["llama.cpp"].baseUrl"#)),
            ("models.other.x", None),
            ("nope.x", None),
        ];
        for (text, expect) in rows {
            let found = key_with_dots(&root, &parse_path(text).unwrap()).map(|path| path_text(&path));
            assert_eq!(found.as_deref(), expect, "{text}");
        }
    }
}
