//! A JSON document that is written once and then forgotten: it borrows the words it is made of.
//!
//! A request repeats a whole conversation and every tool with each call. As [`Value`]s all of it would be copied, key by key,
//! only to be written out.

use std::borrow::Cow;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A part of a document. Fields are written in the order they were added; nobody looks whether one is there already.
#[derive(Debug, Clone)]
pub(crate) enum Json<'a> {
    Text(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    Object(Vec<(&'a str, Json<'a>)>),
    /// Anything that is a value already.
    Value(Cow<'a, Value>),
    /// Anything that is written out already.
    Written(&'a RawValue),
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
            Self::Text(_) | Self::Array(_) | Self::Value(_) | Self::Written(_) => None,
        }
    }

    /// Whether a field is this text.
    pub(crate) fn is(&self, name: &str, text: &str) -> bool {
        match self {
            Self::Object(fields) => fields.iter().any(|(key, value)| *key == name && value.is_text(text)),
            Self::Value(value) => value.get(name).and_then(Value::as_str) == Some(text),
            Self::Text(_) | Self::Array(_) | Self::Written(_) => false,
        }
    }

    fn is_text(&self, text: &str) -> bool {
        match self {
            Self::Text(own) => own == text,
            Self::Value(value) => value.as_str() == Some(text),
            Self::Array(_) | Self::Object(_) | Self::Written(_) => false,
        }
    }

    /// The document as it is sent.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        // Keys are text and nothing here can refuse to be written.
        serde_json::to_vec(&self).unwrap_or_default()
    }
}

/// An object of these fields, in this order.
macro_rules! object {
    ($($name:literal: $value:expr),* $(,)?) => {
        $crate::json::Json::Object(vec![$(($name, $crate::json::Json::from($value))),*])
    };
}
pub(crate) use object;

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Array(items) => {
                let mut array = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| array.serialize_element(item))?;
                array.end()
            }
            Self::Object(fields) => {
                let mut object = serializer.serialize_map(Some(fields.len()))?;
                fields.iter().try_for_each(|(name, value)| object.serialize_entry(name, value))?;
                object.end()
            }
            Self::Value(value) => value.serialize(serializer),
            Self::Written(value) => value.serialize(serializer),
        }
    }
}

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
        assert_eq!(String::from_utf8(document.into_bytes()).unwrap(), text);
    }
}
