//! What is done to a session by somebody else than its runs: resets, deletions, cuts, new settings, injected words. Each takes its
//! place among the messages, so that nothing that was said before it lands behind it.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::machine::ChangeId;
use crate::api::StopNotStored;
use crate::inbox::{Queued, Row};
use crate::runner::inject::RunTranscript;

/// Something that is to be done to a session.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    /// Who waits for its turn. Whoever gave up has dropped the other end.
    pub(crate) floor: oneshot::Sender<Result<Floor, StopNotStored>>,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// The conversation ends or is cut: all runs are stopped before.
    Conversation,
    /// The row has new settings: beside a run, in one order with the commands.
    Settings,
    /// Words are added: beside a run.
    Words,
}

/// Held while a session is changed.
#[derive(Debug)]
pub(crate) struct Floor {
    /// The run it is held beside. Without one the lane does nothing until it is dropped; the run only does not end before.
    pub(crate) run: Option<RunBeside>,
    _held: DropGuard,
}

/// A run beside which something is done.
#[derive(Debug, Clone)]
pub(crate) struct RunBeside {
    pub(crate) row: Arc<Row<Queued>>,
    pub(crate) transcript: RunTranscript,
}

impl Change {
    /// It is its turn: gives the floor. What comes back is cancelled once the floor is given back.
    pub(super) fn begin(self, run: Option<RunBeside>) -> CancellationToken {
        let done = CancellationToken::new();
        // One that was given up gives the floor back as it is dropped.
        let _ = self.floor.send(Ok(Floor { run, _held: done.clone().drop_guard() }));
        done
    }

    /// It is not made: the runs before it are stopped, but may come back.
    pub(super) fn refuse(self, error: StopNotStored) {
        // Who asked may have gone.
        let _ = self.floor.send(Err(error));
    }
}

/// The changes of one lane.
#[derive(Debug, Default)]
pub(super) struct Changes {
    waiting: HashMap<ChangeId, Change>,
    /// Cancelled once the one that is made while no run is under way is done.
    active: Option<CancellationToken>,
}

impl Changes {
    /// Keeps a change until its turn.
    pub(super) fn add(&mut self, id: ChangeId, change: Change) {
        self.waiting.insert(id, change);
    }

    /// Takes out one that is made beside a run.
    pub(super) fn take(&mut self, id: ChangeId) -> Option<Change> {
        self.waiting.remove(&id)
    }

    /// It is this change's turn, and no run is under way.
    pub(super) fn begin(&mut self, id: ChangeId) {
        self.active = self.take(id).map(|change| change.begin(None));
    }

    /// Completes when the change under way is done, or was given up. Never when there is none; may be dropped while it waits.
    pub(super) async fn done(&mut self) {
        match &self.active {
            Some(done) => done.cancelled().await,
            None => std::future::pending().await,
        }
        self.active = None;
    }
}
