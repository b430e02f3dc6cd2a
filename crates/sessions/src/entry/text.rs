//! JSON values kept as text: small, shared, compared by what they say.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Objects around a field of a row in the file of a store.
pub(crate) const ROW_FIELD_DEPTH: usize = 2;

/// A JSON value this crate only carries. Rows with the same value may share it.
#[derive(Clone)]
pub struct Json(Arc<str>);

impl Json {
    /// Keeps a value.
    pub fn new<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(Self(Arc::from(serde_json::to_string(value)?)))
    }

    /// Keeps a value of a row laid out as it stands in the store's file, so that writing the row copies it.
    pub fn of_row_field<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(Self(Arc::from(laid_out(&serde_json::to_string(value)?, ROW_FIELD_DEPTH))))
    }

    /// The text, shared.
    pub(crate) fn text(&self) -> &Arc<str> {
        &self.0
    }

    /// A text that is known to be JSON, however it is laid out.
    pub(crate) fn shared(text: Arc<str>) -> Self {
        Self(text)
    }

    /// Reads the value as a type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// JSON text, laid out in any way.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Json {
    /// Compares content, not layout.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0 || tokens(&self.0).eq(tokens(&other.0))
    }
}

impl Eq for Json {}

impl std::fmt::Debug for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Json {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: Value = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value.is_null() {
            return Err(serde::de::Error::custom("null"));
        }
        Ok(Self(Arc::from(value.to_string())))
    }
}

/// The bytes of a JSON text that are not layout.
fn tokens(json: &str) -> impl Iterator<Item = u8> + '_ {
    let mut place = StringTracker::default();
    json.bytes().filter(move |byte| place.enters(*byte) || !byte.is_ascii_whitespace())
}

/// Scanner that tracks whether a byte of a JSON text is part of a string.
#[derive(Default)]
struct StringTracker {
    in_string: bool,
    escaped: bool,
}

impl StringTracker {
    /// Goes past a byte; says whether it belongs to a string.
    fn enters(&mut self, byte: u8) -> bool {
        let was_in = self.in_string;
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if was_in => self.escaped = true,
            b'"' => self.in_string = !was_in,
            _ => {}
        }
        was_in || self.in_string
    }
}

/// A JSON text laid out as OpenClaw writes its files, inside of `depth` objects: two spaces a level, `{}` and `[]` on one
/// line.
pub(crate) fn laid_out(json: &str, depth: usize) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 4);
    let (mut depth, mut place) = (depth, StringTracker::default());
    // Start of the string or literal that is not copied yet, and whether a bracket was just opened.
    let (mut pending, mut opened) = (0, false);
    for (at, byte) in json.bytes().enumerate() {
        let is_layout = !place.enters(byte) && b" \t\r\n{}[],:".contains(&byte);
        if opened && !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'}' | b']') {
            line(&mut out, depth);
            opened = false;
        }
        if !is_layout {
            continue;
        }
        out.push_str(json.get(pending..at).unwrap_or_default());
        pending = at + 1;
        match byte {
            b'{' | b'[' => {
                depth += 1;
                opened = true;
                out.push(char::from(byte));
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if !std::mem::take(&mut opened) {
                    line(&mut out, depth);
                }
                out.push(char::from(byte));
            }
            b',' => {
                out.push(',');
                line(&mut out, depth);
            }
            b':' => out.push_str(": "),
            _ => {}
        }
    }
    out.push_str(json.get(pending..).unwrap_or_default());
    out
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: &[&str] = &[
        "0",
        "\"a b\"",
        "{}",
        "[]",
        "[[],{},[{}]]",
        r#"{"a":1,"b c":[1,2,"x, [y]: {z}\" \\"],"d":{"e":null,"f":true},"g":-1.5e3}"#,
        r#"["\\",["é\\\"{"],"\n\u00e9"]"#,
    ];

    #[test]
    fn layout_is_that_of_the_serializer_at_every_depth() {
        for text in TEXTS {
            let value: Value = serde_json::from_str(text).unwrap();
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            for depth in 0..3 {
                let expect = pretty.replace('\n', &format!("\n{}", "  ".repeat(depth)));
                let compact = serde_json::to_string(&value).unwrap();
                assert_eq!(laid_out(&compact, depth), expect);
                assert_eq!(laid_out(&expect, depth), expect);
                assert_eq!(laid_out(&format!(" {expect}\r\n"), depth), expect);
            }
        }
    }

    #[test]
    fn values_are_compared_without_their_layout() {
        for text in TEXTS {
            let value = Json::shared(Arc::from(*text));
            assert_eq!(value, Json::shared(Arc::from(laid_out(text, 2))));
            assert_ne!(value, Json::shared(Arc::from(format!("{text}?"))));
        }
        let spaced = |text: &str| Json::shared(Arc::from(text));
        assert_ne!(spaced("\"a b\""), spaced("\"ab\""));
    }
}
