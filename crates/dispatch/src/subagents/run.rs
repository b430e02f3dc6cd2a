//! One run of a sub-agent, as `subagents/runs.json` has it (spec `sessions.md` §8.5).

use openclaw_agent::host::Cleanup;
use openclaw_protocol::{RunId, SessionKey};
use openclaw_sessions::entry::DeliveryContext;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::lineage::Lineage;

/// A sub-agent and what became of it. Unknown fields of the file are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChildRun {
    pub(crate) run_id: String,
    pub(crate) child_session_key: SessionKey,
    /// Who started it.
    pub(crate) requester_session_key: SessionKey,
    /// Where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) requester_origin: Option<DeliveryContext>,
    #[serde(default)]
    pub(crate) requester_display_key: String,
    pub(crate) task: String,
    #[serde(default)]
    pub(crate) cleanup: Cleanup,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    /// Unix milliseconds, as all times here.
    #[serde(default)]
    pub(crate) created_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) started_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<ChildOutcome>,
    /// When its session is archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) archive_at_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cleanup_handled: Option<bool>,
    /// When its end was told, or it was decided that it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cleanup_completed_at: Option<i64>,
    /// What came of telling it. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) announced: Option<Announced>,
    /// What its start follows from that no person said. Ours.
    #[serde(default, skip_serializing_if = "Lineage::is_new")]
    pub(crate) lineage: Lineage,
    #[serde(flatten)]
    pub(crate) extra: Map<String, Value>,
}

/// How a sub-agent ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChildOutcome {
    pub(crate) status: ChildStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// The same, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChildStatus {
    Ok,
    Error,
    Timeout,
    #[serde(other)]
    Unknown,
}

/// What came of telling the end of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announced {
    pub(crate) status: Telling,
    /// Why it was not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// The same, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Telling {
    /// The requester's session has it.
    Sent,
    /// There was nothing to tell.
    Skipped,
    /// It can't be told.
    Failed,
}

impl Announced {
    pub(crate) fn sent() -> Self {
        Self { status: Telling::Sent, error: None }
    }

    pub(crate) fn skipped(why: Option<&str>) -> Self {
        Self { status: Telling::Skipped, error: why.map(str::to_owned) }
    }

    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self { status: Telling::Failed, error: Some(why.into()) }
    }
}

impl ChildRun {
    pub(crate) fn id(&self) -> RunId {
        RunId::new(&self.run_id)
    }

    /// What people call it.
    pub(crate) fn name(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.task)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Whether nothing is owed for it any more.
    pub(crate) fn is_over(&self) -> bool {
        self.cleanup_completed_at.is_some()
    }

    /// How it stands, in a word.
    pub(crate) fn state(&self, is_running: bool) -> &'static str {
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
