//! `chat.history`, `chat.send`, `chat.abort`, `chat.inject` (spec `gateway-protocol.md` §6.4).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;

use super::{IdempotencyKey, NonEmpty};

super::calls! {
    /// The messages of a session.
    ChatHistory: "chat.history" as Strict, ChatHistoryParams => ChatHistoryResult;
    /// A message of a person; answered at once, the reply comes as events.
    ChatSend: "chat.send" as Strict, ChatSendParams => ChatSendResult;
    /// Stops runs.
    ChatAbort: "chat.abort" as Strict, ChatAbortParams => ChatAborted;
    /// Puts a note into a transcript in the assistant's name.
    ChatInject: "chat.inject" as Strict, ChatInjectParams => ChatInjected;
}

/// Params of `chat.history`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatHistoryParams {
    /// Which session.
    pub session_key: NonEmpty,
    /// The last so many messages.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u64>,
}

impl ChatHistoryParams {
    /// Messages answered when the client does not say.
    pub const DEFAULT_LIMIT: u64 = 200;
}

/// Result of `chat.history`. `M` is a message: a [`Value`] when read, anything serialisable when written.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatHistoryResult<M = Value> {
    /// The key as the client sent it.
    pub session_key: String,
    /// Absent when the session does not exist.
    pub session_id: Option<String>,
    /// Stored messages ([`crate::message::Message`]), oldest first.
    pub messages: Vec<M>,
    /// Effective level.
    pub thinking_level: Option<String>,
    /// The session's override.
    pub verbose_level: Option<String>,
}

/// Params of `chat.send`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatSendParams {
    /// Which session.
    pub session_key: NonEmpty,
    /// The text; may be empty beside an attachment.
    pub message: String,
    /// Thinking level of this message.
    pub thinking: Option<String>,
    /// Accepted and ignored.
    pub deliver: Option<bool>,
    /// Images; items that are no attachments are ignored.
    pub attachments: Option<Vec<Value>>,
    /// Deadline of the run in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Identifies the message; becomes the run id.
    pub idempotency_key: IdempotencyKey,
}

/// Result of `chat.send`.
#[skip_serializing_none]
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
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatAbortParams {
    /// Which session.
    pub session_key: NonEmpty,
    /// Only this run.
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
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatInjectParams {
    /// Which session.
    pub session_key: NonEmpty,
    /// The note.
    pub message: NonEmpty,
    /// Put before it in brackets.
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
