//! `sessions.*` (spec `gateway-protocol.md` §6.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Change, Label, NonEmpty};

super::call! {
    /// Sessions, newest first.
    SessionsList: "sessions.list" as Strict, SessionsListParams => SessionsListResult
}
super::call! {
    /// The last messages of several sessions in short.
    SessionsPreview: "sessions.preview" as Strict, SessionsPreviewParams => SessionsPreviewResult
}
super::call! {
    /// The canonical key of a session.
    SessionsResolve: "sessions.resolve" as Strict, SessionsResolveParams => SessionsResolveResult
}
super::call! {
    /// Changes settings of a session.
    SessionsPatch: "sessions.patch" as Strict, SessionsPatchParams => SessionsPatchResult
}
super::call! {
    /// Starts a session afresh.
    SessionsReset: "sessions.reset" as Strict, SessionsResetParams => SessionsResetResult
}
super::call! {
    /// Removes a session.
    SessionsDelete: "sessions.delete" as Strict, SessionsDeleteParams => SessionsDeleteResult
}
super::call! {
    /// Cuts a session's transcript down to its last lines.
    SessionsCompact: "sessions.compact" as Strict, SessionsCompactParams => SessionsCompactResult
}

/// Params of `sessions.list`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionsListParams {
    /// Rows at most; absent is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
    /// Only sessions used in the last so many minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub active_minutes: Option<u64>,
    /// Whether `global` is listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_global: Option<bool>,
    /// Whether `unknown` is listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_unknown: Option<bool>,
    /// Whether rows get a title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_derived_titles: Option<bool>,
    /// Whether rows get their last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_last_message: Option<bool>,
    /// Only the session with this label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// Only children of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<NonEmpty>,
    /// Only this agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<NonEmpty>,
    /// Only rows that contain this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
}

/// Result of `sessions.list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsListResult {
    /// Unix milliseconds.
    pub ts: i64,
    /// The store, or `(multiple)`.
    pub path: String,
    /// Number of rows.
    pub count: u64,
    /// What a session without override uses.
    pub defaults: SessionListDefaults,
    /// Newest first.
    pub sessions: Vec<SessionRow>,
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// Canonical key.
    pub key: String,
    /// What it is.
    pub kind: SessionKind,
    /// Label given by a person or a parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Channel of a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// A group's subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// A group's channel name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_channel: Option<String>,
    /// A group's workspace or server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// `direct`, `group` or `channel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_type: Option<String>,
    /// Where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Map<String, Value>>,
    /// Unix milliseconds.
    pub updated_at: Option<i64>,
    /// Its transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Whether the first system prompt was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_sent: Option<bool>,
    /// Whether its last run was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborted_last_run: Option<bool>,
    /// Override.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// Override.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbose_level: Option<String>,
    /// Override.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_level: Option<String>,
    /// Override.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elevated_level: Option<String>,
    /// Override.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_policy: Option<String>,
    /// Prompt tokens of the last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Completion tokens of the last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens in context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Whether replies show usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_usage: Option<String>,
    /// Provider of the resolved model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    /// The resolved model: override or default, not the last used one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Size of its context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Where replies go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_context: Option<Map<String, Value>>,
    /// Last channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_channel: Option<String>,
    /// Last recipient.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_to: Option<String>,
    /// Last account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_account_id: Option<String>,
    /// Title, when asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived_title: Option<String>,
    /// Last message, when asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_message_preview: Option<String>,
}

/// Params of `sessions.preview`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionsPreviewParams {
    /// Sessions; the first 64 are looked at.
    #[schemars(length(min = 1))]
    pub keys: Vec<NonEmpty>,
    /// Messages of each; 12 unless told, 50 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
    /// Characters of each message; 240 unless told, 2000 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionsResolveParams {
    /// Any spelling of a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<NonEmpty>,
    /// A transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<NonEmpty>,
    /// A label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// Only this agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<NonEmpty>,
    /// Only children of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<NonEmpty>,
    /// Whether `global` counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_global: Option<bool>,
    /// Whether `unknown` counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionsDeleteParams {
    /// Which session.
    pub key: NonEmpty,
    /// Whether the transcript is put away too; true unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionsCompactParams {
    /// Which session.
    pub key: NonEmpty,
    /// Lines that stay at most; 400 unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_lines: Option<u64>,
}

/// Result of `sessions.compact`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsCompactResult {
    /// Always true.
    pub ok: bool,
    /// Canonical key.
    pub key: String,
    /// Whether anything was cut.
    pub compacted: bool,
    /// Why there was nothing to cut: `no sessionId` or `no transcript`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<NotCompacted>,
    /// The copy of what it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<String>,
    /// Lines it has now, the header not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
