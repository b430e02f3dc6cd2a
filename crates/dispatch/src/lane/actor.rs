//! Actor of a session lane: carries out the decisions of the machine, and is the only task that
//! runs the session's agent, writes its transcript and publishes its events.

mod dropped;
mod runs;
mod stops;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use openclaw_agent::event::RunEvent;
use openclaw_config::settings::QueueMode;
use openclaw_journal::api::{AbortReason, AbortTarget, Broadcast, RunRecord};
use openclaw_journal::job::Job;
use openclaw_journal::journal::Update;
use openclaw_journal::queue::DropRule;
use openclaw_protocol::{RunId, SessionKey};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::aside::{Aside, AsideStep, Asides};
use super::change::{ChangeKind, Changes, SessionChange};
use super::command::{Arrival, LaneCommand, Mailbox};
use super::machine::{ChangeId, Input, LaneEffect, Machine};
use super::parts::LaneParts;
use super::running::{CurrentRun, next_event};
use super::supervisor::Supervisor;
use openclaw_runs::RunEnding;
use openclaw_runs::command;
use openclaw_runs::inject::RunBeside;
use openclaw_runs::unanswered::take_back_paced;

/// Time for which an idle lane waits for a sender who seemed about to send.
const LINGER: Duration = Duration::from_secs(1);

pub(super) struct Actor {
    key: SessionKey,
    parts: Arc<LaneParts>,
    lanes: Arc<Supervisor>,
    mailbox: Mailbox,
    machine: Machine<Job>,
    running: Option<CurrentRun>,
    tasks: JoinSet<RunEnding>,
    deadlines: Vec<(Instant, RunId)>,
    /// Number of messages and changes that came so far.
    arrived: u64,
    changes: Changes,
    /// Steered messages that were taken back from the run, or never reached it: their turn comes after it.
    withdrawn: Vec<Job>,
    /// Messages whose outcome their clients are to hear, and which may not have their
    /// acknowledgement yet, oldest first.
    told: VecDeque<(Job, LaneNotice)>,
    /// Tasks that show the typing indicator for messages that have to wait.
    showing: JoinSet<()>,
    /// Messages to the gateway itself while a run is under way.
    asides: Asides,
}

/// Event that clients get for a message that has no run of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LaneNotice {
    /// The message is part of the run under way.
    Absorbed,
    /// The message was dropped.
    Dropped(DropRule),
}

enum LaneStep {
    Command(LaneCommand),
    Event(RunEvent),
    Joined(Result<RunEnding, JoinError>),
    Deadline,
    /// The oldest message whose client is to hear its outcome is acknowledged.
    Acknowledged,
    /// No message came for long enough.
    Quiet,
    Shown,
    /// A message to the gateway is a step further.
    Aside(AsideStep),
    /// The change under way is done.
    Changed,
    Hold,
    Stop,
    Idle,
    Kill,
    Unreachable,
}

impl Actor {
    pub(super) fn new(
        key: SessionKey,
        parts: Arc<LaneParts>,
        lanes: Arc<Supervisor>,
        commands: mpsc::Receiver<LaneCommand>,
    ) -> Self {
        Self {
            key,
            parts,
            lanes,
            mailbox: Mailbox::new(commands),
            machine: Machine::default(),
            running: None,
            tasks: JoinSet::new(),
            deadlines: Vec::new(),
            arrived: 0,
            changes: Changes::default(),
            withdrawn: Vec::new(),
            told: VecDeque::new(),
            showing: JoinSet::new(),
            asides: Asides::default(),
        }
    }

    /// Works until the lane is idle and nobody is about to send to it.
    pub(super) async fn run(mut self) {
        let mut stopped = false;
        loop {
            let is_idle = self.machine.is_idle() && self.told.is_empty() && self.asides.is_empty();
            if is_idle && self.lanes.retire(&self.key, &self.mailbox) {
                return;
            }
            match self.next(stopped).await {
                LaneStep::Command(command) => self.on_command(command).await,
                LaneStep::Event(event) => self.on_event(event).await,
                LaneStep::Joined(ending) => self.on_joined(ending).await,
                LaneStep::Deadline => self.on_deadline().await,
                LaneStep::Acknowledged => self.tell_next().await,
                LaneStep::Quiet => self.on_quiet().await,
                LaneStep::Shown => {}
                LaneStep::Aside(step) => self.on_aside(step).await,
                LaneStep::Changed => self.on_input(Input::Changed).await,
                LaneStep::Hold => self.on_input(Input::Hold).await,
                LaneStep::Stop => {
                    stopped = true;
                    self.machine.on(Instant::now(), Input::Stop);
                }
                // No message came after all: ask again whether to end.
                LaneStep::Idle => {}
                LaneStep::Kill => return self.let_go().await,
                LaneStep::Unreachable => return,
            }
        }
    }

    async fn next(&mut self, stopped: bool) -> LaneStep {
        let deadline = self.deadlines.iter().map(|(at, _)| *at).min();
        let quiet = self.machine.due();
        tokio::select! { biased;
            () = self.parts.stops.kill.cancelled() => LaneStep::Kill,
            () = self.parts.stops.stopping.cancelled(), if !stopped => LaneStep::Stop,
            () = self.parts.stops.holding.cancelled(), if !self.machine.is_held() => LaneStep::Hold,
            command = self.mailbox.next() => command.map_or(LaneStep::Unreachable, LaneStep::Command),
            () = acknowledged(self.told.front().map(|(job, _)| job)) => LaneStep::Acknowledged,
            step = self.asides.next(&self.parts.asides), if !self.asides.is_empty() => LaneStep::Aside(step),
            event = next_event(&mut self.running) => LaneStep::Event(event),
            Some(ending) = self.tasks.join_next(), if !self.tasks.is_empty() => LaneStep::Joined(ending),
            () = self.changes.done() => LaneStep::Changed,
            () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => LaneStep::Deadline,
            () = tokio::time::sleep_until(quiet.unwrap_or_else(Instant::now)), if quiet.is_some() => LaneStep::Quiet,
            Some(_) = self.showing.join_next(), if !self.showing.is_empty() => LaneStep::Shown,
            () = tokio::time::sleep(LINGER), if self.machine.is_idle() => LaneStep::Idle,
        }
    }

    async fn on_command(&mut self, command: LaneCommand) {
        match command {
            LaneCommand::Message { job, arrival } => self.on_message(job, arrival).await,
            LaneCommand::Abort { target, reason, reply } => {
                let stopped = self.abort(target, reason).await;
                // The caller may have gone; the runs are stopped all the same.
                let _ = reply.send(stopped);
            }
            LaneCommand::Change(change) => self.on_change(change).await,
            // Arriving messages are awaited before they come here.
            LaneCommand::Arriving(_) => {}
        }
    }

    async fn on_change(&mut self, change: SessionChange) {
        let beside = change.kind != ChangeKind::Conversation;
        if !beside {
            if let Err(error) = self.abort(AbortTarget::All, AbortReason::Rpc).await {
                return change.refuse(error);
            }
            take_back_paced(&self.parts.outbox, &self.key).await;
        }
        let id = ChangeId(self.place());
        self.changes.add(id, change);
        self.on_input(Input::Change { id, beside }).await;
    }

    /// Returns the next number in the order of acceptance.
    fn place(&mut self) -> u64 {
        self.arrived += 1;
        self.arrived
    }

    async fn on_input(&mut self, input: Input<Job>) {
        let mut effects = Vec::new();
        // The hold may have been asked for since this lane last waited.
        if self.parts.stops.holding.is_cancelled() && !self.machine.is_held() {
            effects = self.machine.on(Instant::now(), Input::Hold);
        }
        effects.extend(self.machine.on(Instant::now(), input));
        self.perform(effects).await;
    }

    async fn on_message(&mut self, mut job: Job, arrival: Arrival) {
        job.order = self.place();
        job.aside = arrival == Arrival::Fresh && command::is_aside(&self.parts.rows, &job.row).await;
        let mode = match arrival {
            Arrival::Fresh if !job.aside => job.row.payload.facts.queue.mode,
            Arrival::Fresh | Arrival::Recovered => QueueMode::Followup,
        };
        if let Some(deadline) = Self::deadline_of(&job) {
            self.deadlines.push((deadline, job.row.run_id.clone()));
        }
        if arrival == Arrival::Fresh
            && job.row.payload.facts.wants.compaction
            && let Some(active) = self.machine.active().cloned()
        {
            // The message waits for the run to end, which it does within its grace.
            let _ = self.abort(AbortTarget::Run(active), AbortReason::Interrupt).await;
        }
        if mode == QueueMode::Interrupt {
            // Of a run that is over: its reader can't tell it from one under way.
            take_back_paced(&self.parts.outbox, &self.key).await;
        }
        let interrupts = mode == QueueMode::Interrupt && !self.machine.is_idle();
        if interrupts {
            // Clients are not told that the runs are stopped for good, and the log says if they are
            // not.
            let _ = self.abort(AbortTarget::All, AbortReason::Interrupt).await;
        }
        job.has_waited = mode != QueueMode::Interrupt && !self.machine.is_idle();
        self.overtake();
        let fresh = (arrival == Arrival::Fresh).then(|| job.clone());
        self.on_input(Input::Message { job, mode }).await;
        if let Some(job) = fresh.filter(|job| self.machine.is_waiting(&job.row.run_id)) {
            self.show_that_it_waits(job);
        }
    }

    /// Tells the command under way and those beside the run that something waits for them.
    fn overtake(&self) {
        self.asides.overtake();
        if let Some(running) = &self.running {
            running.control.overtaken.cancel();
        }
    }

    /// Runs the waiting messages after it was quiet for long enough, once the messages to the
    /// gateway that came meanwhile are done.
    async fn on_quiet(&mut self) {
        self.asides.overtake();
        while let Some(step) = self.asides.drained(&self.parts.asides).await {
            Box::pin(self.on_aside(step)).await;
        }
        self.on_input(Input::Quiet).await;
    }

    async fn perform(&mut self, effects: Vec<LaneEffect<Job>>) {
        for effect in effects {
            match effect {
                LaneEffect::Start(job) => self.start(job).await,
                LaneEffect::StartAll(batch) => self.start_all(batch).await,
                LaneEffect::Drop(job, rule) => self.drop_message(job, rule).await,
                LaneEffect::Cut(job) => self.cut_message(job).await,
                LaneEffect::Change(id) => self.changes.begin(id),
                LaneEffect::ChangeBeside(id) => {
                    if let Some(change) = self.changes.take(id) {
                        self.asides.push(Aside::Change(change), self.run_beside());
                    }
                }
                LaneEffect::Aside(job) => self.asides.push(Aside::Message(job), self.run_beside()),
                LaneEffect::Steer(job) => self.steer(job).await,
                LaneEffect::SteerCopy(job) => self.steer_copy(job).await,
                LaneEffect::Leave(job) => self.leave(job).await,
                LaneEffect::Retract(run_id) => {
                    if let Some(running) = &self.running {
                        running.control.steering.retract(&run_id);
                    }
                }
                LaneEffect::Cancel(reason) => self.cancel(reason).await,
                LaneEffect::Withdraw(run_id, reason) => self.withdraw(&run_id, reason).await,
                LaneEffect::Discard(job, reason) => self.announce_stopped(&job, reason).await,
            }
        }
    }

    fn run_beside(&self) -> Option<RunBeside> {
        let running = self.running.as_ref()?;
        let (row, transcript) = (Arc::clone(&running.job.row), running.control.transcript.subscribe());
        Some(RunBeside { row, transcript })
    }

    /// Hands a message to the run under way. The message's own `chat` stream ends once it is
    /// acknowledged (decision 7); its answer is part of the run.
    async fn steer(&mut self, job: Job) {
        let row = match self.parts.messages.load(&job.row).await {
            Ok(row) => row,
            Err(error) => {
                tracing::warn!(run_id = %job.row.run_id, %error, "a message is not steered: it waits for the end of the run");
                return self.withdrawn.push(job);
            }
        };
        self.told.push_back((job.clone(), LaneNotice::Absorbed));
        let message = self.parts.messages.steered_message(&row);
        if let Some(running) = &self.running {
            let events_as = Some(RunId::new(openclaw_sessions::ids::uuid().to_string()));
            // Not taken, it waits for the end of the run.
            running.control.steering.push(Job { events_as, has_waited: true, ..job }, message);
        }
    }

    /// Hands a copy of a message to the run under way, which reads it too. Clients hear of the
    /// message by the run that it has for itself, and so does the inbox: a crash before the end of
    /// that run runs it again, whatever the transcript has of the copy.
    async fn steer_copy(&mut self, job: Job) {
        match self.parts.messages.load(&job.row).await {
            Ok(row) => {
                let message = self.parts.messages.steered_message(&row);
                if let Some(running) = &self.running {
                    running.control.steering.push(Job { is_copy: true, ..job }, message);
                }
            }
            Err(error) => {
                tracing::warn!(run_id = %job.row.run_id, %error, "a message is not steered: it waits for the end of the run");
            }
        }
    }

    /// Leaves a message to the run under way, which was handed a copy of it and answers it if it
    /// reads the copy.
    async fn leave(&mut self, job: Job) {
        let events_as = Some(RunId::new(openclaw_sessions::ids::uuid().to_string()));
        let left = Job { events_as, has_waited: true, ..job.clone() };
        let Some(running) = &mut self.running else { return self.withdrawn.push(job) };
        // The answer is stored: the message keeps a run of its own.
        if let Some(untaken) = &mut running.over {
            return untaken.push(job);
        }
        self.told.push_back((job, LaneNotice::Absorbed));
        let (run_id, by) = (left.row.run_id.clone(), running.job.row.run_id.clone());
        if !running.control.steering.leave(left) {
            return;
        }
        let taken = Update::Taken { runs: vec![run_id], by };
        if let Err(error) = self.parts.journal.update(taken).await {
            tracing::warn!(%error, "a message that a run has read would have one of its own after a restart right now");
        }
    }

    /// Tells clients the outcome of a message whose sender knows by now that it was accepted.
    async fn tell_next(&mut self) {
        let Some((job, told)) = self.told.pop_front() else { return };
        let broadcasts = match told {
            LaneNotice::Absorbed => self.emitter(&job).absorbed(),
            LaneNotice::Dropped(rule) => self.emitter(&job).refused(&rule.told()),
        };
        self.publish(broadcasts).await;
    }

    /// Handles a step beside the run: clients hear an answer at once, and its message is closed
    /// when the answer is in the transcript, if it belongs there.
    async fn on_aside(&mut self, step: AsideStep) {
        match step {
            AsideStep::Answered { job, answer } => {
                let broadcasts = self.emitter(&job).answered(answer.told());
                let outcome = command::outcome(answer.message.as_deref());
                self.publish(broadcasts).await;
                let ended_at = self.parts.clock.now_ms();
                let run_id = job.row.run_id.clone();
                self.parts.registry.conclude(RunRecord {
                    run_id,
                    started_at: None,
                    ended_at,
                    outcome,
                    report: None,
                });
                let run = self.running.as_ref().map(|running| running.control.transcript.subscribe());
                self.asides.close(&self.parts.asides, job, answer, run);
            }
            AsideStep::Closed(record) => self.settle(record),
            AsideStep::Changed => {}
            // The message takes its turn behind the run.
            AsideStep::Deferred(job) => {
                let job = Job { aside: false, ..job };
                self.on_input(Input::Message { job, mode: QueueMode::Followup }).await;
            }
        }
    }

    async fn publish(&self, broadcasts: Vec<Broadcast>) {
        for broadcast in broadcasts {
            self.parts.hub.publish(broadcast).await;
        }
    }
}

async fn acknowledged(job: Option<&Job>) {
    match job {
        Some(job) => job.gate.cancelled().await,
        None => std::future::pending().await,
    }
}
