//! State that a run and its lane share.

use std::sync::OnceLock;

use openclaw_journal::api::{AbortReason, RunOutcome};
use openclaw_protocol::RunId;
use openclaw_runtime::events::Verbose;
use openclaw_runtime::global_lanes::RunWait;
use openclaw_sessions::transcript::Injector;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::attempt::MessageAttempt;
use super::end_claim::EndClaim;
use super::obstacle::BlockedTime;
use super::result;
use super::steering::SteeringQueue;

/// Controls by which a lane steers one run, and facts that it learns of the run meanwhile.
#[derive(Default)]
pub struct RunControl {
    /// Stops the run.
    pub cancel: CancellationToken,
    /// True if its message waited behind another run: its answer comes whole (spec `queue.md`
    /// §4.3).
    pub has_waited: bool,
    /// Cancelled once something else of the session waits for its end.
    pub overtaken: CancellationToken,
    /// Reason of the stop.
    pub reason: OnceLock<AbortReason>,
    /// Decides whether clients are told of an answer or of a stop.
    pub end: EndClaim,
    /// Text of the whole answer with which the run ends, although it was stopped: it was at a
    /// message behind that answer.
    pub answer_before_stop: OnceLock<String>,
    /// Messages of the user that come meanwhile.
    pub steering: SteeringQueue,
    /// Verbosity of the run's tool events for clients; set before the run begins.
    pub verbose: OnceLock<Verbose>,
    /// Lets the lane write into the run's transcript, from when the run has it open until it stores its result.
    pub transcript: watch::Sender<Option<Injector>>,
    /// Progress of this attempt.
    pub attempt: MessageAttempt,
    /// First wait of the run, if that was long.
    pub lane_wait: OnceLock<RunWait>,
    /// Time for which it could not begin.
    pub blocked: BlockedTime,
}

impl RunControl {
    /// Makes the control of a run that is about to begin.
    pub fn new(cancel: CancellationToken, has_waited: bool) -> Self {
        Self { cancel, has_waited, ..Self::default() }
    }

    /// Returns how a message ends that the run took: as the run, unless the run was stopped at it,
    /// behind an answer.
    pub fn end_of_taken(&self, run_id: &RunId, outcome: &RunOutcome) -> RunOutcome {
        match self.answer_before_stop.get().is_some() && self.steering.is_unanswered(run_id) {
            true => result::aborted(self.reason.get().copied().unwrap_or(AbortReason::Stop), None),
            false => outcome.clone(),
        }
    }
}
