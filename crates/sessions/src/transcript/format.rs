//! The lines of a transcript (spec `sessions.md` §4.1–4.3): a promise to OpenClaw's own readers.

use std::fmt;
use std::sync::Arc;

use openclaw_protocol::message::{Message, UserContent};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

/// The version we write.
pub const VERSION: u32 = 3;

/// `customType` of the entry that says which provider, wire protocol and model a run uses: `{timestamp, provider, modelApi,
/// modelId}` (spec `sessions.md` §4.2).
pub const MODEL_SNAPSHOT: &str = "model-snapshot";

/// `customType` of the entry that says when a prompt went to a provider that keeps it for a time: `{timestamp, provider, modelId}`
/// (spec `agent-runtime.md` §7.2).
pub const CACHE_TTL: &str = "openclaw.cache-ttl";

/// Id of an entry: 8 hex digits as a rule, any text is read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(Arc<str>);

impl EntryId {
    /// Wraps an id.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(Arc::from(text.as_ref()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for EntryId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// The first line: `{"type":"session",…}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptHeader {
    /// Tells the line from entries.
    #[serde(rename = "type")]
    pub kind: HeaderKind,
    /// Format version; absent in the first one.
    #[serde(default = "first_version")]
    pub version: u32,
    /// Session id.
    pub id: String,
    /// Time of creation, ISO 8601.
    #[serde(default)]
    pub timestamp: String,
    /// Workspace.
    #[serde(default)]
    pub cwd: String,
    /// The transcript this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The `type` of a [`TranscriptHeader`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeaderKind {
    /// `session`
    #[default]
    Session,
}

fn first_version() -> u32 {
    1
}

/// Line after the header.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Own id.
    pub id: EntryId,
    /// The entry this one follows.
    pub parent_id: Option<EntryId>,
    /// Time of writing, ISO 8601.
    pub timestamp: String,
    /// Content of the entry.
    pub body: Body,
    /// Fields this version does not know.
    pub extra: Map<String, Value>,
}

/// Content of an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A message of the conversation.
    Message(StoredMessage),
    /// The model changed.
    ModelChange {
        /// Provider id.
        provider: String,
        /// Model id.
        model_id: String,
    },
    /// The thinking level changed.
    ThinkingLevelChange {
        /// `off` to `xhigh`.
        thinking_level: String,
    },
    /// Summary of everything before.
    Compaction(Compaction),
    /// Summary of a branch that was left.
    BranchSummary(BranchSummary),
    /// Data of an extension; no model sees it.
    Custom {
        /// Kind of custom entry.
        custom_type: String,
        /// The data.
        data: Option<Value>,
    },
    /// A message of an extension; models see it as the user's.
    CustomMessage(CustomMessage),
    /// A name for an entry.
    Label {
        /// The entry.
        target_id: EntryId,
        /// The name; nothing clears it.
        label: Option<String>,
    },
    /// A name for the session.
    SessionInfo {
        /// The name.
        name: Option<String>,
    },
    /// A kind of entry this version does not know, whole.
    Other(Value),
}

impl Body {
    /// The message, if it is one of a known role.
    pub fn message(&self) -> Option<&Arc<Message>> {
        match self {
            Self::Message(StoredMessage::Known(message)) => Some(message),
            _ => None,
        }
    }
}

impl From<Message> for Body {
    fn from(message: Message) -> Self {
        Self::Message(StoredMessage::Known(Arc::new(message)))
    }
}

/// A message as stored: one of the three roles, or something else that is kept as it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StoredMessage {
    /// `user`, `assistant` or `toolResult`.
    Known(Arc<Message>),
    /// Message with another role.
    Other(Value),
}

/// Body of a `compaction`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// The summary.
    pub summary: String,
    /// First entry that is still shown whole.
    #[serde(default)]
    pub first_kept_entry_id: String,
    /// Size of the context before, in tokens.
    #[serde(default, deserialize_with = "whole")]
    pub tokens_before: u64,
    /// Data that the maker of the compaction wants to remember.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// True if a hook made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
}

impl Compaction {
    /// Member of [`Self::details`] with the length to which kept tool results are shown. Ours:
    /// OpenClaw ignores it.
    pub const RESULTS_UP_TO: &str = "maxResultChars";

    /// The member of [`Self::details`] that says what the calls for the summary used: a `usage` with `provider` and `model`. Ours, too.
    pub const USAGE: &str = "usage";

    /// Length in UTF-16 units to which kept tool results are shown; `None` shows them whole.
    pub fn results_up_to(&self) -> Option<usize> {
        let chars = self.details.as_ref()?.get(Self::RESULTS_UP_TO)?.as_u64()?;
        usize::try_from(chars).ok()
    }
}

/// A count as anything that calls itself a number may write it; others are 0.
fn whole<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    Ok(value.as_u64().or_else(|| value.as_f64().map(|number| number as u64)).unwrap_or_default())
}

/// Body of a `branch_summary`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummary {
    /// Entry the branch began at, or `root`.
    pub from_id: String,
    /// The summary.
    pub summary: String,
    /// Data that the maker of the summary wants to remember.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// True if a hook made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
}

/// Body of a `custom_message`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    /// Kind of custom message.
    pub custom_type: String,
    /// Text or blocks.
    pub content: UserContent,
    /// True if people see it.
    #[serde(default)]
    pub display: bool,
    /// Data that the maker of the message wants to remember.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl Body {
    /// The `type` of the line; blank for [`Body::Other`].
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Message(_) => "message",
            Self::ModelChange { .. } => "model_change",
            Self::ThinkingLevelChange { .. } => "thinking_level_change",
            Self::Compaction(_) => "compaction",
            Self::BranchSummary(_) => "branch_summary",
            Self::Custom { .. } => "custom",
            Self::CustomMessage(_) => "custom_message",
            Self::Label { .. } => "label",
            Self::SessionInfo { .. } => "session_info",
            Self::Other(_) => "",
        }
    }
}

impl Serialize for Entry {
    /// OpenClaw writes `custom` and `custom_message` with their content before the id, everything else after it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Body::Other(Value::Object(fields)) = &self.body {
            return self.write_other(fields, serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.body.type_name())?;
        let content_first = matches!(self.body, Body::Custom { .. } | Body::CustomMessage(_));
        if content_first {
            self.body.write(&mut map)?;
        }
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("parentId", &self.parent_id)?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        if !content_first {
            self.body.write(&mut map)?;
        }
        self.extra.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

impl Entry {
    fn write_other<S: Serializer>(
        &self,
        fields: &Map<String, Value>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut fields = fields.clone();
        fields.insert("id".to_owned(), self.id.as_str().into());
        fields.insert("parentId".to_owned(), self.parent_id.as_ref().map(EntryId::as_str).into());
        fields.insert("timestamp".to_owned(), self.timestamp.as_str().into());
        fields.serialize(serializer)
    }

    /// The line for the file, with its newline.
    pub fn to_line(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }

    /// Reads a line. `None` if it is not a JSON object with a `type` and an id.
    pub fn parse(line: &[u8]) -> Option<Self> {
        if let Some(entry) = Self::parse_message(line) {
            return Some(entry);
        }
        // JavaScript stores texts that were cut in a surrogate pair; they must not cost the whole entry.
        let value: Value =
            serde_json::from_slice(line).or_else(|_| serde_json::from_str(&crate::mend::mend(line))).ok()?;
        Self::from_value(value)
    }

    /// The short way for nearly all lines: a message of a known role.
    fn parse_message(line: &[u8]) -> Option<Self> {
        let line: MessageLine<'_> = serde_json::from_slice(line).ok()?;
        let message: Message = serde_json::from_str(line.message.get()).ok()?;
        (line.kind == "message").then_some(Self {
            id: line.id,
            parent_id: line.parent_id,
            timestamp: line.timestamp,
            body: message.into(),
            extra: Map::new(),
        })
    }

    /// [`Self::parse`] of what has been read as JSON already.
    pub(crate) fn from_value(value: Value) -> Option<Self> {
        let Value::Object(fields) = value else { return None };
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let id = EntryId::new(text("id")?);
        let parent_id = text("parentId").map(EntryId::new);
        let timestamp = text("timestamp").unwrap_or_default().to_owned();
        let kind = text("type")?.to_owned();
        let (body, extra) = Body::read(&kind, fields);
        Some(Self { id, parent_id, timestamp, body, extra })
    }
}

/// A `message` line, read in one go. A line with more fields than these goes the long way.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageLine<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    id: EntryId,
    #[serde(default, rename = "parentId")]
    parent_id: Option<EntryId>,
    #[serde(default)]
    timestamp: String,
    #[serde(borrow)]
    message: &'a serde_json::value::RawValue,
}

/// The fields of each kind of entry beside those that all have.
const FRAME: &[&str] = &["type", "id", "parentId", "timestamp"];

fn own_fields(kind: &str) -> &'static [&'static str] {
    match kind {
        "message" => &["message"],
        "model_change" => &["provider", "modelId"],
        "thinking_level_change" => &["thinkingLevel"],
        "compaction" => &["summary", "firstKeptEntryId", "tokensBefore", "details", "fromHook"],
        "branch_summary" => &["fromId", "summary", "details", "fromHook"],
        "custom" => &["customType", "data"],
        "custom_message" => &["customType", "content", "display", "details"],
        "label" => &["targetId", "label"],
        "session_info" => &["name"],
        _ => &[],
    }
}

impl Body {
    /// The body, and the fields this version does not know. A body with fields of other types than expected is kept as it
    /// is, whole.
    fn read(kind: &str, mut fields: Map<String, Value>) -> (Self, Map<String, Value>) {
        match Self::typed(kind, &mut fields) {
            Some(body) => {
                fields.retain(|name, _| {
                    !FRAME.contains(&name.as_str()) && !own_fields(kind).contains(&name.as_str())
                });
                (body, fields)
            }
            None => (Self::Other(Value::Object(fields)), Map::new()),
        }
    }

    fn typed(kind: &str, fields: &mut Map<String, Value>) -> Option<Self> {
        fn read<T: serde::de::DeserializeOwned>(fields: &Map<String, Value>) -> Option<T> {
            let own = serde::de::value::MapDeserializer::<_, serde_json::Error>::new(
                fields.iter().map(|(name, value)| (name.as_str(), value)),
            );
            T::deserialize(own).ok()
        }
        /// An optional text; nothing when it is something else.
        fn optional(value: Option<&Value>) -> Option<Option<String>> {
            match value {
                None | Some(Value::Null) => Some(None),
                Some(Value::String(text)) => Some(Some(text.clone())),
                Some(_) => None,
            }
        }
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        match kind {
            "message" => {
                let message = fields.get("message").filter(|message| message.is_object())?;
                Some(Self::Message(match Message::deserialize(message) {
                    Ok(message) => StoredMessage::Known(Arc::new(message)),
                    Err(_) => StoredMessage::Other(message.clone()),
                }))
            }
            "model_change" => {
                Some(Self::ModelChange { provider: text("provider")?, model_id: text("modelId")? })
            }
            "thinking_level_change" => {
                Some(Self::ThinkingLevelChange { thinking_level: text("thinkingLevel")? })
            }
            "compaction" => read(fields).map(Self::Compaction),
            "branch_summary" => read(fields).map(Self::BranchSummary),
            "custom" => {
                Some(Self::Custom { custom_type: text("customType")?, data: fields.get("data").cloned() })
            }
            "custom_message" => read(fields).map(Self::CustomMessage),
            "label" => Some(Self::Label {
                target_id: EntryId::new(text("targetId")?),
                label: optional(fields.get("label"))?,
            }),
            "session_info" => Some(Self::SessionInfo { name: optional(fields.get("name"))? }),
            _ => None,
        }
    }

    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            Self::Message(message) => map.serialize_entry("message", message),
            Self::ModelChange { provider, model_id } => {
                map.serialize_entry("provider", provider)?;
                map.serialize_entry("modelId", model_id)
            }
            Self::ThinkingLevelChange { thinking_level } => {
                map.serialize_entry("thinkingLevel", thinking_level)
            }
            Self::Compaction(body) => write_fields(map, body),
            Self::BranchSummary(body) => write_fields(map, body),
            Self::Custom { custom_type, data } => {
                map.serialize_entry("customType", custom_type)?;
                data.iter().try_for_each(|data| map.serialize_entry("data", data))
            }
            Self::CustomMessage(body) => write_fields(map, body),
            Self::Label { target_id, label } => {
                map.serialize_entry("targetId", target_id)?;
                label.iter().try_for_each(|label| map.serialize_entry("label", label))
            }
            Self::SessionInfo { name } => name.iter().try_for_each(|name| map.serialize_entry("name", name)),
            Self::Other(_) => Ok(()),
        }
    }
}

fn write_fields<M: SerializeMap, T: Serialize>(map: &mut M, body: &T) -> Result<(), M::Error> {
    use serde::ser::Error as _;
    let fields = serde_json::to_value(body).map_err(M::Error::custom)?;
    let fields = fields.as_object().ok_or_else(|| M::Error::custom("an entry body is an object"))?;
    fields.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_bytes() {
        let rows = [
            r#"{"type":"message","id":"aaaaaaaa","parentId":null,"timestamp":"2026-02-09T10:11:12.123Z","message":{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":5}}"#,
            r#"{"type":"message","id":"b","parentId":"a","timestamp":"t","message":{"role":"bashExecution","command":"ls"}}"#,
            r#"{"type":"model_change","id":"a","parentId":null,"timestamp":"t","provider":"anthropic","modelId":"m"}"#,
            r#"{"type":"thinking_level_change","id":"a","parentId":"b","timestamp":"t","thinkingLevel":"off"}"#,
            r#"{"type":"compaction","id":"a","parentId":"b","timestamp":"t","summary":"s","firstKeptEntryId":"x","tokensBefore":5,"details":{"readFiles":[]},"fromHook":false}"#,
            r#"{"type":"branch_summary","id":"a","parentId":"b","timestamp":"t","fromId":"root","summary":"s"}"#,
            r#"{"type":"custom","customType":"model-snapshot","data":{"timestamp":1},"id":"a","parentId":"b","timestamp":"t"}"#,
            r#"{"type":"custom","customType":"x","id":"a","parentId":"b","timestamp":"t"}"#,
            r#"{"type":"custom_message","customType":"x","content":"hi","display":true,"details":1,"id":"a","parentId":"b","timestamp":"t"}"#,
            r#"{"type":"label","id":"a","parentId":"b","timestamp":"t","targetId":"x","label":"l"}"#,
            r#"{"type":"label","id":"a","parentId":"b","timestamp":"t","targetId":"x"}"#,
            r#"{"type":"label","id":"a","parentId":"b","timestamp":"t","targetId":"x","label":5}"#,
            r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","content":"x","timestamp":1},"later":[1]}"#,
            r#"{"type":"compaction","id":"a","parentId":"b","timestamp":"t","summary":"s","firstKeptEntryId":"x","tokensBefore":5,"z":{"b":1,"a":2}}"#,
            r#"{"type":"model_change","id":"a","parentId":null,"timestamp":"t","provider":"anthropic","modelId":"m","y":null}"#,
            r#"{"type":"custom","customType":"x","data":null,"id":"a","parentId":"b","timestamp":"t"}"#,
            r#"{"type":"session_info","id":"a","parentId":"b","timestamp":"t","name":"n"}"#,
            r#"{"type":"novel","id":"a","parentId":"b","timestamp":"t","x":{"b":1,"a":2}}"#,
            r#"{"type":"compaction","id":"a","parentId":"b","timestamp":"t","summary":5}"#,
        ];
        for row in rows {
            let entry = Entry::parse(row.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(entry.to_line().unwrap()).unwrap(), format!("{row}\n"));
        }
    }

    #[test]
    fn headers_keep_their_bytes() {
        let rows = [
            r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/w"}"#,
            r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/w","parentSession":"/p.jsonl","x":1}"#,
        ];
        for row in rows {
            let header: TranscriptHeader = serde_json::from_str(row).unwrap();
            assert_eq!(serde_json::to_string(&header).unwrap(), row);
        }
        let old: TranscriptHeader =
            serde_json::from_str(r#"{"type":"session","id":"s","timestamp":"t","cwd":"/w"}"#).unwrap();
        assert_eq!(old.version, 1);
        assert!(serde_json::from_str::<TranscriptHeader>(r#"{"type":"message","id":"s"}"#).is_err());
    }

    #[test]
    fn what_is_no_entry_is_not_read() {
        for bad in
            ["", "{", "5", "[]", r#"{"type":"message"}"#, r#"{"id":"a"}"#, r#"{"type":"message","id":5}"#]
        {
            assert!(Entry::parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
