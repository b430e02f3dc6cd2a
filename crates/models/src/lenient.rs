//! Frames of model servers, read leniently. Servers and proxies put any JSON at all into fields that nobody needs or that only count
//! something; that must never lose an answer. A field of an unexpected type counts as absent, and only fields that are used are typed.
//!
//! Each function is for `#[serde(default, deserialize_with = "…")]`. They read from text, which [`frame`] gives them.

use std::borrow::Cow;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::stream::ModelFailure;
use crate::wire::{garbage, glimpse};

/// Stand-in for a frame that is not an object.
const NOTHING: &str = "{}";

/// Reads one frame. No data at all, and JSON that is no object, give an empty frame: some servers keep connections open with those.
///
/// # Errors
/// When the data is not JSON; `what` says what it should have been.
pub(crate) fn frame<'a, T: Deserialize<'a>>(data: &'a str, what: &str) -> Result<T, ModelFailure> {
    let trimmed = data.trim();
    let object = match trimmed.as_bytes().first() {
        Some(b'{') => trimmed,
        Some(_) if serde_json::from_str::<IgnoredAny>(trimmed).is_err() => trimmed,
        Some(_) | None => NOTHING,
    };
    serde_json::from_str(object).map_err(|_| garbage(format_args!("{what}: {}", glimpse(data))))
}

/// Text.
pub(crate) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(read(raw(from)?))
}

/// Text that is not copied where it need not be.
pub(crate) fn borrowed<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    Ok(read(raw(from)?).map(|FieldName(text)| text))
}

/// An id: text, or a number in its digits.
pub(crate) fn id<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let raw = raw(from)?;
    let is_number = raw.get().starts_with(|first: char| first.is_ascii_digit());
    Ok(if is_number { Some(raw.get().to_owned()) } else { read(raw) })
}

/// `true` or `false`.
pub(crate) fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    Ok(read(raw(from)?))
}

/// A count or an index, also one that is written as text or with a fraction.
pub(crate) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let written = raw(from)?.get().trim_matches('"');
    let number = || written.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    // Saturates; counts are far below where a fraction would be lost.
    Ok(written.parse().ok().or_else(|| number().map(|number| number as u64)))
}

/// An object.
pub(crate) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Ok(object_in(raw(from)?))
}

/// The objects of a list.
pub(crate) fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(objects_in(raw(from)?))
}

/// The first object of a list.
pub(crate) fn first<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    let mut found = None;
    each_element(raw(from)?, |raw| found = found.take().or_else(|| object_in(raw)));
    Ok(found)
}

/// JSON as text: what a string says, or the JSON itself. Some servers send arguments of tools as the one, some as the other.
pub(crate) fn json_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let raw = raw(from)?;
    Ok(match raw.get().as_bytes().first() {
        Some(b'"') => read(raw),
        _ if raw.get() == "null" => None,
        _ => Some(raw.get().to_owned()),
    })
}

/// An error that says something: a filled object, words, or `true`. Some servers send an empty one with each good answer.
pub(crate) fn error<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Ok(read(raw(from)?).filter(|error| match error {
        Value::Object(fields) => !fields.is_empty(),
        Value::String(words) => !words.trim().is_empty(),
        Value::Bool(is_error) => *is_error,
        Value::Null | Value::Number(_) | Value::Array(_) => false,
    }))
}

/// JSON that is read later, or not at all.
pub(crate) fn raw<'de, D: Deserializer<'de>>(from: D) -> Result<&'de RawValue, D::Error> {
    Deserialize::deserialize(from)
}

/// JSON of a type; nothing if it is of another.
pub(crate) fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// The objects of a list; none if it is no list.
pub(crate) fn objects_in<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Vec<T> {
    let mut found = Vec::new();
    each_element(raw, |raw| found.extend(object_in(raw)));
    found
}

/// An object. Lists are none, although structs can be read from them.
pub(crate) fn object_in<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    raw.get().starts_with('{').then(|| read(raw)).flatten()
}

/// Hands out each element of a list.
fn each_element<'a>(raw: &'a RawValue, take: impl FnMut(&'a RawValue)) {
    // Of anything else nothing is handed out.
    let _ = serde_json::Deserializer::from_str(raw.get()).deserialize_seq(Elements(take));
}

/// Hands out each field of an object.
pub(crate) fn each_field<'a>(raw: &'a RawValue, take: impl FnMut(&str, &'a RawValue)) {
    let _ = serde_json::Deserializer::from_str(raw.get()).deserialize_map(FieldVisitor(take));
}

struct Elements<F>(F);

impl<'de, F: FnMut(&'de RawValue)> Visitor<'de> for Elements<F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element()? {
            self.0(element);
        }
        Ok(())
    }
}

struct FieldVisitor<F>(F);

#[derive(Deserialize)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de, F: FnMut(&str, &'de RawValue)> Visitor<'de> for FieldVisitor<F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        while let Some((FieldName(name), value)) = fields.next_entry()? {
            self.0(&name, value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
