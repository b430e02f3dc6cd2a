//! State shared by everything that works on messages.

use std::sync::Arc;

use openclaw_delivery::outbox::Outbox;
use openclaw_journal::backlog::Backlog;
use openclaw_journal::clock::Clock;
use openclaw_journal::journal::Journal;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::events::Hub;
use crate::global_lanes::{GlobalLanes, LaneSizes};
use crate::registry::Registry;

/// Parts of one dispatcher.
pub struct SharedState {
    /// The time.
    pub clock: Clock,
    /// Bounds on waiting messages.
    pub backlog: Backlog,
    /// Durable storage of accepted messages, and of deliveries to chat platforms.
    pub journal: Arc<dyn Journal>,
    /// Deliveries to chat platforms.
    pub outbox: Outbox,
    /// Fan-out of events.
    pub hub: Hub,
    /// Runs that have not ended.
    pub registry: Registry,
    /// Lanes that all sessions share.
    pub global: GlobalLanes,
    /// Messages between the client and their lane.
    pub accepting: TaskTracker,
    /// Shows that somebody writes until all of an answer is out.
    pub showing: TaskTracker,
    /// Runs under way, until their lane is done with them.
    pub working: TaskTracker,
    /// No run is begun before the next start; all else goes on.
    pub holding: CancellationToken,
    /// No run is started any more.
    pub stopping: CancellationToken,
    /// Cancelled when runs stop where they are. Parent of every run's token.
    pub kill: CancellationToken,
}

impl SharedState {
    /// State of a dispatcher that has begun nothing.
    pub fn new(journal: Arc<dyn Journal>, sizes: LaneSizes, clock: Clock) -> Self {
        let (stopping, kill) = (CancellationToken::new(), CancellationToken::new());
        let outbox = Outbox::new(Arc::clone(&journal), clock.clone(), stopping.clone(), kill.clone());
        Self {
            clock,
            backlog: Backlog::default(),
            journal,
            outbox,
            hub: Hub::default(),
            registry: Registry::default(),
            global: GlobalLanes::new(sizes),
            accepting: TaskTracker::new(),
            showing: TaskTracker::new(),
            working: TaskTracker::new(),
            holding: CancellationToken::new(),
            stopping,
            kill,
        }
    }
}
