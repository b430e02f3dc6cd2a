//! `last-heartbeat`, `set-heartbeats`, `wake`, and the event `heartbeat` (spec `gateway-protocol.md` §6.1, §7.5).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;

use super::NonEmpty;
use super::system::Done;

super::calls! {
    /// The last heartbeat event; `null` before the first.
    LastHeartbeat: "last-heartbeat" as Loose, super::Ignored => Option<HeartbeatEvent>;
    /// Switches the heartbeats of all agents on or off, until the gateway restarts.
    SetHeartbeats: "set-heartbeats" as Loose, SetHeartbeatsParams => HeartbeatsSet;
    /// Tells the default agent's main session something with its next heartbeat, or makes one now.
    Wake: "wake" as Strict, WakeParams => Done;
}

/// What came of a heartbeat.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeartbeatEvent {
    /// Unix milliseconds.
    pub ts: i64,
    /// What was done.
    pub status: HeartbeatStatus,
    /// Recipient.
    pub to: Option<String>,
    /// Account it was sent from.
    pub account_id: Option<String>,
    /// The first 200 characters of the answer.
    pub preview: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Whether the answer has media.
    pub has_media: Option<bool>,
    /// Why it was made; of one that was skipped or failed, why that.
    pub reason: Option<String>,
    /// Channel it was sent to.
    pub channel: Option<String>,
    /// Whether nothing was sent although all is well.
    pub silent: Option<bool>,
    /// What an indicator shows, where one is wanted.
    pub indicator_type: Option<IndicatorType>,
    /// The agent; ours, OpenClaw 2026.2.9 does not say it.
    pub agent_id: Option<String>,
}

/// What was done in a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeartbeatStatus {
    /// Its answer was sent.
    Sent,
    /// The agent said nothing.
    OkEmpty,
    /// The agent acknowledged.
    OkToken,
    /// It was not made, or its answer was not sent.
    Skipped,
    /// It went wrong.
    Failed,
}

/// What an indicator shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IndicatorType {
    /// All is well.
    Ok,
    /// Something needs attention.
    Alert,
    /// It went wrong.
    Error,
}

impl HeartbeatStatus {
    /// The indicator that fits (spec §7.5).
    pub fn indicator(self) -> Option<IndicatorType> {
        match self {
            Self::OkEmpty | Self::OkToken => Some(IndicatorType::Ok),
            Self::Sent => Some(IndicatorType::Alert),
            Self::Failed => Some(IndicatorType::Error),
            Self::Skipped => None,
        }
    }

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::OkEmpty => "ok-empty",
            Self::OkToken => "ok-token",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        }
    }
}

/// Params of `set-heartbeats`. What is no boolean reads as absent, and has an error of its own.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SetHeartbeatsParams {
    /// Whether they are made.
    #[serde(default, deserialize_with = "super::lenient")]
    pub enabled: Option<bool>,
}

/// Result of `set-heartbeats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeartbeatsSet {
    /// Always true.
    pub ok: bool,
    /// Whether they are made from now on.
    pub enabled: bool,
}

/// Params of `wake`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WakeParams {
    /// When.
    pub mode: WakeMode,
    /// What the agent is told.
    pub text: NonEmpty,
}

/// When a heartbeat is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WakeMode {
    /// At once.
    Now,
    /// When the next one is due.
    NextHeartbeat,
}
