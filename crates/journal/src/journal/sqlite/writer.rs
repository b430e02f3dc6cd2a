//! The thread that has the database: group commit, retries of updates that must not be lost, and
//! reads between two commits.

use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant};

use openclaw_sessions::time::now_ms;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::{mpsc, oneshot, watch};

use super::place::DatabasePlace;
use super::refused::RefusedRuns;
use super::rows::SqliteRows;
use crate::journal::rows::{JournalRows as _, Removal, retentions};
use crate::journal::{Changed, CommitDurability, JournalChange, JournalError, Look, Update, rules};

/// Number of items taken from the mailbox at once: changes in one transaction, and reads behind
/// them.
const BATCH: usize = 256;
/// Changes between two prunings.
const PRUNE_EVERY: usize = 512;
/// Pause before refused changes are tried again while no other change is to be written.
const RETRY: Duration = Duration::from_millis(500);

/// Message to the thread.
pub(super) enum Mail {
    Work(Box<Work>),
    /// Reads committed data, including every change that came before it; then tells its caller.
    Read(Look, oneshot::Sender<()>),
    /// Does something with the connection by hand.
    #[cfg(any(test, feature = "testing"))]
    ByHand(Box<dyn FnOnce(&Connection) + Send>),
    Close,
}

/// Makes a change inside a transaction.
pub(super) type Apply = fn(&SqliteRows<'_>, &JournalChange) -> Result<Changed, JournalError>;

/// A change, and its caller.
pub(super) struct Work {
    change: JournalChange,
    done: Option<Changed>,
    reply: oneshot::Sender<Result<Changed, JournalError>>,
}

impl Work {
    pub(super) fn new(
        change: JournalChange,
        reply: oneshot::Sender<Result<Changed, JournalError>>,
    ) -> Box<Self> {
        Box::new(Self { change, done: None, reply })
    }

    /// Answers the caller once the change is committed.
    fn answer(self) {
        // A caller that went away meanwhile needs no answer.
        let _ = self.reply.send(self.done.ok_or(JournalError::Closed));
    }

    /// Answers the caller with an error, as the change is not committed. Returns the change if it is
    /// to be tried again, which `refused` gets to know before the caller.
    fn deny(self, error: JournalError, refused: &RefusedRuns) -> Option<JournalChange> {
        let Self { change, reply, .. } = self;
        let retry = change.has_happened().then_some(change);
        if let Some(record) = retry.as_ref().and_then(JournalChange::ended) {
            refused.add(record.clone());
        }
        let _ = reply.send(Err(error));
        retry
    }
}

/// Makes a change of the gateway.
pub(super) fn apply(rows: &SqliteRows<'_>, change: &JournalChange) -> Result<Changed, JournalError> {
    if matches!(change, JournalChange::Update(Update::Settle)) {
        write_nothing(rows.db)?;
    }
    rules::apply(rows, change)
}

/// Applies all of a change or nothing, whatever else its transaction holds.
fn in_savepoint<T>(
    db: &Connection,
    change: impl FnOnce() -> Result<T, JournalError>,
) -> Result<T, JournalError> {
    execute(db, "SAVEPOINT one")?;
    let done = change();
    if done.is_err() && !db.is_autocommit() {
        execute(db, "ROLLBACK TO one")?;
    }
    // A full disk ends the whole transaction, savepoints too.
    if !db.is_autocommit() {
        execute(db, "RELEASE one")?;
    }
    done
}

/// Runs a statement, which is parsed once.
fn execute(db: &Connection, sql: &str) -> Result<(), JournalError> {
    db.prepare_cached(sql)?.execute([])?;
    Ok(())
}

/// Signals for those who wait for commits, possibly nobody.
#[derive(Default)]
pub(super) struct Signals {
    /// Notified of each commit that was synced.
    pub(super) synced: watch::Sender<()>,
    /// Notified of each commit that stored deliveries.
    pub(super) delivered: watch::Sender<()>,
}

impl Signals {
    fn committed(&self, is_synced: bool, has_deliveries: bool) {
        if is_synced {
            self.synced.send_replace(());
        }
        if has_deliveries {
            self.delivered.send_replace(());
        }
    }
}

pub(super) struct DbWriter {
    db: Connection,
    place: DatabasePlace,
    /// True if the files of the database were not at their place the last time.
    is_lost: bool,
    apply: Apply,
    /// Durability of transactions, as the connection is set; `None` before the first.
    durability: Option<CommitDurability>,
    /// Refused updates that are tried again, oldest first, before everything else: while the disk
    /// refuses them, it is given nothing that came later. Accepting fails meanwhile, so that their
    /// number is bounded by the runs that were queued.
    retries: Vec<JournalChange>,
    /// The finished runs among them.
    refused: RefusedRuns,
    /// Time of the last retry.
    retried: Instant,
    signals: Signals,
    /// True if a commit that was refused may stand in the log all the same.
    is_log_stale: bool,
    since_prune: usize,
}

impl DbWriter {
    pub(super) fn new(
        db: Connection,
        place: DatabasePlace,
        apply: Apply,
        refused: RefusedRuns,
        signals: Signals,
    ) -> Self {
        Self {
            db,
            place,
            is_lost: false,
            apply,
            signals,
            durability: None,
            retries: Vec::new(),
            refused,
            retried: Instant::now(),
            is_log_stale: false,
            since_prune: PRUNE_EVERY,
        }
    }

    /// Works until the last handle is gone or [`Mail::Close`] comes.
    pub(super) fn run(mut self, mut mailbox: mpsc::Receiver<Mail>) {
        let mut open = true;
        while open {
            let mut next = match self.next(&mut mailbox) {
                DbWriterStep::Mail(mail) => Some(mail),
                DbWriterStep::Retry => {
                    // The failure was reported when it began.
                    let _ = self.retry_refused();
                    continue;
                }
                DbWriterStep::Closed => break,
            };
            let (mut batch, mut reads) = (Vec::new(), Vec::new());
            while let Some(mail) = next.take() {
                match mail {
                    Mail::Work(work) => batch.push(*work),
                    Mail::Close => open = false,
                    read => reads.push(read),
                }
                if batch.len() + reads.len() < BATCH && open {
                    next = mailbox.try_recv().ok();
                }
            }
            self.write(batch);
            reads.into_iter().for_each(|mail| self.read(mail));
        }
        // The next start finds out anew what is still refused.
        let _ = self.retry_refused();
    }

    /// Waits for the next mail; only briefly while refused changes are to be tried again.
    fn next(&self, mailbox: &mut mpsc::Receiver<Mail>) -> DbWriterStep {
        if !self.has_retries() {
            return mailbox.blocking_recv().map_or(DbWriterStep::Closed, DbWriterStep::Mail);
        }
        let pause = RETRY.saturating_sub(self.retried.elapsed());
        if pause.is_zero() {
            return DbWriterStep::Retry;
        }
        let Ok(clock) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
            return mailbox.blocking_recv().map_or(DbWriterStep::Closed, DbWriterStep::Mail);
        };
        match clock.block_on(async { tokio::time::timeout(pause, mailbox.recv()).await }) {
            Ok(Some(mail)) => DbWriterStep::Mail(mail),
            Ok(None) => DbWriterStep::Closed,
            Err(_) => DbWriterStep::Retry,
        }
    }

    /// Makes changes, in their order. A change that the disk refuses holds back all that came after
    /// it: of two answers for one reader the second must not be stored first.
    fn write(&mut self, batch: Vec<Work>) {
        let batch = self.refuse_if_lost(batch);
        if batch.is_empty() {
            return;
        }
        if let Err(error) = self.retry_refused() {
            tracing::warn!(%error, waiting = self.retries.len(), "the journal still refuses what has ended");
            return self.deny_all(batch, &error);
        }
        let is_synced = batch.iter().any(|work| work.change.durability() == CommitDurability::Synced);
        let durability = if is_synced { CommitDurability::Synced } else { CommitDurability::Written };
        if let Err(error) = self.begin(durability) {
            self.report(&error);
            return self.deny_all(batch, &error);
        }
        let is_alone = batch.len() == 1;
        let mut applied = Vec::with_capacity(batch.len());
        let (mut held_back, mut refusal) = (Vec::new(), None);
        for mut work in batch {
            // A full disk ends the whole transaction, not the statement alone; what follows must not commit by itself.
            if refusal.is_none() && self.db.is_autocommit() {
                refusal = Some(JournalError::Storage("the transaction was rolled back".to_owned()));
            }
            if refusal.is_some() {
                held_back.push(work);
                continue;
            }
            let apply = || self.apply(&work.change);
            let done = if is_alone { apply() } else { in_savepoint(&self.db, apply) };
            match done {
                Ok(done) => {
                    work.done = Some(done);
                    applied.push(work);
                }
                Err(error) => {
                    self.report(&error);
                    if error.is_of_disk() {
                        held_back.push(work);
                        refusal = Some(error);
                    } else {
                        self.deny(work, error);
                    }
                }
            }
        }
        self.commit(applied, is_synced);
        if let Some(error) = refusal {
            self.deny_all(held_back, &error);
        }
    }

    /// Refuses what is to be stored for the first time if the next start would not find it. Looks
    /// only if there is such a change, as late as can be. Changes of what was stored before go on:
    /// the runs of this process live by them.
    fn refuse_if_lost(&mut self, batch: Vec<Work>) -> Vec<Work> {
        if !batch.iter().any(|work| work.change.is_new()) {
            return batch;
        }
        let lost = self.place.lost();
        match (&lost, std::mem::replace(&mut self.is_lost, lost.is_some())) {
            (Some(error), false) => tracing::error!(%error, "the journal takes nothing new"),
            (None, true) => tracing::info!("the journal's file is back at its place"),
            (Some(_), true) | (None, false) => {}
        }
        let Some(error) = lost else { return batch };
        let (new, others) = batch.into_iter().partition(|work| work.change.is_new());
        self.deny_all(new, &error);
        others
    }

    /// Ends the open transaction, which holds these changes, and answers them.
    fn commit(&mut self, applied: Vec<Work>, is_synced: bool) {
        if applied.is_empty() {
            // Nothing to roll back when the disk's refusal did it already.
            let _ = execute(&self.db, "ROLLBACK");
            return;
        }
        match execute(&self.db, "COMMIT") {
            Ok(()) => {
                self.signals.committed(is_synced, applied.iter().any(|work| work.change.has_deliveries()));
                self.since_prune += applied.len();
                applied.into_iter().for_each(|work| work.answer());
                self.prune_if_due();
            }
            Err(error) => {
                self.report(&error);
                // Nothing to roll back when the disk's refusal did it already.
                let _ = execute(&self.db, "ROLLBACK");
                self.overwrite_log();
                self.deny_all(applied, &error);
            }
        }
    }

    fn rows(&self) -> SqliteRows<'_> {
        SqliteRows { db: &self.db, refused: &self.refused }
    }

    /// Makes a change inside the open transaction. One that panics is refused: the thread works for
    /// all.
    fn apply(&self, change: &JournalChange) -> Result<Changed, JournalError> {
        panic::catch_unwind(AssertUnwindSafe(|| (self.apply)(&self.rows(), change))).unwrap_or_else(|_| {
            let why = "a change of the journal panicked; the gateway's log says more";
            Err(JournalError::Storage(why.to_owned()))
        })
    }

    fn read(&self, mail: Mail) {
        // After a panic its caller gets no answer; the thread works for all.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| match mail {
            Mail::Read(look, done) => {
                look(&self.rows());
                // A caller that went away meanwhile need not be told.
                let _ = done.send(());
            }
            #[cfg(any(test, feature = "testing"))]
            Mail::ByHand(by_hand) => by_hand(&self.db),
            Mail::Work(_) | Mail::Close => {}
        }));
    }

    fn deny_all(&mut self, batch: Vec<Work>, error: &JournalError) {
        batch.into_iter().for_each(|work| self.deny(work, error.clone()));
    }

    fn deny(&mut self, work: Work, error: JournalError) {
        self.retries.extend(work.deny(error, &self.refused));
    }

    /// Opens a transaction whose commit has the durability that is asked for.
    fn begin(&mut self, durability: CommitDurability) -> Result<(), JournalError> {
        if self.durability != Some(durability) {
            let level = if durability == CommitDurability::Synced { "FULL" } else { "NORMAL" };
            self.db.pragma_update(None, "synchronous", level)?;
            self.durability = Some(durability);
        }
        execute(&self.db, "BEGIN IMMEDIATE")
    }

    fn has_retries(&self) -> bool {
        self.is_log_stale || !self.retries.is_empty()
    }

    /// Stores the refused updates, synced: all of them, except those that fail by their own fault.
    /// Fails if the disk still refuses.
    fn retry_refused(&mut self) -> Result<(), JournalError> {
        if !self.has_retries() {
            return Ok(());
        }
        self.retried = Instant::now();
        self.begin(CommitDurability::Synced)?;
        let stored = self.apply_refused().and_then(|stored| execute(&self.db, "COMMIT").map(|()| stored));
        let stored = stored.inspect_err(|_| drop(execute(&self.db, "ROLLBACK")))?;
        tracing::info!(count = stored.len(), "the journal stored what it had refused");
        self.is_log_stale = false;
        let mut number = 0..;
        let is_stored = |_: &mut JournalChange| number.next().is_some_and(|number| stored.contains(&number));
        let stored: Vec<JournalChange> = self.retries.extract_if(.., is_stored).collect();
        for record in stored.iter().filter_map(JournalChange::ended) {
            self.refused.remove(&record.run_id);
        }
        self.signals.committed(true, stored.iter().any(JournalChange::has_deliveries));
        Ok(())
    }

    /// Makes the refused changes inside the open transaction, in their order. Gives the places of those that were made: one with a mistake
    /// of its own keeps nothing else waiting.
    fn apply_refused(&self) -> Result<Vec<usize>, JournalError> {
        if self.is_log_stale {
            write_nothing(&self.db)?;
        }
        let mut made = Vec::with_capacity(self.retries.len());
        for (number, change) in self.retries.iter().enumerate() {
            match in_savepoint(&self.db, || self.apply(change)) {
                Ok(_) => made.push(number),
                Err(error) if error.is_of_disk() || self.db.is_autocommit() => return Err(error),
                Err(error) => tracing::debug!(%error, "a refused change of the journal fails by itself"),
            }
        }
        Ok(made)
    }

    /// Overwrites the log after a refused commit. Such a commit may stand whole in the log all the
    /// same, and the next start would find it: something else is written over it, now or as soon as
    /// the disk takes it.
    fn overwrite_log(&mut self) {
        self.is_log_stale = true;
        // The failure was reported when it began.
        let _ = self.retry_refused();
    }

    fn report(&self, error: &JournalError) {
        tracing::error!(%error, "the journal could not be written");
        if let JournalError::Damaged(_) = error {
            // The log that is left behind makes the next start check the whole file.
            let _ = self.db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }

    fn prune_if_due(&mut self) {
        if self.since_prune < PRUNE_EVERY {
            return;
        }
        self.since_prune = 0;
        for retention in retentions(now_ms()) {
            if let Err(error) = self.rows().remove(Removal::Old(retention)) {
                tracing::warn!(%error, "the journal could not be pruned");
            }
        }
    }
}

/// Makes a commit of a transaction that changes nothing.
fn write_nothing(db: &Connection) -> Result<(), JournalError> {
    let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(db.pragma_update(None, "user_version", version)?)
}

/// Next step of the thread.
enum DbWriterStep {
    Mail(Mail),
    /// No mail came: try the refused updates again.
    Retry,
    Closed,
}
