//! Stopping runs: those under way, those that wait, and those that run out of time.

use std::time::Duration;

use openclaw_agent::event::{RunEnd, RunEvent};
use openclaw_journal::api::{AbortReason, AbortTarget, RunOutcome, RunRecord, StopNotStored, TIME_IS_UP};
use openclaw_journal::job::Job;
use openclaw_journal::journal::Update;
use openclaw_protocol::RunId;
use tokio::time::Instant;

use super::Actor;
use crate::lane::command::StopResult;
use crate::lane::machine::{Input, LaneEffect};

impl Actor {
    /// Stops runs. The stop is stored first, so that a crash can't bring them back. On a disk that
    /// refuses, they are stopped all the same, as that may be the reason for the stop, and the
    /// caller is told.
    pub(super) async fn abort(&mut self, target: AbortTarget, reason: AbortReason) -> StopResult {
        let active = self.machine.active().cloned();
        let effects = self.machine.on(Instant::now(), Input::Abort { target, reason });
        let cancels = effects.iter().any(|effect| matches!(effect, LaneEffect::Cancel(_)));
        let is_stopped = cancels && self.claims_end();
        let mut ids: Vec<RunId> = effects
            .iter()
            .filter_map(|effect| match effect {
                LaneEffect::Cancel(_) => active.clone().filter(|_| is_stopped),
                LaneEffect::Withdraw(run_id, _) => self.can_withdraw(run_id).then(|| run_id.clone()),
                LaneEffect::Discard(job, _) => Some(job.row.run_id.clone()),
                LaneEffect::Start(_)
                | LaneEffect::StartAll(_)
                | LaneEffect::Drop(..)
                | LaneEffect::Cut(_)
                | LaneEffect::Steer(_)
                | LaneEffect::SteerCopy(_)
                | LaneEffect::Leave(_)
                | LaneEffect::Retract(_)
                | LaneEffect::Change(_)
                | LaneEffect::ChangeBeside(_)
                | LaneEffect::Aside(_) => None,
            })
            .collect();
        // A stop is stored for them too, but callers are not told of them.
        let mut untold = Vec::new();
        if let Some(running) = self.running.as_ref().filter(|_| cancels) {
            // Messages that are run together are stopped together, also before the journal knows
            // that they are.
            let others = running.job.row.others();
            match is_stopped {
                true => ids.extend(others),
                // Should the answer not get to the disk, a start does not ask for it once more.
                false => untold.extend(active.into_iter().chain(others)),
            }
            // So are those that the run took while it was under way; to callers they are that run.
            untold.extend(running.control.steering.taken());
        }
        // A message that a full queue has dropped has ended, although its summary is stopped.
        untold.extend(ids.extract_if(.., |run_id| self.parts.registry.record_of(run_id).is_some()));
        let all = [ids.as_slice(), &untold].concat();
        let stored = match all.is_empty() {
            true => Ok(true),
            false => self.parts.journal.update(Update::Abort(all, reason)).await,
        };
        // Clients know the run of a summary by the stream of its answer.
        let summary = self.running.as_ref().filter(|running| is_stopped && running.job.row.leads_cut());
        ids.extend(summary.and_then(|running| running.job.events_as.clone()));
        self.perform(effects).await;
        match stored {
            Ok(_) => Ok(ids),
            Err(error) => {
                tracing::warn!(%error, "a stopped run would be taken up again by a restart right now");
                Err(StopNotStored(error.to_string()))
            }
        }
    }

    pub(super) async fn cancel(&mut self, reason: AbortReason) {
        let Some(running) = &mut self.running else { return };
        // The first reason stays.
        let _ = running.control.reason.set(reason);
        running.control.cancel.cancel();
        let is_stop = !running.may_be_answered() && running.control.end.stop();
        if !is_stop || running.control.steering.behind_answer() > 0 {
            // How it ends is told then.
            return;
        }
        let broadcasts = match reason {
            AbortReason::Timeout => running.emitter.refused(TIME_IS_UP),
            AbortReason::Rpc | AbortReason::Stop | AbortReason::Interrupt => {
                running.emitter.aborted(reason.as_str())
            }
        };
        self.publish(broadcasts).await;
    }

    /// Claims the end of the run under way for a stop; `false` if it has a whole answer, which is
    /// its end.
    fn claims_end(&self) -> bool {
        self.running.as_ref().is_none_or(|running| running.may_be_answered() || running.control.end.stop())
    }

    fn can_withdraw(&self, run_id: &RunId) -> bool {
        self.running.as_ref().is_some_and(|running| running.control.steering.can_withdraw(run_id))
    }

    pub(super) async fn withdraw(&mut self, run_id: &RunId, reason: AbortReason) {
        let job = self.running.as_ref().and_then(|running| running.control.steering.withdraw(run_id, reason));
        if let Some(mut job) = job {
            job.stop(reason);
            self.announce_stopped(&job, reason).await;
            self.withdrawn.push(job);
        }
    }

    /// Announces that a waiting message is stopped: for clients that is its end. Its turn comes
    /// after the run under way; then it is written into the transcript and its row is closed.
    pub(super) async fn announce_stopped(&mut self, job: &Job, reason: AbortReason) {
        if job.may_be_answered() {
            self.deadlines.retain(|(_, run_id)| *run_id != job.row.run_id);
            return;
        }
        // The message's stream ends with this, not with the event of steering; unless that was
        // sent.
        let waiting = self.told.len();
        self.told.retain(|(told, _)| told.row.run_id != job.row.run_id);
        let was_to_be_told = job.events_as.is_some() || job.cut.is_some();
        let is_told = was_to_be_told && self.told.len() == waiting;
        let now = self.parts.clock.now_ms();
        let mut emitter = self.emitter(&Job { events_as: None, ..job.clone() });
        let broadcasts = match job.row.payload.facts.wants.command {
            _ if is_told => Vec::new(),
            true => emitter.aborted(reason.as_str()),
            false if reason == AbortReason::Timeout => {
                let end = RunEnd::Failed(TIME_IS_UP.to_owned());
                emitter.on(now, RunEvent::Ended { started_at: now, ended_at: now, end })
            }
            false => emitter.stopped_early(now, now, reason.as_str()),
        };
        let outcome = RunOutcome::Aborted { reason: reason.as_str().to_owned(), result: None };
        let record = RunRecord {
            run_id: job.row.run_id.clone(),
            started_at: None,
            ended_at: now,
            outcome,
            report: None,
        };
        self.publish(broadcasts).await;
        self.deadlines.retain(|(_, run_id)| *run_id != record.run_id);
        self.parts.registry.conclude(record);
    }

    /// Deadline at which a `chat.send` is stopped; `agent` requests have their run's own timeout
    /// only.
    pub(super) fn deadline_of(job: &Job) -> Option<Instant> {
        Some(job.since + job.row.payload.facts.deadline()?)
    }

    pub(super) async fn on_deadline(&mut self) {
        let now = Instant::now();
        let (due, left) = std::mem::take(&mut self.deadlines).into_iter().partition(|(at, _)| *at <= now);
        self.deadlines = left;
        for (_, run_id) in Vec::into_iter(due) {
            let running = self.running.as_ref().filter(|running| running.job.row.run_id == run_id);
            let waited = running.map_or(Duration::ZERO, |running| running.control.blocked.take());
            if !waited.is_zero() {
                self.deadlines.push((now + waited, run_id));
                continue;
            }
            // A run whose time was up is given its time anew by a start that takes it up again.
            let _ = self.abort(AbortTarget::Run(run_id), AbortReason::Timeout).await;
        }
    }
}
