//! Runs of a lane, from their start until clients have heard the end.

use std::sync::Arc;
use std::time::Duration;

use openclaw_agent::event::RunEvent;
use openclaw_journal::api::{RunOutcome, RunRecord};
use openclaw_journal::beat::BeatChat;
use openclaw_journal::inbox::{Gathering, InboxRow};
use openclaw_journal::job::Job;
use openclaw_runtime::events::Emitter;
use openclaw_runtime::global_lanes::{RunWait, long_wait};
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio::time::Instant;
use tracing::Instrument;

use super::{Actor, LaneNotice};
use crate::lane::machine::{Batch, Input};
use crate::lane::running::CurrentRun;
use openclaw_runs::compaction::AfterRun;
use openclaw_runs::{FinalReplies, RunControl, RunEnding};

/// Number of events that a run may be ahead of its lane.
const EVENTS: usize = 32;
/// Time that a run may take to let go after it was told to stop for a shutdown.
const LET_GO: Duration = Duration::from_secs(2);

impl Actor {
    pub(super) async fn start(&mut self, job: Job) {
        let (events_in, events) = mpsc::channel(EVENTS);
        let control = Arc::new(RunControl::new(self.parts.stops.kill.child_token(), job.has_waited));
        if self.machine.has_waiting() {
            control.overtaken.cancel();
        }
        if let Some(waited) = self.long_wait(&job) {
            // Nothing else has touched it.
            let _ = control.lane_wait.set(RunWait::Session(waited));
        }
        let emitter = self.emitter(&job);
        let (runner, work, shared_control) =
            (Arc::clone(&self.parts.runner), job.clone(), Arc::clone(&control));
        let span = tracing::info_span!("message", run_id = %job.row.run_id);
        let working = Box::pin(async move { runner.work(&work, &shared_control, events_in).await });
        self.tasks.spawn(working.instrument(span));
        let working = self.parts.working.token();
        self.running = Some(CurrentRun { job, control, events, emitter, begun: false, over: None, working });
    }

    /// Returns the time that a message waited behind another run, if it is worth telling. A message
    /// that is only closed, or answered by the gateway itself, waited for no run of its own.
    fn long_wait(&self, job: &Job) -> Option<Duration> {
        let begins = job.row.abort.is_none() && !job.row.payload.facts.wants.is_light();
        let lane = (job.has_waited && begins).then(|| format!("session:{}", self.key))?;
        long_wait(job.since, &lane, self.machine.waiting())
    }

    /// Starts one run for all messages that waited. The `chat` streams of all but the leading message end empty (decision 7).
    pub(super) async fn start_all(&mut self, batch: Batch<Job>) {
        let Batch { leader, items, cut, dropped, answer_as } = batch;
        let is_streamed = |job: &&Job| job.row.payload.facts.is_clients_chat() && job.events_as.is_none();
        self.told.extend(items.iter().filter(is_streamed).map(|job| (job.clone(), LaneNotice::Absorbed)));
        let rows = |jobs: Vec<Job>| jobs.into_iter().map(|job| job.row).collect::<Vec<_>>();
        let leads_cut = leader.cut.is_some();
        let place = |job: &Job| job.row.payload.facts.place.as_ref().map(|place| place.address.clone());
        let elsewhere = answer_as.filter(|newest| place(newest) != place(&leader));
        let answer_to = match &elsewhere {
            Some(newest) => self.parts.messages.origin_of(&newest.row).await,
            None => None,
        };
        let gathering =
            Gathering { items: rows(items), cut: rows(cut), dropped, leads_cut, answer_to, is_stored: false };
        let row = InboxRow { gathering: Some(Arc::new(gathering)), ..InboxRow::clone(&leader.row) };
        self.start(Job { row: Arc::new(row), ..leader }.with_stream_of_summary()).await;
    }

    pub(super) fn emitter(&self, job: &Job) -> Emitter {
        let run_id = job.events_as.as_ref().unwrap_or(&job.row.run_id);
        let emitter = Emitter::new(run_id.clone(), job.row.session_key.clone());
        match job.row.payload.facts.beat {
            Some(BeatChat::Alerts | BeatChat::Nothing) => emitter.without_deltas(),
            Some(BeatChat::All) | None => emitter,
        }
    }

    pub(super) async fn on_event(&mut self, event: RunEvent) {
        let now = self.parts.clock.now_ms();
        let Some(running) = &mut self.running else { return };
        let streaming = match &event {
            RunEvent::Asking => {
                running.control.attempt.prepared(&*self.parts.journal, &running.job.row.run_id).await;
                None
            }
            RunEvent::Started { .. } => {
                running.emitter.set_verbose(running.control.verbose.get().copied().unwrap_or_default());
                Some(true)
            }
            RunEvent::CompactionEnd { .. } => Some(true),
            RunEvent::CompactionStart => {
                // A model is asked for a summary.
                running.control.attempt.prepared(&*self.parts.journal, &running.job.row.run_id).await;
                Some(false)
            }
            RunEvent::Assistant { .. }
            | RunEvent::Retry(_)
            | RunEvent::Steered
            | RunEvent::Quotes(_)
            | RunEvent::Attaches(_)
            | RunEvent::Thinking(_)
            | RunEvent::TextEnds
            | RunEvent::Thought(_)
            | RunEvent::ToolStart { .. }
            | RunEvent::ToolUpdate { .. }
            | RunEvent::ToolResult { .. }
            | RunEvent::Ended { .. } => None,
        };
        if matches!(
            event,
            RunEvent::ToolStart { .. } | RunEvent::ToolUpdate { .. } | RunEvent::ToolResult { .. }
        ) && !running.begun
        {
            // The call of a skill's command, which is no run.
            running.emitter.set_verbose(running.control.verbose.get().copied().unwrap_or_default());
        } else {
            running.begun = true;
        }
        let is_under_way = running.over.is_none();
        if matches!(event, RunEvent::Ended { .. }) {
            // Clients hear of it once it is stored.
            self.machine.on(Instant::now(), Input::Closing);
            return;
        }
        let broadcasts = running.emitter.on(now, event);
        if let Some(streaming) = streaming.filter(|_| is_under_way) {
            self.on_input(Input::Streaming(streaming)).await;
        }
        self.publish(broadcasts).await;
    }

    pub(super) async fn on_joined(&mut self, ending: Result<RunEnding, JoinError>) {
        while let Some(event) = self.running.as_mut().and_then(|running| running.events.try_recv().ok()) {
            self.on_event(event).await;
        }
        let Some(mut running) = self.running.take() else { return };
        let now = self.parts.clock.now_ms();
        let mut after = None;
        if let Some(untaken) = running.over.take() {
            if let Err(error) = &ending {
                tracing::error!(session = %self.key, %error, "a compaction panicked");
            }
            drop(running);
            return self.ended(untaken).await;
        }
        let (record, broadcasts) = match ending {
            Ok(RunEnding::Done(record)) => {
                let broadcasts = running.last_events(&record, now);
                (record, broadcasts)
            }
            Ok(RunEnding::Full(record, full)) => {
                let broadcasts = running.last_events(&record, now);
                after = Some(full);
                (record, broadcasts)
            }
            // Only what comes after a run ends so.
            Ok(RunEnding::Compacted) => return self.ended(Vec::new()).await,
            Ok(RunEnding::Answered(record, said)) => (record, running.emitter.answered(said.as_deref())),
            // An answer that is not sent yet is sent by the next start.
            Ok(RunEnding::Interrupted | RunEnding::Unsent) => return self.interrupted(),
            Err(error) => {
                let record = self.crashed(&running.job, &error).await;
                let broadcasts = running.last_events(&record, now);
                (record, broadcasts)
            }
        };
        if !running.job.end_announced {
            self.publish(broadcasts).await;
        }
        for job in running.control.steering.drain_taken() {
            let run_id = job.row.run_id.clone();
            let outcome = running.control.end_of_taken(&run_id, &record.outcome);
            self.settle(RunRecord { run_id, outcome, ..record.clone() });
        }
        for run_id in running.job.row.others() {
            self.settle(RunRecord { run_id, ..record.clone() });
        }
        // Messages that a run has read without answering anything are not answered.
        let mut read = running.control.steering.drain_read();
        if running.control.answer_before_stop.get().is_some() {
            read.retain(|run_id| !running.control.steering.is_unanswered(run_id));
        }
        let is_answered = matches!(record.outcome, RunOutcome::Ok { .. });
        self.settle(record);
        if is_answered {
            self.on_input(Input::Read(read)).await;
        }
        let mut untaken = std::mem::take(&mut self.withdrawn);
        for mut job in running.control.steering.drain_untaken() {
            if let Some(reason) = running.control.steering.stopped(&job.row.run_id) {
                job.stop(reason);
                self.announce_stopped(&job, reason).await;
            }
            untaken.push(job);
        }
        if let Some(after) = after {
            return self.go_on_after(running, *after, untaken);
        }
        // Work beside the run need not wait for its transcript any more.
        drop(running);
        self.ended(untaken).await;
    }

    /// Does the work that is left after a run whose end every client has heard, such as compaction.
    /// Event numbers go on from the run's.
    fn go_on_after(&mut self, run: CurrentRun, after: AfterRun, untaken: Vec<Job>) {
        let (events_in, events) = mpsc::channel(EVENTS);
        let control = Arc::new(RunControl::new(self.parts.stops.kill.child_token(), false));
        let (after_runs, shared_control) = (Arc::clone(&self.parts.after_runs), Arc::clone(&control));
        let CurrentRun { job, emitter, working: token, .. } = run;
        let span = tracing::info_span!("compaction", run_id = %job.row.run_id);
        let working = async move {
            Box::pin(after_runs.compact(after, &shared_control, events_in)).await;
            RunEnding::Compacted
        };
        self.tasks.spawn(working.instrument(span));
        let over = Some(untaken);
        self.running = Some(CurrentRun { job, control, events, emitter, begun: true, over, working: token });
    }

    /// Ends the run's turn once no work is left for it: whatever waits has its turn.
    async fn ended(&mut self, untaken: Vec<Job>) {
        // Commands to the gateway that came meanwhile hold for whatever comes next.
        self.asides.overtake();
        while let Some(step) = self.asides.drained(&self.parts.asides).await {
            self.on_aside(step).await;
        }
        self.on_input(Input::Ended { untaken }).await;
    }

    /// The run let go for a shutdown; its message is worked on after the next start.
    pub(super) fn interrupted(&mut self) {
        self.machine.on(Instant::now(), Input::Stop);
        self.machine.on(Instant::now(), Input::Ended { untaken: Vec::new() });
    }

    /// Returns the record of a run that panicked. A panic ends its run alone.
    async fn crashed(&self, job: &Job, error: &JoinError) -> RunRecord {
        tracing::error!(run_id = %job.row.run_id, session = %self.key, %error, "a run panicked");
        let message = "The run ended unexpectedly; the gateway's log says more.".to_owned();
        let outcome = RunOutcome::Error { message, result: None };
        let run_id = job.row.run_id.clone();
        let record = RunRecord {
            run_id,
            started_at: Some(job.row.accepted_at),
            ended_at: self.parts.clock.now_ms(),
            outcome,
            report: None,
        };
        self.parts.ends.finish(&job.row, &record, FinalReplies::default()).await;
        record
    }

    /// Closes the run for everybody who waits for its end.
    pub(super) fn settle(&mut self, record: RunRecord) {
        self.deadlines.retain(|(_, run_id)| *run_id != record.run_id);
        self.parts.registry.finish(record);
    }

    /// Lets go of everything when the gateway can't wait any longer: runs stop where they are, as
    /// if the process had been killed, and go on after the next start. Their token is a child of
    /// the kill token, so that their tools are told to end.
    pub(super) async fn let_go(mut self) {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(LET_GO, all).await.is_err() {
            tracing::warn!(session = %self.key, "a run did not let go and is dropped");
        }
    }
}
