//! What a run and its lane share.

use std::sync::OnceLock;

use openclaw_sessions::transcript::Injector;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::attempt::Attempt;
use super::obstacle::BlockedTime;
use super::steering::SteeringQueue;
use crate::api::AbortReason;
use crate::events::Verbose;
use crate::global_lanes::Wait;

/// How a lane steers one run, and what it learns of it meanwhile.
#[derive(Default)]
pub(crate) struct RunControl {
    /// Stops the run.
    pub(crate) cancel: CancellationToken,
    /// Whether its message waited behind another run: its answer comes whole (spec `queue.md` §4.3).
    pub(crate) has_waited: bool,
    /// Cancelled once something else of the session waits for its end.
    pub(crate) overtaken: CancellationToken,
    /// Who stopped it.
    pub(crate) reason: OnceLock<AbortReason>,
    /// What the user says meanwhile.
    pub(crate) steering: SteeringQueue,
    /// How much of the run's tool events clients see; set before the run begins.
    pub(crate) verbose: OnceLock<Verbose>,
    /// Lets the lane write into the run's transcript, from when the run has it open until it stores its result.
    pub(crate) transcript: watch::Sender<Option<Injector>>,
    /// How far this attempt is.
    pub(crate) attempt: Attempt,
    /// What it waited for first, where that was long.
    pub(crate) lane_wait: OnceLock<Wait>,
    /// How long it could not begin.
    pub(crate) blocked: BlockedTime,
}

impl RunControl {
    pub(crate) fn new(cancel: CancellationToken, has_waited: bool) -> Self {
        Self { cancel, has_waited, ..Self::default() }
    }
}
