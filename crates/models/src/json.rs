//! A JSON document that is written once and then forgotten: it borrows the words it is made of.
//!
//! A request repeats a whole conversation and every tool with each call. As [`Value`]s all of it would be copied, key by key,
//! only to be written out.

mod write;

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use write::{put_field, put_items, put_text};

/// A part of a document. Fields are written in the order they were added; nobody looks whether one is there already.
#[derive(Debug, Clone)]
pub(crate) enum Json<'a> {
    Text(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    Object(Vec<Field<'a>>),
    /// Parsed JSON value.
    Value(Cow<'a, Value>),
    /// Serialized JSON text.
    Written(&'a RawValue),
    /// The conversation of a request.
    Messages(JsonMessages<'a>),
}

/// A field of an object.
pub(crate) type Field<'a> = (&'a str, Json<'a>);
/// The fields before a conversation, its own, those after it.
pub(crate) type AroundMessages<'d, 'a> = (&'d [Field<'a>], (&'a str, &'d JsonMessages<'a>), &'d [Field<'a>]);

/// The messages of a request, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct JsonMessages<'a> {
    /// Items before the conversation.
    pub(crate) head: Vec<Json<'a>>,
    /// Items that every later request repeats.
    pub(crate) settled: Vec<Json<'a>>,
    /// Items that the next request may write differently.
    pub(crate) open: Vec<Json<'a>>,
}

impl<'a> Json<'a> {
    /// Adds a field to an object.
    pub(crate) fn put(&mut self, name: &'a str, value: impl Into<Json<'a>>) {
        if let Self::Object(fields) = self {
            fields.push((name, value.into()));
        }
    }

    /// Adds a field to an object if there is a value for it.
    pub(crate) fn put_some(&mut self, name: &'a str, value: Option<impl Into<Json<'a>>>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    /// The value of a field.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Json<'a>> {
        match self {
            Self::Object(fields) => fields.iter_mut().find(|(key, _)| *key == name).map(|(_, value)| value),
            Self::Text(_) | Self::Array(_) | Self::Value(_) | Self::Written(_) | Self::Messages(_) => None,
        }
    }

    /// Returns true if the field has this text as its value.
    pub(crate) fn is(&self, name: &str, text: &str) -> bool {
        match self {
            Self::Object(fields) => fields.iter().any(|(key, value)| *key == name && value.is_text(text)),
            Self::Value(value) => value.get(name).and_then(Value::as_str) == Some(text),
            Self::Text(_) | Self::Array(_) | Self::Written(_) | Self::Messages(_) => false,
        }
    }

    fn is_text(&self, text: &str) -> bool {
        match self {
            Self::Text(own) => own == text,
            Self::Value(value) => value.as_str() == Some(text),
            Self::Array(_) | Self::Object(_) | Self::Written(_) | Self::Messages(_) => false,
        }
    }

    /// The fields of a document around its conversation, and that.
    pub(crate) fn around_messages(&self) -> Option<AroundMessages<'_, 'a>> {
        let Self::Object(fields) = self else { return None };
        fields.iter().enumerate().find_map(|(at, (name, value))| match value {
            Self::Messages(messages) => Some((fields.get(..at)?, (*name, messages), fields.get(at + 1..)?)),
            _ => None,
        })
    }
}

/// An object of these fields, in this order.
macro_rules! object {
    ($($name:literal: $value:expr),* $(,)?) => {
        $crate::json::Json::Object(vec![$(($name, $crate::json::Json::from($value))),*])
    };
}
pub(crate) use object;

impl<'a> From<&'a str> for Json<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for Json<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Json<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a> From<Cow<'a, str>> for Json<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Text(text)
    }
}

impl From<Value> for Json<'_> {
    fn from(value: Value) -> Self {
        Self::Value(Cow::Owned(value))
    }
}

impl<'a> From<&'a Value> for Json<'a> {
    fn from(value: &'a Value) -> Self {
        Self::Value(Cow::Borrowed(value))
    }
}

impl<'a> From<&'a RawValue> for Json<'a> {
    fn from(value: &'a RawValue) -> Self {
        Self::Written(value)
    }
}

impl From<bool> for Json<'_> {
    fn from(value: bool) -> Self {
        Value::from(value).into()
    }
}

impl From<u64> for Json<'_> {
    fn from(value: u64) -> Self {
        Value::from(value).into()
    }
}

impl From<f64> for Json<'_> {
    fn from(value: f64) -> Self {
        Value::from(value).into()
    }
}

impl<'a> From<JsonMessages<'a>> for Json<'a> {
    fn from(messages: JsonMessages<'a>) -> Self {
        Self::Messages(messages)
    }
}

impl<'a> From<Vec<Json<'a>>> for Json<'a> {
    fn from(items: Vec<Json<'a>>) -> Self {
        Self::Array(items)
    }
}

impl<'a, const N: usize> From<[Json<'a>; N]> for Json<'a> {
    fn from(items: [Json<'a>; N]) -> Self {
        Self::Array(items.into())
    }
}

impl<'a> FromIterator<Json<'a>> for Json<'a> {
    fn from_iter<I: IntoIterator<Item = Json<'a>>>(items: I) -> Self {
        Self::Array(items.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_written_as_it_was_put_together() {
        let shared = json!({"z": null, "a": 1.5});
        let mut document = object! {
            "text": "a \"b\" \u{2028}\n", "own": "x".to_owned(), "yes": true, "many": [object! {}, Json::from(7)],
            "shared": &shared,
        };
        document.put("last", Vec::new());
        if let Some(Json::Array(many)) = document.get_mut("many") {
            many.push("end".into());
        }
        let text = "{\"text\":\"a \\\"b\\\" \u{2028}\\n\",\"own\":\"x\",\"yes\":true,\"many\":[{},7,\"end\"],\
                    \"shared\":{\"z\":null,\"a\":1.5},\"last\":[]}";
        assert!(document.is("own", "x") && !document.is("own", "y") && !document.is("many", "x"));
        assert!(Json::from(json!({"type": "reasoning"})).is("type", "reasoning"));
        assert_eq!(String::from_utf8(document.to_bytes().to_vec()).unwrap(), text);
    }
}
