//! Parts that lanes work with.

use std::sync::Arc;

use openclaw_delivery::outbox::Outbox;
use openclaw_journal::clock::Clock;
use openclaw_journal::journal::Journal;
use openclaw_runs::Runner;
use openclaw_runs::compaction::AfterRuns;
use openclaw_runs::ending::RunEnds;
use openclaw_runs::rows::SessionRows;
use openclaw_runs::stored_messages::StoredMessages;
use openclaw_runs::waiting::WaitingSigns;
use openclaw_runtime::events::Hub;
use openclaw_runtime::registry::Registry;
use openclaw_runtime::stopping::Stopping;
use tokio_util::task::TaskTracker;

use super::aside::AsideParts;

/// Parts that lanes work with.
pub(crate) struct LaneParts {
    pub(crate) rows: Arc<SessionRows>,
    pub(crate) messages: Arc<StoredMessages>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Clock,
    pub(crate) outbox: Outbox,
    /// Fan-out of events.
    pub(crate) hub: Arc<Hub>,
    /// Runs that have not ended.
    pub(crate) registry: Arc<Registry>,
    pub(crate) runner: Arc<Runner>,
    pub(crate) after_runs: Arc<AfterRuns>,
    pub(crate) asides: Arc<AsideParts>,
    pub(crate) signs: Arc<WaitingSigns>,
    pub(crate) ends: Arc<RunEnds>,
    /// Runs under way, until their lane is done with them.
    pub(crate) working: TaskTracker,
    pub(crate) stops: Stopping,
}
