//! The fields of an object while it is read.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// All fields of an object whose first name has been read.
pub(super) fn collect<'de, A: MapAccess<'de>>(
    first: Name<'de>,
    mut map: A,
) -> Result<Map<String, Value>, A::Error> {
    let mut fields = Map::new();
    fields.insert(first.into_owned(), map.next_value()?);
    collect_into(fields, map)
}

pub(super) fn collect_into<'de, A: MapAccess<'de>>(
    mut fields: Map<String, Value>,
    mut map: A,
) -> Result<Map<String, Value>, A::Error> {
    while let Some(name) = map.next_key::<Name<'de>>()? {
        fields.insert(name.into_owned(), map.next_value()?);
    }
    Ok(fields)
}

/// A text that is borrowed where it can be.
pub(super) struct Name<'de>(Cow<'de, str>);

impl Name<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn into_owned(self) -> String {
        self.0.into_owned()
    }
}

impl PartialEq<str> for Name<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// The visits of a reader that keeps as it is, as `Other`, what is neither a text, an object nor null.
macro_rules! keep_as_is {
    ($type:ident) => {
        keep_as_is!($type, visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);

        fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<$type, A::Error> {
            Value::deserialize(SeqAccessDeserializer::new(seq)).map($type::Other)
        }
    };
    ($type:ident, $($visit:ident: $kind:ty),+) => {$(
        fn $visit<E: Error>(self, value: $kind) -> Result<$type, E> {
            Ok($type::Other(value.into()))
        }
    )+};
}
pub(super) use keep_as_is;

/// A field that ought to be a text.
#[derive(Debug)]
pub(super) enum Said {
    Text(String),
    Null,
    Other(Value),
}

impl From<Said> for Value {
    fn from(said: Said) -> Self {
        match said {
            Said::Text(text) => text.into(),
            Said::Null => Self::Null,
            Said::Other(value) => value,
        }
    }
}

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Said;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Said, E> {
                Ok(Said::Text(text.to_owned()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Said, E> {
                Ok(Said::Text(text))
            }

            fn visit_unit<E: Error>(self) -> Result<Said, E> {
                Ok(Said::Null)
            }

            fn visit_none<E: Error>(self) -> Result<Said, E> {
                Ok(Said::Null)
            }

            keep_as_is!(Said);

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Said, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(map)).map(Said::Other)
            }
        }
        deserializer.deserialize_any(Any)
    }
}
