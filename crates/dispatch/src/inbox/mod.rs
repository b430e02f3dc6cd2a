//! The inbox: every accepted message until its run has ended, and for a while how it ended (`docs/durability.md`). A queue
//! of the [`crate::journal`].

mod changes;
mod format;
mod reader;
mod refused;
mod states;

use openclaw_protocol::{RunId, SessionId};

pub(crate) use changes::prune;
pub(crate) use format::Payload;
#[cfg(test)]
pub(crate) use format::{AgentPayload, ChatPayload};
pub(crate) use reader::unfinished;

use crate::api::{AbortReason, RunRecord};
use crate::journal::{Journal, JournalError};
use changes::{Abort, Accept, Begin, Finish};
use refused::Refused;

/// A message in the inbox.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The run, unique: this is the dedupe key.
    pub(crate) run_id: RunId,
    /// Canonical session key.
    pub(crate) session_key: String,
    /// What was asked.
    pub(crate) payload: Payload,
    /// Unix milliseconds. Also the timestamp of the user message, by which its entry is recognised.
    pub(crate) accepted_at: i64,
    /// Id of the transcript entry that will hold the user message: 8 hex digits.
    pub(crate) entry_id: String,
    /// A UUID of this message's own: the session id if the run opens a new session, and the entry id should `entry_id`
    /// be taken.
    pub(crate) fresh_id: SessionId,
    /// The session the run has begun in.
    pub(crate) session_id: Option<SessionId>,
    /// Someone asked to stop it.
    pub(crate) abort: Option<AbortReason>,
    /// Whether an earlier process accepted it: its run may have begun.
    pub(crate) recovered: bool,
}

/// What the inbox knows of a run id.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Known {
    /// Still to be done.
    Unfinished {
        /// Unix milliseconds.
        accepted_at: i64,
    },
    /// Done.
    Finished(RunRecord),
}

/// What came of [`Inbox::accept`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Insert {
    /// It is on disk.
    New,
    /// The run id was there already.
    Known(Known),
}

/// Handle to the inbox.
#[derive(Clone)]
pub(crate) struct Inbox {
    journal: Journal,
    refused: Refused,
}

impl Inbox {
    /// The inbox of a journal.
    pub(crate) fn new(journal: Journal) -> Self {
        Self { journal, refused: Refused::default() }
    }

    /// Stores a message; when this returns [`Insert::New`] it is synced to disk.
    pub(crate) async fn accept(&self, row: Row) -> Result<Insert, JournalError> {
        self.journal.change(Accept { row, refused: self.refused.clone() }).await
    }

    /// Notes the session in which a run begins.
    pub(crate) async fn begin(&self, run_id: &RunId, session_id: &SessionId) -> Result<(), JournalError> {
        self.journal.change(Begin { run_id: run_id.clone(), session_id: session_id.clone() }).await
    }

    /// Notes that runs are to be stopped, so that they are not taken up again after a crash.
    pub(crate) async fn mark_aborted(
        &self,
        runs: Vec<RunId>,
        reason: AbortReason,
    ) -> Result<(), JournalError> {
        self.journal.change(Abort { runs, reason }).await
    }

    /// Marks a run finished. Should the disk refuse, it is tried again; the answer is the error of the first try.
    pub(crate) async fn finish(&self, record: RunRecord) -> Result<(), JournalError> {
        self.journal.change(Finish { record, refused: self.refused.clone() }).await
    }

    /// What is known of a run id.
    pub(crate) async fn find(&self, run_id: &RunId) -> Result<Option<Known>, JournalError> {
        // It has ended, whatever the disk says of it.
        if let Some(record) = self.refused.find(run_id) {
            return Ok(Some(Known::Finished(record)));
        }
        let run_id = run_id.clone();
        self.journal.read(move |db| reader::known(db, &run_id)).await
    }
}

#[cfg(test)]
mod tests;
