//! State shared by everything that works on messages.

use std::sync::{Arc, OnceLock};

use openclaw_journal::backlog::Backlog;
use openclaw_journal::clock::Clock;
use openclaw_journal::journal::Journal;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::arrivals::offline::OldWords;
use crate::arrivals::{FollowGroup, SilentGroups};
use crate::events::Hub;
use crate::global_lanes::{GlobalLanes, LaneSizes};
use crate::outbox::Outbox;
use crate::registry::Registry;

/// Parts of one dispatcher.
pub(crate) struct Shared {
    /// The time.
    pub(crate) clock: Clock,
    /// Bounds on waiting messages.
    pub(crate) backlog: Backlog,
    /// Durable storage of accepted messages, and of deliveries to chat platforms.
    pub(crate) journal: Arc<dyn Journal>,
    /// Deliveries to chat platforms.
    pub(crate) outbox: Outbox,
    /// Fan-out of events.
    pub(crate) hub: Hub,
    /// Runs that have not ended.
    pub(crate) registry: Registry,
    /// Lanes that all sessions share.
    pub(crate) global: GlobalLanes,
    /// Messages between the client and their lane.
    pub(crate) accepting: TaskTracker,
    /// Shows that somebody writes until all of an answer is out.
    pub(crate) showing: TaskTracker,
    /// Lets the configuration follow a group that has got another id.
    pub(crate) follow_group: OnceLock<FollowGroup>,
    /// Groups in which nobody is heard.
    pub(crate) silent_groups: SilentGroups,
    /// Direct chats with words that were too old to be answered.
    pub(crate) old_words: OldWords,
    /// Runs under way, until their lane is done with them.
    pub(crate) working: TaskTracker,
    /// No run is begun before the next start; all else goes on.
    pub(crate) holding: CancellationToken,
    /// No run is started any more.
    pub(crate) stopping: CancellationToken,
    /// Cancelled when runs stop where they are. Parent of every run's token.
    pub(crate) kill: CancellationToken,
}

impl Shared {
    pub(crate) fn new(journal: Arc<dyn Journal>, sizes: LaneSizes, clock: Clock) -> Self {
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
            follow_group: OnceLock::new(),
            silent_groups: SilentGroups::default(),
            old_words: OldWords::default(),
            working: TaskTracker::new(),
            holding: CancellationToken::new(),
            stopping,
            kill,
        }
    }
}
