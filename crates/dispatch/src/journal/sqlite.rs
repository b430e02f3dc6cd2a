//! The journal as a database, `gateway.sqlite`.
//!
//! One thread has the database for itself ([`writer`]): it takes whatever changes have come, applies them in one transaction
//! and syncs once, so that many share one fsync; then it reads what it was asked. Nobody else may open the file
//! meanwhile, which spares SQLite a dozen locks a turn. [`queue`] says what the tables have in common, [`messages`] and
//! [`deliveries`] are the two. [`mod@file`] opens the file, [`mod@salvage`] saves what can be read of a damaged one.

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
#[cfg(test)]
pub(crate) mod tests;
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
    AccountCounts, Journal, JournalError, JournalFuture, NewDelivery, Opened, Reservation, SYNC_TOGETHER,
    StoredDelivery, Update,
};
use crate::arrivals::{ArrivalInsert, ArrivalRecord, NewArrival, StoredArrival};
use crate::inbox::{AskedRecords, Known, MessageRecord};
use crate::outbox::{DeliveryInsert, DeliveryStatus, ListedDelivery, OpenDelivery};
use crate::request::Request;
use arrivals::Arrive;
use messages::Accept;
use refused::Refused;
use writer::{Change, Mail, Writer};

/// Name of the database in the state directory.
pub(crate) const FILE_NAME: &str = "gateway.sqlite";

/// Changes that may wait for the writer; further callers wait for room.
const MAILBOX: usize = 1024;

impl From<rusqlite::Error> for JournalError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error.to_string()),
            Some(ErrorCode::DiskFull) => Self::DiskFull,
            Some(_) | None => Self::Storage(error.to_string()),
        }
    }
}

/// The journal in `gateway.sqlite`.
pub(crate) struct SqliteJournal {
    mailbox: mpsc::Sender<Mail>,
    refused: Refused,
    /// Told of each commit that was synced.
    syncs: watch::Receiver<()>,
    /// The writer, until it is joined.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl SqliteJournal {
    /// Opens or creates the database in a state directory and reads what is left to do. A damaged file is set aside, and what
    /// could be saved of it is read instead. Blocking.
    pub(crate) fn open(state_dir: &Path) -> Result<Opened, JournalError> {
        let (journal, (unfinished, notices)) = Self::open_with(state_dir, |db| {
            deliveries::mark_uncertain(db)?;
            deliveries::drop_blocks(db)?;
            Ok((messages::unfinished(db)?, notices::recover(db, now_ms())?))
        })?;
        Ok(Opened { journal: Arc::new(journal), unfinished, notices })
    }

    fn open_with<T>(
        state_dir: &Path,
        look: impl Fn(&Connection) -> Result<T, JournalError>,
    ) -> Result<(Self, T), JournalError> {
        let path = state_dir.join(FILE_NAME);
        let (connection, found) = file::open(&path, look)?;
        let (mailbox, received) = mpsc::channel(MAILBOX);
        let refused = Refused::default();
        let (told, syncs) = watch::channel(());
        let writer = Writer::new(connection, refused.clone(), told);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(received))
            .map_err(|error| JournalError::Storage(format!("cannot start the journal's thread: {error}")))?;
        Ok((Self { mailbox, refused, syncs, thread: Mutex::new(Some(thread)) }, found))
    }

    /// Makes a change. When this returns it is as safe as its [`Change::durability`] says.
    async fn change<C: Change>(&self, change: C) -> Result<C::Done, JournalError> {
        let (reply, answer) = oneshot::channel();
        let mail = Mail::Work(writer::work(change, reply));
        self.mailbox.send(mail).await.map_err(|_| JournalError::Closed)?;
        answered(&self.mailbox, answer).await
    }

    /// Reads what is committed.
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

/// What the thread answers. It may end first: what comes to a mailbox after its end stays there.
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

    fn sent_to(&self, conversation: &Address, message_id: &str) -> JournalFuture<'_, Option<Address>> {
        let (at, message_id) = (conversation.clone(), message_id.to_owned());
        Box::pin(self.read(move |db| deliveries::sent_to(db, &at, &message_id)))
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

    fn message(&self, run_id: &RunId) -> JournalFuture<'_, Option<Known>> {
        // It has ended, whatever the disk says of it.
        if let Some(record) = self.refused.find(run_id) {
            return Box::pin(std::future::ready(Ok(Some(Known::Finished(record)))));
        }
        let run_id = run_id.clone();
        Box::pin(self.read(move |db| messages::known(db, &run_id)))
    }

    fn message_records(&self, asked: AskedRecords, most: u32) -> JournalFuture<'_, Vec<MessageRecord>> {
        Box::pin(self.read(move |db| messages::records(db, &asked, most)))
    }

    fn payload(&self, run_id: &RunId) -> JournalFuture<'_, Request> {
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
