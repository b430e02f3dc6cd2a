//! Record of a message beside its outcome, for `openclaw trace`.

use openclaw_protocol::{RunId, SessionId, SessionKey};

/// Selection of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedRecords {
    /// The record of a run.
    Run(RunId),
    /// The record of the message that was accepted last.
    Newest,
    /// The messages that the run of this message took into itself.
    TakenBy(RunId),
    /// The record of the message whose entry in the transcript may have this id.
    Entry(String),
}

/// Record of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRecord {
    /// The run.
    pub run_id: RunId,
    /// Kind of request that brought it.
    pub kind: String,
    /// The session.
    pub session_key: String,
    /// The session the run has begun in.
    pub session_id: Option<SessionId>,
    /// The ids that its entry in the transcript may have.
    pub entry_ids: [String; 2],
    /// Unix milliseconds.
    pub accepted_at: i64,
    /// Treatment during another run of its session; `None` for messages from before this was
    /// recorded.
    pub queue_mode: Option<String>,
    /// The run that took it into itself: it was steered into that, or collected.
    pub taken_by: Option<RunId>,
    /// Number of times its run began.
    pub attempts: u32,
    /// Reason of the stop, if somebody asked to stop it.
    pub stop: Option<String>,
    /// True if a full queue has dropped it, and the agent is told of it in a line.
    pub is_cut: bool,
}

impl MessageRecord {
    /// Returns the session, if its key can be read.
    pub fn session(&self) -> Option<SessionKey> {
        SessionKey::parse(&self.session_key).ok()
    }
}
