//! A result or event payload, serialised once and passed on as text.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// JSON that is ready for the wire. Serialising happens where the typed value is at hand, never again on the way out.
#[derive(Debug, Clone)]
pub struct Payload(Box<RawValue>);

impl Payload {
    /// Serialises a value.
    ///
    /// # Errors
    /// When the value has no JSON form (a map with keys that are not strings).
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl From<Box<RawValue>> for Payload {
    fn from(encoded: Box<RawValue>) -> Self {
        Self(encoded)
    }
}

impl From<serde_json::Value> for Payload {
    fn from(value: serde_json::Value) -> Self {
        // A `Value` always has a JSON form; `null` stands for the impossible case.
        Self::of(&value).unwrap_or_else(|_| Self(RawValue::NULL.to_owned()))
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
