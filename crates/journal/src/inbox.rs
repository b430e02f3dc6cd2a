//! Inbox: every accepted message until its run has ended, and for a while its result
//! (`docs/durability.md`). The types of its rows are here; their storage is the business of
//! [`crate::journal`].

mod deadline;
mod digest;
mod gathering;
mod queued;
mod record;
mod stored;
mod unfinished;
mod unfinished_beat;

use std::sync::Arc;

use openclaw_protocol::{RunId, SessionId, SessionKey};
use openclaw_sessions::entry::new_session_id;

pub use digest::Digest;
pub use gathering::{Gathering, MessageWait};
#[cfg(any(test, feature = "testing"))]
pub use queued::QueuedFacts;
pub use queued::{Attempts, Queued};
pub use record::{AskedRecords, MessageRecord};
pub use stored::RequestColumns;
pub use unfinished::{Unfinished, UnfinishedPart, regrouped};
pub use unfinished_beat::{UnfinishedBeat, unfinished_beats};

use crate::api::{AbortReason, RunRecord};
use crate::request::RunRequest;
use crate::rights::Rights;
use crate::source::RequestSource;

/// A message in the inbox, with its request in the form that the stage needs: [`RunRequest`] while it
/// is worked on, [`RequestColumns`] on its way to disk, [`Queued`] while it waits.
#[derive(Debug, Clone, PartialEq)]
pub struct InboxRow<P = RunRequest> {
    /// The run, unique: this is the dedupe key.
    pub run_id: RunId,
    /// The session.
    pub session_key: SessionKey,
    /// Request, in the form that the stage needs.
    pub payload: P,
    /// Unix milliseconds. Also the timestamp of the user message, by which its entry is recognised.
    pub accepted_at: i64,
    /// Id of the transcript entry that will hold the user message: 8 hex digits.
    pub entry_id: String,
    /// A UUID of this message's own: the session id if the run opens a new session, and the entry id should `entry_id`
    /// be taken.
    pub fresh_id: SessionId,
    /// The session the run has begun in.
    pub session_id: Option<SessionId>,
    /// A stop was requested.
    pub abort: Option<AbortReason>,
    /// Record of the gateway's own answer, which is still to be written into the transcript.
    pub answered: Option<RunRecord>,
    /// True if an earlier process accepted it: its run may have begun.
    pub recovered: bool,
    /// Messages that are run together with it, if it leads them.
    pub gathering: Option<Arc<Gathering>>,
}

impl<P> InboxRow<P> {
    /// Returns the same message with its payload in another form.
    pub fn with<Q>(self, payload: Q) -> InboxRow<Q> {
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
        InboxRow {
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
    pub fn others(&self) -> Vec<RunId> {
        self.gathering.iter().flat_map(|gathering| gathering.others().cloned()).collect()
    }

    /// True if a full queue has dropped it, and its run only tells of dropped messages.
    pub fn leads_cut(&self) -> bool {
        self.gathering.as_ref().is_some_and(|gathering| gathering.leads_cut)
    }

    /// The message without its payload.
    pub fn without_payload(&self) -> InboxRow<()> {
        InboxRow {
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

impl InboxRow {
    /// Row for a command that nobody gave: a tool needs the facts that the command knows.
    pub fn unsaid(session_key: &SessionKey, now: i64) -> Self {
        Self {
            run_id: RunId::new(openclaw_sessions::ids::uuid().to_string()),
            session_key: session_key.clone(),
            payload: RunRequest { source: RequestSource::program(), ..RunRequest::default() },
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

/// Form of a request that may have all of it.
pub trait RequestForm: Sync {
    /// Returns the whole request, if it is in memory.
    fn request(&self) -> Option<&RunRequest>;

    /// Rights of its run; `None` if they are not known.
    fn rights(&self) -> Option<&Rights>;
}

impl RequestForm for RunRequest {
    fn request(&self) -> Option<&RunRequest> {
        Some(self)
    }

    fn rights(&self) -> Option<&Rights> {
        self.rights.as_ref()
    }
}

impl RequestForm for Queued {
    fn request(&self) -> Option<&RunRequest> {
        self.kept()
    }

    fn rights(&self) -> Option<&Rights> {
        self.facts.rights.as_ref()
    }
}

/// State of a run id in the inbox.
#[derive(Debug, Clone, PartialEq)]
pub enum KnownRun {
    /// Still to be done.
    Unfinished {
        /// Unix milliseconds.
        accepted_at: i64,
    },
    /// Done.
    Finished(RunRecord),
}

/// Result of storing a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Insert {
    /// Stored on disk.
    New,
    /// The run id was there already.
    Known(KnownRun),
    /// The run id was there already, for a message of another kind, session or content.
    Conflict,
}
