//! Changes of a session by others than its runs: resets, deletions, cuts, new settings, injected
//! words. Each takes its place among the messages, so that no earlier message lands behind it.

use std::collections::HashMap;

use openclaw_journal::api::StopNotStored;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::machine::ChangeId;
use openclaw_runs::inject::RunBeside;

/// A change that is to be made to a session.
#[derive(Debug)]
pub(crate) struct SessionChange {
    pub(crate) kind: ChangeKind,
    /// Sends the floor to the caller that waits for its turn. A caller that gave up has dropped the
    /// other end.
    pub(crate) floor: oneshot::Sender<Result<Floor, StopNotStored>>,
}

/// Kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// End or cut of the conversation: all runs are stopped before.
    Conversation,
    /// New settings in the row: made beside a run, in one order with the commands.
    Settings,
    /// Added words: beside a run.
    Words,
}

/// Held while a session is changed.
#[derive(Debug)]
pub(crate) struct Floor {
    /// Run beside which it is held. Without one the lane does nothing until the floor is dropped;
    /// with one, only the run's end waits for that.
    pub(crate) run: Option<RunBeside>,
    _held: DropGuard,
}

impl SessionChange {
    /// Gives the floor, as it is the change's turn. The returned token is cancelled once the floor
    /// is given back.
    pub(super) fn begin(self, run: Option<RunBeside>) -> CancellationToken {
        let done = CancellationToken::new();
        // A change that was given up gives the floor back as it is dropped.
        let _ = self.floor.send(Ok(Floor { run, _held: done.clone().drop_guard() }));
        done
    }

    /// Refuses the change: the runs before it are stopped, but may come back.
    pub(super) fn refuse(self, error: StopNotStored) {
        // The caller may have gone.
        let _ = self.floor.send(Err(error));
    }
}

/// The changes of one lane.
#[derive(Debug, Default)]
pub(super) struct Changes {
    waiting: HashMap<ChangeId, SessionChange>,
    /// Cancelled once the one that is made while no run is under way is done.
    active: Option<CancellationToken>,
}

impl Changes {
    /// Keeps a change until its turn.
    pub(super) fn add(&mut self, id: ChangeId, change: SessionChange) {
        self.waiting.insert(id, change);
    }

    /// Takes out one that is made beside a run.
    pub(super) fn take(&mut self, id: ChangeId) -> Option<SessionChange> {
        self.waiting.remove(&id)
    }

    /// Begins this change while no run is under way.
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
