//! `chat.history`, `chat.send`, `chat.abort`, `chat.inject` (spec `gateway-protocol.md` §6.4).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{IdempotencyKey, NonEmpty};

super::call! {
    /// The messages of a session.
    ChatHistory: "chat.history" as Strict, ChatHistoryParams => ChatHistoryResult
}
super::call! {
    /// A message of a person; answered at once, the reply comes as events.
    ChatSend: "chat.send" as Strict, ChatSendParams => ChatSendResult
}
super::call! {
    /// Stops runs.
    ChatAbort: "chat.abort" as Strict, ChatAbortParams => ChatAborted
}
super::call! {
    /// Puts a note into a transcript in the assistant's name.
    ChatInject: "chat.inject" as Strict, ChatInjectParams => ChatInjected
}

/// Params of `chat.history`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatHistoryParams {
    /// Which session.
    pub session_key: NonEmpty,
    /// The last so many messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u64>,
}

impl ChatHistoryParams {
    /// Messages answered when the client does not say.
    pub const DEFAULT_LIMIT: u64 = 200;
}

/// Result of `chat.history`. `M` is a message: a [`Value`] when read, anything serialisable when written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatHistoryResult<M = Value> {
    /// The key as the client sent it.
    pub session_key: String,
    /// Absent when the session does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Stored messages ([`crate::message::Message`]), oldest first.
    pub messages: Vec<M>,
    /// Effective level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// The session's override.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbose_level: Option<String>,
}

/// Params of `chat.send`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatSendParams {
    /// Which session.
    pub session_key: NonEmpty,
    /// The text; may be empty beside an attachment.
    pub message: String,
    /// Thinking level of this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// Accepted and ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliver: Option<bool>,
    /// Images; items that are no attachments are ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<Value>>,
    /// Deadline of the run in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Identifies the message; becomes the run id.
    pub idempotency_key: IdempotencyKey,
}

/// Result of `chat.send`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ChatSendResult {
    /// A message was taken in.
    #[serde(rename_all = "camelCase")]
    Run {
        /// The run; equals the idempotency key.
        run_id: String,
        /// What becomes of it.
        status: ChatSendStatus,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// The message was a stop command.
    Stopped(ChatAborted),
}

/// What becomes of a `chat.send`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChatSendStatus {
    /// It is new.
    Started,
    /// The key is known and its run still works.
    InFlight,
    /// The key is known and its run has ended.
    Ok,
    /// The key is known and its run failed.
    Error,
}

/// Params of `chat.abort`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatAbortParams {
    /// Which session.
    pub session_key: NonEmpty,
    /// Only this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<NonEmpty>,
}

/// Result of `chat.abort`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatAborted {
    /// Always true.
    pub ok: bool,
    /// Whether something was stopped.
    pub aborted: bool,
    /// What was stopped.
    pub run_ids: Vec<String>,
}

/// Params of `chat.inject`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatInjectParams {
    /// Which session.
    pub session_key: NonEmpty,
    /// The note.
    pub message: NonEmpty,
    /// Put before it in brackets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub label: Option<String>,
}

/// Result of `chat.inject`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatInjected {
    /// Always true.
    pub ok: bool,
    /// Id of the transcript entry.
    pub message_id: String,
}
