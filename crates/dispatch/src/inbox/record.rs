//! What is remembered of a message beside how it ended, for `openclaw trace`.

use openclaw_protocol::{RunId, SessionId, SessionKey};

/// Which messages are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AskedRecords {
    /// That of a run.
    Run(RunId),
    /// The one that was accepted last.
    Newest,
    /// Those that the run of this message took into itself.
    TakenBy(RunId),
    /// The one whose entry in the transcript may have this id.
    Entry(String),
}

/// What is remembered of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageRecord {
    /// The run.
    pub(crate) run_id: RunId,
    /// What brought it.
    pub(crate) kind: String,
    /// The session.
    pub(crate) session_key: String,
    /// The session the run has begun in.
    pub(crate) session_id: Option<SessionId>,
    /// The ids that its entry in the transcript may have.
    pub(crate) entry_ids: [String; 2],
    /// Unix milliseconds.
    pub(crate) accepted_at: i64,
    /// How it is treated during another run of its session; `None` of a message of before that was kept.
    pub(crate) queue_mode: Option<String>,
    /// The run that took it into itself: it was steered into that, or collected.
    pub(crate) taken_by: Option<RunId>,
    /// How often its run began.
    pub(crate) attempts: u32,
    /// By what somebody asked to stop it.
    pub(crate) stop: Option<String>,
}

impl MessageRecord {
    /// The session, where its key can be read.
    pub(crate) fn session(&self) -> Option<SessionKey> {
        SessionKey::parse(&self.session_key).ok()
    }
}
