//! What the gateway must not forget (`docs/durability.md`): a [`Journal`] keeps what platforms bring ([`crate::arrivals`]) until
//! it is decided about, the messages of the [`crate::inbox`] until their runs have ended and the deliveries of the
//! [`crate::outbox`] until their platforms have them, all in the order of acceptance. [`sqlite`] is the one the gateway uses.

#[cfg(test)]
mod contract;
#[cfg(test)]
pub(crate) mod memory;
pub(crate) mod sqlite;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::Address;
use openclaw_protocol::{RunId, SessionId};
use openclaw_tools::Promise;

use crate::api::{AbortReason, RunRecord};
use crate::arrivals::{ArrivalInsert, ArrivalRecord, Fate, NewArrival, StoredArrival};
use crate::inbox::{AskedRecords, Insert, Known, MessageRecord, Row, Stored, Unfinished};
use crate::notices::{KeptLine, KeptNotices};
use crate::origin::Origin;
use crate::outbox::{
    Delivery, DeliveryInsert, DeliveryState, DeliveryStatus, Hold, ListedDelivery, OpenDelivery, Verdict,
};
use crate::queue::DropRule;
use crate::request::Request;

/// Why the journal did not do something. Nothing of the change was kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// SQLite said no: full disk, unwritable directory. The caller may try again.
    #[error("{0}")]
    Storage(String),
    /// There is no space for it. The caller may try again.
    #[error("the disk is full")]
    DiskFull,
    /// The file is no database, or its pages are wrong. The next start sets it aside.
    #[error(
        "gateway.sqlite is damaged ({0}); restart the gateway: it sets the file aside and takes over what can be read"
    )]
    Damaged(String),
    /// A newer version wrote it; the gateway must not start.
    #[error(
        "it has schema version {found}, this version knows {known}: start the newer openclaw, or move the file away"
    )]
    Newer {
        /// Of the file.
        found: i64,
        /// Of this version.
        known: i64,
    },
    /// The journal was closed.
    #[error("the journal is closed")]
    Closed,
}

impl From<serde_json::Error> for JournalError {
    fn from(error: serde_json::Error) -> Self {
        Self::Storage(error.to_string())
    }
}

/// How long what is to be synced waits for a change that is synced anyway. Messages that were let in are accepted within it.
pub(crate) const SYNC_TOGETHER: Duration = Duration::from_millis(2);

/// A future of the journal.
pub(crate) type JournalFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, JournalError>> + Send + 'a>>;

/// Room for one message. Taking it stores the message behind all that were stored before; the future ends when the message
/// is as safe as was asked.
pub(crate) type Reservation =
    Box<dyn FnOnce(Row<Stored>, Durability) -> JournalFuture<'static, Insert> + Send>;

/// Where messages and deliveries are kept. Changes are made one after the other, in the order in which they are asked for:
/// all of a change or, after an error, nothing. What has ended is forgotten after a while. Any implementation must pass the
/// suite `contract`.
pub(crate) trait Journal: Send + Sync {
    /// Waits for room for a message.
    fn reserve(&self) -> JournalFuture<'_, Reservation>;

    /// Stores a delivery; synced when the future ends.
    fn deliver(&self, delivery: NewDelivery) -> JournalFuture<'_, DeliveryInsert>;

    /// Stores events of chat platforms, all or none, in this order; [`Durability::Written`] when the future ends. `None`: too many
    /// wait.
    fn arrive(&self, events: Vec<NewArrival>) -> JournalFuture<'_, Option<Vec<ArrivalInsert>>>;

    /// Ends when all that was written before is synced: with the next change that is, or by itself if none comes within
    /// [`SYNC_TOGETHER`].
    fn synced(&self) -> JournalFuture<'_, ()>;

    /// Makes an update. When the future ends, it is as safe as its [`Update::durability`] says. `false`: what it is about is
    /// not there or is past it, and nothing was changed.
    fn update(&self, update: Update) -> JournalFuture<'_, bool>;

    /// What is known of a run id.
    fn message(&self, run_id: &RunId) -> JournalFuture<'_, Option<Known>>;

    /// What is remembered of messages, in the order of acceptance, at most `most`.
    fn message_records(&self, asked: AskedRecords, most: u32) -> JournalFuture<'_, Vec<MessageRecord>>;

    /// What was asked with a message that is not finished.
    fn payload(&self, run_id: &RunId) -> JournalFuture<'_, Request>;

    /// The messages accepted since, by both ids that the transcript entry of each may have.
    fn entries_since(&self, accepted_at: i64) -> JournalFuture<'_, HashMap<String, RunId>>;

    /// How a delivery stands; `None` for an unknown one.
    fn delivery(&self, id: &str) -> JournalFuture<'_, Option<DeliveryStatus>>;

    /// How the deliveries of a run's answer stand, in order.
    fn deliveries_of(&self, run_id: &RunId) -> JournalFuture<'_, Vec<DeliveryStatus>>;

    /// The delivery of this id, or those that the platform has under this id of a message.
    fn deliveries_named(&self, id: &str) -> JournalFuture<'_, Vec<DeliveryStatus>>;

    /// The first delivery of the conversation of this one, if that is another and not over: this one waits for it.
    fn delivery_ahead_of(&self, id: &str) -> JournalFuture<'_, Option<String>>;

    /// Deliveries that were given up, the newest first, at most `most`. Not those that were thrown away.
    fn failed_deliveries(&self, most: u32) -> JournalFuture<'_, Vec<ListedDelivery>>;

    /// Deliveries that are not over, in the order of acceptance.
    fn waiting_deliveries(&self) -> JournalFuture<'_, Vec<ListedDelivery>>;

    /// Deliveries that are not over and have a number above `after`, in the order of acceptance.
    fn open_deliveries(&self, after: i64) -> JournalFuture<'_, Vec<OpenDelivery>>;

    /// The delivery of a number, whole. `None`: it is gone.
    fn stored_delivery(&self, number: i64) -> JournalFuture<'_, Option<StoredDelivery>>;

    /// Events of chat platforms about which nothing is decided and that have a number above `after`, in the order of arrival, at
    /// most `most`.
    fn waiting_arrivals(&self, after: i64, most: u32) -> JournalFuture<'_, Vec<StoredArrival>>;

    /// The newest events of a conversation with a number below `before` that wait as context ([`Fate::Noted`]) and are in no
    /// message yet, in the order of arrival, at most `most`.
    fn noted_arrivals(
        &self,
        conversation: &Address,
        before: i64,
        most: u32,
    ) -> JournalFuture<'_, Vec<StoredArrival>>;

    /// What is remembered of events: those that a message or event id of a platform names, or a run; all without an id. The newest
    /// first, at most `most`.
    fn arrival_records(&self, id: Option<&str>, most: u32) -> JournalFuture<'_, Vec<ArrivalRecord>>;

    /// How many events there are of each [`Fate`], by its name; `waiting` are those without one.
    fn arrival_tally(&self) -> JournalFuture<'_, Vec<(String, u64)>>;

    /// Where a message of a conversation was sent to, its thread included, if that was done from here and is remembered: a day.
    fn sent_to(&self, conversation: &Address, message_id: &str) -> JournalFuture<'_, Option<Address>>;

    /// What waits for an account of a channel, and what was given up.
    fn account_counts(&self, channel: &str, account: &str) -> JournalFuture<'_, AccountCounts>;

    /// Makes what was asked for so far, then lets go of everything. Afterwards everything is refused with
    /// [`JournalError::Closed`].
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// What waits for an account of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountCounts {
    /// Events about which nothing is decided yet.
    pub inbox: u64,
    /// Deliveries that are not over.
    pub pending: u64,
    /// Deliveries that were given up.
    pub failed: u64,
    /// Unix milliseconds at which the last one was sent.
    pub last_sent_at: Option<i64>,
    /// What became of its events, as far as they are remembered.
    pub events: Vec<EventCount>,
    /// Conversations whose first delivery keeps failing, the one that waits longest first, at most [`LATE_LISTED`].
    pub late: Vec<LateConversation>,
    /// How many of them there are.
    pub late_total: u64,
}

/// Conversations of an account whose sends fail for long that are told of.
const LATE_LISTED: usize = 5;
/// So much later than it was accepted is a delivery tried again whose conversation counts as late. Milliseconds.
const LATE_MS: i64 = 60 * 1000;

/// A conversation whose first delivery keeps failing. The others wait behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateConversation {
    /// The platform's id of it.
    pub target: String,
    /// The delivery that fails.
    pub id: String,
    /// Unix milliseconds at which that was accepted.
    pub since: i64,
    /// Why its last try failed, for people.
    pub error: String,
    /// How many deliveries wait, this one included.
    pub waiting: u64,
}

/// How many events of an account had one fate for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCount {
    /// `waiting`, `run`, `noted`, `handled` or `dropped`.
    pub fate: String,
    /// By which rule, or how; of `handled` and `dropped`.
    pub reason: Option<String>,
    /// How many.
    pub count: u64,
    /// How often these were brought once more, and passed over.
    pub repeats: u64,
}

/// An open journal.
pub(crate) struct Opened {
    /// The journal.
    pub(crate) journal: Arc<dyn Journal>,
    /// Messages the last process did not finish, in the order of acceptance. Deliveries it was sending are uncertain now.
    pub(crate) unfinished: Vec<Unfinished>,
    /// What agents are owed about their commands.
    pub(crate) notices: KeptNotices,
}

/// A delivery to be stored.
#[derive(Debug, Clone)]
pub(crate) struct NewDelivery {
    /// What is sent, and where.
    pub(crate) delivery: Delivery,
    /// Unix milliseconds.
    pub(crate) accepted_at: i64,
    /// It is sent at this time at the earliest, Unix milliseconds: later than it was accepted where a pause is made before it.
    pub(crate) not_before: i64,
}

/// A delivery as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredDelivery {
    /// What is sent, and where.
    pub(crate) delivery: Result<Delivery, Unreadable>,
    /// How far it is.
    pub(crate) state: DeliveryState,
    /// Tries that count.
    pub(crate) attempts: u32,
    /// Unix milliseconds.
    pub(crate) accepted_at: i64,
    /// What stands before it in the same message was given up, so that it is not to come ([`crate::outbox::DeliveryFailure::takes_the_rest`]).
    pub(crate) is_cut_off: bool,
    /// What its platform asked for when it put another delivery of the conversation off.
    pub(crate) hold: Option<Hold>,
}

/// A delivery whose part can't be read any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// The delivery's id.
    pub(crate) id: String,
    /// What is wrong with it.
    pub(crate) why: String,
}

impl StoredDelivery {
    /// Its id.
    pub(crate) fn into_id(self) -> String {
        match self.delivery {
            Ok(delivery) => delivery.id,
            Err(unreadable) => unreadable.id,
        }
    }
}

/// What the end of the machine may undo of a change. The end of the process undoes nothing of either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Synced to disk when its future ends.
    Synced,
    /// With the system; on disk with the next synced change.
    Written,
}

/// What happens to a message or a delivery after it was accepted. Times are Unix milliseconds.
#[derive(Debug, Clone)]
pub(crate) enum Update {
    /// A message is taken up once more. Counted before it is tried: a process that dies of it can't count any more.
    Attempt(RunId),
    /// The attempt under way is past its preparation.
    Prepared(RunId),
    /// The process stops in order: it did not die of these messages, and their attempts do not count.
    Excuse(Vec<RunId>),
    /// A run begins in a session. The first attempt is counted with it: what a fresh message needs before is no risk, and a
    /// write less.
    Begin(RunId, SessionId),
    /// Nothing, behind which all that was stored before is synced.
    Settle,
    /// Runs are to be stopped. The first reason stays. They are stopped whether the disk takes it or not.
    Abort(Vec<RunId>, AbortReason),
    /// A run takes messages into itself that are steered into it: noted before they are in its transcript. One that takes itself
    /// is nobody else's any more.
    Taken {
        /// Their runs, which will not be.
        runs: Vec<RunId>,
        /// The run that took them.
        by: RunId,
    },
    /// The gateway has answered a message by itself, and clients may be told. Its answer is not in the transcript yet. The
    /// deliveries are what a chat platform is told: they are stored with it, unless the message is past it.
    Answered(RunRecord, Vec<NewDelivery>),
    /// A run has ended. The deliveries are its answer for a chat platform: they are stored with it, unless it has ended before.
    Finish(RunRecord, Vec<NewDelivery>),
    /// The same, and these runs have ended with it and as it.
    FinishAll(RunRecord, Vec<RunId>, Vec<NewDelivery>),
    /// Messages that waited are run together: decided before anything of their run is written.
    Gather {
        /// The one that leads. It may lead nothing but itself.
        leader: RunId,
        /// Those that are run together with it.
        others: Vec<RunId>,
        /// Where the answer goes, if not to where the one that leads was said.
        answer_to: Option<Box<Origin>>,
    },
    /// A full queue has dropped a message, and the agent is to be told of it: the row stays open until it is.
    Cut {
        /// The message.
        run_id: RunId,
        /// The events it is made of.
        arrivals: Box<[i64]>,
        /// How many were dropped since the agent was last told, this one included.
        dropped: u64,
        /// When.
        now: i64,
    },
    /// A message that waited is dropped by a rule: its run has ended like this, and so is said of its events.
    Drop {
        /// How it ended.
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
    /// A try to send a delivery has ended.
    Tried {
        /// The delivery.
        id: String,
        /// What follows from it.
        verdict: Verdict,
        /// When.
        now: i64,
    },
    /// A person wants a failed delivery tried again.
    Revive {
        /// The delivery.
        id: String,
        /// When.
        now: i64,
    },
    /// A person throws a delivery away that failed, or waits and is not being sent: what was to be sent is forgotten, that it was thrown away is
    /// not.
    Discard {
        /// The delivery.
        id: String,
        /// When.
        now: i64,
    },
    /// A person wants a delivery that waits tried now.
    Hasten {
        /// The delivery.
        id: String,
        /// When.
        now: i64,
    },
    /// A message that waits, to be decided about or as context, says something else now.
    Reworded {
        /// Where it was said.
        conversation: Address,
        /// The platform's id of it.
        message_id: String,
        /// All of its new words.
        text: String,
    },
    /// An agent is about to be promised something about a command (at this time): a process that ends owes it.
    Promise(Box<Promise>, i64),
    /// Promises stand differently. One that was fulfilled stays so.
    Amend(Vec<Promise>),
    /// A line waits for its session, and a promise is fulfilled with it; without a line it is withdrawn.
    Notice {
        /// The line.
        line: Option<KeptLine>,
        /// The id of the promise.
        fulfils: Option<String>,
    },
    /// Lines are in the transcript, with the message of a run. They are forgotten with its end.
    Told {
        /// The run.
        run_id: RunId,
        /// Their numbers.
        numbers: Vec<i64>,
    },
    /// Lines made room for others.
    DropLines(Vec<i64>),
    /// What becomes of events of chat platforms is decided. Events that become a message are decided about with
    /// its acceptance.
    Decided {
        /// Their numbers.
        numbers: Vec<i64>,
        /// What becomes of them.
        fate: Fate,
        /// When.
        now: i64,
    },
}

impl Update {
    /// How safe it is when its future ends.
    pub(crate) fn durability(&self) -> Durability {
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
            | Self::Tried {
                verdict: Verdict::Sent(_) | Verdict::WithoutFile { .. } | Verdict::Failed { .. }, ..
            }
            | Self::Revive { .. }
            | Self::Discard { .. } => Durability::Synced,
            // What an attempt guards against is the end of the process.
            Self::Attempt(_)
            | Self::Prepared(_)
            | Self::Excuse(_)
            | Self::Begin(..)
            | Self::Taken { .. }
            | Self::Finish(..)
            | Self::FinishAll(..)
            | Self::Tried { verdict: Verdict::Retry(_), .. }
            // Undone, it is decided once more.
            | Self::Decided { .. }
            | Self::Reworded { .. }
            // Undone, the promise is there again, or the line is.
            | Self::Amend(_)
            | Self::Notice { .. }
            | Self::Told { .. }
            | Self::DropLines(_)
            // Undone, it is tried in its time.
            | Self::Hasten { .. } => Durability::Written,
        }
    }

    /// How a run ended, where it tells that.
    pub(crate) fn ended(&self) -> Option<&RunRecord> {
        match self {
            Self::Finish(record, _) | Self::FinishAll(record, ..) => Some(record),
            _ => None,
        }
    }

    /// Whether it tells what has happened already. If the disk refuses it, the caller gets the error, and it is tried again
    /// until it is stored.
    pub(crate) fn has_happened(&self) -> bool {
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
