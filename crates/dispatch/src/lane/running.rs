//! The run a lane has under way.

use std::sync::Arc;

use openclaw_agent::event::{RunEnd, RunEvent};
use openclaw_journal::api::{Broadcast, RunOutcome, RunRecord};
use openclaw_journal::beat::{BeatAnswer, BeatChat};
use openclaw_journal::job::Job;
use openclaw_runtime::events::Emitter;
use tokio::sync::mpsc;
use tokio_util::task::task_tracker::TaskTrackerToken;

use openclaw_runs::RunControl;

/// The run under way.
pub(super) struct CurrentRun {
    pub(super) job: Job,
    pub(super) control: Arc<RunControl>,
    pub(super) events: mpsc::Receiver<RunEvent>,
    pub(super) emitter: Emitter,
    pub(super) begun: bool,
    /// Steered messages of a run that is over, while some work is left after it.
    pub(super) over: Option<Vec<Job>>,
    /// Token that a restart waits for.
    pub(super) working: TaskTrackerToken,
}

impl CurrentRun {
    /// True if an earlier process may have answered it, which shows once it is taken up.
    pub(super) fn may_be_answered(&self) -> bool {
        !self.begun && self.job.may_be_answered()
    }

    /// Returns the last events that clients get of a run, made from the stored record. `now` is in
    /// Unix milliseconds.
    pub(super) fn last_events(&mut self, record: &RunRecord, now: i64) -> Vec<Broadcast> {
        let is_chat = self.job.row.payload.is_chat();
        let is_refused = record.started_at.is_none();
        if let Some(answer) = self.control.answer_before_stop.get() {
            return self.emitter.ended_with_answer(now, record.ended_at, answer);
        }
        let end = match &record.outcome {
            RunOutcome::Ok { .. } => RunEnd::Completed,
            // The client of an `agent` request hears it in the answer (golden `gw-agent-and-wait`, run-agent-4).
            RunOutcome::Error { .. } if is_refused && !is_chat => return Vec::new(),
            RunOutcome::Error { message, .. } if is_refused => return self.emitter.refused(message),
            RunOutcome::Error { message, .. } => RunEnd::Failed(message.clone()),
            RunOutcome::Aborted { reason, .. } if self.job.row.payload.facts.wants.command => {
                return self.emitter.aborted(reason);
            }
            RunOutcome::Aborted { reason, .. } => match record.outcome.failure() {
                // The run ran out of time (decision 50).
                Some(message) => RunEnd::Failed(message.to_owned()),
                None if !self.begun => return self.emitter.stopped_early(now, record.ended_at, reason),
                None => RunEnd::Aborted,
            },
        };
        if matches!(self.job.row.payload.facts.beat, Some(BeatChat::Alerts | BeatChat::Nothing)) {
            return self.end_of_beat(record, now, &end);
        }
        let started_at = record.started_at.unwrap_or(record.ended_at);
        self.emitter.on(now, RunEvent::Ended { started_at, ended_at: record.ended_at, end })
    }
}

impl CurrentRun {
    /// Returns the last events of a heartbeat: clients see an alert as a chat, if that is wanted.
    fn end_of_beat(&mut self, record: &RunRecord, now: i64, end: &RunEnd) -> Vec<Broadcast> {
        let is_shown = self.job.row.payload.facts.beat == Some(BeatChat::Alerts);
        let text = match BeatAnswer::of(&record.outcome).filter(|_| is_shown) {
            Some(BeatAnswer::Alert { text, .. }) => Some(text),
            Some(BeatAnswer::Empty | BeatAnswer::Acknowledged) | None => None,
        };
        self.emitter.ended_with(now, record.ended_at, end, text.as_deref())
    }
}

/// Waits for the next event of the run; never returns if there is no run, or if it has no more
/// events.
pub(super) async fn next_event(running: &mut Option<CurrentRun>) -> RunEvent {
    let Some(running) = running else { return std::future::pending().await };
    match running.events.recv().await {
        Some(event) => event,
        None => std::future::pending().await,
    }
}
