//! What every lane works with.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backlog::Backlog;
use crate::clock::Clock;
use crate::events::Hub;
use crate::inbox::Inbox;
use crate::journal::Journal;
use crate::lane::{GlobalLanes, Supervisor};
use crate::outbox::Outboxes;
use crate::registry::Registry;
use crate::runner::{Runner, Suspects};

/// One dispatcher's parts.
pub(crate) struct Shared {
    /// The time.
    pub(crate) clock: Clock,
    /// How much may wait.
    pub(crate) backlog: Backlog,
    /// What must not be forgotten.
    pub(crate) journal: Arc<dyn Journal>,
    /// Accepted messages.
    pub(crate) inbox: Inbox,
    /// What is to be sent to chat platforms.
    pub(crate) outboxes: Outboxes,
    /// Where events go.
    pub(crate) hub: Hub,
    /// Runs that have not ended.
    pub(crate) registry: Registry,
    /// Lanes that all sessions share.
    pub(crate) global: GlobalLanes,
    /// Lanes of the sessions.
    pub(crate) lanes: Supervisor,
    /// Held while a message takes its place in its lane and in the inbox: both have one order.
    pub(crate) placing: Mutex<()>,
    /// Messages between the client and their lane.
    pub(crate) accepting: TaskTracker,
    /// Messages that may end the process.
    pub(crate) suspects: Suspects,
    /// What a run is made of.
    pub(crate) runner: Runner,
    /// No run is started any more.
    pub(crate) stopping: CancellationToken,
    /// What runs stops where it is. Parent of every run's token.
    pub(crate) kill: CancellationToken,
}
