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
    /// From when on its deadline counts: acceptance, or the start that recovered it. By the clock that nobody sets.
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
        }
    }

    /// Notes that it was stopped while it waited: its turn only closes it.
    pub(crate) fn stop(&mut self, reason: AbortReason) {
        let abort = self.row.abort.or(Some(reason));
        self.row = Arc::new(Row { abort, ..Row::clone(&self.row) });
        self.end_announced = true;
    }
}
