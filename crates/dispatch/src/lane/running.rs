//! The run a lane has under way.

use std::sync::Arc;

use openclaw_agent::event::{RunEnd, RunEvent};
use tokio::sync::mpsc;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::api::{AbortReason, Broadcast, RunOutcome, RunRecord};
use crate::beat::{BeatAnswer, BeatChat};
use crate::events::Emitter;
use crate::job::Job;
use crate::runner::RunControl;

/// The run under way.
pub(super) struct Running {
    pub(super) job: Job,
    pub(super) control: Arc<RunControl>,
    pub(super) events: mpsc::Receiver<RunEvent>,
    pub(super) emitter: Emitter,
    pub(super) begun: bool,
    /// The steered messages of a run that is over, and after which something is still done.
    pub(super) over: Option<Vec<Job>>,
    /// A restart waits for it.
    pub(super) working: TaskTrackerToken,
}

impl Running {
    /// What clients hear last of a run, from what was stored. `now` is in Unix milliseconds.
    pub(super) fn last_events(&mut self, record: &RunRecord, now: i64) -> Vec<Broadcast> {
        let is_chat = self.job.row.payload.is_chat();
        let is_refused = record.started_at.is_none();
        let end = match &record.outcome {
            RunOutcome::Ok { .. } => RunEnd::Completed,
            // The client of an `agent` request hears it in the answer (golden `gw-agent-and-wait`, run-agent-4).
            RunOutcome::Error { .. } if is_refused && !is_chat => return Vec::new(),
            RunOutcome::Error { message, .. } if is_refused => return self.emitter.refused(message),
            RunOutcome::Error { message, .. } => RunEnd::Failed(message.clone()),
            RunOutcome::Aborted { reason, .. } if self.job.row.payload.facts.wants.command => {
                return self.emitter.aborted(reason);
            }
            RunOutcome::Aborted { reason, .. } if !self.begun => {
                return self.emitter.stopped_early(now, record.ended_at, reason);
            }
            RunOutcome::Aborted { reason, .. } if reason == AbortReason::Timeout.as_str() => RunEnd::TimedOut,
            RunOutcome::Aborted { .. } => RunEnd::Aborted,
        };
        if matches!(self.job.row.payload.facts.beat, Some(BeatChat::Alerts | BeatChat::Nothing)) {
            return self.end_of_beat(record, now, &end);
        }
        let started_at = record.started_at.unwrap_or(record.ended_at);
        self.emitter.on(now, RunEvent::Ended { started_at, ended_at: record.ended_at, end })
    }
}

impl Running {
    /// Of a heartbeat clients see what needs attention as a chat, where that is wanted.
    fn end_of_beat(&mut self, record: &RunRecord, now: i64, end: &RunEnd) -> Vec<Broadcast> {
        let is_shown = self.job.row.payload.facts.beat == Some(BeatChat::Alerts);
        let text = match BeatAnswer::of(&record.outcome).filter(|_| is_shown) {
            Some(BeatAnswer::Alert { text, .. }) => Some(text),
            Some(BeatAnswer::Empty | BeatAnswer::Acknowledged) | None => None,
        };
        self.emitter.ended_with(now, record.ended_at, end, text.as_deref())
    }
}

/// The next event of the run, if there is a run and it still has any.
pub(super) async fn next_event(running: &mut Option<Running>) -> RunEvent {
    let Some(running) = running else { return std::future::pending().await };
    match running.events.recv().await {
        Some(event) => event,
        None => std::future::pending().await,
    }
}
