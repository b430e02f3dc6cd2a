//! JSON that is ready for the wire.

use std::fmt;

use bytes::Bytes;
use serde::Serialize;

/// The payload of a result or an event as JSON text, shared by all who send it. Serialising happens where the typed value is
/// at hand, never again on the way out.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(Bytes);

impl Payload {
    /// Serialises a value.
    ///
    /// # Errors
    /// When the value has no JSON form (a map with keys that are not strings).
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(|text| Self(text.into()))
    }

    /// Texts that are JSON one behind the other.
    pub fn joined(parts: &[&str]) -> Self {
        Self(parts.concat().into())
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        // It was made of text.
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The JSON text, shared.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

impl From<serde_json::Value> for Payload {
    fn from(value: serde_json::Value) -> Self {
        Self(value.to_string().into())
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
