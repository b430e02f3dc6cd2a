//! The inbox: every accepted message until its run has ended, and for a while how it ended (`docs/durability.md`). It is kept
//! in the [`crate::journal`].

mod deadline;
mod digest;
mod outcome;
mod queued;
mod stored;
mod unfinished;

use std::collections::HashSet;
use std::sync::Arc;

use openclaw_protocol::{RunId, SessionId, SessionKey};

pub(crate) use digest::Digest;
pub(crate) use outcome::StoredOutcome;
#[cfg(test)]
pub(crate) use queued::Facts;
pub(crate) use queued::{Attempts, Queued};
pub(crate) use stored::Stored;
pub(crate) use unfinished::{Found, Unfinished};

use crate::api::{AbortReason, RunRecord};
use crate::journal::{Journal, JournalError, Reservation, Update};
use crate::request::Request;

/// A message in the inbox, with what was asked in the form a stage needs: [`Request`] while it is worked on, [`Stored`] on its
/// way to disk, [`Queued`] while it waits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row<P = Request> {
    /// The run, unique: this is the dedupe key.
    pub(crate) run_id: RunId,
    /// The session.
    pub(crate) session_key: SessionKey,
    /// What was asked.
    pub(crate) payload: P,
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

impl<P> Row<P> {
    /// The same message with its payload in another form.
    pub(crate) fn with<Q>(self, payload: Q) -> Row<Q> {
        let Self {
            run_id, session_key, accepted_at, entry_id, fresh_id, session_id, abort, recovered, ..
        } = self;
        Row { run_id, session_key, payload, accepted_at, entry_id, fresh_id, session_id, abort, recovered }
    }

    /// The message without its payload.
    pub(crate) fn without_payload(&self) -> Row<()> {
        Row {
            run_id: self.run_id.clone(),
            session_key: self.session_key.clone(),
            payload: (),
            accepted_at: self.accepted_at,
            entry_id: self.entry_id.clone(),
            fresh_id: self.fresh_id.clone(),
            session_id: self.session_id.clone(),
            abort: self.abort,
            recovered: self.recovered,
        }
    }
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

/// What came of taking a [`Reservation`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Insert {
    /// It is on disk.
    New,
    /// The run id was there already.
    Known(Known),
    /// The run id was there already, for a message of another kind, session or content.
    Conflict,
}

/// Handle to the inbox.
#[derive(Clone)]
pub(crate) struct Inbox {
    journal: Arc<dyn Journal>,
}

impl Inbox {
    /// The inbox of a journal.
    pub(crate) fn new(journal: Arc<dyn Journal>) -> Self {
        Self { journal }
    }

    /// Waits for room for a message.
    pub(crate) async fn reserve(&self) -> Result<Reservation, JournalError> {
        self.journal.reserve().await
    }

    /// A message with the payload it waited without.
    pub(crate) async fn load(&self, waiting: &Row<Queued>) -> Result<Row, JournalError> {
        let payload = match waiting.payload.kept() {
            Some(payload) => payload.clone(),
            None => self.journal.payload(&waiting.run_id).await?,
        };
        Ok(waiting.without_payload().with(payload))
    }

    /// Notes that a message is taken up once more, before anything is done for it.
    pub(crate) async fn attempt(&self, run_id: &RunId) -> Result<(), JournalError> {
        self.update(Update::Attempt(run_id.clone())).await
    }

    /// Notes that the attempt under way is past its preparation.
    pub(crate) async fn prepared(&self, run_id: &RunId) -> Result<(), JournalError> {
        self.update(Update::Prepared(run_id.clone())).await
    }

    /// Takes back the attempts of a process that stops in order.
    pub(crate) async fn excuse(&self, runs: Vec<RunId>) -> Result<(), JournalError> {
        self.update(Update::Excuse(runs)).await
    }

    /// Notes the session in which a run begins.
    pub(crate) async fn begin(&self, run_id: &RunId, session_id: &SessionId) -> Result<(), JournalError> {
        self.update(Update::Begin(run_id.clone(), session_id.clone())).await
    }

    /// Notes that runs are to be stopped, so that they are not taken up again after a crash.
    pub(crate) async fn mark_aborted(
        &self,
        runs: Vec<RunId>,
        reason: AbortReason,
    ) -> Result<(), JournalError> {
        self.update(Update::Abort(runs, reason)).await
    }

    /// Marks a run finished. Should the disk refuse, it is tried again; the answer is the error of the first try.
    pub(crate) async fn finish(&self, record: RunRecord) -> Result<(), JournalError> {
        self.update(Update::Finish(record)).await
    }

    async fn update(&self, update: Update) -> Result<(), JournalError> {
        self.journal.update(update).await.map(drop)
    }

    /// The ids of the entries of a message that was found at start, and of all that were accepted since. `None` for a new one,
    /// and where they can't be read.
    pub(crate) async fn entries_since<P>(&self, row: &Row<P>) -> Option<HashSet<String>> {
        let accepted_at = row.recovered.then_some(row.accepted_at)?;
        let read = self.journal.entries_since(accepted_at).await;
        read.inspect_err(|error| tracing::warn!(%error, "inbox could not be read")).ok()
    }

    /// What is known of a run id.
    pub(crate) async fn find(&self, run_id: &RunId) -> Result<Option<Known>, JournalError> {
        self.journal.message(run_id).await
    }
}
