//! `gateway.sqlite`: what the gateway must not forget, kept in queues (`docs/durability.md`).
//!
//! [`states`] says what a queue is: a table whose items pass through named states, and the transitions there are. The
//! [`crate::inbox`] and the [`crate::outbox`] are two of them. One thread writes ([`writer`]): it takes whatever
//! [`Change`]s have come, applies them in one transaction and syncs once, so that many share one fsync; readers use a
//! connection of their own beside it. [`database`] opens the file, [`mod@salvage`] saves what can be read of a damaged one.

mod database;
mod log_check;
mod salvage;
pub(crate) mod states;
#[cfg(test)]
mod tests;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode};
use tokio::sync::{mpsc, oneshot};

pub(crate) use database::{put_in_place, salvage};
pub(crate) use salvage::Saved;
use writer::{Asked, Writer};

/// Name of the database in the state directory.
pub(crate) const FILE_NAME: &str = "gateway.sqlite";

/// Changes that may wait for the writer before those who ask for them have to.
const MAILBOX: usize = 1024;

/// Why the journal did not do something. Nothing of the change was kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// SQLite said no: full disk, unwritable directory. The caller may try again.
    #[error("{0}")]
    Storage(String),
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
    /// The writer has ended.
    #[error("the journal is closed")]
    Closed,
}

impl From<rusqlite::Error> for JournalError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error.to_string()),
            Some(_) | None => Self::Storage(error.to_string()),
        }
    }
}

impl From<serde_json::Error> for JournalError {
    fn from(error: serde_json::Error) -> Self {
        Self::Storage(error.to_string())
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

/// What becomes of a change that the disk refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Nothing: who asked is told.
    Forget,
    /// It tells what has happened already: who asked is told, and it is tried again until it is stored.
    Insist,
}

/// One change of the database.
pub(crate) trait Change: Send + 'static {
    /// What it answers.
    type Done: Send + 'static;
    /// How safe it is when its future ends.
    const DURABILITY: Durability;
    /// Whether it may be refused for good.
    const REFUSAL: Refusal = Refusal::Forget;

    /// Makes the change, inside a transaction. Either all of it or, after an error, nothing.
    fn apply(&self, db: &Connection) -> Result<Self::Done, JournalError>;

    /// With [`Refusal::Insist`]: it was refused and is tried again from now on.
    fn refused(&self) {}

    /// It was refused and is stored at last.
    fn stored_late(&self) {}
}

/// Regular cleaning of a queue, in a transaction of its own. Gets the time in Unix milliseconds.
pub(crate) type Upkeep = fn(&Connection, i64) -> Result<(), JournalError>;

/// Handle to the journal. Clones are the same journal.
#[derive(Clone)]
pub(crate) struct Journal {
    asked: mpsc::Sender<Asked>,
    /// Gone once the journal is closed.
    reader: Arc<Mutex<Option<Connection>>>,
}

/// Room for one change.
pub(crate) struct Room(mpsc::OwnedPermit<Asked>);

impl Room {
    /// Puts the change behind all that were put there before.
    pub(crate) fn change<C: Change>(self, change: C) -> Changing<C::Done> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Asked::Work(writer::work(change, reply)));
        Changing(answer)
    }
}

/// A change on its way.
#[must_use]
pub(crate) struct Changing<T>(oneshot::Receiver<Result<T, JournalError>>);

impl<T> Changing<T> {
    /// Waits until it is as safe as its [`Change::DURABILITY`] says.
    pub(crate) async fn done(self) -> Result<T, JournalError> {
        self.0.await.map_err(|_| JournalError::Closed)?
    }
}

/// The thread behind a [`Journal`], to be joined at shutdown.
pub(crate) type WriterThread = std::thread::JoinHandle<()>;

/// An open journal.
pub(crate) struct Opened<T> {
    /// The handle.
    pub(crate) journal: Journal,
    /// Ends once every handle is gone or after [`Journal::close`].
    pub(crate) thread: WriterThread,
    /// What the first look gave.
    pub(crate) found: T,
}

impl Journal {
    /// Opens or creates the database in a state directory and looks for what is left to do. A damaged file is set aside,
    /// and the look is repeated on what could be saved of it. Blocking.
    pub(crate) fn open<T>(
        state_dir: &Path,
        upkeep: &'static [Upkeep],
        look: impl Fn(&Connection) -> Result<T, JournalError>,
    ) -> Result<Opened<T>, JournalError> {
        let path: PathBuf = state_dir.join(FILE_NAME);
        let (connection, found) = database::open(&path, look)?;
        let reader = Arc::new(Mutex::new(Some(database::open_reader(&path)?)));
        let (asked, mailbox) = mpsc::channel(MAILBOX);
        let writer = Writer::new(connection, upkeep);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(mailbox))
            .map_err(|error| JournalError::Storage(format!("cannot start the journal's thread: {error}")))?;
        Ok(Opened { journal: Self { asked, reader }, thread, found })
    }

    /// Makes a change. When this returns it is as safe as its [`Change::DURABILITY`] says.
    pub(crate) async fn change<C: Change>(&self, change: C) -> Result<C::Done, JournalError> {
        self.room().await?.change(change).done().await
    }

    /// Waits for room for a change. Changes are made in the order in which they are put into it.
    pub(crate) async fn room(&self) -> Result<Room, JournalError> {
        self.asked.clone().reserve_owned().await.map(Room).map_err(|_| JournalError::Closed)
    }

    /// Reads what is committed. The lock is held for the time of `look`, on a blocking thread: an indexed lookup.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let reader = Arc::clone(&self.reader);
        let read = move || look(reader.lock().as_ref().ok_or(JournalError::Closed)?);
        tokio::task::spawn_blocking(read).await.map_err(|_| JournalError::Closed)?
    }

    /// Ends the writer after what is queued. Nothing can be read any more: the writer is the last to let go of the file, and
    /// puts its log into it.
    pub(crate) async fn close(&self) {
        let reader = Arc::clone(&self.reader);
        // A reader that panicked has let go.
        let _ = tokio::task::spawn_blocking(move || drop(reader.lock().take())).await;
        // The writer has ended already: nothing to close.
        let _ = self.asked.send(Asked::Close).await;
    }
}
