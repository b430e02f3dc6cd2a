//! Durable storage of the gateway (`docs/durability.md`): a [`Journal`] keeps the events of
//! platforms ([`crate::arrival`]) until they are decided about, the messages of the
//! [`crate::inbox`] until their runs have ended and the deliveries of the outbox until
//! their platforms have them, all in the order of acceptance. [`sqlite`] is the one the gateway
//! uses.
//!
//! The parts, from the top: [`Journal`] and its questions ([`lookups`]); [`rules`], which say what a
//! change does to the rows; [`rows`], the rules of a single row and the port below which a database
//! stores rows, and nothing else.

#[cfg(test)]
mod contract;
mod lookups;
#[cfg(any(test, feature = "testing"))]
pub mod memory;
pub mod rows;
pub mod rules;
pub mod sqlite;
mod update;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::delivery::{Delivery, DeliveryState, Hold};
use crate::inbox::{InboxRow, Insert, RequestColumns, Unfinished};
use crate::notices::KeptNotices;
pub use update::{Changed, CommitDurability, JournalChange, Update};

use rows::JournalRows;

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
    /// The file, or its log, was deleted or moved away while it is open. Nothing new is taken until
    /// it is back.
    #[error(
        "{0} was deleted or moved away while the gateway runs; stop the gateway, put the file back or begin with a new one, then start it again"
    )]
    Gone(String),
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
            Self::Storage(_)
            | Self::Damaged(_)
            | Self::Gone(_)
            | Self::Newer { .. }
            | Self::InUse(_)
            | Self::Closed => false,
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

/// A look at the rows of a journal.
pub type Look = Box<dyn FnOnce(&dyn JournalRows) + Send>;

/// Storage of messages and deliveries. Changes are made one after the other, in the order in which
/// they are asked for: all of a change or, after an error, nothing. What a change does to the rows is
/// [`rules::apply`]. Any implementation must pass the suite `contract`.
pub trait Journal: Send + Sync {
    /// Waits for room for a message.
    fn reserve(&self) -> JournalFuture<'_, Reservation>;

    /// Makes a change. When the future ends, it is as safe as its [`JournalChange::durability`] says;
    /// [`Update::Settle`] syncs what was written before. A change that [has
    /// happened](JournalChange::has_happened) is tried again after an error, before all that come after it,
    /// until it is stored.
    fn change(&self, change: JournalChange) -> JournalFuture<'_, Changed>;

    /// Looks at the rows between two changes, and finds all changes that were made before. The future
    /// ends when that is done.
    fn read(&self, look: Look) -> JournalFuture<'_, ()>;

    /// Ends when all that was written before is synced: with the next change that is, or by itself if none comes within
    /// [`SYNC_TOGETHER`].
    fn synced(&self) -> JournalFuture<'_, ()>;

    /// Returns a receiver that is notified of each commit that stored deliveries, also of one that
    /// the disk had refused at first.
    fn deliveries_stored(&self) -> watch::Receiver<()>;

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
    /// Conversations whose first delivery keeps failing, the one that waits longest first, a few of them.
    pub late: Vec<LateConversation>,
    /// Number of all such conversations.
    pub late_total: u64,
}

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
