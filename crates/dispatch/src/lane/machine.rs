//! What a session lane decides (spec `queue.md` §3): messages, ends of runs and aborts in, effects out.

use std::collections::VecDeque;

use openclaw_config::settings::QueueMode;
use openclaw_protocol::RunId;

use crate::api::{AbortReason, AbortTarget};
use crate::job::Job;

/// Something that waits for its turn.
pub(crate) trait Turn: Clone {
    /// Its run.
    fn run_id(&self) -> &RunId;
    /// Whether it is a `chat.send`.
    fn is_chat(&self) -> bool;
    /// Whether it was stopped or answered while it waited: its turn only closes it.
    fn is_stopped(&self) -> bool;
    /// Makes it so.
    fn stop(&mut self, reason: AbortReason);
    /// Its place in the order of acceptance.
    fn order(&self) -> u64;
}

impl Turn for Job {
    fn run_id(&self) -> &RunId {
        &self.row.run_id
    }

    fn is_chat(&self) -> bool {
        self.row.payload.is_chat()
    }

    fn is_stopped(&self) -> bool {
        self.end_announced || self.row.answered.is_some()
    }

    fn stop(&mut self, reason: AbortReason) {
        Self::stop(self, reason);
    }

    fn order(&self) -> u64 {
        self.order
    }
}

/// Something that is done to the session while no run is under way, such as a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ChangeId(pub(crate) u64);

/// What can happen to a lane.
#[derive(Debug, PartialEq)]
pub(crate) enum Input<J> {
    /// A message came. `mode` is resolved by the caller; `agent` requests always say [`QueueMode::Followup`].
    Message { job: J, mode: QueueMode },
    /// The run is inside its model and tool loop and takes steered messages, or has stopped to.
    Streaming(bool),
    /// The run has its result and only stores it: too late to stop it.
    Closing,
    /// The run has ended. `untaken` are the steered messages it did not take.
    Ended { untaken: Vec<J> },
    /// The session is to be changed once everything that was accepted before is closed.
    Change(ChangeId),
    /// The change under way is done.
    Changed,
    /// Someone wants runs stopped.
    Abort { target: AbortTarget, only: Only, reason: AbortReason },
    /// Start nothing any more.
    Stop,
}

/// Which runs an abort may stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Only {
    /// Those of `chat.send` (spec `gateway-protocol.md` §6.4): what a person at a client stops.
    Chats,
    /// Any.
    Any,
}

/// What the driver has to do, in order.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect<J> {
    /// Start the run of this message.
    Start(J),
    /// Make this change.
    Change(ChangeId),
    /// Hand the message to the run under way.
    Steer(J),
    /// Stop the run under way.
    Cancel(AbortReason),
    /// Take this message back from the run, if it has not taken it yet, and end it as stopped.
    Withdraw(RunId, AbortReason),
    /// Tell that a message that waits is stopped. It keeps its place: when it is started it is written into the
    /// transcript and closed.
    Discard(J, AbortReason),
}

/// The state of one lane.
#[derive(Debug)]
pub(crate) struct Machine<J> {
    /// Messages in order of acceptance, and changes between them.
    waiting: VecDeque<Waiting<J>>,
    active: Option<Active>,
    stopped: bool,
}

#[derive(Debug)]
enum Waiting<J> {
    Message(J),
    Change(ChangeId),
}

impl<J> Waiting<J> {
    fn message(&self) -> Option<&J> {
        match self {
            Self::Message(job) => Some(job),
            Self::Change(_) => None,
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
    chat: bool,
    streaming: bool,
    /// Stopped already, or past being stopped.
    closing: bool,
    steered: Vec<RunId>,
}

impl<J> Default for Machine<J> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), active: None, stopped: false }
    }
}

impl<J: Turn> Machine<J> {
    /// Whether nothing runs and nothing waits, or what waits is left for the next start.
    pub(crate) fn is_idle(&self) -> bool {
        self.active.is_none() && (self.stopped || self.waiting.is_empty())
    }

    /// The run under way.
    pub(crate) fn active(&self) -> Option<&RunId> {
        match &self.active {
            Some(Active::Run(run)) => Some(&run.run_id),
            Some(Active::Change) | None => None,
        }
    }

    /// Whether the session is to be changed once the run under way has ended.
    pub(crate) fn has_change_waiting(&self) -> bool {
        self.waiting.iter().any(|waiting| waiting.message().is_none())
    }

    /// Decides.
    pub(crate) fn on(&mut self, input: Input<J>) -> Vec<Effect<J>> {
        match input {
            Input::Message { job, mode } => self.message(job, mode),
            Input::Streaming(streaming) => self.streaming(streaming),
            Input::Closing => self.closing(),
            Input::Ended { untaken } => self.ended(untaken),
            Input::Change(change) => {
                self.waiting.push_back(Waiting::Change(change));
                self.next()
            }
            Input::Changed => self.ended(Vec::new()),
            Input::Abort { target, only, reason } => self.abort(&target, only, reason),
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

    fn message(&mut self, job: J, mode: QueueMode) -> Vec<Effect<J>> {
        if self.active.is_none() {
            self.enqueue(job);
            return self.next();
        }
        // Whatever waits was said before, and comes before.
        let may_overtake = self.waiting.is_empty();
        match mode {
            QueueMode::Collect | QueueMode::Followup => self.enqueue(job),
            QueueMode::Steer | QueueMode::SteerBacklog => match self.run() {
                Some(run) if run.streaming && may_overtake => {
                    run.steered.push(job.run_id().clone());
                    return vec![Effect::Steer(job)];
                }
                Some(_) | None => self.enqueue(job),
            },
            QueueMode::Interrupt => {
                let mut effects = self.abort(&AbortTarget::All, Only::Any, AbortReason::Interrupt);
                self.enqueue(job);
                effects.extend(self.next());
                return effects;
            }
        }
        Vec::new()
    }

    /// Puts a message behind everything that was accepted before it.
    fn enqueue(&mut self, job: J) {
        let is_later =
            |waiting: &Waiting<J>| waiting.message().is_some_and(|other| other.order() > job.order());
        let at = self.waiting.iter().position(is_later).unwrap_or(self.waiting.len());
        self.waiting.insert(at, Waiting::Message(job));
    }

    fn streaming(&mut self, streaming: bool) -> Vec<Effect<J>> {
        if let Some(run) = self.run() {
            run.streaming = streaming;
        }
        Vec::new()
    }

    fn closing(&mut self) -> Vec<Effect<J>> {
        if let Some(run) = self.run() {
            run.streaming = false;
            run.closing = true;
        }
        Vec::new()
    }

    fn ended(&mut self, untaken: Vec<J>) -> Vec<Effect<J>> {
        self.active = None;
        for job in untaken {
            self.enqueue(job);
        }
        self.next()
    }

    fn abort(&mut self, target: &AbortTarget, only: Only, reason: AbortReason) -> Vec<Effect<J>> {
        let hit = |run_id: &RunId| match target {
            AbortTarget::All => true,
            AbortTarget::Run(wanted) => wanted == run_id,
        };
        let mut effects = Vec::new();
        if let Some(run) = self.run() {
            if hit(&run.run_id) && (run.chat || only == Only::Any) && !run.closing {
                run.closing = true;
                run.streaming = false;
                effects.push(Effect::Cancel(reason));
            }
            // Only messages of chats are ever steered.
            let (out, stay) = std::mem::take(&mut run.steered).into_iter().partition::<Vec<RunId>, _>(hit);
            run.steered = stay;
            effects.extend(out.into_iter().map(|run_id| Effect::Withdraw(run_id, reason)));
        }
        for waiting in &mut self.waiting {
            if let Waiting::Message(job) = waiting
                && hit(job.run_id())
                && (job.is_chat() || only == Only::Any)
                && !job.is_stopped()
            {
                job.stop(reason);
                effects.push(Effect::Discard(job.clone(), reason));
            }
        }
        effects
    }

    fn stop(&mut self) -> Vec<Effect<J>> {
        self.stopped = true;
        Vec::new()
    }

    fn next(&mut self) -> Vec<Effect<J>> {
        if self.active.is_some() || self.stopped {
            return Vec::new();
        }
        match self.waiting.pop_front() {
            None => Vec::new(),
            Some(Waiting::Change(change)) => {
                self.active = Some(Active::Change);
                vec![Effect::Change(change)]
            }
            Some(Waiting::Message(job)) => {
                self.active = Some(Active::Run(ActiveRun {
                    run_id: job.run_id().clone(),
                    chat: job.is_chat(),
                    streaming: false,
                    closing: job.is_stopped(),
                    steered: Vec::new(),
                }));
                vec![Effect::Start(job)]
            }
        }
    }
}

#[cfg(test)]
mod tests;
