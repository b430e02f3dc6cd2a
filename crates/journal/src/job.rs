//! A message on its way through a lane.

use std::sync::Arc;

use openclaw_protocol::RunId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::AbortReason;
use crate::inbox::{InboxRow, Queued};

/// A message, and the notes of its lane about it.
#[derive(Debug, Clone)]
pub struct Job {
    /// Message as it is in the inbox, without its payload if that is big.
    pub row: Arc<InboxRow<Queued>>,
    /// Opens once the acknowledgement is queued to the client.
    pub gate: CancellationToken,
    /// Time from which its deadline counts: acceptance, or the start that recovered it. A change of
    /// the wall clock does not affect it.
    pub since: Instant,
    /// Run id of its events after its own is used up: for a steered message that the run did not
    /// take.
    pub events_as: Option<RunId>,
    /// True if its clients have heard its end already: it was stopped while it waited, or answered
    /// beside a run.
    pub end_announced: bool,
    /// Number in the order of acceptance, given by the lane.
    pub order: u64,
    /// True if it is done beside a run, as the lane found.
    pub aside: bool,
    /// True if it waited behind a run of its session.
    pub has_waited: bool,
    /// Number under which a full queue has dropped it, if the agent is to be told.
    pub cut: Option<u64>,
    /// True if an earlier process may have begun its turn: it does not wait with others.
    pub has_begun: bool,
    /// True if it is a copy for the run under way of a message that has a run of its own.
    pub is_copy: bool,
}

impl Job {
    /// Makes the job of a stored message; `gate` is cancelled when it is to stop.
    pub fn new(row: Arc<InboxRow<Queued>>, gate: CancellationToken) -> Self {
        Self {
            row,
            gate,
            since: Instant::now(),
            events_as: None,
            end_announced: false,
            order: 0,
            aside: false,
            has_waited: false,
            cut: None,
            has_begun: false,
            is_copy: false,
        }
    }

    /// Gives a run that only tells of dropped messages a stream of events of its own: clients have
    /// heard the end of the message that leads it, also if that was before a start.
    #[must_use]
    pub fn with_stream_of_summary(mut self) -> Self {
        if self.row.leads_cut() && self.events_as.is_none() {
            self.events_as = Some(RunId::new(openclaw_sessions::ids::uuid().to_string()));
        }
        self
    }

    /// Returns the entry ids it may have if it is steered into a run, in the order in which they
    /// are used. The id of a copy is never that of its own message's entry, by which the message is
    /// recognised after a crash; it begins with the message's id, like all its entry ids.
    pub fn steered_entries(&self) -> [String; 2] {
        let InboxRow { entry_id, fresh_id, .. } = &*self.row;
        match self.is_copy {
            true => copies_of(fresh_id.as_str()),
            false => [entry_id.clone(), fresh_id.to_string()],
        }
    }

    /// True if an earlier process may have answered it, so that its end is only known when its turn
    /// comes, although something stops it: its clients may have been told that answer.
    pub fn may_be_answered(&self) -> bool {
        self.row.recovered && !self.row.payload.facts.wants.command
    }

    /// Notes that it was stopped while it waited: its turn only closes it.
    pub fn stop(&mut self, reason: AbortReason) {
        let abort = self.row.abort.or(Some(reason));
        self.row = Arc::new(InboxRow { abort, ..InboxRow::clone(&self.row) });
        self.end_announced = self.cut.is_some() || !self.may_be_answered();
    }
}

/// Returns the entry ids that the copy of a message may have for the run under way
/// ([`Job::is_copy`]).
pub fn copies_of(fresh_id: &str) -> [String; 2] {
    COPIES.map(|copy| format!("{fresh_id}{copy}"))
}

/// True if an entry is the copy of a message.
pub fn is_copy(entry_id: &str) -> bool {
    COPIES.iter().any(|copy| entry_id.ends_with(copy))
}

/// Suffixes that the entry ids of a message's copies have behind its id.
const COPIES: [&str; 2] = ["-copy", "-copy-2"];
