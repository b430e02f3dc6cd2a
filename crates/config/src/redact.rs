//! Taking secrets out of what leaves the process, and putting them back into what comes in (spec `config.md` §7).

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use crate::{edit_text, json5};

/// Stands for a secret.
pub const REDACTED: &str = "__OPENCLAW_REDACTED__";

/// Words that mark the name of a secret, in lower case and without separators.
const SECRET_WORDS: &[&str] = &[
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "privatekey",
    "accesskey",
    "serviceaccount",
    "credential",
    "cookie",
];
/// Last words that mark the name of a secret, as a word of its own: `encryptKey`, `SMTP_PASS`.
const SECRET_LAST_WORDS: &[&str] = &["key", "pass", "pat"];
/// Keys that everybody may know, by the word before `key`.
const OPEN_KEYS: &[&str] = &["main", "public", "session"];
/// Endings of names that look like a secret's and are not: they say where a secret is.
const NOT_SECRET_ENDINGS: &[&str] = &["file", "path", "field", "env"];
/// Objects whose text values may all be secrets.
const SECRET_MAPS: &[&str] = &["env", "headers"];
/// Keys of an `env` object that are settings.
const ENV_SETTINGS: &[&str] = &["shellEnv"];
/// Fields that identify items of a list, so that a secret finds its item after a reorder.
const ITEM_KEYS: &[&str] = &["id", "name", "key"];
/// Shorter values are not looked for elsewhere in a text; too much would be replaced.
const MIN_SEARCHED_LENGTH: usize = 3;

/// A redacted value that can't be restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("config write rejected: \"{key}\" is redacted; set an explicit value instead of {REDACTED}")]
pub struct RestoreError {
    /// The key that holds the stand-in.
    pub key: String,
}

/// True if a name (of a config key or an environment variable) belongs to a secret.
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let joined = words.concat();
    if NOT_SECRET_ENDINGS.iter().any(|ending| joined.ends_with(ending)) {
        return false;
    }
    let ends_secret = match words.as_slice() {
        [.., before, last] => {
            SECRET_LAST_WORDS.contains(&last.as_str()) && !OPEN_KEYS.contains(&before.as_str())
        }
        [_] | [] => false,
    };
    ends_secret || SECRET_WORDS.iter().any(|word| joined.contains(word))
}

/// The words of `camelCase`, `snake_case`, `kebab-case` and `UPPER_CASE`, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let is_start = was_lower && c.is_uppercase();
        was_lower = c.is_lowercase() || c.is_ascii_digit();
        if is_start || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Replaces all secrets of a document. Only text is ever replaced: numbers and switches are no secrets.
pub fn redact(value: &mut Value) {
    redact_at(&[], value);
}

/// The same for the part of a document at a path: the keys above it may say that it is a secret.
pub fn redact_at(path: &[String], value: &mut Value) {
    let context = path.iter().fold(RedactContext::Plain, |around, key| context_of(around, key, value));
    visit_secrets(value, context, &mut |text| REDACTED.clone_into(text));
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RedactContext {
    /// Only values of secret keys.
    Plain,
    /// All text values of this object, but not of objects in it.
    SecretMap,
    /// Secret, with everything below.
    Secret,
}

fn visit_secrets(value: &mut Value, context: RedactContext, found: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text)
            if (context == RedactContext::Secret && !text.is_empty()) || has_credentials(text) =>
        {
            found(text);
        }
        Value::Array(items) => {
            let context = if context == RedactContext::SecretMap { RedactContext::Plain } else { context };
            items.iter_mut().for_each(|item| visit_secrets(item, context, found));
        }
        Value::Object(map) => {
            for (key, each) in map {
                visit_secrets(each, context_of(context, key, each), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// True if a text is a URL with a secret in it: `https://user:password@host` or
/// `wss://host?token=…`.
fn has_credentials(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let has_password = authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'));
    let mut parameters = rest.split(['?', '&', '#']).skip(1).filter_map(|pair| pair.split_once('='));
    has_password || parameters.any(|(name, value)| !value.is_empty() && is_secret_name(name))
}

fn context_of(around: RedactContext, key: &str, value: &Value) -> RedactContext {
    match around {
        RedactContext::Secret => RedactContext::Secret,
        _ if is_secret_name(key) => RedactContext::Secret,
        RedactContext::SecretMap if value.is_string() && !ENV_SETTINGS.contains(&key) => {
            RedactContext::Secret
        }
        RedactContext::SecretMap if key == "vars" => RedactContext::SecretMap,
        RedactContext::SecretMap | RedactContext::Plain if SECRET_MAPS.contains(&key) => {
            RedactContext::SecretMap
        }
        RedactContext::SecretMap | RedactContext::Plain => RedactContext::Plain,
    }
}

/// Replaces secrets in the text of a config file: the known values of `config` wherever they stand,
/// everything after a key that names a secret, also in comments, and every secret of the document
/// however it is written.
pub fn redact_text(raw: &str, config: &Value) -> String {
    let mut secrets = Vec::new();
    let mut collect = |text: &mut String| secrets.push(text.clone());
    visit_secrets(&mut config.clone(), RedactContext::Plain, &mut collect);
    if let Ok(mut parsed) = json5::parse_value(raw) {
        visit_secrets(&mut parsed, RedactContext::Plain, &mut collect);
    }
    secrets.retain(|secret| secret.chars().count() >= MIN_SEARCHED_LENGTH && secret != REDACTED);
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.dedup();
    let mut text = raw.to_owned();
    for secret in &secrets {
        text = text.replace(secret.as_str(), REDACTED);
        let quoted = Value::String(secret.clone()).to_string();
        if let Some(escaped) = quoted.get(1..quoted.len() - 1).filter(|escaped| escaped != secret) {
            text = text.replace(escaped, REDACTED);
        }
    }
    if let Some(pairs) = SECRET_PAIRS.as_ref() {
        text = pairs.replace_all(&text, hide_pair).into_owned();
    }
    hide_values(text)
}

/// `key: "value"` with the value hidden where the key names a secret.
fn hide_pair(found: &Captures<'_>) -> String {
    let part = |index: usize| found.get(index).map_or("", |part| part.as_str());
    let (key, value) = (part(2), part(4));
    if !is_secret_name(key) || value.len() <= 2 {
        return part(0).to_owned();
    }
    let quote = value.get(..1).unwrap_or("\"");
    format!("{}{key}{}{quote}{REDACTED}{quote}", part(1), part(3))
}

/// Hides what the text says with escapes or continued lines, so that its value was not found as it is.
fn hide_values(text: String) -> String {
    let Ok(mut document) = json5::parse_value(&text) else { return text };
    redact(&mut document);
    edit_text(&text, &document).unwrap_or(text)
}

/// `key: "value"` in JSON5, the key quoted or not.
static SECRET_PAIRS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(["']?)([A-Za-z0-9_.\-]+)(["']?\s*:\s*)("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"#).ok()
});

/// Puts the secrets of `original` back where `incoming` holds the stand-in.
///
/// # Errors
/// [`RestoreError`] when there is nothing to put back: the stand-in is never stored.
pub fn restore(incoming: &mut Value, original: &Value) -> Result<(), RestoreError> {
    restore_at(incoming, Some(original), "<root>")
}

fn restore_at(incoming: &mut Value, original: Option<&Value>, key: &str) -> Result<(), RestoreError> {
    match incoming {
        Value::String(text) if text == REDACTED => match original {
            Some(value) if value.as_str() != Some(REDACTED) => {
                *incoming = value.clone();
                Ok(())
            }
            Some(_) | None => Err(RestoreError { key: key.to_owned() }),
        },
        Value::String(text) if text.contains(REDACTED) => Err(RestoreError { key: key.to_owned() }),
        Value::Object(map) => {
            for (key, value) in map {
                let before = original.and_then(|original| original.get(key.as_str()));
                restore_at(value, before, key)?;
            }
            Ok(())
        }
        Value::Array(items) => {
            let before = original.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            for (index, item) in items.iter_mut().enumerate() {
                let same = counterpart(item, before, index);
                restore_at(item, same, key)?;
            }
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// The item that a list item was before: the one with the same id, else the one at the same index.
fn counterpart<'a>(item: &Value, before: &'a [Value], index: usize) -> Option<&'a Value> {
    let identity = ITEM_KEYS.iter().find_map(|key| Some((*key, item.get(*key)?)));
    match identity {
        Some((key, id)) => before.iter().find(|candidate| candidate.get(key) == Some(id)),
        None => before.get(index),
    }
}

#[cfg(test)]
mod tests;
