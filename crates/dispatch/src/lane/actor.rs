//! The task behind a session lane: it does what the machine decides, and is the only one that runs the session's agent,
//! writes its transcript and publishes its events.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use openclaw_agent::event::RunEvent;
use openclaw_config::settings::QueueMode;
use openclaw_protocol::RunId;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::aside::{AsideStep, Asides};
use super::change::{Changes, Floor};
use super::deadline::chat_deadline_ms;
use super::machine::{Effect, Input, Machine, Only, Turn};
use super::running::{Running, next_event};
use super::steering::SteeringQueue;
use crate::api::{AbortReason, AbortTarget, Broadcast, RunOutcome, RunRecord};
use crate::events::Emitter;
use crate::inbox::{Origin, Parked, Row};
use crate::runner::inject::{self, Injection};
use crate::runner::locked::LockWait;
use crate::runner::{Attempt, Ending, RunControl};
use crate::shared::Shared;

/// Events a run may be ahead of its lane.
const EVENTS: usize = 32;
/// How long an idle lane waits for somebody who seemed about to send.
const LINGER: Duration = Duration::from_secs(1);
/// How long a run that was told to stop for a shutdown may take to let go.
const LET_GO: Duration = Duration::from_secs(2);

/// A message on its way through a lane.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// As it lies in the inbox, but for a payload that is big.
    pub(crate) row: Arc<Row<Parked>>,
    /// Opens once the acknowledgement is queued to the client.
    pub(crate) gate: CancellationToken,
    /// Unix milliseconds from which its deadline counts: acceptance, or the start that recovered it.
    pub(crate) since: i64,
    /// The run id its events carry when its own is used up: a steered message that the run did not take.
    pub(crate) events_as: Option<RunId>,
    /// Its clients know already that it was stopped while it waited.
    pub(crate) told: bool,
    /// Its place in the order of acceptance, given by the lane.
    pub(crate) order: u64,
}

impl Turn for Job {
    fn run_id(&self) -> &RunId {
        &self.row.run_id
    }

    fn is_chat(&self) -> bool {
        self.row.payload.is_chat()
    }

    fn is_stopped(&self) -> bool {
        self.told
    }

    fn stop(&mut self, reason: AbortReason) {
        let abort = self.row.abort.or(Some(reason));
        self.row = Arc::new(Row { abort, ..Row::clone(&self.row) });
        self.told = true;
    }

    fn order(&self) -> u64 {
        self.order
    }
}

/// What a lane is asked. It does one thing after the other, in the order in which they came.
#[derive(Debug)]
pub(crate) enum Command {
    /// Work on a message that is on its way to disk; nothing comes when it does not get there.
    Arriving(oneshot::Receiver<Job>),
    /// Work on a message.
    Message { job: Job, arrival: Arrival },
    /// Stop runs; answers with those that were stopped.
    Abort { target: AbortTarget, only: Only, reason: AbortReason, reply: oneshot::Sender<Vec<RunId>> },
    /// Stop all runs, then let somebody change the session.
    Change(oneshot::Sender<Floor>),
    /// Write into the transcript in the assistant's name.
    Inject(Injection),
}

/// How a message came to the lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// From a client, just now: the queue mode applies.
    Fresh,
    /// From the inbox, at start: first come, first served.
    Recovered,
}

pub(super) struct Actor {
    key: String,
    shared: Arc<Shared>,
    mailbox: mpsc::Receiver<Command>,
    machine: Machine<Job>,
    running: Option<Running>,
    tasks: JoinSet<Ending>,
    deadlines: Vec<(Instant, RunId)>,
    /// The message whose way to disk everything behind it waits for.
    arriving: Option<oneshot::Receiver<Job>>,
    /// Messages that came so far.
    arrived: u64,
    changes: Changes,
    /// Steered messages that were taken back from the run, or never reached it: their turn comes after it.
    withdrawn: Vec<Job>,
    /// Steered messages whose client may not have its acknowledgement yet, oldest first.
    absorbed: VecDeque<Job>,
    /// What is said to the gateway itself while a run is under way.
    asides: Asides,
}

enum Step {
    Command(Command),
    Event(RunEvent),
    Joined(Result<Ending, JoinError>),
    Deadline,
    /// The oldest steered message is acknowledged.
    Acknowledged,
    /// Something that was said to the gateway is a step further.
    Aside(AsideStep),
    /// The change under way is done.
    Changed,
    Stop,
    Idle,
    Kill,
    Unreachable,
}

impl Actor {
    pub(super) fn new(key: String, shared: Arc<Shared>, mailbox: mpsc::Receiver<Command>) -> Self {
        Self {
            key,
            shared,
            mailbox,
            machine: Machine::default(),
            running: None,
            tasks: JoinSet::new(),
            deadlines: Vec::new(),
            arriving: None,
            arrived: 0,
            changes: Changes::default(),
            withdrawn: Vec::new(),
            absorbed: VecDeque::new(),
            asides: Asides::default(),
        }
    }

    /// Works until the lane is idle and nobody is about to send to it.
    pub(super) async fn run(mut self) {
        let mut stopped = false;
        loop {
            let is_idle = self.machine.is_idle()
                && self.arriving.is_none()
                && self.absorbed.is_empty()
                && self.asides.is_empty();
            if is_idle && self.shared.lanes.retire(&self.key, &self.mailbox) {
                return;
            }
            match self.next(stopped).await {
                Step::Command(command) => self.on_command(command).await,
                Step::Event(event) => self.on_event(event).await,
                Step::Joined(ending) => self.on_joined(ending).await,
                Step::Deadline => self.on_deadline().await,
                Step::Acknowledged => self.tell_absorbed().await,
                Step::Aside(step) => self.on_aside(step).await,
                Step::Changed => self.on_input(Input::Changed).await,
                Step::Stop => {
                    stopped = true;
                    self.machine.on(Input::Stop);
                }
                // Nobody sent after all: ask again whether to end.
                Step::Idle => {}
                Step::Kill => return self.let_go().await,
                Step::Unreachable => return,
            }
        }
    }

    async fn next(&mut self, stopped: bool) -> Step {
        let deadline = self.deadlines.iter().map(|(at, _)| *at).min();
        tokio::select! { biased;
            () = self.shared.kill.cancelled() => Step::Kill,
            () = self.shared.stopping.cancelled(), if !stopped => Step::Stop,
            command = next_command(&mut self.mailbox, &mut self.arriving) => {
                command.map_or(Step::Unreachable, Step::Command)
            }
            () = acknowledged(self.absorbed.front()) => Step::Acknowledged,
            step = self.asides.next(&self.shared), if !self.asides.is_empty() => Step::Aside(step),
            event = next_event(&mut self.running) => Step::Event(event),
            Some(ending) = self.tasks.join_next(), if !self.tasks.is_empty() => Step::Joined(ending),
            () = self.changes.done() => Step::Changed,
            () = sleep_until(deadline) => Step::Deadline,
            () = tokio::time::sleep(LINGER), if self.machine.is_idle() => Step::Idle,
        }
    }

    async fn on_command(&mut self, command: Command) {
        match command {
            Command::Message { job, arrival } => self.on_message(job, arrival).await,
            Command::Abort { target, only, reason, reply } => {
                let stopped = self.abort(target, only, reason).await;
                // Who asked may have gone; the runs are stopped all the same.
                let _ = reply.send(stopped);
            }
            Command::Change(change) => {
                self.abort(AbortTarget::All, Only::Any, AbortReason::Rpc).await;
                let id = self.changes.add(change);
                self.on_input(Input::Change(id)).await;
            }
            Command::Inject(injection) => self.inject(injection).await,
            // Those that arrive are waited for before they come here.
            Command::Arriving(_) => {}
        }
    }

    /// Beside the run under way, or else in its turn: a reset that was asked for before comes before.
    async fn inject(&mut self, injection: Injection) {
        if let Some(running) = &self.running
            && !self.machine.has_change_waiting()
        {
            return self.asides.inject(&self.shared, injection, running.transcript.clone());
        }
        let (give, floor) = oneshot::channel();
        let id = self.changes.add(give);
        let shared = Arc::clone(&self.shared);
        self.shared.accepting.spawn(async move {
            // Without the floor the lane has ended: whoever waits for the reply sees it closed.
            let Ok(_floor) = floor.await else { return };
            inject::work(&shared, injection, None).await;
        });
        self.on_input(Input::Change(id)).await;
    }

    async fn on_input(&mut self, input: Input<Job>) {
        let effects = self.machine.on(input);
        self.perform(effects).await;
    }

    async fn on_message(&mut self, mut job: Job, arrival: Arrival) {
        self.arrived += 1;
        job.order = self.arrived;
        if arrival == Arrival::Fresh && self.is_aside(&job).await {
            return self.asides.push(job);
        }
        let mode = match arrival {
            Arrival::Fresh => self.shared.runner.queue_mode(&job.row).await,
            Arrival::Recovered => QueueMode::Followup,
        };
        if let Some(deadline) = self.deadline_of(&job) {
            self.deadlines.push((deadline, job.row.run_id.clone()));
        }
        let interrupts = mode == QueueMode::Interrupt && self.machine.active().is_some();
        if interrupts {
            self.abort(AbortTarget::All, Only::Any, AbortReason::Interrupt).await;
        }
        self.on_input(Input::Message { job, mode }).await;
    }

    /// Whether a message is answered at once although something is under way. Not beside a message that may be about to
    /// change the session's settings itself: what was said first holds first.
    async fn is_aside(&self, job: &Job) -> bool {
        let Some(running) = &self.running else { return false };
        let runner = &self.shared.runner;
        let before = running.job.row.payload.wants;
        let is_settled = running.begun || !(before.command || before.reset);
        is_settled && runner.is_aside(&job.row).await
    }

    /// When a `chat.send` is stopped; `agent` requests have their run's own timeout only.
    fn deadline_of(&self, job: &Job) -> Option<Instant> {
        let Origin::Chat { timeout_ms } = job.row.payload.origin else { return None };
        let configured = self.shared.runner.timeout().map(|timeout| timeout.as_millis());
        let configured = configured.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX));
        let elapsed = u64::try_from(self.shared.clock.now_ms() - job.since).unwrap_or(0);
        let left = chat_deadline_ms(timeout_ms, configured).saturating_sub(elapsed);
        Some(Instant::now() + Duration::from_millis(left))
    }

    async fn on_deadline(&mut self) {
        let now = Instant::now();
        let (due, left) = std::mem::take(&mut self.deadlines).into_iter().partition(|(at, _)| *at <= now);
        self.deadlines = left;
        for (_, run_id) in Vec::into_iter(due) {
            let running = self.running.as_ref().filter(|running| running.job.row.run_id == run_id);
            let waited = running.map_or(Duration::ZERO, |running| running.lock_wait.take());
            if !waited.is_zero() {
                self.deadlines.push((now + waited, run_id));
                continue;
            }
            self.abort(AbortTarget::Run(run_id), Only::Any, AbortReason::Timeout).await;
        }
    }

    /// Stops runs. That they are to be stopped is stored first: a crash must not bring them back.
    async fn abort(&mut self, target: AbortTarget, only: Only, reason: AbortReason) -> Vec<RunId> {
        let active = self.machine.active().cloned();
        let effects = self.machine.on(Input::Abort { target, only, reason });
        let ids: Vec<RunId> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Cancel(_) => active.clone(),
                Effect::Withdraw(run_id, _) => self.can_withdraw(run_id).then(|| run_id.clone()),
                Effect::Discard(job, _) => Some(job.row.run_id.clone()),
                Effect::Start(_) | Effect::Steer(_) | Effect::Change(_) => None,
            })
            .collect();
        if !ids.is_empty()
            && let Err(error) = self.shared.inbox.mark_aborted(ids.clone(), reason).await
        {
            tracing::warn!(%error, "a stopped run would be taken up again by a restart right now");
        }
        self.perform(effects).await;
        ids
    }

    async fn perform(&mut self, effects: Vec<Effect<Job>>) {
        for effect in effects {
            match effect {
                Effect::Start(job) => self.start(job).await,
                Effect::Change(id) => self.changes.begin(id),
                Effect::Steer(job) => self.steer(job).await,
                Effect::Cancel(reason) => self.cancel(reason).await,
                Effect::Withdraw(run_id, reason) => self.withdraw(&run_id, reason).await,
                Effect::Discard(job, reason) => self.tell_stopped(&job, reason).await,
            }
        }
    }

    async fn start(&mut self, job: Job) {
        let (events_in, events) = mpsc::channel(EVENTS);
        let (transcript_in, transcript) = watch::channel(None);
        let cancel = self.shared.kill.child_token();
        let steering = Arc::new(SteeringQueue::default());
        let reason = Arc::new(OnceLock::new());
        let attempt = Arc::new(Attempt::default());
        let lock_wait = Arc::<LockWait>::default();
        let mut emitter = self.emitter(&job);
        emitter.set_verbose(self.shared.runner.verbose(&job.row).await);
        let control = RunControl {
            cancel: cancel.clone(),
            reason: Arc::clone(&reason),
            steering: Arc::clone(&steering),
            events: events_in,
            transcript: transcript_in,
            attempt: Arc::clone(&attempt),
            lock_wait: Arc::clone(&lock_wait),
        };
        let (shared, work) = (Arc::clone(&self.shared), job.clone());
        let span = tracing::info_span!("message", run_id = %job.row.run_id);
        self.tasks.spawn(async move { crate::runner::work(&shared, &work, control).await }.instrument(span));
        self.running = Some(Running {
            job,
            cancel,
            reason,
            steering,
            lock_wait,
            events,
            transcript,
            emitter,
            attempt,
            begun: false,
        });
    }

    fn emitter(&self, job: &Job) -> Emitter {
        let run_id = job.events_as.as_ref().unwrap_or(&job.row.run_id);
        Emitter::new(run_id.clone(), self.key.clone())
    }

    /// The message's own `chat` stream ends once it is acknowledged (decision 7); its answer is part of the run under way.
    async fn steer(&mut self, job: Job) {
        let row = match self.shared.inbox.load(&job.row).await {
            Ok(row) => row,
            Err(error) => {
                tracing::warn!(run_id = %job.row.run_id, %error, "a message is not steered: it waits for the end of the run");
                return self.withdrawn.push(job);
            }
        };
        self.absorbed.push_back(job.clone());
        let message = self.shared.runner.steered_message(&row);
        if let Some(running) = &self.running {
            let events_as = Some(RunId::new(uuid::Uuid::new_v4().to_string()));
            running.steering.push(Job { events_as, ..job }, message);
        }
    }

    async fn tell_absorbed(&mut self) {
        let Some(job) = self.absorbed.pop_front() else { return };
        let broadcasts = self.emitter(&job).absorbed();
        self.publish(broadcasts).await;
    }

    async fn cancel(&mut self, reason: AbortReason) {
        let Some(running) = &mut self.running else { return };
        // The first reason stays.
        let _ = running.reason.set(reason);
        running.cancel.cancel();
        let broadcasts = running.emitter.aborted(reason.as_str());
        self.publish(broadcasts).await;
    }

    fn can_withdraw(&self, run_id: &RunId) -> bool {
        self.running.as_ref().is_some_and(|running| running.steering.can_withdraw(run_id))
    }

    async fn withdraw(&mut self, run_id: &RunId, reason: AbortReason) {
        let job = self.running.as_ref().and_then(|running| running.steering.withdraw(run_id, reason));
        if let Some(mut job) = job {
            job.stop(reason);
            self.tell_stopped(&job, reason).await;
            self.withdrawn.push(job);
        }
    }

    /// A message that waits is stopped: for clients that is its end. Its turn comes after the run under way; then it is
    /// written into the transcript and its row is closed.
    async fn tell_stopped(&mut self, job: &Job, reason: AbortReason) {
        // Its stream ends with this, not with what steering would have told.
        self.absorbed.retain(|absorbed| absorbed.row.run_id != job.row.run_id);
        let broadcasts = self.emitter(job).aborted(reason.as_str());
        let outcome = RunOutcome::Aborted { reason: reason.as_str().to_owned(), result: None };
        let record = RunRecord {
            run_id: job.row.run_id.clone(),
            started_at: None,
            ended_at: self.shared.clock.now_ms(),
            outcome,
        };
        self.publish(broadcasts).await;
        self.deadlines.retain(|(_, run_id)| *run_id != record.run_id);
        self.shared.registry.conclude(record);
    }

    /// The run is over for everybody.
    fn settle(&mut self, record: RunRecord) {
        self.deadlines.retain(|(_, run_id)| *run_id != record.run_id);
        self.shared.registry.finish(record);
    }

    async fn on_event(&mut self, event: RunEvent) {
        let now = self.shared.clock.now_ms();
        let Some(running) = &mut self.running else { return };
        let streaming = match &event {
            RunEvent::Asking => {
                running.attempt.prepared(&self.shared, &running.job.row).await;
                None
            }
            RunEvent::Started { .. } | RunEvent::CompactionEnd { .. } => Some(true),
            RunEvent::CompactionStart => Some(false),
            RunEvent::Assistant { .. }
            | RunEvent::ToolStart { .. }
            | RunEvent::ToolUpdate { .. }
            | RunEvent::ToolResult { .. }
            | RunEvent::Ended { .. } => None,
        };
        running.begun = true;
        if matches!(event, RunEvent::Ended { .. }) {
            // Clients hear of it once it is stored.
            self.machine.on(Input::Closing);
            return;
        }
        let broadcasts = running.emitter.on(now, event);
        if let Some(streaming) = streaming {
            self.machine.on(Input::Streaming(streaming));
        }
        self.publish(broadcasts).await;
    }

    async fn on_joined(&mut self, ending: Result<Ending, JoinError>) {
        while let Some(event) = self.running.as_mut().and_then(|running| running.events.try_recv().ok()) {
            self.on_event(event).await;
        }
        let Some(mut running) = self.running.take() else { return };
        let now = self.shared.clock.now_ms();
        let (record, broadcasts) = match ending {
            Ok(Ending::Done(record)) => {
                let broadcasts = running.last_events(&record, now);
                (record, broadcasts)
            }
            Ok(Ending::Answered(record, said)) => (record, running.emitter.answered(said.as_deref())),
            Ok(Ending::Interrupted) => return self.interrupted(),
            Err(error) => {
                let record = self.crashed(&running.job, &error).await;
                let broadcasts = running.last_events(&record, now);
                (record, broadcasts)
            }
        };
        if !running.job.told {
            self.publish(broadcasts).await;
        }
        for job in running.steering.drain_taken() {
            self.settle(RunRecord { run_id: job.row.run_id.clone(), ..record.clone() });
        }
        self.settle(record);
        let mut untaken = std::mem::take(&mut self.withdrawn);
        for mut job in running.steering.drain_untaken() {
            if let Some(reason) = running.steering.stopped(&job.row.run_id) {
                job.stop(reason);
                self.tell_stopped(&job, reason).await;
            }
            untaken.push(job);
        }
        // What was said to the gateway meanwhile holds for whatever comes next.
        while let Some(step) = self.asides.drained(&self.shared).await {
            self.on_aside(step).await;
        }
        self.on_input(Input::Ended { untaken }).await;
    }

    /// Clients hear an answer at once, and its message is closed when the answer is in the transcript.
    async fn on_aside(&mut self, step: AsideStep) {
        match step {
            AsideStep::Told { job, answer } => {
                let broadcasts = self.emitter(&job).answered(answer.message.as_deref());
                let outcome = crate::runner::command::outcome(answer.message.as_deref());
                self.publish(broadcasts).await;
                let ended_at = self.shared.clock.now_ms();
                let run_id = job.row.run_id.clone();
                self.shared.registry.conclude(RunRecord { run_id, started_at: None, ended_at, outcome });
                let run = self.running.as_ref().map(|running| running.transcript.clone());
                self.asides.close(&self.shared, job, answer, run);
            }
            AsideStep::Closed(record) => self.settle(record),
            // It takes its turn behind the run.
            AsideStep::Waits(job) => {
                self.on_input(Input::Message { job, mode: QueueMode::Followup }).await;
            }
        }
    }

    /// The run let go for a shutdown; its message is worked on after the next start.
    fn interrupted(&mut self) {
        self.machine.on(Input::Stop);
        self.machine.on(Input::Ended { untaken: Vec::new() });
    }

    /// A panic ends its run alone.
    async fn crashed(&self, job: &Job, error: &JoinError) -> RunRecord {
        tracing::error!(run_id = %job.row.run_id, session = %self.key, %error, "a run panicked");
        let message = "The run ended unexpectedly; the gateway's log says more.".to_owned();
        let outcome = RunOutcome::Error { message, result: None };
        let run_id = job.row.run_id.clone();
        let record = RunRecord {
            run_id,
            started_at: Some(job.row.accepted_at),
            ended_at: self.shared.clock.now_ms(),
            outcome,
        };
        if let Err(error) = self.shared.inbox.finish(record.clone()).await {
            tracing::warn!(run_id = %record.run_id, %error, "a failed run is not stored as finished yet");
        }
        record
    }

    async fn publish(&self, broadcasts: Vec<Broadcast>) {
        for broadcast in broadcasts {
            self.shared.hub.publish(broadcast).await;
        }
    }

    /// The gateway can't wait any longer: what runs stops where it is, as if the process had been killed, and goes on
    /// after the next start. Its token is a child of the kill token, so that its tools are told to end.
    async fn let_go(mut self) {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(LET_GO, all).await.is_err() {
            tracing::warn!(session = %self.key, "a run did not let go and is dropped");
        }
    }
}

/// The next command. May be dropped while it waits: what arrives is waited for again.
async fn next_command(
    mailbox: &mut mpsc::Receiver<Command>,
    arriving: &mut Option<oneshot::Receiver<Job>>,
) -> Option<Command> {
    loop {
        if let Some(job) = arriving {
            let arrived = job.await;
            *arriving = None;
            if let Ok(job) = arrived {
                return Some(Command::Message { job, arrival: Arrival::Fresh });
            }
        }
        match mailbox.recv().await? {
            Command::Arriving(job) => *arriving = Some(job),
            command => return Some(command),
        }
    }
}

async fn acknowledged(job: Option<&Job>) {
    match job {
        Some(job) => job.gate.cancelled().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
