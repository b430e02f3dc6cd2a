//! The thread that has the database: group commit, retries of updates that must not be lost, and
//! reads between two commits.

use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant};

use openclaw_sessions::time::now_ms;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::{mpsc, oneshot, watch};

use super::refused::RefusedRuns;
use super::{arrivals, deliveries, messages, notices};
use crate::journal::{CommitDurability, JournalError, Update};
use crate::queue::DropRule;

/// Number of items taken from the mailbox at once: changes in one transaction, and reads behind
/// them.
const BATCH: usize = 256;
/// Changes between two prunings.
const PRUNE_EVERY: usize = 512;
/// Pause before refused changes are tried again while no other change is to be written.
const RETRY: Duration = Duration::from_millis(500);

/// Message to the thread.
pub(super) enum Mail {
    Work(Box<dyn PendingChange>),
    Read(ReadTask),
    Close,
}

/// Reads committed data, including every change that came before it.
pub(super) type ReadTask = Box<dyn FnOnce(&Connection) + Send>;

/// Change that is made to the database in one piece.
pub(super) trait DbChange: Send + 'static {
    /// Answer to the caller.
    type Done: Send + 'static;

    /// Durability that the change has when it is answered.
    fn durability(&self) -> CommitDurability;

    /// True if it stores deliveries.
    fn has_deliveries(&self) -> bool {
        false
    }

    /// Makes the change, inside a transaction. Either all of it or, after an error, nothing.
    fn apply(&self, db: &Connection) -> Result<Self::Done, JournalError>;

    /// Returns the part of it that is tried again when the disk refuses it, until it is stored.
    fn into_retry(self) -> Option<Update>
    where
        Self: Sized,
    {
        None
    }
}

impl DbChange for Update {
    type Done = bool;

    fn durability(&self) -> CommitDurability {
        self.durability()
    }

    fn has_deliveries(&self) -> bool {
        match self {
            Self::Answered(_, replies) | Self::Finish(_, replies) | Self::FinishAll(_, _, replies) => {
                !replies.is_empty()
            }
            _ => false,
        }
    }

    fn apply(&self, db: &Connection) -> Result<bool, JournalError> {
        match self {
            Self::Attempt(run_id) => messages::attempt(db, run_id),
            Self::Prepared(run_id) => messages::prepared(db, run_id),
            Self::Excuse(runs) => messages::excuse(db, runs),
            Self::Begin(run_id, session_id) => messages::begin(db, run_id, session_id),
            Self::Taken { runs, by } => messages::taken(db, runs, by),
            Self::Settle => write_nothing(db).map(|()| true),
            Self::Abort(runs, reason) => messages::abort(db, runs, *reason),
            Self::Answered(record, replies) => {
                Ok(messages::answered(db, record)? && deliveries::accept_all(db, replies)?)
            }
            Self::Finish(record, replies) => {
                notices::forget_told(db, &record.run_id)?;
                Ok(messages::finish(db, record)? && deliveries::accept_all(db, replies)?)
            }
            Self::FinishAll(record, others, replies) => {
                notices::forget_told(db, &record.run_id)?;
                Ok(messages::finish_all(db, record, others)? && deliveries::accept_all(db, replies)?)
            }
            Self::Gather { leader, others, answer_to } => {
                messages::gather(db, leader, others, answer_to.as_deref())
            }
            Self::Cut { run_id, arrivals, dropped, now } => {
                arrivals::drop_run(db, arrivals, DropRule::Summarized, *now)?;
                messages::cut(db, run_id, *dropped)
            }
            Self::Drop { record, rule, arrivals } => {
                arrivals::drop_run(db, arrivals, *rule, record.ended_at)?;
                messages::dropped(db, record, *rule)
            }
            Self::Sending { id, attempts } => deliveries::sending(db, id, *attempts),
            Self::Buttons { note, receipt } => deliveries::note_buttons(db, note, receipt),
            Self::Tried { id, verdict, now } => deliveries::tried(db, id, verdict, *now),
            Self::Revive { id, now } => deliveries::revive(db, id, *now),
            Self::Discard { id, now } => deliveries::discard(db, id, *now),
            Self::Hasten { id, now } => deliveries::hasten(db, id, *now),
            Self::Reworded { conversation, message_id, text } => {
                arrivals::reword(db, conversation, message_id, text)
            }
            Self::Promise(promise, now) => notices::promise(db, promise, *now),
            Self::Amend(promises) => notices::amend(db, promises),
            Self::Notice { line, fulfils } => notices::notice(db, line.as_ref(), fulfils.as_deref()),
            Self::Told { run_id, numbers } => notices::told(db, run_id, numbers),
            Self::DropLines(numbers) => notices::drop_lines(db, numbers),
            Self::Decided { numbers, fate, now } => arrivals::decide(db, numbers, fate, *now),
        }
    }

    fn into_retry(self) -> Option<Update> {
        self.has_happened().then_some(self)
    }
}

/// A change of any type, and its caller.
pub(super) trait PendingChange: Send {
    fn durability(&self) -> CommitDurability;
    fn has_deliveries(&self) -> bool;
    /// Inside the open transaction.
    fn apply(&mut self, db: &Connection) -> Result<(), JournalError>;
    /// Answers the caller once the change is committed.
    fn answer(self: Box<Self>);
    /// Answers the caller with an error, as the change is not committed. Returns the update that is
    /// to be tried again, which `refused` gets to know before the caller.
    fn deny(self: Box<Self>, error: JournalError, refused: &RefusedRuns) -> Option<Update>;
}

/// A change and its caller.
pub(super) fn work<C: DbChange>(
    change: C,
    reply: oneshot::Sender<Result<C::Done, JournalError>>,
) -> Box<dyn PendingChange> {
    Box::new(Typed { change, done: None, reply })
}

struct Typed<C: DbChange> {
    change: C,
    done: Option<C::Done>,
    reply: oneshot::Sender<Result<C::Done, JournalError>>,
}

impl<C: DbChange> PendingChange for Typed<C> {
    fn durability(&self) -> CommitDurability {
        self.change.durability()
    }

    fn has_deliveries(&self) -> bool {
        self.change.has_deliveries()
    }

    fn apply(&mut self, db: &Connection) -> Result<(), JournalError> {
        self.done = Some(apply(&self.change, db)?);
        Ok(())
    }

    fn answer(self: Box<Self>) {
        // A caller that went away meanwhile needs no answer.
        let _ = self.reply.send(self.done.ok_or(JournalError::Closed));
    }

    fn deny(self: Box<Self>, error: JournalError, refused: &RefusedRuns) -> Option<Update> {
        let Self { change, reply, .. } = *self;
        let retry = change.into_retry();
        if let Some(record) = retry.as_ref().and_then(Update::ended) {
            refused.add(record.clone());
        }
        let _ = reply.send(Err(error));
        retry
    }
}

/// Makes a change. One that panics is refused: the thread works for all.
fn apply<C: DbChange>(change: &C, db: &Connection) -> Result<C::Done, JournalError> {
    panic::catch_unwind(AssertUnwindSafe(|| change.apply(db))).unwrap_or_else(|_| {
        let why = "a change of the journal panicked; the gateway's log says more";
        Err(JournalError::Storage(why.to_owned()))
    })
}

/// Applies all of a change or nothing, whatever else its transaction holds.
fn in_savepoint(
    db: &Connection,
    change: impl FnOnce() -> Result<(), JournalError>,
) -> Result<(), JournalError> {
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
    /// Durability of transactions, as the connection is set; `None` before the first.
    durability: Option<CommitDurability>,
    /// Refused updates that are tried again, oldest first, before everything else: while the disk
    /// refuses them, it is given nothing that came later. Accepting fails meanwhile, so that their
    /// number is bounded by the runs that were queued.
    retries: Vec<Update>,
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
    pub(super) fn new(db: Connection, refused: RefusedRuns, signals: Signals) -> Self {
        Self {
            db,
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
                    Mail::Work(work) => batch.push(work),
                    Mail::Read(read) => reads.push(read),
                    Mail::Close => open = false,
                }
                if batch.len() + reads.len() < BATCH && open {
                    next = mailbox.try_recv().ok();
                }
            }
            self.write(batch);
            reads.into_iter().for_each(|read| self.read(read));
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
    fn write(&mut self, batch: Vec<Box<dyn PendingChange>>) {
        if batch.is_empty() {
            return;
        }
        if let Err(error) = self.retry_refused() {
            tracing::warn!(%error, waiting = self.retries.len(), "the journal still refuses what has ended");
            return self.deny_all(batch, &error);
        }
        let is_synced = batch.iter().any(|work| work.durability() == CommitDurability::Synced);
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
            let done =
                if is_alone { work.apply(&self.db) } else { in_savepoint(&self.db, || work.apply(&self.db)) };
            match done {
                Ok(()) => applied.push(work),
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

    /// Ends the open transaction, which holds these changes, and answers them.
    fn commit(&mut self, applied: Vec<Box<dyn PendingChange>>, is_synced: bool) {
        if applied.is_empty() {
            // Nothing to roll back when the disk's refusal did it already.
            let _ = execute(&self.db, "ROLLBACK");
            return;
        }
        match execute(&self.db, "COMMIT") {
            Ok(()) => {
                self.signals.committed(is_synced, applied.iter().any(|work| work.has_deliveries()));
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

    fn read(&self, read: ReadTask) {
        // After a panic its caller gets no answer; the thread works for all.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| read(&self.db)));
    }

    fn deny_all(&mut self, batch: Vec<Box<dyn PendingChange>>, error: &JournalError) {
        batch.into_iter().for_each(|work| self.deny(work, error.clone()));
    }

    fn deny(&mut self, work: Box<dyn PendingChange>, error: JournalError) {
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
        let is_stored = |_: &mut Update| number.next().is_some_and(|number| stored.contains(&number));
        let stored: Vec<Update> = self.retries.extract_if(.., is_stored).collect();
        for record in stored.iter().filter_map(Update::ended) {
            self.refused.remove(&record.run_id);
        }
        self.signals.committed(true, stored.iter().any(DbChange::has_deliveries));
        Ok(())
    }

    /// Makes the refused changes inside the open transaction, in their order. Gives the places of those that were made: one with a mistake
    /// of its own keeps nothing else waiting.
    fn apply_refused(&self) -> Result<Vec<usize>, JournalError> {
        if self.is_log_stale {
            write_nothing(&self.db)?;
        }
        let mut made = Vec::with_capacity(self.retries.len());
        for (number, update) in self.retries.iter().enumerate() {
            match in_savepoint(&self.db, || apply(update, &self.db).map(drop)) {
                Ok(()) => made.push(number),
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
        for prune in [messages::prune, deliveries::prune, arrivals::prune, notices::prune] {
            if let Err(error) = prune(&self.db, now_ms()) {
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
