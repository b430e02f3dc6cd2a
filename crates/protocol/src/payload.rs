//! JSON that is ready for the wire.

use std::fmt;

use bytes::Bytes;
use serde::Serialize;

/// Room that a large text may keep beyond its end.
const SPARE: usize = 64 * 1024;

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
        serde_json::to_string(value).map(|mut text| {
            if text.capacity() - text.len() > SPARE {
                text.shrink_to_fit();
            }
            Self(text.into())
        })
    }

    /// Texts that are JSON one behind the other.
    pub fn joined(parts: &[&str]) -> Self {
        Self(parts.concat().into())
    }

    /// Binds `guard` to the text: it is dropped when nobody holds the text any more.
    pub fn guarded_by<G: Send + 'static>(self, guard: G) -> Self {
        Self(guarded(self.0, guard))
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        // The payload was made of text.
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The JSON text, shared.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

/// Binds `guard` to bytes: it is dropped when nobody holds them any more.
pub fn guarded<G: Send + 'static>(text: Bytes, guard: G) -> Bytes {
    Bytes::from_owner(Guarded { text, _guard: guard })
}

/// Bytes and what is given back with them.
struct Guarded<G> {
    text: Bytes,
    _guard: G,
}

impl<G> AsRef<[u8]> for Guarded<G> {
    fn as_ref(&self) -> &[u8] {
        &self.text
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
