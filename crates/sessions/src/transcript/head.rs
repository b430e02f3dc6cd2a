//! Reading a line just far enough to know what it is and what it follows.

use std::borrow::Cow;
use std::fmt;

use openclaw_protocol::message::Message;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::format::{Body, Entry, EntryId, StoredMessage};
use crate::mend::mend;
use crate::ordered::by_name;

/// Kinds of entries as far as rebuilding a context and reading a history need to tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A `user` message.
    User,
    /// An `assistant` message.
    Assistant,
    /// A `toolResult` message.
    ToolResult,
    /// A message of another role.
    OtherMessage,
    /// `model_change`
    ModelChange,
    /// `thinking_level_change`
    ThinkingLevelChange,
    /// `compaction`
    Compaction,
    /// `branch_summary`
    BranchSummary,
    /// `custom_message`
    CustomMessage,
    /// `custom`
    Custom,
    /// `session`: no entry, wherever it stands.
    Header,
    /// `session_info`
    SessionInfo,
    /// `label`
    Label,
    /// Kinds this version does not know, and a compaction without a summary.
    Other,
}

impl Kind {
    /// True if the entry is a message of the conversation.
    pub fn is_message(self) -> bool {
        matches!(self, Self::User | Self::Assistant | Self::ToolResult | Self::OtherMessage)
    }

    fn of(kind: &str, message: &Field, summary: &Field) -> Self {
        match kind {
            "message" => match message {
                Field::Role(role) => *role,
                Field::Text | Field::Other => Self::OtherMessage,
            },
            "model_change" => Self::ModelChange,
            "thinking_level_change" => Self::ThinkingLevelChange,
            "compaction" if matches!(summary, Field::Text) => Self::Compaction,
            "branch_summary" => Self::BranchSummary,
            "custom_message" => Self::CustomMessage,
            "custom" => Self::Custom,
            "session_info" => Self::SessionInfo,
            "label" => Self::Label,
            "session" => Self::Header,
            _ => Self::Other,
        }
    }
}

/// A line read just far enough: its frame and the role of its message, no body.
#[derive(Debug, Clone, PartialEq)]
pub struct LineHead {
    /// Kind of the entry.
    pub kind: Kind,
    /// Own id; absent in files of the first version.
    pub id: Option<EntryId>,
    /// Entry that this one follows.
    pub parent_id: Option<EntryId>,
    /// True if the line itself says that it follows nothing (`parentId: null`). A line without any
    /// parent field follows the entry before it.
    pub is_root: bool,
    /// First kept entry, for a compaction.
    pub first_kept: Option<EntryId>,
}

#[derive(Deserialize)]
struct RawHead<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    id: Option<EntryId>,
    #[serde(default, rename = "parentId", deserialize_with = "said")]
    parent_id: Option<Option<EntryId>>,
    #[serde(default, rename = "firstKeptEntryId")]
    first_kept: Option<EntryId>,
    #[serde(default)]
    message: Field,
    #[serde(default)]
    summary: Field,
}

/// Tells a field that says `null` from one that is not there.
fn said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<EntryId>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// JSON type of a field, skipped without being stored.
#[derive(Default)]
enum Field {
    /// A message with the role this kind stands for.
    Role(Kind),
    Text,
    #[default]
    Other,
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Field;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field, A::Error> {
                let mut out = Field::Role(Kind::OtherMessage);
                while let Some(is_role) = map.next_key::<IsRole>()? {
                    if is_role.0 {
                        out = Field::Role(map.next_value::<Role>()?.0);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(out)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Field, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Field::Other)
            }

            fn visit_str<E>(self, _: &str) -> Result<Field, E> {
                Ok(Field::Text)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Field, E> {
                Ok(Field::Other)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Field, E> {
                Ok(Field::Other)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Field, E> {
                Ok(Field::Other)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Field, E> {
                Ok(Field::Other)
            }

            fn visit_unit<E>(self) -> Result<Field, E> {
                Ok(Field::Other)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// True if a field's name is `role`, found without storing the name.
struct IsRole(bool);

impl<'de> Deserialize<'de> for IsRole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        by_name(deserializer, |name| Self(name == "role"))
    }
}

/// Kind of a message with this role; a value that is not a text is no role.
struct Role(Kind);

impl<'de> Deserialize<'de> for Role {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(Self(match value.as_str() {
            Some("user") => Kind::User,
            Some("assistant") => Kind::Assistant,
            Some("toolResult") => Kind::ToolResult,
            Some(_) | None => Kind::OtherMessage,
        }))
    }
}

impl LineHead {
    /// Reads a line's head; `None` if the line is not a JSON object with a `type`.
    pub fn parse(line: &[u8]) -> Option<Self> {
        if let Ok(raw) = serde_json::from_slice(line) {
            return Some(Self::of(raw));
        }
        let object = line.trim_ascii();
        if !(object.starts_with(b"{") && object.ends_with(b"}")) {
            return None;
        }
        serde_json::from_str(&mend(object)).ok().map(Self::of)
    }

    /// The head of an entry, as [`Self::parse`] reads it from the line it is written as.
    pub(crate) fn of_entry(entry: &Entry) -> Option<Self> {
        let mut first_kept = None;
        let kind = match &entry.body {
            Body::Message(StoredMessage::Known(message)) => match **message {
                Message::User(_) => Kind::User,
                Message::Assistant(_) => Kind::Assistant,
                Message::ToolResult(_) => Kind::ToolResult,
            },
            Body::Message(StoredMessage::Other(message)) => {
                Kind::of("message", &Field::deserialize(message).ok()?, &Field::Other)
            }
            Body::ModelChange { .. } => Kind::ModelChange,
            Body::ThinkingLevelChange { .. } => Kind::ThinkingLevelChange,
            Body::Compaction(compaction) => {
                first_kept = Some(EntryId::new(&compaction.first_kept_entry_id));
                Kind::Compaction
            }
            Body::BranchSummary(_) => Kind::BranchSummary,
            Body::Custom { .. } => Kind::Custom,
            Body::CustomMessage(_) => Kind::CustomMessage,
            Body::Label { .. } => Kind::Label,
            Body::SessionInfo { .. } => Kind::SessionInfo,
            Body::Other(value) => {
                let raw = RawHead::deserialize(value).ok()?;
                first_kept = raw.first_kept;
                Kind::of(&raw.kind, &raw.message, &raw.summary)
            }
        };
        Some(Self {
            kind,
            id: some_id(Some(entry.id.clone())),
            is_root: entry.parent_id.is_none(),
            parent_id: some_id(entry.parent_id.clone()),
            first_kept: some_id(first_kept),
        })
    }

    fn of(raw: RawHead<'_>) -> Self {
        Self {
            kind: Kind::of(&raw.kind, &raw.message, &raw.summary),
            id: some_id(raw.id),
            is_root: raw.parent_id == Some(None),
            parent_id: some_id(raw.parent_id.flatten()),
            first_kept: some_id(raw.first_kept),
        }
    }
}

fn some_id(id: Option<EntryId>) -> Option<EntryId> {
    id.filter(|id| !id.as_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_without_bodies() {
        let line = br#"{"type":"message","id":"a","parentId":"b","message":{"content":[{"role":"x"}],"role":"toolResult"}}"#;
        let head = LineHead::parse(line).unwrap();
        assert_eq!(
            (head.kind, head.id, head.parent_id),
            (Kind::ToolResult, Some(EntryId::new("a")), Some(EntryId::new("b")))
        );
        assert_eq!(LineHead::parse(br#"{"type":"message","message":5}"#).unwrap().kind, Kind::OtherMessage);
        assert_eq!(LineHead::parse(br#"{"type":"novel"}"#).unwrap().kind, Kind::Other);
        for bad in [&b"{"[..], b"[]", b"{}", b"{\"type\":5}", b"\xff"] {
            assert!(LineHead::parse(bad).is_none());
        }
    }

    #[test]
    fn an_entry_has_the_head_of_its_line() {
        let bodies = [
            r#""type":"message","message":{"role":"user","content":"x","timestamp":1}"#,
            r#""type":"message","message":{"role":"bashExecution","command":"ls"}"#,
            r#""type":"message","message":{"role":"user","content":5}"#,
            r#""type":"message","message":{}"#,
            r#""type":"compaction","summary":"S","firstKeptEntryId":"k","tokensBefore":1"#,
            r#""type":"compaction","summary":5,"firstKeptEntryId":"k""#,
            r#""type":"custom","customType":"x""#,
            r#""type":"label","targetId":5"#,
            r#""type":"novel","firstKeptEntryId":"k""#,
            r#""type":"novel","firstKeptEntryId":5"#,
        ];
        for body in bodies {
            let line = format!(r#"{{"id":"a","parentId":"b","timestamp":"t",{body}}}"#);
            let entry = Entry::parse(line.as_bytes()).unwrap();
            let read = LineHead::parse(&entry.to_line().unwrap());
            assert_eq!(LineHead::of_entry(&entry), read, "{body}");
        }
    }

    #[test]
    fn a_parent_is_told_from_none_and_from_silence() {
        let rows = [
            (r#"{"type":"x","parentId":"p"}"#, Some("p"), false),
            (r#"{"type":"x","parentId":null}"#, None, true),
            (r#"{"type":"x","parentId":""}"#, None, false),
            (r#"{"type":"x"}"#, None, false),
        ];
        for (line, parent, is_root) in rows {
            let head = LineHead::parse(line.as_bytes()).unwrap();
            assert_eq!((head.parent_id, head.is_root), (parent.map(EntryId::new), is_root), "{line}");
        }
    }

    #[test]
    fn texts_that_are_cut_in_a_character_do_not_cost_the_line() {
        let lines: [&[u8]; 3] = [
            br#"{"type":"compaction","id":"a","summary":"x\ud83d"}"#,
            b"{\"type\":\"compaction\",\"id\":\"a\",\"summary\":\"\xff\"}\r",
            br#"{"type":"compaction","id":"a","x\ude00":1,"summary":"x"}"#,
        ];
        for line in lines {
            let head = LineHead::parse(line).map(|head| (head.kind, head.id));
            assert_eq!(head, Some((Kind::Compaction, Some(EntryId::new("a")))), "{line:?}");
        }
        let odd = LineHead::parse(br#"{"type":"compaction","id":"a","summary":5}"#).unwrap();
        assert_eq!(odd.kind, Kind::Other);
    }
}
