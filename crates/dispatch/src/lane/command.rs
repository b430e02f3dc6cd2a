//! Commands to a lane, and the order in which it gets them.

use openclaw_journal::api::{AbortReason, AbortTarget, StopNotStored};
use openclaw_journal::job::Job;
use openclaw_protocol::RunId;
use tokio::sync::{mpsc, oneshot};

use super::change::SessionChange;

/// Command to a lane. A lane does one thing after the other, in the order in which they came.
#[derive(Debug)]
pub(crate) enum LaneCommand {
    /// Work on a message that is on its way to disk; nothing comes when it does not get there.
    Arriving(oneshot::Receiver<Job>),
    /// Work on a message.
    Message { job: Job, arrival: Arrival },
    /// Stop runs; answers with those that were stopped.
    Abort { target: AbortTarget, reason: AbortReason, reply: oneshot::Sender<StopResult> },
    /// Let somebody change the session.
    Change(SessionChange),
}

/// Result of a stop: the runs that were stopped.
pub(crate) type StopResult = Result<Vec<RunId>, StopNotStored>;

/// Way in which a message came to the lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Sent by a client just now: the queue mode applies.
    Fresh,
    /// Read from the inbox at start: first come, first served.
    Recovered,
}

/// The commands of one lane, in order.
pub(super) struct Mailbox {
    commands: mpsc::Receiver<LaneCommand>,
    /// Message on its way to disk, for which everything behind it waits.
    arriving: Option<oneshot::Receiver<Job>>,
}

impl Mailbox {
    pub(super) fn new(commands: mpsc::Receiver<LaneCommand>) -> Self {
        Self { commands, arriving: None }
    }

    /// True if nothing is in it, or on its way to it.
    pub(super) fn is_abandoned(&self) -> bool {
        self.arriving.is_none() && self.commands.is_empty() && self.commands.sender_strong_count() <= 1
    }

    /// Returns the next command. May be dropped while it waits: an arriving message is awaited
    /// again.
    pub(super) async fn next(&mut self) -> Option<LaneCommand> {
        loop {
            if let Some(job) = &mut self.arriving {
                let arrived = job.await;
                self.arriving = None;
                if let Ok(job) = arrived {
                    return Some(LaneCommand::Message { job, arrival: Arrival::Fresh });
                }
            }
            match self.commands.recv().await? {
                LaneCommand::Arriving(job) => self.arriving = Some(job),
                command => return Some(command),
            }
        }
    }
}
