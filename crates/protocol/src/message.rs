//! The message model: what a transcript stores, what `chat.history` returns and what model clients convert from and to
//! (spec `sessions.md` §4.3, `models.md` §3). Unknown fields survive a read and a write.

pub mod cap;
mod read;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;

/// Text of the tool result that stands for one that never came. OpenClaw writes and recognises the same.
pub const MISSING_RESULT: &str = "[openclaw] missing tool result in session history; inserted synthetic error result for transcript repair.";

/// One message of a conversation, told apart by its `role`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "role")]
pub enum Message {
    /// What the owner, a channel or another session said.
    #[serde(rename = "user")]
    User(UserMessage),
    /// What a model answered, or what was injected in its name.
    #[serde(rename = "assistant")]
    Assistant(AssistantMessage),
    /// The outcome of one tool call.
    #[serde(rename = "toolResult")]
    ToolResult(ToolResultMessage),
}

impl Message {
    /// Time of the message, Unix milliseconds.
    pub fn timestamp(&self) -> i64 {
        match self {
            Self::User(m) => m.timestamp,
            Self::Assistant(m) => m.timestamp,
            Self::ToolResult(m) => m.timestamp,
        }
    }
}

/// A `user` message.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct UserMessage {
    /// Text and images.
    pub content: UserContent,
    /// Unix milliseconds.
    #[serde(default)]
    pub timestamp: i64,
    /// Where the message came from when it was not an outside user (seeds: `inter_session`). Never sent to a provider.
    pub provenance: Option<Provenance>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl UserMessage {
    /// A message of one text block.
    pub fn text(text: impl Into<String>, timestamp: i64) -> Self {
        Self { content: UserContent::Blocks(vec![Block::text(text)]), timestamp, ..Self::default() }
    }
}

/// User content: a plain string or blocks; both occur in stored transcripts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum UserContent {
    /// A bare string.
    Text(String),
    /// Text and image blocks.
    Blocks(Vec<Block>),
}

impl Default for UserContent {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

impl UserContent {
    /// All text, blocks joined with a newline.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => join_text(blocks),
        }
    }
}

/// Why a user message exists.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// `external_user`, `inter_session` or `internal_system`.
    pub kind: ProvenanceKind,
    /// Key of the session that sent it.
    pub source_session_key: Option<String>,
    /// Channel it came through.
    pub source_channel: Option<String>,
    /// Tool that sent it, such as `sessions_send`.
    pub source_tool: Option<String>,
}

/// The kinds of [`Provenance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProvenanceKind {
    /// A person outside.
    ExternalUser,
    /// Another session.
    InterSession,
    /// The gateway itself.
    InternalSystem,
}

/// An `assistant` message.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// Text, thinking and tool calls in the order they were produced.
    pub content: Vec<Block>,
    /// Wire protocol, e.g. `anthropic-messages`.
    #[serde(default)]
    pub api: String,
    /// Provider id.
    #[serde(default)]
    pub provider: String,
    /// Model id.
    #[serde(default)]
    pub model: String,
    /// Tokens and cost of this one call.
    #[serde(default)]
    pub usage: Usage,
    /// Why the model stopped.
    #[serde(default)]
    pub stop_reason: StopReason,
    /// Set with `error` and, where known, `aborted`: the provider's own words.
    pub error_message: Option<String>,
    /// What people were told when this message ended a run. Ours: OpenClaw neither writes nor reads it.
    pub error_text: Option<String>,
    /// Unix milliseconds.
    #[serde(default)]
    pub timestamp: i64,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl AssistantMessage {
    /// The tool calls in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            Block::Text(_) | Block::Thinking(_) | Block::Image(_) | Block::Other(_) => None,
        })
    }

    /// All text blocks joined with a newline; thinking is left out.
    pub fn text(&self) -> String {
        join_text(&self.content)
    }
}

/// A `toolResult` message.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultMessage {
    /// The call this answers; transcripts of old versions say `toolUseId`.
    #[serde(alias = "toolUseId")]
    pub tool_call_id: String,
    /// The tool's name.
    #[serde(default)]
    pub tool_name: String,
    /// Text and images.
    #[serde(default)]
    pub content: Vec<Block>,
    /// Structured outcome for clients; never sent to a model.
    pub details: Option<Value>,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
    /// Unix milliseconds.
    #[serde(default)]
    pub timestamp: i64,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Content block. A block of unknown type is kept as it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// `{"type":"text"}`
    Text(TextBlock),
    /// `{"type":"thinking"}`
    Thinking(ThinkingBlock),
    /// `{"type":"image"}`
    Image(ImageBlock),
    /// `{"type":"toolCall"}`; `toolUse` and `functionCall` of old versions read as this.
    ToolCall(ToolCall),
    /// Block of another type, kept as it is.
    Other(Value),
}

impl Block {
    /// A text block without a signature.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextBlock { text: text.into(), text_signature: None, extra: Map::new() })
    }
}

/// `{"type":"text","text":…,"textSignature"?:…}`
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextBlock {
    /// The text.
    pub text: String,
    /// Provider's id of this output item.
    pub text_signature: Option<String>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `{"type":"thinking","thinking":…,"thinkingSignature"?:…}`
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingBlock {
    /// The reasoning text; may be empty when only the signature matters.
    pub thinking: String,
    /// Opaque proof the provider wants back.
    pub thinking_signature: Option<String>,
    /// Fields this version does not know (`redacted`, …).
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `{"type":"image","data":<base64>,"mimeType":…}`
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageBlock {
    /// Base64 of the bytes.
    #[serde(default)]
    pub data: String,
    /// Such as `image/png`.
    #[serde(default)]
    pub mime_type: String,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `{"type":"toolCall","id":…,"name":…,"arguments":{…},"thoughtSignature"?:…}`
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The model's id of the call.
    #[serde(default)]
    pub id: String,
    /// The tool's name.
    #[serde(default)]
    pub name: String,
    /// A JSON object; `null` when the stored block had neither `arguments` nor `input`.
    #[serde(default, alias = "input")]
    pub arguments: Value,
    /// Google's opaque proof.
    pub thought_signature: Option<String>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl JsonSchema for Block {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Block".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        #[derive(JsonSchema)]
        #[schemars(tag = "type", rename_all = "camelCase")]
        #[expect(dead_code, reason = "only its schema is used")]
        enum Known {
            Text(TextBlock),
            Thinking(ThinkingBlock),
            Image(ImageBlock),
            ToolCall(ToolCall),
        }
        let known = Known::json_schema(generator);
        schemars::json_schema!({ "anyOf": [known, {"type": "object", "properties": {"type": {"type": "string"}}}] })
    }
}

impl Serialize for Block {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "camelCase")]
        enum Known<'a> {
            Text(&'a TextBlock),
            Thinking(&'a ThinkingBlock),
            Image(&'a ImageBlock),
            ToolCall(&'a ToolCall),
        }
        match self {
            Self::Text(block) => Known::Text(block).serialize(serializer),
            Self::Thinking(block) => Known::Thinking(block).serialize(serializer),
            Self::Image(block) => Known::Image(block).serialize(serializer),
            Self::ToolCall(block) => Known::ToolCall(block).serialize(serializer),
            Self::Other(value) => value.serialize(serializer),
        }
    }
}

fn join_text(blocks: &[Block]) -> String {
    let mut out = String::new();
    for block in blocks {
        if let Block::Text(block) = block {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&block.text);
        }
    }
    out
}

/// Tokens and cost of one model call.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Prompt tokens that were not cached.
    pub input: u64,
    /// Completion tokens, reasoning included.
    pub output: u64,
    /// Prompt tokens read from the provider's cache.
    pub cache_read: u64,
    /// Prompt tokens written to the provider's cache.
    pub cache_write: u64,
    /// Sum of the four.
    pub total_tokens: u64,
    /// US dollars.
    pub cost: Cost,
}

/// Cost in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// Of `input`.
    #[serde(serialize_with = "js_number")]
    pub input: f64,
    /// Of `output`.
    #[serde(serialize_with = "js_number")]
    pub output: f64,
    /// Of `cacheRead`.
    #[serde(serialize_with = "js_number")]
    pub cache_read: f64,
    /// Of `cacheWrite`.
    #[serde(serialize_with = "js_number")]
    pub cache_write: f64,
    /// Sum of the four.
    #[serde(serialize_with = "js_number")]
    pub total: f64,
}

/// Writes whole numbers without a fraction, as JavaScript does (`0`, not `0.0`).
pub fn js_number<S: serde::Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// It was done.
    #[default]
    Stop,
    /// It hit its output limit.
    Length,
    /// It wants tools run.
    ToolUse,
    /// The call failed; `errorMessage` says why.
    Error,
    /// It was cancelled.
    Aborted,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(text: &str) {
        let message: Message = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), text);
    }

    #[test]
    fn messages_keep_their_bytes() {
        round_trip(r#"{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":5}"#);
        round_trip(r#"{"role":"user","content":"hi","timestamp":5,"later":{"x":1}}"#);
        round_trip(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"s"},{"type":"toolCall","id":"c","name":"exec","arguments":{"b":1,"a":2}},{"type":"novel","x":[1]}],"api":"a","provider":"p","model":"m","usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"input":0,"output":0.5,"cacheRead":0,"cacheWrite":0,"total":0.5}},"stopReason":"toolUse","timestamp":6}"#,
        );
        round_trip(
            r#"{"role":"toolResult","toolCallId":"c","toolName":"exec","content":[{"type":"text","text":"x"}],"details":{"status":"completed"},"isError":false,"timestamp":7}"#,
        );
    }

    /// Names of `sessions.md` §4.3.
    #[test]
    fn provenance_has_its_names_on_the_wire() {
        let rows = [
            (ProvenanceKind::ExternalUser, "external_user"),
            (ProvenanceKind::InterSession, "inter_session"),
            (ProvenanceKind::InternalSystem, "internal_system"),
        ];
        for (kind, name) in rows {
            let provenance = Provenance {
                kind,
                source_session_key: Some("agent:main:main".into()),
                source_channel: Some("slack".into()),
                source_tool: Some("sessions_send".into()),
            };
            let text = format!(
                r#"{{"role":"user","content":"hi","timestamp":5,"provenance":{{"kind":"{name}","sourceSessionKey":"agent:main:main","sourceChannel":"slack","sourceTool":"sessions_send"}}}}"#
            );
            let message: Message = serde_json::from_str(&text).unwrap();
            assert!(matches!(&message, Message::User(user) if user.provenance.as_ref() == Some(&provenance)));
            assert_eq!(serde_json::to_string(&message).unwrap(), text);
        }
    }

    #[test]
    fn old_spellings_are_read() {
        let call: Block =
            serde_json::from_str(r#"{"type":"toolUse","id":"c","name":"exec","input":{"a":1}}"#).unwrap();
        assert!(matches!(call, Block::ToolCall(c) if c.arguments == serde_json::json!({"a":1})));
        let result: Message =
            serde_json::from_str(r#"{"role":"toolResult","toolUseId":"c","content":[],"timestamp":1}"#)
                .unwrap();
        assert!(matches!(result, Message::ToolResult(r) if r.tool_call_id == "c"));
    }
}
