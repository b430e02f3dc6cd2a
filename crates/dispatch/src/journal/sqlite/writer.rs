//! The thread that has the database: group commit, retries of what must not be lost, and reads between two commits.

use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant};

use openclaw_sessions::time::now_ms;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::{mpsc, oneshot, watch};

use super::refused::Refused;
use super::{arrivals, deliveries, messages, notices};
use crate::journal::{Durability, JournalError, Update};
use crate::queue::DropRule;

/// What is taken from the mailbox at once: changes in one transaction, and reads behind them.
const BATCH: usize = 256;
/// Changes between two prunings.
const PRUNE_EVERY: usize = 512;
/// Pause before refused changes are tried again while no other change is to be written.
const RETRY: Duration = Duration::from_millis(500);

/// What comes to the thread.
pub(super) enum Mail {
    Work(Box<dyn Work>),
    Read(Read),
    Close,
}

/// Looks at what is committed, everything that came before it included.
pub(super) type Read = Box<dyn FnOnce(&Connection) + Send>;

/// What is done to the database in one piece.
pub(super) trait Change: Send + 'static {
    /// What it answers.
    type Done: Send + 'static;

    /// How safe it is when it is answered.
    fn durability(&self) -> Durability;

    /// Makes the change, inside a transaction. Either all of it or, after an error, nothing.
    fn apply(&self, db: &Connection) -> Result<Self::Done, JournalError>;

    /// What of it is tried again when the disk refuses it, until it is stored.
    fn into_retry(self) -> Option<Update>
    where
        Self: Sized,
    {
        None
    }
}

impl Change for Update {
    type Done = bool;

    fn durability(&self) -> Durability {
        self.durability()
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
                messages::finish(db, record)
            }
            Self::Sending { id, attempts } => deliveries::sending(db, id, *attempts),
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

/// A change and its caller, whatever its type.
pub(super) trait Work: Send {
    fn durability(&self) -> Durability;
    /// Inside the open transaction.
    fn apply(&mut self, db: &Connection) -> Result<(), JournalError>;
    /// It is committed.
    fn answer(self: Box<Self>);
    /// It is not. Gives back what is to be tried again, which `refused` knows of before the caller.
    fn deny(self: Box<Self>, error: JournalError, refused: &Refused) -> Option<Update>;
}

/// A change and its caller.
pub(super) fn work<C: Change>(
    change: C,
    reply: oneshot::Sender<Result<C::Done, JournalError>>,
) -> Box<dyn Work> {
    Box::new(Typed { change, done: None, reply })
}

struct Typed<C: Change> {
    change: C,
    done: Option<C::Done>,
    reply: oneshot::Sender<Result<C::Done, JournalError>>,
}

impl<C: Change> Work for Typed<C> {
    fn durability(&self) -> Durability {
        self.change.durability()
    }

    fn apply(&mut self, db: &Connection) -> Result<(), JournalError> {
        // A change that panics is refused: the thread works for all.
        let done = panic::catch_unwind(AssertUnwindSafe(|| self.change.apply(db))).unwrap_or_else(|_| {
            let why = "a change of the journal panicked; the gateway's log says more";
            Err(JournalError::Storage(why.to_owned()))
        });
        self.done = Some(done?);
        Ok(())
    }

    fn answer(self: Box<Self>) {
        // A caller that went away meanwhile needs no answer.
        let _ = self.reply.send(self.done.ok_or(JournalError::Closed));
    }

    fn deny(self: Box<Self>, error: JournalError, refused: &Refused) -> Option<Update> {
        let Self { change, reply, .. } = *self;
        let retry = change.into_retry();
        if let Some(record) = retry.as_ref().and_then(Update::ended) {
            refused.add(record.clone());
        }
        let _ = reply.send(Err(error));
        retry
    }
}

/// All of a change or nothing, whatever else its transaction holds.
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

/// Runs a statement that is parsed once.
fn execute(db: &Connection, sql: &str) -> Result<(), JournalError> {
    db.prepare_cached(sql)?.execute([])?;
    Ok(())
}

pub(super) struct Writer {
    db: Connection,
    /// Of the transactions, as the connection is set.
    durability: Option<Durability>,
    /// Refused updates that are tried again, oldest first, before everything else. As many as ended since the disk began to
    /// refuse: accepting fails meanwhile, so that their number is bounded by what was queued.
    retries: Vec<Update>,
    /// The finished runs among them.
    refused: Refused,
    /// When that was done last.
    retried: Instant,
    /// Tells whoever waits for it of each commit that was synced.
    syncs: watch::Sender<()>,
    /// Whether a commit that was refused may stand in the log all the same.
    is_log_stale: bool,
    since_prune: usize,
}

impl Writer {
    pub(super) fn new(db: Connection, refused: Refused, syncs: watch::Sender<()>) -> Self {
        Self {
            db,
            syncs,
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
                Next::Mail(mail) => Some(mail),
                Next::Retry => {
                    // The failure was reported when it began.
                    let _ = self.retry_refused();
                    continue;
                }
                Next::Closed => break,
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
        // What is still refused is found out anew by the next start.
        let _ = self.retry_refused();
    }

    /// Waits for what comes next; while changes are tried again, not for long.
    fn next(&self, mailbox: &mut mpsc::Receiver<Mail>) -> Next {
        if !self.has_retries() {
            return mailbox.blocking_recv().map_or(Next::Closed, Next::Mail);
        }
        let pause = RETRY.saturating_sub(self.retried.elapsed());
        if pause.is_zero() {
            return Next::Retry;
        }
        let Ok(clock) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
            return mailbox.blocking_recv().map_or(Next::Closed, Next::Mail);
        };
        match clock.block_on(async { tokio::time::timeout(pause, mailbox.recv()).await }) {
            Ok(Some(mail)) => Next::Mail(mail),
            Ok(None) => Next::Closed,
            Err(_) => Next::Retry,
        }
    }

    fn write(&mut self, batch: Vec<Box<dyn Work>>) {
        if batch.is_empty() {
            return;
        }
        if let Err(error) = self.retry_refused() {
            tracing::warn!(%error, waiting = self.retries.len(), "the journal still refuses what has ended");
        }
        let is_synced = batch.iter().any(|work| work.durability() == Durability::Synced);
        let durability = if is_synced { Durability::Synced } else { Durability::Written };
        if let Err(error) = self.begin(durability) {
            self.report(&error);
            batch.into_iter().for_each(|work| self.deny(work, error.clone()));
            return;
        }
        let is_alone = batch.len() == 1;
        let mut applied = Vec::with_capacity(batch.len());
        for mut work in batch {
            // A full disk ends the whole transaction, not the statement alone; what follows must not commit by itself.
            if self.db.is_autocommit() {
                self.deny(work, JournalError::Storage("the transaction was rolled back".to_owned()));
                continue;
            }
            let done =
                if is_alone { work.apply(&self.db) } else { in_savepoint(&self.db, || work.apply(&self.db)) };
            match done {
                Ok(()) => applied.push(work),
                Err(error) => {
                    self.report(&error);
                    self.deny(work, error);
                }
            }
        }
        if applied.is_empty() {
            // Nothing to roll back when the disk's refusal did it already.
            let _ = execute(&self.db, "ROLLBACK");
            return;
        }
        match execute(&self.db, "COMMIT") {
            Ok(()) => {
                if is_synced {
                    // Nobody may be waiting.
                    let _ = self.syncs.send(());
                }
                self.since_prune += applied.len();
                applied.into_iter().for_each(|work| work.answer());
                self.prune_if_due();
            }
            Err(error) => {
                self.report(&error);
                // Nothing to roll back when the disk's refusal did it already.
                let _ = execute(&self.db, "ROLLBACK");
                self.overwrite_log();
                applied.into_iter().for_each(|work| self.deny(work, error.clone()));
            }
        }
    }

    fn read(&self, read: Read) {
        // After a panic its caller gets no answer; the thread works for all.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| read(&self.db)));
    }

    fn deny(&mut self, work: Box<dyn Work>, error: JournalError) {
        self.retries.extend(work.deny(error, &self.refused));
    }

    /// Opens a transaction whose commit is as safe as asked.
    fn begin(&mut self, durability: Durability) -> Result<(), JournalError> {
        if self.durability != Some(durability) {
            let level = if durability == Durability::Synced { "FULL" } else { "NORMAL" };
            self.db.pragma_update(None, "synchronous", level)?;
            self.durability = Some(durability);
        }
        execute(&self.db, "BEGIN IMMEDIATE")
    }

    fn has_retries(&self) -> bool {
        self.is_log_stale || !self.retries.is_empty()
    }

    /// Stores what was refused, all of it, synced.
    fn retry_refused(&mut self) -> Result<(), JournalError> {
        if !self.has_retries() {
            return Ok(());
        }
        self.retried = Instant::now();
        self.begin(Durability::Synced)?;
        let applied = self.retries.iter().try_for_each(|update| update.apply(&self.db).map(drop));
        let applied = applied.and_then(|()| if self.is_log_stale { write_nothing(&self.db) } else { Ok(()) });
        let done = applied.and_then(|()| execute(&self.db, "COMMIT"));
        match &done {
            Ok(()) => {
                tracing::info!(count = self.retries.len(), "the journal stored what it had refused");
                self.is_log_stale = false;
                for update in self.retries.drain(..) {
                    if let Some(record) = update.ended() {
                        self.refused.remove(&record.run_id);
                    }
                }
            }
            Err(_) => drop(execute(&self.db, "ROLLBACK")),
        }
        done
    }

    /// What was refused at the last moment may stand whole in the log all the same, and the next start would find it: something
    /// else is written over it, now or as soon as the disk takes it.
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

/// What the thread does next.
enum Next {
    Mail(Mail),
    /// Nothing came: try what was refused.
    Retry,
    Closed,
}
