//! What a lane is asked, and in which order it hears of it.

use openclaw_protocol::RunId;
use tokio::sync::{mpsc, oneshot};

use super::change::Change;
use crate::api::{AbortReason, AbortTarget, StopNotStored};
use crate::job::Job;

/// What a lane is asked. It does one thing after the other, in the order in which they came.
#[derive(Debug)]
pub(crate) enum Command {
    /// Work on a message that is on its way to disk; nothing comes when it does not get there.
    Arriving(oneshot::Receiver<Job>),
    /// Work on a message.
    Message { job: Job, arrival: Arrival },
    /// Stop runs; answers with those that were stopped.
    Abort { target: AbortTarget, reason: AbortReason, reply: oneshot::Sender<Stopped> },
    /// Let somebody change the session.
    Change(Change),
}

/// The runs that were stopped.
pub(crate) type Stopped = Result<Vec<RunId>, StopNotStored>;

/// How a message came to the lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// From a client, just now: the queue mode applies.
    Fresh,
    /// From the inbox, at start: first come, first served.
    Recovered,
}

/// The commands of one lane, in order.
pub(super) struct Mailbox {
    commands: mpsc::Receiver<Command>,
    /// The message whose way to disk everything behind it waits for.
    arriving: Option<oneshot::Receiver<Job>>,
}

impl Mailbox {
    pub(super) fn new(commands: mpsc::Receiver<Command>) -> Self {
        Self { commands, arriving: None }
    }

    /// Whether nothing is in it, nor on its way to it.
    pub(super) fn is_abandoned(&self) -> bool {
        self.arriving.is_none() && self.commands.is_empty() && self.commands.sender_strong_count() <= 1
    }

    /// The next command. May be dropped while it waits: what arrives is waited for again.
    pub(super) async fn next(&mut self) -> Option<Command> {
        loop {
            if let Some(job) = &mut self.arriving {
                let arrived = job.await;
                self.arriving = None;
                if let Ok(job) = arrived {
                    return Some(Command::Message { job, arrival: Arrival::Fresh });
                }
            }
            match self.commands.recv().await? {
                Command::Arriving(job) => self.arriving = Some(job),
                command => return Some(command),
            }
        }
    }
}
