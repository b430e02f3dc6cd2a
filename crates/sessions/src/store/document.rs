//! `sessions.json` as text: reading whatever is there, writing exactly what OpenClaw writes (spec `sessions.md` §3.2).

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use indexmap::IndexMap;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::entry::SessionEntry;
use crate::mend::mend;

/// A value of the file: a row, or something else that is kept as it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stored {
    Row(Arc<SessionEntry>),
    Opaque(Arc<Value>),
}

/// Values by their key as the file spells it, in the order of the file.
pub(crate) type Rows = IndexMap<Arc<str>, Stored>;

/// What a file held.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Document {
    pub(crate) rows: Rows,
    /// Why not all of it could be read.
    pub(crate) damage: Option<Damage>,
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Damage {
    /// It ends or breaks here; what came before was recovered.
    BrokenAt(usize),
    /// It is no JSON object at all.
    NotAnObject,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BrokenAt(at) => write!(f, "broken at byte {at}"),
            Self::NotAnObject => f.write_str("not a JSON object"),
        }
    }
}

/// Reads a file: JSON, else JSON5, else as many rows as can be recovered.
pub(crate) fn read(bytes: &[u8]) -> Document {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if let Ok(File(rows)) = serde_json::from_slice(bytes) {
        return Document { rows, damage: None };
    }
    let text = mend(bytes);
    if let Ok(File(rows)) = serde_json::from_str(&text) {
        return Document { rows, damage: None };
    }
    if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok() {
        return Document { rows: Rows::new(), damage: Some(Damage::NotAnObject) };
    }
    if depth(&text) < MAX_JSON5_DEPTH
        && let Ok(Value::Object(fields)) = json5::from_str::<Value>(&text)
    {
        let rows = fields.into_iter().map(|(key, value)| (Arc::from(key), stored(value))).collect();
        return Document { rows, damage: None };
    }
    salvage(&text)
}

/// The JSON5 reader recurses; nothing real is nested this deeply.
const MAX_JSON5_DEPTH: usize = 100;

/// An upper bound of the nesting, brackets in texts included.
fn depth(text: &str) -> usize {
    let mut now = 0_usize;
    let mut most = 0;
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

struct File(Rows);

impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = File;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of sessions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<File, A::Error> {
                let mut rows = Rows::new();
                while let Some(key) = map.next_key::<String>()? {
                    let raw: &RawValue = map.next_value()?;
                    rows.insert(Arc::from(key), stored_text(raw.get()).map_err(serde::de::Error::custom)?);
                }
                Ok(File(rows))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

fn stored_text(text: &str) -> Result<Stored, serde_json::Error> {
    fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
        serde_json::from_str(text).or_else(|_| serde_json::from_str(&mend(text.as_bytes())))
    }
    if text.starts_with('{') {
        read(text).map(row)
    } else {
        read(text).map(|value| Stored::Opaque(Arc::new(value)))
    }
}

fn stored(value: Value) -> Stored {
    match SessionEntry::deserialize(&value) {
        Ok(entry) if value.is_object() => row(entry),
        _ => Stored::Opaque(Arc::new(value)),
    }
}

/// A row as the product sees it. Only old field names are touched; the rest waits for the row's next change.
fn row(mut entry: SessionEntry) -> Stored {
    entry.rename_legacy_fields();
    Stored::Row(Arc::new(entry))
}

/// Reads `"key": value` pairs up to the first that is broken.
fn salvage(text: &str) -> Document {
    let mut rows = Rows::new();
    let mut at = skip_blank(text, 0);
    if text.get(at..).is_none_or(|rest| !rest.starts_with('{')) {
        return Document { rows, damage: Some(Damage::NotAnObject) };
    }
    at += 1;
    loop {
        at = skip_blank(text, at);
        let Some((key, next)) = take::<String>(text, at) else { break };
        let next = skip_blank(text, next);
        if text.get(next..).is_none_or(|rest| !rest.starts_with(':')) {
            break;
        }
        let Some((value, next)) = take::<Value>(text, skip_blank(text, next + 1)) else { break };
        let next = skip_blank(text, next);
        // A number that the file's end cut short still reads as a number: a value counts when something follows it.
        if !text.get(next..).is_some_and(|rest| rest.starts_with([',', '}'])) {
            break;
        }
        rows.insert(Arc::from(key), stored(value));
        at = next + 1;
    }
    Document { rows, damage: Some(Damage::BrokenAt(at)) }
}

fn skip_blank(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + (rest.len() - rest.trim_start().len())
}

fn take<T: serde::de::DeserializeOwned>(text: &str, at: usize) -> Option<(T, usize)> {
    let mut values = serde_json::Deserializer::from_str(text.get(at..)?).into_iter::<T>();
    let value = values.next()?.ok()?;
    Some((value, at + values.byte_offset()))
}

/// Writes rows as OpenClaw does: two spaces of indentation, no newline at the end.
pub(crate) fn write(rows: &[(Arc<str>, Stored)], out: &mut dyn Write) -> io::Result<()> {
    struct Object<'a>(&'a [(Arc<str>, Stored)]);
    impl Serialize for Object<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(self.0.len()))?;
            for (key, stored) in self.0 {
                match stored {
                    Stored::Row(entry) => map.serialize_entry(&**key, &**entry)?,
                    Stored::Opaque(value) => map.serialize_entry(&**key, &**value)?,
                }
            }
            map.end()
        }
    }
    let mut out = BufWriter::with_capacity(256 * 1024, out);
    serde_json::to_writer_pretty(&mut out, &Object(rows))?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(document: &Document) -> String {
        let rows: Vec<_> = document.rows.clone().into_iter().collect();
        let mut out = Vec::new();
        write(&rows, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    const WHOLE: &str = "{\n  \"agent:main:main\": {\n    \"sessionId\": \"a\",\n    \"novel\": [],\n    \"updatedAt\": 5,\n    \"skillsSnapshot\": {\n      \"prompt\": \"é\",\n      \"skills\": [\n        {\n          \"name\": \"s\"\n        }\n      ]\n    }\n  },\n  \"odd\": null,\n  \"agent:main:x\": {}\n}";

    #[test]
    fn a_file_is_written_back_byte_for_byte() {
        for file in [WHOLE, "{}"] {
            let document = read(file.as_bytes());
            assert_eq!(document.damage, None);
            assert_eq!(text(&document), file);
        }
    }

    #[test]
    fn json5_is_read() {
        let document = read(b"// mine\n{ 'agent:main:main': {sessionId: 'a', updatedAt: 5,}, }");
        assert_eq!(document.damage, None);
        assert_eq!(
            text(&document),
            "{\n  \"agent:main:main\": {\n    \"sessionId\": \"a\",\n    \"updatedAt\": 5\n  }\n}"
        );
    }

    #[test]
    fn what_is_no_object_is_damage() {
        for file in
            ["[]", "5", "", "hello", "null", "\0\0\0", &"[".repeat(100_000), &"{\"a\":".repeat(100_000)]
        {
            let document = read(file.as_bytes());
            assert!(document.rows.is_empty() && document.damage.is_some(), "{:.20}", file);
        }
    }

    #[test]
    fn a_file_cut_anywhere_gives_the_rows_before_the_cut() {
        let whole = read(WHOLE.as_bytes());
        for cut in 0..WHOLE.len() {
            let document = read(&WHOLE.as_bytes()[..cut]);
            assert!(document.damage.is_some(), "{cut}");
            for (key, stored) in &document.rows {
                assert_eq!(whole.rows.get(key), Some(stored), "{cut}");
            }
        }
        let most = read(&WHOLE.as_bytes()[..WHOLE.len() - 8]);
        assert_eq!(most.rows.len(), 2);
    }

    #[test]
    fn a_text_cut_in_a_surrogate_pair_does_not_cost_the_file() {
        let file =
            r#"{"agent:main:a":{"sessionId":"a","subject":"x\ud83d"},"agent:main:b":{"sessionId":"b"}}"#;
        let document = read(file.as_bytes());
        assert_eq!((document.rows.len(), document.damage.clone()), (2, None));
        assert!(text(&document).contains("x\u{fffd}"));
    }
}
