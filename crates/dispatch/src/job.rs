//! A message on its way through a lane.

use std::sync::Arc;

use openclaw_protocol::RunId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::AbortReason;
use crate::inbox::{Queued, Row};

/// A message and what its lane notes of it.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// As it lies in the inbox, but for a payload that is big.
    pub(crate) row: Arc<Row<Queued>>,
    /// Opens once the acknowledgement is queued to the client.
    pub(crate) gate: CancellationToken,
    /// From when its deadline counts: acceptance, or the start that recovered it. No clock that is set changes how long ago that is.
    pub(crate) since: Instant,
    /// The run id its events carry when its own is used up: a steered message that the run did not take.
    pub(crate) events_as: Option<RunId>,
    /// Its clients have heard its end already: it was stopped while it waited, or answered beside a run.
    pub(crate) end_announced: bool,
    /// Its place in the order of acceptance, given by the lane.
    pub(crate) order: u64,
    /// Whether it is done beside a run, as the lane found.
    pub(crate) aside: bool,
    /// Whether it waited behind a run of its session.
    pub(crate) has_waited: bool,
    /// A full queue has dropped it as the so-manyth, and the agent is to be told.
    pub(crate) cut: Option<u64>,
    /// Whether it is a copy for the run under way of a message that has a run of its own.
    pub(crate) is_copy: bool,
}

impl Job {
    pub(crate) fn new(row: Arc<Row<Queued>>, gate: CancellationToken) -> Self {
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
            is_copy: false,
        }
    }

    /// The entries it may have where it is steered into a run, in the order in which they are used. That of a copy is never its own
    /// message's entry, which that is known by after a crash; it begins with the message's id, as that of any entry of it.
    pub(crate) fn steered_entries(&self) -> [String; 2] {
        let Row { entry_id, fresh_id, .. } = &*self.row;
        match self.is_copy {
            true => copies_of(fresh_id.as_str()),
            false => [entry_id.clone(), fresh_id.to_string()],
        }
    }

    /// Notes that it was stopped while it waited: its turn only closes it.
    pub(crate) fn stop(&mut self, reason: AbortReason) {
        let abort = self.row.abort.or(Some(reason));
        self.row = Arc::new(Row { abort, ..Row::clone(&self.row) });
        self.end_announced = true;
    }
}

/// The entries that the copy of a message may have for the run under way ([`Job::is_copy`]).
pub(crate) fn copies_of(fresh_id: &str) -> [String; 2] {
    COPIES.map(|copy| format!("{fresh_id}{copy}"))
}

/// Whether an entry is the copy of a message.
pub(crate) fn is_copy(entry_id: &str) -> bool {
    COPIES.iter().any(|copy| entry_id.ends_with(copy))
}

/// What stands behind the id of a message in those of its copies.
const COPIES: [&str; 2] = ["-copy", "-copy-2"];
