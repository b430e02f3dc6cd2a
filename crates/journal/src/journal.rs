//! Durable storage of the gateway (`docs/durability.md`): a [`Journal`] keeps the events of
//! platforms ([`crate::arrival`]) until they are decided about, the messages of the
//! [`crate::inbox`] until their runs have ended and the deliveries of the outbox until
//! their platforms have them, all in the order of acceptance. [`sqlite`] is the one the gateway
//! uses.

#[cfg(test)]
mod contract;
#[cfg(any(test, feature = "testing"))]
pub mod memory;
pub mod sqlite;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::{Address, Receipt};
use openclaw_protocol::{RunId, SessionId};
use openclaw_tools::Promise;
use tokio::sync::watch;

use crate::api::{AbortReason, RunRecord};
use crate::arrival::{ArrivalInsert, ArrivalRecord, Fate, NewArrival, StoredArrival};
use crate::delivery::{
    Delivery, DeliveryInsert, DeliveryState, DeliveryStatus, DeliveryVerdict, Hold, ListedDelivery,
    OpenDelivery, SentMessage,
};
use crate::inbox::{AskedRecords, InboxRow, Insert, KnownRun, MessageRecord, RequestColumns, Unfinished};
use crate::notices::{KeptLine, KeptNotices};
use crate::origin::MessageOrigin;
use crate::queue::DropRule;
use crate::request::RunRequest;

/// Reasons for which the journal did not make a change. Nothing of the change was kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// The change itself can't be made. The caller may try again.
    #[error("{0}")]
    Storage(String),
    /// The disk did not do it: a failed read, write or sync, an unwritable directory. The caller may try again.
    #[error("{0}")]
    Disk(String),
    /// The disk has no space for it. The caller may try again.
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
        /// Version of the file.
        found: i64,
        /// Version that this program knows.
        known: i64,
    },
    /// Another program has the file; the gateway must not start.
    #[error(
        "another program has it open, such as a database browser or a backup: `fuser {0}` names it; end it, then start the gateway again"
    )]
    InUse(String),
    /// The journal was closed.
    #[error("the journal is closed")]
    Closed,
}

impl JournalError {
    /// True if the disk refused, whatever the change was.
    pub fn is_of_disk(&self) -> bool {
        match self {
            Self::Disk(_) | Self::DiskFull => true,
            Self::Storage(_) | Self::Damaged(_) | Self::Newer { .. } | Self::InUse(_) | Self::Closed => false,
        }
    }
}

impl From<serde_json::Error> for JournalError {
    fn from(error: serde_json::Error) -> Self {
        Self::Storage(error.to_string())
    }
}

/// Time for which a change that is to be synced waits for another that is synced anyway. Messages
/// that were let in are accepted within it.
pub const SYNC_TOGETHER: Duration = Duration::from_millis(2);

/// A future of the journal.
pub type JournalFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, JournalError>> + Send + 'a>>;

/// Room for one message. Taking it stores the message behind all that were stored before; the future ends when the message
/// is as safe as was asked.
pub type Reservation =
    Box<dyn FnOnce(InboxRow<RequestColumns>, CommitDurability) -> JournalFuture<'static, Insert> + Send>;

/// Storage of messages and deliveries. Changes are made one after the other, in the order in which
/// they are asked for: all of a change or, after an error, nothing. Finished items are forgotten
/// after a while. Any implementation must pass the suite `contract`.
pub trait Journal: Send + Sync {
    /// Waits for room for a message.
    fn reserve(&self) -> JournalFuture<'_, Reservation>;

    /// Stores a delivery; synced when the future ends.
    fn deliver(&self, delivery: NewDelivery) -> JournalFuture<'_, DeliveryInsert>;

    /// Stores events of chat platforms, all or none, in this order; [`CommitDurability::Written`] when the future ends. `None`: too many
    /// wait.
    fn arrive(&self, events: Vec<NewArrival>) -> JournalFuture<'_, Option<Vec<ArrivalInsert>>>;

    /// Ends when all that was written before is synced: with the next change that is, or by itself if none comes within
    /// [`SYNC_TOGETHER`].
    fn synced(&self) -> JournalFuture<'_, ()>;

    /// Makes an update. When the future ends, it is as safe as its [`Update::durability`] says.
    /// `false`: its subject is not there or is past it, and nothing was changed.
    fn update(&self, update: Update) -> JournalFuture<'_, bool>;

    /// Looks up a run id; `None` if it is unknown.
    fn message(&self, run_id: &RunId) -> JournalFuture<'_, Option<KnownRun>>;

    /// Returns records of messages, in the order of acceptance, at most `most`.
    fn message_records(&self, asked: AskedRecords, most: u32) -> JournalFuture<'_, Vec<MessageRecord>>;

    /// Returns the request of a message that is not finished.
    fn payload(&self, run_id: &RunId) -> JournalFuture<'_, RunRequest>;

    /// Returns the messages accepted since, by both ids that the transcript entry of each may have.
    fn entries_since(&self, accepted_at: i64) -> JournalFuture<'_, HashMap<String, RunId>>;

    /// Returns the status of a delivery; `None` for an unknown one.
    fn delivery(&self, id: &str) -> JournalFuture<'_, Option<DeliveryStatus>>;

    /// Returns the status of each delivery of a run's answer, in order.
    fn deliveries_of(&self, run_id: &RunId) -> JournalFuture<'_, Vec<DeliveryStatus>>;

    /// Returns the delivery of this id, or those that the platform has under this id of a message.
    fn deliveries_named(&self, id: &str) -> JournalFuture<'_, Vec<DeliveryStatus>>;

    /// Returns the first delivery of this one's conversation, if that is another and not over, so
    /// that this one waits for it.
    fn delivery_ahead_of(&self, id: &str) -> JournalFuture<'_, Option<String>>;

    /// Returns the deliveries that were given up, the newest first, at most `most`. Not those that
    /// were thrown away.
    fn failed_deliveries(&self, most: u32) -> JournalFuture<'_, Vec<ListedDelivery>>;

    /// Returns the deliveries that are not over, in the order of acceptance.
    fn waiting_deliveries(&self) -> JournalFuture<'_, Vec<ListedDelivery>>;

    /// Returns the deliveries that are not over and have a number above `after`, in the order of
    /// acceptance.
    fn open_deliveries(&self, after: i64) -> JournalFuture<'_, Vec<OpenDelivery>>;

    /// Returns a receiver that is notified of each commit that stored deliveries, also of one that
    /// the disk had refused at first.
    fn deliveries_stored(&self) -> watch::Receiver<()>;

    /// The delivery of a number, whole. `None`: it is gone.
    fn stored_delivery(&self, number: i64) -> JournalFuture<'_, Option<StoredDelivery>>;

    /// Returns the undecided events of chat platforms that have a number above `after`, in the
    /// order of arrival, at most `most`.
    fn waiting_arrivals(&self, after: i64, most: u32) -> JournalFuture<'_, Vec<StoredArrival>>;

    /// Returns the newest events of a conversation with a number below `before` that wait as
    /// context ([`Fate::Noted`]) and are in no message yet, in the order of arrival, at most
    /// `most`.
    fn noted_arrivals(
        &self,
        conversation: &Address,
        before: i64,
        most: u32,
    ) -> JournalFuture<'_, Vec<StoredArrival>>;

    /// Returns records of events: those that a message or event id of a platform names, or a run;
    /// all without an id. The newest first, at most `most`.
    fn arrival_records(&self, id: Option<&str>, most: u32) -> JournalFuture<'_, Vec<ArrivalRecord>>;

    /// Counts the events of each [`Fate`], by its name; `waiting` are those without one.
    fn arrival_tally(&self) -> JournalFuture<'_, Vec<(String, u64)>>;

    /// Returns the messages with this id of a platform that were sent from here, as far as they are
    /// remembered: those of the gateway itself for a month, others for a day. Several conversations
    /// may have the same id.
    fn sent_messages(&self, channel: &str, message_id: &str) -> JournalFuture<'_, Vec<SentMessage>>;

    /// Counts the waiting and failed items of an account of a channel.
    fn account_counts(&self, channel: &str, account: &str) -> JournalFuture<'_, AccountCounts>;

    /// Makes all changes that were asked for so far, then closes everything. Afterwards every call
    /// fails with [`JournalError::Closed`].
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Counts of the waiting and failed items of an account of a channel.
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
    /// Fates of its events, as far as they are remembered.
    pub events: Vec<EventCount>,
    /// Conversations whose first delivery keeps failing, the one that waits longest first, at most [`LATE_LISTED`].
    pub late: Vec<LateConversation>,
    /// Number of all such conversations.
    pub late_total: u64,
}

/// Number of late conversations of an account that are listed.
const LATE_LISTED: usize = 5;
/// Delay of a delivery's next try after its acceptance from which its conversation counts as late.
/// Milliseconds.
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
    /// Error of its last try, for people.
    pub error: String,
    /// Number of deliveries that wait, this one included.
    pub waiting: u64,
}

/// Number of events of an account that had one fate for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCount {
    /// `waiting`, `run`, `noted`, `handled` or `dropped`.
    pub fate: String,
    /// Rule or way, for `handled` and `dropped`.
    pub reason: Option<String>,
    /// Number of events.
    pub count: u64,
    /// Number of times these events were delivered once more and passed over (dedupe).
    pub repeats: u64,
}

/// An open journal.
pub struct OpenedJournal {
    /// The journal.
    pub journal: Arc<dyn Journal>,
    /// Messages the last process did not finish, in the order of acceptance. Deliveries it was sending are uncertain now.
    pub unfinished: Vec<Unfinished>,
    /// Notices that agents are owed about their commands.
    pub notices: KeptNotices,
}

/// A delivery to be stored.
#[derive(Debug, Clone)]
pub struct NewDelivery {
    /// The delivery: its content and its address.
    pub delivery: Delivery,
    /// Unix milliseconds.
    pub accepted_at: i64,
    /// Earliest time at which it is sent, Unix milliseconds: later than its acceptance if a pause
    /// is made before it.
    pub not_before: i64,
}

/// A delivery as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDelivery {
    /// The delivery: its content and its address.
    pub delivery: Result<Delivery, Unreadable>,
    /// Current state.
    pub state: DeliveryState,
    /// Tries that count.
    pub attempts: u32,
    /// Unix milliseconds.
    pub accepted_at: i64,
    /// True if an earlier part of the same message was given up, so that this one is not to come
    /// ([`crate::delivery::DeliveryFailure::takes_the_rest`]).
    pub is_cut_off: bool,
    /// Wait that the platform asked for when it put another delivery of the conversation off.
    pub hold: Option<Hold>,
}

/// A delivery whose part can't be read any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The delivery's id.
    pub id: String,
    /// Error that reading it gave.
    pub why: String,
}

impl StoredDelivery {
    /// Returns the delivery's id.
    pub fn into_id(self) -> String {
        match self.delivery {
            Ok(delivery) => delivery.id,
            Err(unreadable) => unreadable.id,
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
