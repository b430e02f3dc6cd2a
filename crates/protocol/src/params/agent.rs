//! `agent`, `agent.wait`, `agent.identity.get` (spec `gateway-protocol.md` §6.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;

use super::{IdempotencyKey, Label, NonEmpty};

super::calls! {
    /// Runs an agent: acknowledged at once, answered again when it has ended.
    Agent: "agent" as Strict, AgentParams => AgentAnswer;
    /// Waits for a run to end.
    AgentWait: "agent.wait" as Strict, AgentWaitParams => AgentWaitResult;
    /// Name and face of an agent.
    AgentIdentityGet: "agent.identity.get" as Strict, AgentIdentityParams => AgentIdentity;
}

/// Params of `agent`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentParams {
    /// What the agent is told.
    pub message: NonEmpty,
    /// Which agent.
    pub agent_id: Option<NonEmpty>,
    /// Chooses the session of this recipient.
    pub to: Option<String>,
    /// Recipient of the reply.
    pub reply_to: Option<String>,
    /// Continue this transcript.
    pub session_id: Option<String>,
    /// Which session.
    pub session_key: Option<String>,
    /// Thinking level of this run.
    pub thinking: Option<String>,
    /// Whether the reply goes to a chat.
    pub deliver: Option<bool>,
    /// Images; items that are no attachments are ignored.
    pub attachments: Option<Vec<Value>>,
    /// Channel of the conversation.
    pub channel: Option<String>,
    /// Channel of the reply.
    pub reply_channel: Option<String>,
    /// Account of the conversation.
    pub account_id: Option<String>,
    /// Account of the reply.
    pub reply_account_id: Option<String>,
    /// Thread of the conversation.
    pub thread_id: Option<String>,
    /// Group of the conversation.
    pub group_id: Option<String>,
    /// Name of the group's channel.
    pub group_channel: Option<String>,
    /// Workspace or server of the group.
    pub group_space: Option<String>,
    /// Seconds; 0 is no timeout.
    pub timeout: Option<u64>,
    /// Global lane.
    pub lane: Option<String>,
    /// Added to the system prompt.
    pub extra_system_prompt: Option<String>,
    /// Identifies the message; becomes the run id.
    pub idempotency_key: IdempotencyKey,
    /// Label of the session.
    pub label: Option<Label>,
    /// Session that spawned this one.
    pub spawned_by: Option<String>,
}

/// Payload of the answers to `agent`: first [`AgentStatus::Accepted`], then one of the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentAnswer {
    /// The run.
    pub run_id: String,
    /// How it stands.
    #[serde(flatten)]
    pub status: AgentStatus,
    /// What became of its delivery (ours).
    #[serde(flatten)]
    pub delivered: Delivered,
}

/// What became of an answer that was to be delivered (ours). Empty where it was, and where nobody wanted it to be.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivered {
    /// `queued`: it is stored, and is sent as soon as the platform can be reached.
    pub delivery_status: Option<String>,
    /// Why it will not be delivered.
    pub delivery_error: Option<String>,
}

impl Delivered {
    /// Failed: the answer will not be delivered.
    pub fn failed(why: String) -> Self {
        Self { delivery_status: Some("failed".to_owned()), delivery_error: Some(why) }
    }

    /// Queued: the answer waits to be delivered.
    pub fn queued() -> Self {
        Self { delivery_status: Some("queued".to_owned()), delivery_error: None }
    }
}

/// How a run stands.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum AgentStatus {
    /// The message is stored and will be answered.
    Accepted {
        /// Unix milliseconds.
        accepted_at: i64,
    },
    /// The run has ended.
    Ok {
        /// `completed`, or how else it ended.
        summary: String,
        /// `{payloads:[…], meta:{…}}`
        result: Value,
    },
    /// The run failed.
    Error {
        /// Why.
        summary: String,
        /// `{payloads:[…], meta:{…}}` where the run had begun.
        result: Option<Value>,
    },
}

/// Params of `agent.wait`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentWaitParams {
    /// The run.
    pub run_id: NonEmpty,
    /// Milliseconds; 0 only looks.
    pub timeout_ms: Option<u64>,
}

impl AgentWaitParams {
    /// Milliseconds waited when the client does not say.
    pub const DEFAULT_TIMEOUT_MS: u64 = 30_000;
}

/// Result of `agent.wait`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentWaitResult {
    /// The run.
    pub run_id: String,
    /// How it ended, or that it has not.
    pub status: WaitStatus,
    /// Unix milliseconds.
    pub started_at: Option<i64>,
    /// Unix milliseconds.
    pub ended_at: Option<i64>,
    /// Why it failed.
    pub error: Option<String>,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WaitStatus {
    /// The run has ended.
    Ok,
    /// The run failed.
    Error,
    /// It had not ended in time.
    Timeout,
}

/// Params of `agent.identity.get`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentIdentityParams {
    /// Which agent.
    pub agent_id: Option<NonEmpty>,
    /// Or the agent of this session.
    pub session_key: Option<String>,
}

/// Result of `agent.identity.get`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentIdentity {
    /// The agent.
    pub agent_id: String,
    /// At most 50 characters.
    pub name: String,
    /// Text, emoji, URL or path; at most 200 characters.
    pub avatar: String,
    /// Its emoji.
    pub emoji: Option<String>,
}
