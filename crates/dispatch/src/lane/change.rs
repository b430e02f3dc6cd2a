//! What is done to a session while no run of it is under way: resets, deletions, cuts. Each takes its turn among the messages,
//! so that nothing that was said before it lands behind it.

use std::collections::HashMap;

use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::machine::ChangeId;

/// Held while a session is changed: its lane does nothing until it is dropped.
#[derive(Debug)]
pub(crate) struct Floor {
    _held: DropGuard,
}

/// The changes of one lane.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Who waits for the floor. Whoever gave up has dropped the other end.
    waiting: HashMap<ChangeId, oneshot::Sender<Floor>>,
    /// How many there were.
    count: u64,
    /// Cancelled once the floor is given back.
    active: Option<CancellationToken>,
}

impl Changes {
    /// Keeps a change until its turn.
    pub(super) fn add(&mut self, change: oneshot::Sender<Floor>) -> ChangeId {
        self.count += 1;
        let id = ChangeId(self.count);
        self.waiting.insert(id, change);
        id
    }

    /// It is this change's turn.
    pub(super) fn begin(&mut self, id: ChangeId) {
        let done = CancellationToken::new();
        let floor = Floor { _held: done.clone().drop_guard() };
        if let Some(change) = self.waiting.remove(&id) {
            // One that was given up gives the floor back as it is dropped.
            let _ = change.send(floor);
        }
        self.active = Some(done);
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
