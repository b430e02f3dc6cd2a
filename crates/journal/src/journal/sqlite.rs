//! The journal as a database, `gateway.sqlite`.
//!
//! One thread has the database for itself ([`writer`]): it takes whatever changes have come,
//! applies them in one transaction and syncs once, so that many share one fsync; then it makes the
//! reads that were asked for. No other program may open the file meanwhile, which spares SQLite a
//! dozen locks a turn. [`queue`] has what the tables have in common, [`messages`] and
//! [`deliveries`] are the two. [`mod@file`] opens the file, [`mod@salvage`] saves what can be read
//! of a damaged one.

mod arrivals;
mod deliveries;
mod file;
mod health;
mod log_check;
mod messages;
mod notices;
mod queue;
mod refused;
mod salvage;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::HashMap;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;

use openclaw_channels::Address;
use openclaw_protocol::RunId;
use openclaw_sessions::time::now_ms;
use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

pub use health::{DatabaseState, check_database, renew_database};
pub use salvage::Salvaged;

use super::{
    AccountCounts, Journal, JournalError, JournalFuture, NewDelivery, OpenedJournal, Reservation,
    SYNC_TOGETHER, StoredDelivery, Update,
};
use crate::arrival::{ArrivalInsert, ArrivalRecord, NewArrival, StoredArrival};
use crate::delivery::{DeliveryInsert, DeliveryStatus, ListedDelivery, OpenDelivery, SentMessage};
use crate::inbox::{AskedRecords, KnownRun, MessageRecord};
use crate::request::RunRequest;
use arrivals::Arrive;
use messages::Accept;
use refused::RefusedRuns;
use writer::{DbChange, DbWriter, Mail, Signals};

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
    refused: RefusedRuns,
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
        let (journal, (unfinished, notices)) = Self::open_with(state_dir, |db| {
            deliveries::mark_uncertain(db)?;
            deliveries::drop_blocks(db)?;
            Ok((messages::unfinished(db)?, notices::recover(db, now_ms())?))
        })?;
        Ok(OpenedJournal { journal: Arc::new(journal), unfinished, notices })
    }

    fn open_with<T>(
        state_dir: &Path,
        look: impl Fn(&Connection) -> Result<T, JournalError>,
    ) -> Result<(Self, T), JournalError> {
        let path = state_dir.join(FILE_NAME);
        let (connection, found) = file::open(&path, look)?;
        let (mailbox, received) = mpsc::channel(MAILBOX);
        let refused = RefusedRuns::default();
        let signals = Signals::default();
        let (syncs, deliveries) = (signals.synced.subscribe(), signals.delivered.subscribe());
        let writer = DbWriter::new(connection, refused.clone(), signals);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(received))
            .map_err(|error| JournalError::Storage(format!("cannot start the journal's thread: {error}")))?;
        Ok((Self { mailbox, refused, syncs, deliveries, thread: Mutex::new(Some(thread)) }, found))
    }

    /// Makes a change. When this returns it is as safe as its [`DbChange::durability`] says.
    async fn change<C: DbChange>(&self, change: C) -> Result<C::Done, JournalError> {
        let (reply, answer) = oneshot::channel();
        let mail = Mail::Work(writer::work(change, reply));
        self.mailbox.send(mail).await.map_err(|_| JournalError::Closed)?;
        answered(&self.mailbox, answer).await
    }

    /// Reads committed data.
    async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let (reply, answer) = oneshot::channel();
        let read = move |db: &Connection| {
            // A caller that went away meanwhile needs no answer.
            let _ = reply.send(look(db));
        };
        self.mailbox.send(Mail::Read(Box::new(read))).await.map_err(|_| JournalError::Closed)?;
        answered(&self.mailbox, answer).await
    }
}

/// Waits for the answer of the thread. The thread may end first: mail that comes after its end
/// stays in the mailbox.
async fn answered<T>(
    mailbox: &mpsc::Sender<Mail>,
    mut answer: oneshot::Receiver<Result<T, JournalError>>,
) -> Result<T, JournalError> {
    tokio::select! { biased;
        answer = &mut answer => answer.map_err(|_| JournalError::Closed)?,
        () = mailbox.closed() => answer.try_recv().map_err(|_| JournalError::Closed)?,
    }
}

impl Journal for SqliteJournal {
    fn reserve(&self) -> JournalFuture<'_, Reservation> {
        Box::pin(async {
            let permit = self.mailbox.clone().reserve_owned().await.map_err(|_| JournalError::Closed)?;
            let refused = self.refused.clone();
            let reservation: Reservation = Box::new(move |row, durability| {
                let (reply, answer) = oneshot::channel();
                let mailbox =
                    permit.send(Mail::Work(writer::work(Accept { row, durability, refused }, reply)));
                Box::pin(async move { answered(&mailbox, answer).await })
            });
            Ok(reservation)
        })
    }

    fn deliver(&self, delivery: NewDelivery) -> JournalFuture<'_, DeliveryInsert> {
        Box::pin(self.change(delivery))
    }

    fn arrive(&self, events: Vec<NewArrival>) -> JournalFuture<'_, Option<Vec<ArrivalInsert>>> {
        Box::pin(self.change(Arrive(events)))
    }

    fn synced(&self) -> JournalFuture<'_, ()> {
        let mut syncs = self.syncs.clone();
        // The thread does one after the other: a commit that is told of from now on began after what was written before.
        syncs.mark_unchanged();
        Box::pin(async move {
            match timeout(SYNC_TOGETHER, syncs.changed()).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) | Err(_) => self.change(Update::Settle).await.map(drop),
            }
        })
    }

    fn waiting_arrivals(&self, after: i64, most: u32) -> JournalFuture<'_, Vec<StoredArrival>> {
        Box::pin(self.read(move |db| arrivals::waiting(db, after, most)))
    }

    fn noted_arrivals(
        &self,
        conversation: &Address,
        before: i64,
        most: u32,
    ) -> JournalFuture<'_, Vec<StoredArrival>> {
        let conversation = conversation.clone();
        Box::pin(self.read(move |db| arrivals::noted(db, &conversation, before, most)))
    }

    fn arrival_records(&self, id: Option<&str>, most: u32) -> JournalFuture<'_, Vec<ArrivalRecord>> {
        let id = id.map(str::to_owned);
        Box::pin(self.read(move |db| arrivals::records(db, id.as_deref(), most)))
    }

    fn arrival_tally(&self) -> JournalFuture<'_, Vec<(String, u64)>> {
        Box::pin(self.read(arrivals::tally))
    }

    fn sent_messages(&self, channel: &str, message_id: &str) -> JournalFuture<'_, Vec<SentMessage>> {
        let (channel, message_id) = (channel.to_owned(), message_id.to_owned());
        Box::pin(self.read(move |db| deliveries::sent_messages(db, &channel, &message_id)))
    }

    fn account_counts(&self, channel: &str, account: &str) -> JournalFuture<'_, AccountCounts> {
        let (channel, account) = (channel.to_owned(), account.to_owned());
        Box::pin(self.read(move |db| {
            let inbox = arrivals::count_waiting(db, &channel, &account)?;
            let events = arrivals::counts(db, &channel, &account)?;
            Ok(AccountCounts { inbox, events, ..deliveries::counts(db, &channel, &account)? })
        }))
    }

    fn update(&self, update: Update) -> JournalFuture<'_, bool> {
        Box::pin(self.change(update))
    }

    fn message(&self, run_id: &RunId) -> JournalFuture<'_, Option<KnownRun>> {
        // The run has ended, whatever the disk says of it.
        if let Some(record) = self.refused.find(run_id) {
            return Box::pin(std::future::ready(Ok(Some(KnownRun::Finished(record)))));
        }
        let run_id = run_id.clone();
        Box::pin(self.read(move |db| messages::known(db, &run_id)))
    }

    fn message_records(&self, asked: AskedRecords, most: u32) -> JournalFuture<'_, Vec<MessageRecord>> {
        Box::pin(self.read(move |db| messages::records(db, &asked, most)))
    }

    fn payload(&self, run_id: &RunId) -> JournalFuture<'_, RunRequest> {
        let run_id = run_id.clone();
        Box::pin(self.read(move |db| messages::payload(db, &run_id)))
    }

    fn entries_since(&self, accepted_at: i64) -> JournalFuture<'_, HashMap<String, RunId>> {
        Box::pin(self.read(move |db| messages::entries_since(db, accepted_at)))
    }

    fn delivery(&self, id: &str) -> JournalFuture<'_, Option<DeliveryStatus>> {
        let id = id.to_owned();
        Box::pin(self.read(move |db| deliveries::status(db, &id)))
    }

    fn deliveries_of(&self, run_id: &RunId) -> JournalFuture<'_, Vec<DeliveryStatus>> {
        let run_id = run_id.clone();
        Box::pin(self.read(move |db| deliveries::of_run(db, &run_id)))
    }

    fn deliveries_named(&self, id: &str) -> JournalFuture<'_, Vec<DeliveryStatus>> {
        let id = id.to_owned();
        Box::pin(self.read(move |db| deliveries::named(db, &id)))
    }

    fn delivery_ahead_of(&self, id: &str) -> JournalFuture<'_, Option<String>> {
        let id = id.to_owned();
        Box::pin(self.read(move |db| deliveries::ahead_of(db, &id)))
    }

    fn failed_deliveries(&self, most: u32) -> JournalFuture<'_, Vec<ListedDelivery>> {
        Box::pin(self.read(move |db| deliveries::failed(db, most)))
    }

    fn waiting_deliveries(&self) -> JournalFuture<'_, Vec<ListedDelivery>> {
        Box::pin(self.read(deliveries::waiting))
    }

    fn open_deliveries(&self, after: i64) -> JournalFuture<'_, Vec<OpenDelivery>> {
        Box::pin(self.read(move |db| deliveries::open(db, after)))
    }

    fn deliveries_stored(&self) -> watch::Receiver<()> {
        self.deliveries.clone()
    }

    fn stored_delivery(&self, number: i64) -> JournalFuture<'_, Option<StoredDelivery>> {
        Box::pin(self.read(move |db| deliveries::stored(db, number)))
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
