//! `health` (spec `gateway-protocol.md` §6.1, §8.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;

super::calls! {
    /// The last health snapshot, or a fresh one.
    Health: "health" as Loose, HealthParams => HealthSnapshot;
}

/// Params of `health`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HealthParams {
    /// Whether to look again, asking the channels.
    #[serde(default, deserialize_with = "super::lenient")]
    pub probe: Option<bool>,
}

/// What an operator asks first. Also the payload of the `health` event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthSnapshot {
    /// Always true: a failing channel shows in its own summary.
    pub ok: bool,
    /// Unix milliseconds.
    pub ts: i64,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// By channel id; the fields differ by channel.
    pub channels: Map<String, Value>,
    /// Channel ids in display order.
    pub channel_order: Vec<String>,
    /// Names for people, by channel id.
    pub channel_labels: Map<String, Value>,
    /// Beat of the default agent in seconds, 0 when off.
    pub heartbeat_seconds: u64,
    /// The default agent.
    pub default_agent_id: String,
    /// Every agent.
    pub agents: Vec<AgentHealth>,
    /// Sessions of the default agent.
    pub sessions: SessionsHealth,
    /// Protections the config asks for and this version can't give; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet_protections: Vec<UnmetProtection>,
    /// Features of OpenClaw that the state directory uses and this version does not have; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent_features: Vec<AbsentFeature>,
    /// Whether a restart waits for runs to end: none is begun before it. Absent where it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
}

/// A protection the config asks for and this version can't give: what would rely on it is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnmetProtection {
    /// Path in the config.
    pub key: String,
    /// What it says there.
    pub value: String,
    /// What is refused and what to do, for people.
    pub message: String,
}

/// A feature of OpenClaw that the state directory uses and this version does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AbsentFeature {
    /// Name of the feature, such as `cron`.
    pub feature: String,
    /// Sentence for people that says what does not happen, and to what.
    pub message: String,
}

/// One agent in a [`HealthSnapshot`].
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentHealth {
    /// Its id.
    pub agent_id: String,
    /// Its configured name.
    pub name: Option<String>,
    /// Whether it answers by default.
    pub is_default: bool,
    /// Its heartbeat.
    pub heartbeat: AgentHeartbeat,
    /// Its sessions.
    pub sessions: SessionsHealth,
}

/// The heartbeat settings of an agent.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentHeartbeat {
    /// Whether it is on.
    pub enabled: bool,
    /// Interval as configured, or `disabled`.
    pub every: String,
    /// Interval in milliseconds.
    #[serialize_always]
    pub every_ms: Option<u64>,
    /// What the agent is told.
    pub prompt: String,
    /// Where alerts go.
    pub target: String,
    /// Its own model.
    pub model: Option<String>,
    /// Longest acknowledgement that is not delivered.
    pub ack_max_chars: u64,
}

/// A store and its latest sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsHealth {
    /// The store's file.
    pub path: String,
    /// Number of sessions.
    pub count: u64,
    /// At most five, newest first.
    pub recent: Vec<RecentSession>,
}

/// One session in [`SessionsHealth`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecentSession {
    /// Canonical key.
    pub key: String,
    /// Unix milliseconds.
    pub updated_at: Option<i64>,
    /// Milliseconds since.
    pub age: Option<i64>,
}
