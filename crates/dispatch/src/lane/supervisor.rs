//! The lanes that exist: started on demand, gone when idle.

use std::collections::HashMap;
use std::sync::Arc;

use openclaw_journal::job::Job;
use openclaw_protocol::SessionKey;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::actor::Actor;
use super::command::{LaneCommand, Mailbox};
use super::parts::LaneParts;

/// Number of commands that may wait for a lane before their senders have to wait.
const MAILBOX: usize = 64;

/// Starts lanes and knows how to reach them.
pub(crate) struct Supervisor {
    parts: Arc<LaneParts>,
    /// Held while a message takes its place in its lane and in the inbox: both have one order.
    pub(crate) placing: Mutex<()>,
    lanes: Mutex<HashMap<SessionKey, mpsc::Sender<LaneCommand>>>,
    tasks: TaskTracker,
}

/// Place in a mailbox that is still free.
#[derive(Debug)]
pub(crate) struct Seat(mpsc::OwnedPermit<LaneCommand>);

impl Seat {
    /// Takes the place for a message that is on its way to disk. The lane waits for it, or for this to be dropped.
    pub(crate) fn take(self) -> oneshot::Sender<Job> {
        let (job, arriving) = oneshot::channel();
        self.0.send(LaneCommand::Arriving(arriving));
        job
    }
}

impl Supervisor {
    pub(crate) fn new(parts: Arc<LaneParts>) -> Self {
        Self { parts, placing: Mutex::default(), lanes: Mutex::default(), tasks: TaskTracker::new() }
    }

    /// Sends to a session's lane, starting it if need be. During shutdown the command may be
    /// dropped: a message is in the inbox by then, and a caller that waits for a reply sees it
    /// closed.
    pub(crate) async fn send(self: &Arc<Self>, key: &SessionKey, command: LaneCommand) {
        let lane = self.lane(key);
        if lane.send(command).await.is_err() {
            tracing::debug!(session = %key, "lane is gone: shutting down");
        }
    }

    /// A place at the end of a session's mailbox, starting its lane if need be. `None` during shutdown.
    pub(crate) async fn seat(self: &Arc<Self>, key: &SessionKey) -> Option<Seat> {
        self.lane(key).reserve_owned().await.ok().map(Seat)
    }

    /// Sends only to a lane that exists; an idle session has nothing to stop.
    pub(crate) async fn send_existing(&self, key: &SessionKey, command: LaneCommand) {
        let lane = self.lanes.lock().get(key).cloned();
        if let Some(lane) = lane {
            // A lane that ends now has nothing to stop either.
            let _ = lane.send(command).await;
        }
    }

    /// Removes a lane with nothing left to do; false while somebody holds a sender, because a
    /// command is on its way.
    pub(super) fn retire(&self, key: &SessionKey, mailbox: &Mailbox) -> bool {
        let mut lanes = self.lanes.lock();
        let is_abandoned = mailbox.is_abandoned();
        if is_abandoned {
            lanes.remove(key);
        }
        is_abandoned
    }

    /// Waits for every lane to end. Lanes end once nothing runs after the stop token, or after the kill token.
    pub(crate) async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The number of lanes that exist.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lanes.lock().len()
    }

    fn lane(self: &Arc<Self>, key: &SessionKey) -> mpsc::Sender<LaneCommand> {
        let mut lanes = self.lanes.lock();
        if let Some(lane) = lanes.get(key)
            && !lane.is_closed()
        {
            return lane.clone();
        }
        let (sender, mailbox) = mpsc::channel(MAILBOX);
        lanes.insert(key.clone(), sender.clone());
        let actor = Actor::new(key.clone(), Arc::clone(&self.parts), Arc::clone(self), mailbox);
        let span = tracing::info_span!(parent: None, "session", %key);
        self.tasks.spawn(Box::pin(actor.run()).instrument(span));
        sender
    }
}
