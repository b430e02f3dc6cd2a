//! What is remembered of each line: where it stands, what it is, what it follows. Bodies stay in the file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::format::EntryId;
use super::migrate;

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
    /// `label`, `session_info` and kinds this version does not know.
    Other,
}

impl Kind {
    /// Whether the entry is a message of the conversation.
    pub fn is_message(self) -> bool {
        matches!(self, Self::User | Self::Assistant | Self::ToolResult | Self::OtherMessage)
    }

    fn of(kind: &str, role: Option<&str>) -> Self {
        match kind {
            "message" => match role {
                Some("user") => Self::User,
                Some("assistant") => Self::Assistant,
                Some("toolResult") => Self::ToolResult,
                Some(_) | None => Self::OtherMessage,
            },
            "model_change" => Self::ModelChange,
            "thinking_level_change" => Self::ThinkingLevelChange,
            "compaction" => Self::Compaction,
            "branch_summary" => Self::BranchSummary,
            "custom_message" => Self::CustomMessage,
            "custom" => Self::Custom,
            "session" => Self::Header,
            _ => Self::Other,
        }
    }
}

/// A line read just far enough: its frame and the role of its message, no body.
#[derive(Debug, Clone, PartialEq)]
pub struct LineHead {
    /// What it is.
    pub kind: Kind,
    /// Own id; absent in files of the first version.
    pub id: Option<EntryId>,
    /// What it follows.
    pub parent_id: Option<EntryId>,
    /// Whether it says of itself that it follows nothing (`parentId: null`). One that does not speak of a parent at all
    /// follows the entry before it.
    pub is_root: bool,
    /// For a compaction.
    pub first_kept: Option<EntryId>,
    /// `customType`
    pub custom_type: Option<String>,
}

#[derive(Deserialize)]
struct RawHead<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default, rename = "parentId", deserialize_with = "said")]
    parent_id: Option<Option<String>>,
    #[serde(default, rename = "firstKeptEntryId")]
    first_kept: Option<String>,
    #[serde(default, rename = "customType")]
    custom_type: Option<String>,
    #[serde(default)]
    message: RawMessage,
}

/// Tells a field that says `null` from one that is not there.
fn said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// The role of a message, its content passed over without being stored. Other values than an object are tolerated.
#[derive(Default)]
struct RawMessage {
    role: Option<String>,
}

impl<'de> Deserialize<'de> for RawMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Role;
        impl<'de> Visitor<'de> for Role {
            type Value = RawMessage;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawMessage, A::Error> {
                let mut out = RawMessage::default();
                while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                    if name == "role" {
                        out.role = map.next_value::<serde_json::Value>()?.as_str().map(str::to_owned);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(out)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawMessage, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(RawMessage::default())
            }

            fn visit_str<E>(self, _: &str) -> Result<RawMessage, E> {
                Ok(RawMessage::default())
            }

            fn visit_bool<E>(self, _: bool) -> Result<RawMessage, E> {
                Ok(RawMessage::default())
            }

            fn visit_i64<E>(self, _: i64) -> Result<RawMessage, E> {
                Ok(RawMessage::default())
            }

            fn visit_u64<E>(self, _: u64) -> Result<RawMessage, E> {
                Ok(RawMessage::default())
            }

            fn visit_f64<E>(self, _: f64) -> Result<RawMessage, E> {
                Ok(RawMessage::default())
            }

            fn visit_unit<E>(self) -> Result<RawMessage, E> {
                Ok(RawMessage::default())
            }
        }
        deserializer.deserialize_any(Role)
    }
}

impl LineHead {
    /// Reads a line's head; nothing when the line is no JSON object with a `type`.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let raw: RawHead<'_> = serde_json::from_slice(line).ok()?;
        let role = raw.message.role.as_deref();
        let id = |text: Option<String>| text.filter(|text| !text.is_empty()).map(EntryId::new);
        Some(Self {
            kind: Kind::of(&raw.kind, role),
            id: id(raw.id),
            is_root: raw.parent_id == Some(None),
            parent_id: id(raw.parent_id.flatten()),
            first_kept: id(raw.first_kept),
            custom_type: raw.custom_type,
        })
    }
}

/// One entry's place in the file and in the tree.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) kind: Kind,
    pub(crate) id: EntryId,
    /// Index of the parent, always smaller than the own one: a tree without cycles whatever the file says.
    pub(crate) parent: Option<u32>,
}

/// All entries of a file in their order.
#[derive(Debug, Default)]
pub(crate) struct Index {
    places: Vec<Place>,
    by_id: HashMap<EntryId, u32>,
    first_kept: HashMap<u32, EntryId>,
}

impl Index {
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn get(&self, at: u32) -> Option<&Place> {
        self.places.get(at as usize)
    }

    pub(crate) fn position(&self, id: &str) -> Option<u32> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn last(&self) -> Option<u32> {
        u32::try_from(self.places.len()).ok()?.checked_sub(1)
    }

    pub(crate) fn first_kept(&self, at: u32) -> Option<&EntryId> {
        self.first_kept.get(&at)
    }

    pub(crate) fn set_first_kept(&mut self, at: u32, id: EntryId) {
        self.first_kept.insert(at, id);
    }

    /// Adds a line of a file of this `version`. A line without an id is left where it is and not made an entry: an id made
    /// up for it would be the parent of what comes next without being on disk. Only the first version has no ids; there
    /// each entry follows the one before it.
    pub(crate) fn push_line(
        &mut self,
        offset: u64,
        len: u32,
        mut head: LineHead,
        version: u32,
    ) -> Option<u32> {
        let id = match head.id.take() {
            Some(id) if version > 1 => id,
            None if version > 1 => return None,
            Some(_) | None => {
                head.parent_id = None;
                head.is_root = false;
                migrate::id_for_place(self.len())
            }
        };
        Some(self.push(offset, len, head, id))
    }

    /// Adds an entry. One whose parent is not there, or not there yet, goes on from the entry before it: a damaged line
    /// must not hide what was said earlier.
    fn push(&mut self, offset: u64, len: u32, head: LineHead, id: EntryId) -> u32 {
        let at = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        let known = head.parent_id.as_ref().and_then(|parent| self.by_id.get(parent).copied());
        let parent = if head.is_root { None } else { known.or_else(|| self.last()) };
        if let Some(first_kept) = head.first_kept {
            self.first_kept.insert(at, first_kept);
        }
        self.by_id.insert(id.clone(), at);
        self.places.push(Place { offset, len, kind: head.kind, id, parent });
        at
    }

    /// Indices from the root to `leaf`.
    pub(crate) fn path(&self, leaf: Option<u32>) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = leaf;
        while let Some(index) = at {
            path.push(index);
            at = self.get(index).and_then(|place| place.parent);
        }
        path.reverse();
        path
    }
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
    fn damaged_links_go_on_from_the_entry_before_and_cycles_end() {
        let mut index = Index::default();
        let lines = [
            // A cycle of two, as far as the file says.
            (r#"{"type":"x","id":"a","parentId":"b"}"#, vec![0]),
            (r#"{"type":"x","id":"b","parentId":"a"}"#, vec![0, 1]),
            (r#"{"type":"x","id":"c","parentId":"c"}"#, vec![0, 1, 2]),
            (r#"{"type":"x","id":"d","parentId":"nowhere"}"#, vec![0, 1, 2, 3]),
            (r#"{"type":"x","id":"e"}"#, vec![0, 1, 2, 3, 4]),
            (r#"{"type":"x","id":"f","parentId":"a"}"#, vec![0, 5]),
            (r#"{"type":"x","id":"g","parentId":null}"#, vec![6]),
            (r#"{"type":"x","id":"g","parentId":"g"}"#, vec![6, 7]),
        ];
        for (line, path) in lines {
            let at = index.push_line(0, 1, LineHead::parse(line.as_bytes()).unwrap(), 3);
            assert_eq!(index.path(at), path, "{line}");
        }
        let nameless = LineHead::parse(br#"{"type":"x","parentId":"a"}"#).unwrap();
        assert_eq!(index.push_line(0, 1, nameless.clone(), 3), None);
        assert_eq!((index.len(), index.path(None)), (8, vec![]));
        let mut first = Index::default();
        assert_eq!(first.push_line(0, 1, nameless.clone(), 1), Some(0));
        assert_eq!(first.push_line(0, 1, nameless, 1), Some(1));
        assert_eq!(first.path(Some(1)), [0, 1]);
    }
}
