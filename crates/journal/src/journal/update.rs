//! Changes of a journal, as its callers ask for them.

use openclaw_channels::{Address, Receipt};
use openclaw_protocol::{RunId, SessionId};
use openclaw_tools::Promise;

use super::{JournalError, NewDelivery};
use crate::api::{AbortReason, RunRecord};
use crate::arrival::{ArrivalInsert, Fate, NewArrival};
use crate::delivery::{DeliveryInsert, DeliveryVerdict};
use crate::inbox::{InboxRow, Insert, RequestColumns};
use crate::notices::KeptLine;
use crate::origin::MessageOrigin;
use crate::queue::DropRule;

/// Change of a journal: all of it is made or, after an error, nothing.
#[derive(Debug)]
pub enum JournalChange {
    /// Stores a message. As safe as is asked when it is answered.
    Accept(Box<InboxRow<RequestColumns>>, CommitDurability),
    /// Stores a delivery.
    Deliver(Box<NewDelivery>),
    /// Stores events of chat platforms, all or none, in this order.
    Arrive(Vec<NewArrival>),
    /// Changes what was stored before.
    Update(Update),
}

/// Answer to a [`JournalChange`] of the same kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Changed {
    /// Result of [`JournalChange::Accept`].
    Accepted(Insert),
    /// Result of [`JournalChange::Deliver`].
    Delivered(DeliveryInsert),
    /// Result of [`JournalChange::Arrive`]; `None` if too many wait.
    Arrived(Option<Vec<ArrivalInsert>>),
    /// Result of [`JournalChange::Update`]. `false`: its subject is not there or is past it, and nothing
    /// was changed.
    Updated(bool),
}

impl Changed {
    /// Returns the result of [`JournalChange::Accept`].
    ///
    /// # Errors
    /// If it answers another change.
    pub fn accepted(self) -> Result<Insert, JournalError> {
        match self {
            Self::Accepted(insert) => Ok(insert),
            other => Err(other.unexpected()),
        }
    }

    /// Returns the result of [`JournalChange::Deliver`].
    ///
    /// # Errors
    /// If it answers another change.
    pub fn delivered(self) -> Result<DeliveryInsert, JournalError> {
        match self {
            Self::Delivered(insert) => Ok(insert),
            other => Err(other.unexpected()),
        }
    }

    /// Returns the result of [`JournalChange::Arrive`].
    ///
    /// # Errors
    /// If it answers another change.
    pub fn arrived(self) -> Result<Option<Vec<ArrivalInsert>>, JournalError> {
        match self {
            Self::Arrived(inserts) => Ok(inserts),
            other => Err(other.unexpected()),
        }
    }

    /// Returns the result of [`JournalChange::Update`].
    ///
    /// # Errors
    /// If it answers another change.
    pub fn updated(self) -> Result<bool, JournalError> {
        match self {
            Self::Updated(is_made) => Ok(is_made),
            other => Err(other.unexpected()),
        }
    }

    fn unexpected(&self) -> JournalError {
        JournalError::Storage(format!("the journal answered another change: {self:?}"))
    }
}

impl JournalChange {
    /// Durability that the change has when it is answered.
    pub fn durability(&self) -> CommitDurability {
        match self {
            Self::Accept(_, durability) => *durability,
            Self::Deliver(_) => CommitDurability::Synced,
            // Code that tells the platform waits for `Journal::synced` first.
            Self::Arrive(_) => CommitDurability::Written,
            Self::Update(update) => update.durability(),
        }
    }

    /// True if it may store deliveries.
    pub fn has_deliveries(&self) -> bool {
        match self {
            Self::Deliver(_) => true,
            Self::Update(
                Update::Answered(_, replies) | Update::Finish(_, replies) | Update::FinishAll(_, _, replies),
            ) => !replies.is_empty(),
            Self::Accept(..) | Self::Arrive(_) | Self::Update(_) => false,
        }
    }

    /// True if it stores what was not stored before.
    pub fn is_new(&self) -> bool {
        match self {
            Self::Accept(..) | Self::Deliver(_) | Self::Arrive(_) => true,
            Self::Update(_) => false,
        }
    }

    /// True if it tells what has happened already. If the disk refuses it, the caller gets the
    /// error, and it is tried again until it is stored.
    pub fn has_happened(&self) -> bool {
        match self {
            Self::Update(update) => update.has_happened(),
            Self::Accept(..) | Self::Deliver(_) | Self::Arrive(_) => false,
        }
    }

    /// Returns the record of the run that ended, if the change tells of one.
    pub fn ended(&self) -> Option<&RunRecord> {
        match self {
            Self::Update(update) => update.ended(),
            Self::Accept(..) | Self::Deliver(_) | Self::Arrive(_) => None,
        }
    }
}

/// Durability of a change when the machine stops. The end of the process undoes neither kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitDurability {
    /// Synced to disk when its future ends.
    Synced,
    /// Handed to the operating system; on disk with the next synced change.
    Written,
}

/// Change of a message or a delivery after it was accepted. Times are Unix milliseconds.
#[derive(Debug, Clone)]
pub enum Update {
    /// A message is taken up once more. Counted before it is tried: a process that dies of it can't count any more.
    Attempt(RunId),
    /// The attempt under way is past its preparation.
    Prepared(RunId),
    /// The process stops in order: it did not die of these messages, and their attempts do not count.
    Excuse(Vec<RunId>),
    /// A run begins in a session. The first attempt is counted with it, which saves a write: the
    /// steps of a fresh message before that are no risk.
    Begin(RunId, SessionId),
    /// Changes nothing, but syncs everything that was stored before it.
    Settle,
    /// Runs are to be stopped. The first reason stays. They are stopped whether the disk takes it or not.
    Abort(Vec<RunId>, AbortReason),
    /// A run takes steered messages into itself: noted before they are in its transcript. A message
    /// that takes itself belongs to no other run any more.
    Taken {
        /// Runs of these messages, which will not happen.
        runs: Vec<RunId>,
        /// The run that took them.
        by: RunId,
    },
    /// The gateway has answered a message by itself, and clients may be told. The answer is not in
    /// the transcript yet. The deliveries are those to a chat platform: they are stored with it,
    /// unless the message is past it.
    Answered(RunRecord, Vec<NewDelivery>),
    /// A run has ended. The deliveries are its answer for a chat platform: they are stored with it, unless it has ended before.
    Finish(RunRecord, Vec<NewDelivery>),
    /// A run has ended, as in `Finish`, and these other runs with it and in the same way.
    FinishAll(RunRecord, Vec<RunId>, Vec<NewDelivery>),
    /// Messages that waited are run together: decided before anything of their run is written.
    Gather {
        /// Message that leads. It may lead nothing but itself.
        leader: RunId,
        /// Messages that are run together with it.
        others: Vec<RunId>,
        /// Place of the answer, if not the place where the leading message was said.
        answer_to: Option<Box<MessageOrigin>>,
    },
    /// A full queue has dropped a message, and the agent is to be told of it: the row stays open until it is.
    Cut {
        /// The message.
        run_id: RunId,
        /// The events it is made of.
        arrivals: Box<[i64]>,
        /// Number of messages dropped since the agent was last told, this one included.
        dropped: u64,
        /// Time of the drop.
        now: i64,
    },
    /// A message that waited is dropped by a rule: the record is the end of its run, and its events
    /// get this fate.
    Drop {
        /// End of its run.
        record: RunRecord,
        /// The rule.
        rule: DropRule,
        /// The events it is made of.
        arrivals: Box<[i64]>,
    },
    /// The platform is about to be asked to take a delivery, for the `attempts`th time. Synced before it is: a delivery that
    /// is stored as pending was never sent.
    Sending {
        /// The delivery.
        id: String,
        /// Tries that count, this one included.
        attempts: u32,
    },
    /// A message that a platform has is about to have other buttons. Stored as a delivery that was
    /// sent, and synced before the buttons are shown, because their maker has to be known when they
    /// are pressed.
    Buttons {
        /// Maker of the buttons and conversation of the message, as a delivery that was sent.
        note: Box<NewDelivery>,
        /// The message.
        receipt: Receipt,
    },
    /// A try to send a delivery has ended.
    Tried {
        /// The delivery.
        id: String,
        /// Consequence of the try.
        verdict: DeliveryVerdict,
        /// Time of its end.
        now: i64,
    },
    /// A person wants a failed delivery tried again.
    Revive {
        /// The delivery.
        id: String,
        /// Time of the request.
        now: i64,
    },
    /// A person throws away a delivery that failed, or waits and is not being sent: its content is
    /// forgotten, but not that it was thrown away.
    Discard {
        /// The delivery.
        id: String,
        /// Time of the request.
        now: i64,
    },
    /// A person wants a waiting delivery tried now.
    Hasten {
        /// The delivery.
        id: String,
        /// Time of the request.
        now: i64,
    },
    /// A message that waits for a decision, or as context, was edited.
    Reworded {
        /// Conversation in which it was said.
        conversation: Address,
        /// The platform's id of it.
        message_id: String,
        /// New text, as a whole.
        text: String,
    },
    /// A promise to an agent about a command is about to be made (at this time): a process that
    /// ends owes it.
    Promise(Box<Promise>, i64),
    /// Promises have changed. One that was fulfilled stays so.
    Amend(Vec<Promise>),
    /// A line waits for its session, and fulfils a promise; without a line the promise is
    /// withdrawn.
    Notice {
        /// The line.
        line: Option<KeptLine>,
        /// The id of the promise.
        fulfils: Option<String>,
    },
    /// Lines were written into the transcript, with the message of a run. They are forgotten with
    /// its end.
    Told {
        /// The run.
        run_id: RunId,
        /// Numbers of the lines.
        numbers: Vec<i64>,
    },
    /// Lines were dropped to make room for others.
    DropLines(Vec<i64>),
    /// The fate of events of chat platforms is decided. Events that become a message are decided
    /// about with its acceptance.
    Decided {
        /// Numbers of the events.
        numbers: Vec<i64>,
        /// Fate of all of them.
        fate: Fate,
        /// Time of the decision.
        now: i64,
    },
}

impl Update {
    /// Durability that the change has when its future ends.
    pub fn durability(&self) -> CommitDurability {
        match self {
            Self::Settle
            // A stop that was acknowledged holds, whatever ends next, and so does what was answered.
            | Self::Abort(..)
            | Self::Answered(..)
            // The message that leads must not be in a transcript before.
            | Self::Gather { .. }
            | Self::Cut { .. }
            | Self::Drop { .. }
            // The agent is told that it will hear more.
            | Self::Promise(..)
            | Self::Sending { .. }
            | Self::Buttons { .. }
            | Self::Tried {
                verdict: DeliveryVerdict::Sent(_) | DeliveryVerdict::WithoutFile { .. } | DeliveryVerdict::Failed { .. }, ..
            }
            | Self::Revive { .. }
            | Self::Discard { .. } => CommitDurability::Synced,
            // An attempt guards against the end of the process, which loses nothing of this.
            Self::Attempt(_)
            | Self::Prepared(_)
            | Self::Excuse(_)
            | Self::Begin(..)
            | Self::Taken { .. }
            | Self::Finish(..)
            | Self::FinishAll(..)
            | Self::Tried { verdict: DeliveryVerdict::Retry(_), .. }
            // Undone, it is decided once more.
            | Self::Decided { .. }
            | Self::Reworded { .. }
            // Undone, the promise is there again, or the line is.
            | Self::Amend(_)
            | Self::Notice { .. }
            | Self::Told { .. }
            | Self::DropLines(_)
            // Undone, it is tried in its time.
            | Self::Hasten { .. } => CommitDurability::Written,
        }
    }

    /// Returns the record of the run that ended, if the change tells of one.
    pub fn ended(&self) -> Option<&RunRecord> {
        match self {
            Self::Finish(record, _) | Self::FinishAll(record, ..) => Some(record),
            _ => None,
        }
    }

    /// True if it tells what has happened already. If the disk refuses it, the caller gets the
    /// error, and it is tried again until it is stored.
    pub fn has_happened(&self) -> bool {
        match self {
            Self::Abort(..)
            | Self::Drop { .. }
            | Self::Tried { .. }
            // Left open, it would be decided once more by the next start: a stop would stop what was said behind it.
            | Self::Decided { .. }
            | Self::Reworded { .. }
            | Self::Notice { .. }
            | Self::Told { .. }
            | Self::DropLines(_) => true,
            _ => self.ended().is_some(),
        }
    }
}
