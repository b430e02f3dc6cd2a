//! `status` (spec `gateway-protocol.md` §6.1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;

use super::health::UnmetProtection;

super::calls! {
    /// Sessions, heartbeat and channels in short.
    Status: "status" as Loose, super::Ignored => StatusSummary;
}

/// Result of `status`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusSummary {
    /// The channel that is linked like a phone, when there is one.
    pub link_channel: Option<LinkChannel>,
    /// Heartbeats.
    pub heartbeat: HeartbeatSummary,
    /// Lines for people.
    pub channel_summary: Vec<String>,
    /// System events waiting for the main session.
    pub queued_system_events: Vec<String>,
    /// Sessions of all agents.
    pub sessions: SessionsSummary,
    /// Protections the config asks for and this version can't give; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet_protections: Vec<UnmetProtection>,
    /// Provider of the default agent's model, where the gateway has no credential for it; absent where it has one.
    #[serde(default)]
    pub missing_credential: Option<String>,
}

/// `status.linkChannel`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkChannel {
    /// Channel id.
    pub id: String,
    /// Its name.
    pub label: String,
    /// Whether it is linked.
    pub linked: bool,
    /// Age of its credentials in milliseconds.
    pub auth_age_ms: Option<u64>,
}

/// `status.heartbeat`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeartbeatSummary {
    /// The default agent.
    pub default_agent_id: String,
    /// Every agent.
    pub agents: Vec<AgentBeat>,
}

/// One agent's heartbeat in `status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentBeat {
    /// The agent.
    pub agent_id: String,
    /// Whether it is on.
    pub enabled: bool,
    /// Interval as configured, or `disabled`.
    pub every: String,
    /// Interval in milliseconds.
    pub every_ms: Option<u64>,
}

/// `status.sessions`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionsSummary {
    /// Store files.
    pub paths: Vec<String>,
    /// Number of sessions in all.
    pub count: u64,
    /// What a session without override uses.
    pub defaults: StatusDefaults,
    /// At most ten, newest first.
    pub recent: Vec<StatusRow>,
    /// The same by agent.
    pub by_agent: Vec<AgentSessions>,
}

/// `status.sessions.defaults`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusDefaults {
    /// Model id.
    pub model: Option<String>,
    /// Size of its context.
    pub context_tokens: Option<u64>,
}

/// Sessions of one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentSessions {
    /// The agent.
    pub agent_id: String,
    /// Its store.
    pub path: String,
    /// Number of sessions.
    pub count: u64,
    /// At most ten, newest first.
    pub recent: Vec<StatusRow>,
}

/// Largest percentage reported for a context that has run over.
const MAX_PERCENT: u64 = 999;

/// `round(total / context * 100)`, at most [`MAX_PERCENT`]; `None` without a context.
pub fn percent_used(total: u64, context: u64) -> Option<u64> {
    let doubled = total.saturating_mul(200).checked_div(context)?;
    Some(doubled.saturating_add(1) / 2).map(|percent| percent.min(MAX_PERCENT))
}

/// One session in `status`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusRow {
    /// Its agent.
    pub agent_id: Option<String>,
    /// Canonical key.
    pub key: String,
    /// `direct`, `group`, `global` or `unknown`.
    pub kind: super::sessions::SessionKind,
    /// Its transcript.
    pub session_id: Option<String>,
    /// Unix milliseconds.
    #[serialize_always]
    pub updated_at: Option<i64>,
    /// Milliseconds since.
    #[serialize_always]
    pub age: Option<i64>,
    /// Override.
    pub thinking_level: Option<String>,
    /// Override.
    pub verbose_level: Option<String>,
    /// Override.
    pub reasoning_level: Option<String>,
    /// Override.
    pub elevated_level: Option<String>,
    /// Whether the first system prompt was sent.
    pub system_sent: Option<bool>,
    /// Whether its last run was stopped.
    pub aborted_last_run: Option<bool>,
    /// Prompt tokens of the last turn.
    pub input_tokens: Option<u64>,
    /// Completion tokens of the last turn.
    pub output_tokens: Option<u64>,
    /// Tokens in context.
    pub total_tokens: u64,
    /// What is left.
    #[serialize_always]
    pub remaining_tokens: Option<u64>,
    /// `min(999, round(total / context * 100))`
    #[serialize_always]
    pub percent_used: Option<u64>,
    /// Model id.
    #[serialize_always]
    pub model: Option<String>,
    /// Size of its context.
    #[serialize_always]
    pub context_tokens: Option<u64>,
    /// For people, such as `system` or `id:<sessionId>`.
    pub flags: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_rounded_and_bounded() {
        let rows = [
            (0, 10, Some(0)),
            (5, 1000, Some(1)),
            (4, 1000, Some(0)),
            (1, 0, None),
            (u64::MAX, 1, Some(999)),
        ];
        for (total, context, expect) in rows {
            assert_eq!(percent_used(total, context), expect, "{total}/{context}");
        }
    }
}
