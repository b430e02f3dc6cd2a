//! Run of a sub-agent, as `subagents/runs.json` has it (spec `sessions.md` §8.5).

use openclaw_agent::host::Cleanup;
use openclaw_protocol::message::{Provenance, ProvenanceKind};
use openclaw_protocol::{RunId, SessionKey};
use openclaw_sessions::entry::DeliveryContext;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::lineage::Lineage;
use crate::rights::Rights;

/// A sub-agent and its result. Unknown fields of the file are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildRun {
    /// Id of its run.
    pub run_id: String,
    /// Session of the sub-agent.
    pub child_session_key: SessionKey,
    /// Session that started it.
    pub requester_session_key: SessionKey,
    /// Conversation in which it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester_origin: Option<DeliveryContext>,
    /// Name by which people know the session that started it.
    #[serde(default)]
    pub requester_display_key: String,
    /// The task it was given.
    pub task: String,
    /// Treatment of its session once it has ended.
    #[serde(default)]
    pub cleanup: Cleanup,
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Unix milliseconds, as all times here.
    #[serde(default)]
    pub created_at: i64,
    /// Time at which its run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<i64>,
    /// Time at which its run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// Outcome, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ChildOutcome>,
    /// Time at which its session is archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_at_ms: Option<i64>,
    /// True once its session was treated as `cleanup` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_handled: Option<bool>,
    /// Time at which its end was told, or at which it was decided not to tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_completed_at: Option<i64>,
    /// Result of telling its end. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced: Option<Announced>,
    /// Count of automatic steps that led to its start since a person or the clock began. Ours.
    #[serde(default, skip_serializing_if = "Lineage::is_new")]
    pub lineage: Lineage,
    /// Rights of the run that started it, which limit its session from then on. Ours; `None` in
    /// files of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<Rights>,
    /// Fields of the file that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// End of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildOutcome {
    /// Status of the outcome.
    pub status: ChildStatus,
    /// Reason for a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Status of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChildStatus {
    /// The run has answered.
    Ok,
    /// The run has failed.
    Error,
    /// The run took too long.
    Timeout,
    /// A status that this version does not know.
    #[serde(other)]
    Unknown,
}

/// Result of telling the end of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announced {
    /// Status of the announcement.
    pub status: Telling,
    /// Reason for which it was not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Status of an announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Telling {
    /// The requester's session has it.
    Sent,
    /// The announcement was not needed.
    Skipped,
    /// The end can't be told.
    Failed,
}

impl Announced {
    /// The requester's session has it.
    pub fn sent() -> Self {
        Self { status: Telling::Sent, error: None }
    }

    /// Returns an announcement that was not needed, with the reason.
    pub fn skipped(why: Option<&str>) -> Self {
        Self { status: Telling::Skipped, error: why.map(str::to_owned) }
    }

    /// The end could not be told, for this reason.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { status: Telling::Failed, error: Some(why.into()) }
    }
}

impl ChildRun {
    /// Returns the id of its run.
    pub fn id(&self) -> RunId {
        RunId::new(&self.run_id)
    }

    /// Name for people.
    pub fn name(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.task)
    }

    /// True if its run has ended.
    pub fn has_ended(&self) -> bool {
        self.ended_at.is_some()
    }

    /// True if nothing is owed for it any more.
    pub fn is_over(&self) -> bool {
        self.cleanup_completed_at.is_some()
    }

    /// Returns its state, in a word.
    pub fn state(&self, is_running: bool) -> &'static str {
        match (&self.outcome, self.has_ended(), is_running) {
            (Some(outcome), true, _) => match outcome.status {
                ChildStatus::Ok => "done",
                ChildStatus::Error => "error",
                ChildStatus::Timeout => "timeout",
                ChildStatus::Unknown => "unknown",
            },
            (None, true, _) => "done",
            (_, false, true) => "running",
            (_, false, false) => "queued",
        }
    }
}

/// Returns the provenance of messages between a session and its sub-agents, as the tool that starts them says it.
pub fn provenance(from: &SessionKey) -> Provenance {
    Provenance {
        kind: ProvenanceKind::InterSession,
        source_session_key: Some(from.shown().to_owned()),
        source_channel: None,
        source_tool: Some("sessions_spawn".to_owned()),
    }
}
