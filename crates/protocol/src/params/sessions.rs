//! `sessions.*` (spec `gateway-protocol.md` §6.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;

use super::{Change, Label, NonEmpty};

super::calls! {
    /// Sessions, newest first.
    SessionsList: "sessions.list" as Strict, SessionsListParams => SessionsListResult;
    /// The last messages of several sessions in short.
    SessionsPreview: "sessions.preview" as Strict, SessionsPreviewParams => SessionsPreviewResult;
    /// The canonical key of a session.
    SessionsResolve: "sessions.resolve" as Strict, SessionsResolveParams => SessionsResolveResult;
    /// Changes settings of a session.
    SessionsPatch: "sessions.patch" as Strict, SessionsPatchParams => SessionsPatchResult;
    /// Starts a session afresh.
    SessionsReset: "sessions.reset" as Strict, SessionsResetParams => SessionsResetResult;
    /// Removes a session.
    SessionsDelete: "sessions.delete" as Strict, SessionsDeleteParams => SessionsDeleteResult;
    /// Cuts a session's transcript down to its last lines.
    SessionsCompact: "sessions.compact" as Strict, SessionsCompactParams => SessionsCompactResult;
}

/// Params of `sessions.list`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionsListParams {
    /// Rows at most; absent is all.
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
    /// Only sessions used in the last so many minutes.
    #[schemars(range(min = 1))]
    pub active_minutes: Option<u64>,
    /// Whether `global` is listed.
    pub include_global: Option<bool>,
    /// Whether `unknown` is listed.
    pub include_unknown: Option<bool>,
    /// Whether rows get a title.
    pub include_derived_titles: Option<bool>,
    /// Whether rows get their last message.
    pub include_last_message: Option<bool>,
    /// Only the session with this label.
    pub label: Option<Label>,
    /// Only children of this session.
    pub spawned_by: Option<NonEmpty>,
    /// Only this agent's.
    pub agent_id: Option<NonEmpty>,
    /// Only rows that contain this text.
    pub search: Option<String>,
}

/// Result of `sessions.list`.
// `R` is a row: a [`SessionRow`] when read, anything serialisable when written. Clients are told nothing of that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsListResult<R = SessionRow> {
    /// Unix milliseconds.
    pub ts: i64,
    /// The store, or `(multiple)`.
    pub path: String,
    /// Number of rows.
    pub count: u64,
    /// What a session without override uses.
    pub defaults: SessionListDefaults,
    /// Newest first.
    pub sessions: Vec<R>,
}

/// `sessions.list.defaults`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionListDefaults {
    /// Provider id.
    pub model_provider: Option<String>,
    /// Model id.
    pub model: Option<String>,
    /// Size of its context.
    pub context_tokens: Option<u64>,
}

/// What a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionKind {
    /// With one person, or the main session.
    Direct,
    /// A group or a channel.
    Group,
    /// The one session of scope `global`.
    Global,
    /// Where messages without a session went.
    Unknown,
}

/// One session of `sessions.list`; keys are absent when unset.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// Canonical key.
    pub key: String,
    /// What it is.
    pub kind: SessionKind,
    /// Label given by a person or a parent.
    pub label: Option<String>,
    /// For people.
    pub display_name: Option<String>,
    /// Channel of a group.
    pub channel: Option<String>,
    /// A group's subject.
    pub subject: Option<String>,
    /// A group's channel name.
    pub group_channel: Option<String>,
    /// A group's workspace or server.
    pub space: Option<String>,
    /// `direct`, `group` or `channel`.
    pub chat_type: Option<String>,
    /// Where it came from.
    pub origin: Option<Map<String, Value>>,
    /// Unix milliseconds.
    #[serialize_always]
    pub updated_at: Option<i64>,
    /// Its transcript.
    pub session_id: Option<String>,
    /// Whether the first system prompt was sent.
    pub system_sent: Option<bool>,
    /// Whether its last run was stopped.
    pub aborted_last_run: Option<bool>,
    /// Override.
    pub thinking_level: Option<String>,
    /// Override.
    pub verbose_level: Option<String>,
    /// Override.
    pub reasoning_level: Option<String>,
    /// Override.
    pub elevated_level: Option<String>,
    /// Override.
    pub send_policy: Option<String>,
    /// Prompt tokens of the last turn.
    pub input_tokens: Option<u64>,
    /// Completion tokens of the last turn.
    pub output_tokens: Option<u64>,
    /// Tokens in context.
    pub total_tokens: Option<u64>,
    /// Whether replies show usage.
    pub response_usage: Option<String>,
    /// Provider of the resolved model.
    pub model_provider: Option<String>,
    /// The resolved model: override or default, not the last used one.
    pub model: Option<String>,
    /// Size of its context.
    pub context_tokens: Option<u64>,
    /// Where replies go.
    pub delivery_context: Option<Map<String, Value>>,
    /// Last channel.
    pub last_channel: Option<String>,
    /// Last recipient.
    pub last_to: Option<String>,
    /// Last account.
    pub last_account_id: Option<String>,
    /// Of a sub-agent: the session that started it.
    pub spawned_by: Option<String>,
    /// Of a sub-agent that is not archived: `queued`, `running`, `done`, `error`, `timeout` or `unknown`.
    pub state: Option<String>,
    /// Title, when asked for.
    pub derived_title: Option<String>,
    /// Last message, when asked for.
    pub last_message_preview: Option<String>,
}

/// Params of `sessions.preview`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionsPreviewParams {
    /// Sessions; the first 64 are looked at.
    #[schemars(length(min = 1))]
    pub keys: Vec<NonEmpty>,
    /// Messages of each; 12 unless told, 50 at most.
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
    /// Characters of each message; 240 unless told, 2000 at most.
    #[schemars(range(min = 20))]
    pub max_chars: Option<u64>,
}

/// Result of `sessions.preview`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsPreviewResult {
    /// Unix milliseconds.
    pub ts: i64,
    /// One a key, in order.
    pub previews: Vec<SessionPreview>,
}

/// One session of `sessions.preview`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionPreview {
    /// The key as the client sent it.
    pub key: String,
    /// Whether there is something to show.
    pub status: PreviewStatus,
    /// The last messages, oldest first.
    pub items: Vec<PreviewItem>,
}

/// Whether a preview shows something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PreviewStatus {
    /// It does.
    Ok,
    /// The session has no messages.
    Empty,
    /// There is no such session.
    Missing,
    /// The transcript can't be read.
    Error,
}

/// One message of a preview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreviewItem {
    /// Who said it.
    pub role: PreviewRole,
    /// What, cut.
    pub text: String,
}

/// Who said something in a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PreviewRole {
    /// A person.
    User,
    /// The agent.
    Assistant,
    /// A tool.
    Tool,
    /// The gateway.
    System,
    /// Something else.
    Other,
}

/// Params of `sessions.resolve`: exactly one of the first three.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionsResolveParams {
    /// Any spelling of a key.
    pub key: Option<NonEmpty>,
    /// A transcript.
    pub session_id: Option<NonEmpty>,
    /// A label.
    pub label: Option<Label>,
    /// Only this agent's.
    pub agent_id: Option<NonEmpty>,
    /// Only children of this session.
    pub spawned_by: Option<NonEmpty>,
    /// Whether `global` counts.
    pub include_global: Option<bool>,
    /// Whether `unknown` counts.
    pub include_unknown: Option<bool>,
}

/// Result of `sessions.resolve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsResolveResult {
    /// Always true.
    pub ok: bool,
    /// Canonical key.
    pub key: String,
}

/// Params of `sessions.patch`: absent keeps, `null` clears.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionsPatchParams {
    /// Which session; made when it is missing.
    pub key: NonEmpty,
    /// Unique in the store.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    pub label: Change<Label>,
    /// Thinking.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    pub thinking_level: Change<NonEmpty>,
    /// Tool events.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    pub verbose_level: Change<NonEmpty>,
    /// Whether reasoning is shown.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    pub reasoning_level: Change<NonEmpty>,
    /// Whether replies show usage.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    pub response_usage: Change<ResponseUsage>,
    /// Elevated tools.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    pub elevated_level: Change<NonEmpty>,
    /// Where `exec` runs.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    pub exec_host: Change<NonEmpty>,
    /// What `exec` may run.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    pub exec_security: Change<NonEmpty>,
    /// When `exec` asks.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    pub exec_ask: Change<NonEmpty>,
    /// Node for `exec`.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    pub exec_node: Change<NonEmpty>,
    /// `provider/model`, alias or id.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    pub model: Change<NonEmpty>,
    /// Parent of a sub-agent's session; write-once.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    pub spawned_by: Change<NonEmpty>,
    /// Whether replies are sent.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    pub send_policy: Change<SendPolicy>,
    /// When a group is answered.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    pub group_activation: Change<GroupActivation>,
}

/// `sessions.patch.responseUsage`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResponseUsage {
    /// Not shown.
    Off,
    /// Tokens.
    Tokens,
    /// Tokens and cost.
    Full,
    /// The same as `tokens`.
    On,
}

/// `sessions.patch.sendPolicy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SendPolicy {
    /// Replies are sent.
    Allow,
    /// Nothing is sent.
    Deny,
}

impl SendPolicy {
    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// `sessions.patch.groupActivation`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GroupActivation {
    /// When mentioned.
    Mention,
    /// Always.
    Always,
}

impl GroupActivation {
    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mention => "mention",
            Self::Always => "always",
        }
    }
}

/// Result of `sessions.patch`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsPatchResult {
    /// Always true.
    pub ok: bool,
    /// The store.
    pub path: String,
    /// Canonical key.
    pub key: String,
    /// The entry as stored.
    pub entry: Map<String, Value>,
    /// The model it comes to.
    pub resolved: ResolvedModel,
}

/// Provider and model of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedModel {
    /// Provider id.
    pub model_provider: String,
    /// Model id.
    pub model: String,
}

/// Params of `sessions.reset`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionsResetParams {
    /// Which session; made when it is missing.
    pub key: NonEmpty,
}

/// Result of `sessions.reset`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsResetResult {
    /// Always true.
    pub ok: bool,
    /// Canonical key.
    pub key: String,
    /// The new entry.
    pub entry: Map<String, Value>,
}

/// Params of `sessions.delete`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionsDeleteParams {
    /// Which session.
    pub key: NonEmpty,
    /// Whether the transcript is put away too; true unless told.
    pub delete_transcript: Option<bool>,
}

/// Result of `sessions.delete`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsDeleteResult {
    /// Always true.
    pub ok: bool,
    /// Canonical key.
    pub key: String,
    /// Whether there was one.
    pub deleted: bool,
    /// Where transcripts were put.
    pub archived: Vec<String>,
}

/// Params of `sessions.compact`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionsCompactParams {
    /// Which session.
    pub key: NonEmpty,
    /// Lines that stay at most; 400 unless told.
    #[schemars(range(min = 1))]
    pub max_lines: Option<u64>,
}

/// Result of `sessions.compact`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsCompactResult {
    /// Always true.
    pub ok: bool,
    /// Canonical key.
    pub key: String,
    /// Whether anything was cut.
    pub compacted: bool,
    /// Why there was nothing to cut: `no sessionId` or `no transcript`.
    pub reason: Option<NotCompacted>,
    /// The copy of what it was.
    pub archived: Option<String>,
    /// Lines it has now, the header not counted.
    pub kept: Option<u64>,
}

/// `sessions.compact.reason`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NotCompacted {
    /// The session has no transcript id, or there is no such session.
    #[serde(rename = "no sessionId")]
    NoSessionId,
    /// Nothing was said in it, or its transcript is gone.
    #[serde(rename = "no transcript")]
    NoTranscript,
}
