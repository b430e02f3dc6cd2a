//! The inbox: every accepted message until its run has ended, and for a while how it ended (`docs/durability.md`). What is
//! kept of them is here; where it is kept is the business of [`crate::journal`].

mod deadline;
mod digest;
mod gathering;
mod queued;
mod record;
mod stored;
mod unfinished;

use std::sync::Arc;

use openclaw_protocol::{RunId, SessionId, SessionKey};
use openclaw_sessions::entry::new_session_id;

pub use digest::Digest;
pub(crate) use gathering::{Gathering, Waited};
#[cfg(test)]
pub(crate) use queued::Facts;
pub(crate) use queued::{Attempts, Queued};
pub(crate) use record::{AskedRecords, MessageRecord};
pub(crate) use stored::Stored;
pub(crate) use unfinished::{Found, Unfinished, regrouped};

use crate::api::{AbortReason, RunRecord};
use crate::request::{Kind, Request};

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
    /// The gateway has answered it by itself, and this is how: what is left is to write the answer into the transcript.
    pub(crate) answered: Option<RunRecord>,
    /// Whether an earlier process accepted it: its run may have begun.
    pub(crate) recovered: bool,
    /// The messages that are run together with it, where it leads them.
    pub(crate) gathering: Option<Arc<Gathering>>,
}

impl<P> Row<P> {
    /// The same message with its payload in another form.
    pub(crate) fn with<Q>(self, payload: Q) -> Row<Q> {
        let Self {
            run_id,
            session_key,
            accepted_at,
            entry_id,
            fresh_id,
            session_id,
            abort,
            answered,
            recovered,
            gathering,
            ..
        } = self;
        Row {
            run_id,
            session_key,
            payload,
            accepted_at,
            entry_id,
            fresh_id,
            session_id,
            abort,
            answered,
            recovered,
            gathering,
        }
    }

    /// The runs that end with this one.
    pub(crate) fn others(&self) -> Vec<RunId> {
        self.gathering.iter().flat_map(|gathering| gathering.others().cloned()).collect()
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
            answered: self.answered.clone(),
            recovered: self.recovered,
            gathering: self.gathering.clone(),
        }
    }
}

impl Row {
    /// What a command is given with that nobody says: a tool wants to know what it knows.
    pub(crate) fn unsaid(session_key: &SessionKey, now: i64) -> Self {
        Self {
            run_id: RunId::new(openclaw_sessions::ids::uuid().to_string()),
            session_key: session_key.clone(),
            payload: Request { kind: Kind::Agent, ..Request::default() },
            accepted_at: now,
            entry_id: String::new(),
            fresh_id: new_session_id(),
            session_id: None,
            abort: None,
            answered: None,
            recovered: false,
            gathering: None,
        }
    }
}

/// A form of what was asked that may have all of it.
pub(crate) trait Asked: Sync {
    /// All of it, if it is here.
    fn request(&self) -> Option<&Request>;
}

impl Asked for Request {
    fn request(&self) -> Option<&Request> {
        Some(self)
    }
}

impl Asked for Queued {
    fn request(&self) -> Option<&Request> {
        self.kept()
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

/// What came of storing a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Insert {
    /// It is on disk.
    New,
    /// The run id was there already.
    Known(Known),
    /// The run id was there already, for a message of another kind, session or content.
    Conflict,
}
