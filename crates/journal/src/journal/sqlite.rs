//! The journal as a database, `gateway.sqlite`.
//!
//! One thread has the database for itself ([`writer`]): it takes whatever changes have come,
//! applies them in one transaction and syncs once, so that many share one fsync; then it makes the
//! reads that were asked for. No other program may open the file meanwhile, which spares SQLite a
//! dozen locks a turn. [`rows`] has the statements, which decide nothing: what a change does is said
//! by [`super::rules`]. [`mod@file`] opens the file, [`mod@place`] tells if it is still there,
//! [`mod@salvage`] saves what can be read of a damaged one.

mod arrivals;
mod deliveries;
mod file;
mod health;
mod log_check;
mod messages;
mod notices;
mod place;
mod refused;
mod rows;
mod salvage;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;

use openclaw_sessions::time::now_ms;
use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

pub use health::{DatabaseState, check_database, renew_database};
pub use place::is_lost_by;
pub use salvage::Salvaged;

use super::{
    Changed, Journal, JournalChange, JournalError, JournalFuture, Look, OpenedJournal, Reservation,
    SYNC_TOGETHER, Update, rules,
};
use place::DatabasePlace;
use refused::RefusedRuns;
use rows::SqliteRows;
use writer::{Apply, DbWriter, Mail, Signals, Work};

/// Name of the database in the state directory.
pub const FILE_NAME: &str = "gateway.sqlite";

/// Changes that may wait for the writer; further callers wait for room.
const MAILBOX: usize = 1024;

impl From<rusqlite::Error> for JournalError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error.to_string()),
            Some(ErrorCode::DiskFull) => Self::DiskFull,
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::OutOfMemory
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked,
            ) => Self::Disk(error.to_string()),
            Some(_) | None => Self::Storage(error.to_string()),
        }
    }
}

/// The journal in `gateway.sqlite`.
pub struct SqliteJournal {
    mailbox: mpsc::Sender<Mail>,
    /// Notified of each commit that was synced.
    syncs: watch::Receiver<()>,
    /// Notified of each commit that stored deliveries.
    deliveries: watch::Receiver<()>,
    /// The writer, until it is joined.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl SqliteJournal {
    /// Opens or creates the database in a state directory and reads the work that is left. A
    /// damaged file is set aside, and the rows that could be saved are read instead. Blocking.
    pub fn open(state_dir: &Path) -> Result<OpenedJournal, JournalError> {
        let (journal, (unfinished, notices)) = Self::open_with(state_dir, writer::apply, |db| {
            let transaction = db.unchecked_transaction()?;
            let rows = SqliteRows { db: &transaction, refused: &RefusedRuns::default() };
            let found = rules::recover(&rows, now_ms())?;
            transaction.commit()?;
            Ok(found)
        })?;
        Ok(OpenedJournal { journal: Arc::new(journal), unfinished, notices })
    }

    fn open_with<T>(
        state_dir: &Path,
        apply: Apply,
        look: impl Fn(&Connection) -> Result<T, JournalError>,
    ) -> Result<(Self, T), JournalError> {
        let path = state_dir.join(FILE_NAME);
        let (connection, found) = file::open(&path, look)?;
        let (mailbox, received) = mpsc::channel(MAILBOX);
        let refused = RefusedRuns::default();
        let signals = Signals::default();
        let (syncs, deliveries) = (signals.synced.subscribe(), signals.delivered.subscribe());
        let writer = DbWriter::new(connection, DatabasePlace::of(&path), apply, refused, signals);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(received))
            .map_err(|error| JournalError::Storage(format!("cannot start the journal's thread: {error}")))?;
        Ok((Self { mailbox, syncs, deliveries, thread: Mutex::new(Some(thread)) }, found))
    }

    async fn send(&self, mail: Mail) -> Result<(), JournalError> {
        self.mailbox.send(mail).await.map_err(|_| JournalError::Closed)
    }
}

/// Waits for the answer of the thread. The thread may end first: mail that comes after its end
/// stays in the mailbox.
async fn answered<T>(
    mailbox: &mpsc::Sender<Mail>,
    mut answer: oneshot::Receiver<T>,
) -> Result<T, JournalError> {
    tokio::select! { biased;
        answer = &mut answer => answer.map_err(|_| JournalError::Closed),
        () = mailbox.closed() => answer.try_recv().map_err(|_| JournalError::Closed),
    }
}

impl Journal for SqliteJournal {
    fn reserve(&self) -> JournalFuture<'_, Reservation> {
        Box::pin(async {
            let permit = self.mailbox.clone().reserve_owned().await.map_err(|_| JournalError::Closed)?;
            let reservation: Reservation = Box::new(move |row, durability| {
                let (reply, answer) = oneshot::channel();
                let change = JournalChange::Accept(Box::new(row), durability);
                let mailbox = permit.send(Mail::Work(Work::new(change, reply)));
                Box::pin(async move { answered(&mailbox, answer).await??.accepted() })
            });
            Ok(reservation)
        })
    }

    fn change(&self, change: JournalChange) -> JournalFuture<'_, Changed> {
        Box::pin(async {
            let (reply, answer) = oneshot::channel();
            self.send(Mail::Work(Work::new(change, reply))).await?;
            answered(&self.mailbox, answer).await?
        })
    }

    fn read(&self, look: Look) -> JournalFuture<'_, ()> {
        Box::pin(async {
            let (done, is_done) = oneshot::channel();
            self.send(Mail::Read(look, done)).await?;
            answered(&self.mailbox, is_done).await
        })
    }

    fn synced(&self) -> JournalFuture<'_, ()> {
        let mut syncs = self.syncs.clone();
        // The thread does one after the other: a commit that is told of from now on began after what was written before.
        syncs.mark_unchanged();
        Box::pin(async move {
            match timeout(SYNC_TOGETHER, syncs.changed()).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) | Err(_) => self.change(JournalChange::Update(Update::Settle)).await.map(drop),
            }
        })
    }

    fn deliveries_stored(&self) -> watch::Receiver<()> {
        self.deliveries.clone()
    }

    /// Closing the connection puts the log into the file.
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            // The writer has ended already: nothing to close.
            let _ = self.mailbox.send(Mail::Close).await;
            let thread = self.thread.lock().take();
            if let Some(thread) = thread {
                // A writer that panicked has nothing left to write.
                let _ = tokio::task::spawn_blocking(move || thread.join()).await;
            }
        })
    }
}
