//! Decisions of a session lane (spec `queue.md` §3): messages, ends of runs and aborts in, effects
//! out. [`mod@backlog`] decides about messages that wait behind a run.

mod backlog;

use std::collections::VecDeque;

use openclaw_channels::Address;
use openclaw_config::settings::QueueMode;
use openclaw_journal::api::{AbortReason, AbortTarget};
use openclaw_journal::queue::DropRule;
use openclaw_journal::rights::Rights;
use openclaw_protocol::RunId;
use tokio::time::Instant;

pub(crate) use backlog::Batch;
use backlog::LaneBacklog;

use super::turn::LaneMessage;

/// Number of a change made to the session by others, such as a reset: its place in the order of
/// acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ChangeId(pub(crate) u64);

/// Inputs of a lane.
#[derive(Debug, PartialEq)]
pub(crate) enum Input<J> {
    /// A message came. `mode` is resolved by the caller; `agent` requests always say [`QueueMode::Followup`].
    Message { job: J, mode: QueueMode },
    /// The run is inside its model and tool loop and takes steered messages, or has stopped to.
    Streaming(bool),
    /// The run has its result and only stores it: too late to stop it.
    Closing,
    /// The run under way, which ends, has read copies of these messages.
    Read(Vec<RunId>),
    /// The run has ended. `untaken` are the steered messages it did not take.
    Ended { untaken: Vec<J> },
    /// The session is to be changed once everything that was accepted before is closed, or `beside` the run under way.
    Change { id: ChangeId, beside: bool },
    /// The change under way is done.
    Changed,
    /// No message came for long enough.
    Quiet,
    /// Someone wants runs stopped.
    Abort { target: AbortTarget, reason: AbortReason },
    /// Begin no run any more: waiting messages stay, and can be stopped, until there is a stop.
    Hold,
    /// Start nothing any more.
    Stop,
}

/// Effects that the driver has to carry out, in order.
#[derive(Debug, PartialEq)]
pub(crate) enum LaneEffect<J> {
    /// Start the run of this message.
    Start(J),
    /// Start one run of these.
    StartAll(Batch<J>),
    /// Drop this message.
    Drop(J, DropRule),
    /// Drop this message, and tell the next run of it.
    Cut(J),
    /// Make this change while no run is under way.
    Change(ChangeId),
    /// Make this change beside the run under way.
    ChangeBeside(ChangeId),
    /// Carry out this message's request beside the run under way.
    Aside(J),
    /// Hand the message to the run under way.
    Steer(J),
    /// Hand a copy of the message to the run under way: the message itself waits for a run of its own.
    SteerCopy(J),
    /// Leave this message to the run under way, which was handed a copy of it: if the run does not
    /// read the copy, the message has a run of its own.
    Leave(J),
    /// Stop the run under way.
    Cancel(AbortReason),
    /// Take this message back from the run, if it has not taken it yet, and end it as stopped.
    Withdraw(RunId, AbortReason),
    /// Take the copy of this message back from the run, if it has not seen it yet.
    Retract(RunId),
    /// Tell that a message that waits is stopped. It keeps its place: when it is started it is written into the
    /// transcript and closed.
    Discard(J, AbortReason),
}

/// The state of one lane.
#[derive(Debug)]
pub(crate) struct Machine<J> {
    /// Messages in order of acceptance, and changes between them.
    waiting: VecDeque<QueuedItem<J>>,
    /// Facts about the messages that wait behind a run.
    backlog: LaneBacklog<J>,
    active: Option<Active>,
    /// Messages that wait, and that an earlier run has read.
    read: Vec<RunId>,
    held: bool,
    stopped: bool,
}

#[derive(Debug)]
enum QueuedItem<J> {
    Message(J),
    Change { id: ChangeId, beside: bool },
}

impl<J: LaneMessage> QueuedItem<J> {
    fn order(&self) -> u64 {
        match self {
            Self::Message(job) => job.order(),
            Self::Change { id, .. } => id.0,
        }
    }

    fn alters(&self) -> bool {
        match self {
            Self::Message(job) => job.alters(),
            Self::Change { beside, .. } => !beside,
        }
    }

    /// Returns the effect that does it beside a run; `None` if it has to wait for the end of the
    /// run.
    fn beside(&self) -> Option<LaneEffect<J>> {
        match self {
            Self::Message(job) => job.is_aside().then(|| LaneEffect::Aside(job.clone())),
            Self::Change { id, beside } => beside.then_some(LaneEffect::ChangeBeside(*id)),
        }
    }
}

#[derive(Debug)]
enum Active {
    Run(ActiveRun),
    Change,
}

#[derive(Debug)]
struct ActiveRun {
    run_id: RunId,
    /// Address of its answer.
    place: Option<Address>,
    /// Rights of the run; `None` if they are not known.
    rights: Option<Rights>,
    /// True if it has altered the session, or does not alter it.
    settled: bool,
    takes_steering: bool,
    streaming: bool,
    /// Stopped already, or past being stopped.
    closing: bool,
    steered: Vec<RunId>,
    /// The messages it was handed a copy of.
    copied: Vec<RunId>,
}

impl<J> Default for Machine<J> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            backlog: LaneBacklog::default(),
            active: None,
            read: Vec::new(),
            held: false,
            stopped: false,
        }
    }
}

impl<J: LaneMessage> Machine<J> {
    /// True if nothing runs and nothing waits, or if what waits is left for the next start.
    pub(crate) fn is_idle(&self) -> bool {
        self.active.is_none() && (self.stopped || !self.has_waiting())
    }

    /// The run under way.
    pub(crate) fn active(&self) -> Option<&RunId> {
        match &self.active {
            Some(Active::Run(run)) => Some(&run.run_id),
            Some(Active::Change) | None => None,
        }
    }

    /// True if no run is begun any more.
    pub(crate) fn is_held(&self) -> bool {
        self.held
    }

    /// True if anything waits for its turn.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.backlog.cut.is_empty()
    }

    /// Number of messages and changes that wait for their turn.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// True if this message waits.
    pub(crate) fn is_waiting(&self, run_id: &RunId) -> bool {
        let is_this =
            |waiting: &QueuedItem<J>| matches!(waiting, QueuedItem::Message(job) if job.run_id() == run_id);
        self.waiting.iter().any(is_this)
    }

    /// Decides on an input, and returns the effects.
    pub(crate) fn on(&mut self, now: Instant, input: Input<J>) -> Vec<LaneEffect<J>> {
        match input {
            Input::Message { job, mode } => self.message(now, job, mode),
            Input::Streaming(streaming) => self.streaming(now, streaming),
            Input::Closing => self.closing(),
            Input::Read(run_ids) => {
                let mut read = std::mem::take(&mut self.read);
                read.extend(run_ids);
                read.retain(|run_id| self.is_waiting(run_id));
                self.read = read;
                Vec::new()
            }
            Input::Ended { untaken } => self.ended(now, untaken),
            Input::Change { id, beside } => {
                self.enqueue(QueuedItem::Change { id, beside });
                self.next(now)
            }
            Input::Changed => self.ended(now, Vec::new()),
            Input::Quiet => self.next(now),
            Input::Abort { target, reason } => {
                let mut effects = self.abort(&target, reason);
                // Items that waited for stopped ones may begin now.
                effects.extend(self.next(now));
                effects
            }
            Input::Hold => {
                self.held = true;
                self.next(now)
            }
            Input::Stop => self.stop(),
        }
    }

    /// The run under way, for changes of it.
    fn run(&mut self) -> Option<&mut ActiveRun> {
        match &mut self.active {
            Some(Active::Run(run)) => Some(run),
            Some(Active::Change) | None => None,
        }
    }

    fn message(&mut self, now: Instant, job: J, mode: QueueMode) -> Vec<LaneEffect<J>> {
        let mut effects = Vec::new();
        match mode {
            QueueMode::Collect | QueueMode::Followup => {}
            QueueMode::Steer if self.may_steer(&job) => return vec![self.steer(job)],
            QueueMode::SteerBacklog if self.may_steer(&job) => return self.steer_and_keep(now, job),
            QueueMode::Steer | QueueMode::SteerBacklog => {}
            QueueMode::Interrupt => {
                effects = self.abort(&AbortTarget::All, AbortReason::Interrupt);
            }
        }
        match self.admit(now, job) {
            Ok(made_room) => effects.extend(made_room),
            Err(rejected) => effects.push(rejected),
        }
        effects.extend(self.next(now));
        effects
    }

    /// True if the run under way may take the message (steering). Earlier messages that wait come
    /// first, unless the run has read them too. A message that is answered elsewhere does not join
    /// this run, and neither does one with other rights than those of the run's messages.
    fn may_steer(&self, job: &J) -> bool {
        let Some(Active::Run(run)) = &self.active else { return false };
        let is_read = |waiting: &J| run.copied.contains(waiting.run_id());
        let may_overtake = self.backlog.cut.iter().all(is_read)
            && self.waiting.iter().all(|waiting| matches!(waiting, QueuedItem::Message(job) if is_read(job)));
        let is_for_them = job.may_join(run.rights.as_ref()) && run.place.as_ref() == job.place();
        run.streaming && may_overtake && is_for_them
    }

    fn steer(&mut self, job: J) -> LaneEffect<J> {
        if let Some(run) = self.run() {
            run.steered.push(job.run_id().clone());
        }
        LaneEffect::Steer(job)
    }

    /// Hands a copy to the run, and has the message wait for a run of its own. Where the queue has no room for it, the run alone
    /// answers it.
    fn steer_and_keep(&mut self, now: Instant, job: J) -> Vec<LaneEffect<J>> {
        let mut effects = match self.admit(now, job.clone()) {
            Ok(made_room) => made_room,
            Err(LaneEffect::Drop(job, DropRule::New)) => return vec![self.steer(job)],
            Err(rejected) => return vec![rejected],
        };
        if let Some(run) = self.run() {
            run.copied.push(job.run_id().clone());
        }
        effects.push(LaneEffect::SteerCopy(job));
        effects
    }

    /// Queues it behind everything that was accepted before it.
    fn enqueue(&mut self, new: QueuedItem<J>) {
        let is_later = |waiting: &QueuedItem<J>| waiting.order() > new.order();
        let at = self.waiting.iter().position(is_later).unwrap_or(self.waiting.len());
        self.waiting.insert(at, new);
    }

    fn streaming(&mut self, now: Instant, streaming: bool) -> Vec<LaneEffect<J>> {
        if let Some(run) = self.run() {
            run.streaming = streaming && run.takes_steering;
            run.settled = true;
        }
        self.next(now)
    }

    fn closing(&mut self) -> Vec<LaneEffect<J>> {
        if let Some(run) = self.run() {
            run.streaming = false;
            run.closing = true;
        }
        Vec::new()
    }

    fn ended(&mut self, now: Instant, untaken: Vec<J>) -> Vec<LaneEffect<J>> {
        self.active = None;
        for job in untaken {
            self.enqueue(QueuedItem::Message(job));
        }
        self.next(now)
    }

    fn abort(&mut self, target: &AbortTarget, reason: AbortReason) -> Vec<LaneEffect<J>> {
        let hit = |run_id: &RunId| match target {
            AbortTarget::All => true,
            AbortTarget::Run(wanted) => wanted == run_id,
        };
        let mut effects = Vec::new();
        if let Some(run) = self.run() {
            if hit(&run.run_id) && !run.closing {
                run.closing = true;
                run.streaming = false;
                effects.push(LaneEffect::Cancel(reason));
            }
            // Only messages of chats are ever steered.
            let (out, stay) = std::mem::take(&mut run.steered).into_iter().partition::<Vec<RunId>, _>(hit);
            run.steered = stay;
            effects.extend(out.into_iter().map(|run_id| LaneEffect::Withdraw(run_id, reason)));
            let copied = run.copied.iter().filter(|run_id| hit(run_id));
            effects.extend(copied.cloned().map(LaneEffect::Retract));
        }
        // Dropped messages that were not told of yet are closed like waiting ones.
        for job in self.backlog.take_cut(|job| hit(job.run_id())) {
            self.enqueue(QueuedItem::Message(job));
        }
        for waiting in &mut self.waiting {
            if let QueuedItem::Message(job) = waiting
                && hit(job.run_id())
                && !job.is_stopped()
            {
                job.stop(reason);
                effects.push(LaneEffect::Discard(job.clone(), reason));
            }
        }
        effects
    }

    fn stop(&mut self) -> Vec<LaneEffect<J>> {
        self.stopped = true;
        Vec::new()
    }

    fn next(&mut self, now: Instant) -> Vec<LaneEffect<J>> {
        let mut effects = Vec::new();
        let is_free = self.active.is_none() && !self.stopped;
        if is_free && self.may_begin() && self.due().is_none_or(|due| due <= now) {
            effects.extend(self.begin_next());
        }
        effects.extend(self.beside_run());
        effects
    }

    /// True if the first waiting item may begin. While runs are held, only changes and messages
    /// that are merely closed may.
    fn may_begin(&self) -> bool {
        let is_run = match self.waiting.front() {
            Some(QueuedItem::Message(job)) => !job.is_stopped(),
            Some(QueuedItem::Change { .. }) => false,
            None => true,
        };
        !(self.held && is_run)
    }

    fn begin(&mut self, waiting: QueuedItem<J>) -> LaneEffect<J> {
        match waiting {
            QueuedItem::Change { id, .. } => {
                self.active = Some(Active::Change);
                LaneEffect::Change(id)
            }
            QueuedItem::Message(job) => {
                self.run_of(&job);
                LaneEffect::Start(job)
            }
        }
    }

    /// Notes that the run of this message is under way from now on.
    fn run_of(&mut self, job: &J) {
        self.active = Some(Active::Run(ActiveRun {
            run_id: job.run_id().clone(),
            place: job.place().cloned(),
            rights: job.rights().cloned(),
            settled: !job.alters(),
            takes_steering: job.takes_steering(),
            streaming: false,
            closing: job.is_stopped(),
            steered: Vec::new(),
            copied: Vec::new(),
        }));
    }

    /// Takes out the items that are done beside the run under way, or while quiet is awaited or no
    /// run is begun: all up to the first that alters the session.
    fn beside_run(&mut self) -> Vec<LaneEffect<J>> {
        let mut effects = Vec::new();
        // Otherwise it waits for a run that begins at once.
        let is_free = self.active.is_none() && (self.held || self.due().is_some());
        let is_settled = is_free || self.run().is_some_and(|run| run.settled);
        let mut at = if is_settled { 0 } else { self.waiting.len() };
        while let Some(waiting) = self.waiting.get(at) {
            if let Some(effect) = waiting.beside() {
                effects.push(effect);
                self.waiting.remove(at);
            } else if waiting.alters() {
                break;
            } else {
                at += 1;
            }
        }
        effects
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;
