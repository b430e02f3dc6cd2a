//! The thread that writes: group commit, and retries of what must not be lost.

use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use openclaw_sessions::time::now_ms;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::{mpsc, oneshot};

use super::{Change, Durability, JournalError, Refusal, Upkeep};

/// Changes in one transaction.
const BATCH: usize = 256;
/// Changes between two cleanings.
const UPKEEP_EVERY: usize = 512;
/// Pause before refused changes are tried again while nothing else is to be written.
const RETRY: Duration = Duration::from_millis(500);

/// What the thread is asked.
pub(super) enum Asked {
    Work(Box<dyn Work>),
    Close,
}

/// A change and who waits for it, whatever its type.
pub(super) trait Work: Send {
    fn durability(&self) -> Durability;
    /// Inside the open transaction.
    fn apply(&mut self, db: &Connection) -> Result<(), JournalError>;
    /// It is committed.
    fn answer(self: Box<Self>);
    /// It is not. Gives back what is to be tried again.
    fn deny(self: Box<Self>, error: JournalError) -> Option<Box<dyn Owed>>;
}

/// A refused change that is tried again.
pub(super) trait Owed: Send {
    fn apply(&self, db: &Connection) -> Result<(), JournalError>;
    fn stored(&self);
}

/// A change and who waits for it.
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
        C::DURABILITY
    }

    fn apply(&mut self, db: &Connection) -> Result<(), JournalError> {
        self.done = Some(whole(db, || self.change.apply(db))?);
        Ok(())
    }

    fn answer(self: Box<Self>) {
        // One who went away meanwhile needs no answer.
        let _ = self.reply.send(self.done.ok_or(JournalError::Closed));
    }

    fn deny(self: Box<Self>, error: JournalError) -> Option<Box<dyn Owed>> {
        let Self { change, reply, .. } = *self;
        let owed: Option<Box<dyn Owed>> = match C::REFUSAL {
            Refusal::Forget => None,
            Refusal::Insist => {
                change.refused();
                Some(Box::new(Kept(change)))
            }
        };
        let _ = reply.send(Err(error));
        owed
    }
}

struct Kept<C>(C);

impl<C: Change> Owed for Kept<C> {
    fn apply(&self, db: &Connection) -> Result<(), JournalError> {
        self.0.apply(db).map(drop)
    }

    fn stored(&self) {
        self.0.stored_late();
    }
}

/// A commit that changes nothing.
struct Overwrite;

impl Owed for Overwrite {
    fn apply(&self, db: &Connection) -> Result<(), JournalError> {
        let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
        Ok(db.pragma_update(None, "user_version", version)?)
    }

    fn stored(&self) {}
}

/// All of a change or nothing, whatever else its transaction holds. A change that panics is refused: the thread works for all.
fn whole<T>(db: &Connection, change: impl FnOnce() -> Result<T, JournalError>) -> Result<T, JournalError> {
    db.prepare_cached("SAVEPOINT one")?.execute([])?;
    let done = panic::catch_unwind(AssertUnwindSafe(change)).unwrap_or_else(|_| {
        Err(JournalError::Storage("a change of the journal panicked; the gateway's log says more".to_owned()))
    });
    if done.is_err() && !db.is_autocommit() {
        db.prepare_cached("ROLLBACK TO one")?.execute([])?;
    }
    // A full disk ends the whole transaction, savepoints too.
    if !db.is_autocommit() {
        db.prepare_cached("RELEASE one")?.execute([])?;
    }
    done
}

pub(super) struct Writer {
    db: Connection,
    upkeep: &'static [Upkeep],
    /// Oldest first; they go before everything else. As many as ended since the disk began to refuse: accepting fails
    /// meanwhile, so that their number is bounded by what was queued.
    owed: Vec<Box<dyn Owed>>,
    since_upkeep: usize,
}

impl Writer {
    pub(super) fn new(db: Connection, upkeep: &'static [Upkeep]) -> Self {
        Self { db, upkeep, owed: Vec::new(), since_upkeep: UPKEEP_EVERY }
    }

    /// Works until the last handle is gone or [`Asked::Close`] comes.
    pub(super) fn run(mut self, mut mailbox: mpsc::Receiver<Asked>) {
        let mut open = true;
        while open {
            let mut next = match self.next(&mut mailbox) {
                Next::Asked(asked) => Some(asked),
                Next::Retry => {
                    // The failure was reported when it began.
                    let _ = self.pay();
                    continue;
                }
                Next::Closed => break,
            };
            let mut batch = Vec::new();
            while let Some(asked) = next.take() {
                match asked {
                    Asked::Work(work) => batch.push(work),
                    Asked::Close => open = false,
                }
                if batch.len() < BATCH && open {
                    next = mailbox.try_recv().ok();
                }
            }
            self.write(batch);
        }
        // What is still refused is found out anew by the next start.
        let _ = self.pay();
    }

    /// Waits for the next change; while some are owed, not for long.
    fn next(&self, mailbox: &mut mpsc::Receiver<Asked>) -> Next {
        if self.owed.is_empty() {
            return mailbox.blocking_recv().map_or(Next::Closed, Next::Asked);
        }
        let Ok(clock) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
            return mailbox.blocking_recv().map_or(Next::Closed, Next::Asked);
        };
        match clock.block_on(async { tokio::time::timeout(RETRY, mailbox.recv()).await }) {
            Ok(Some(asked)) => Next::Asked(asked),
            Ok(None) => Next::Closed,
            Err(_) => Next::Retry,
        }
    }

    fn write(&mut self, batch: Vec<Box<dyn Work>>) {
        if batch.is_empty() {
            return;
        }
        if let Err(error) = self.pay() {
            tracing::warn!(%error, waiting = self.owed.len(), "the journal still refuses what has ended");
        }
        let synced = batch.iter().any(|work| work.durability() == Durability::Synced);
        if let Err(error) = self.begin(synced) {
            self.report(&error);
            batch.into_iter().for_each(|work| self.deny(work, error.clone()));
            return;
        }
        let mut applied = Vec::with_capacity(batch.len());
        for mut work in batch {
            // A full disk ends the whole transaction, not the statement alone; what follows must not commit by itself.
            if self.db.is_autocommit() {
                self.deny(work, JournalError::Storage("the transaction was rolled back".to_owned()));
                continue;
            }
            match work.apply(&self.db) {
                Ok(()) => applied.push(work),
                Err(error) => {
                    self.report(&error);
                    self.deny(work, error);
                }
            }
        }
        match self.db.execute_batch("COMMIT").map_err(JournalError::from) {
            Ok(()) => {
                self.since_upkeep += applied.len();
                applied.into_iter().for_each(|work| work.answer());
                self.keep_up();
            }
            Err(error) => {
                self.report(&error);
                // Nothing to roll back when the disk's refusal did it already.
                let _ = self.db.execute_batch("ROLLBACK");
                self.bury();
                applied.into_iter().for_each(|work| self.deny(work, error.clone()));
            }
        }
    }

    fn deny(&mut self, work: Box<dyn Work>, error: JournalError) {
        self.owed.extend(work.deny(error));
    }

    /// Opens a transaction whose commit is synced to disk if `synced`.
    fn begin(&self, synced: bool) -> Result<(), JournalError> {
        let level = if synced { "FULL" } else { "NORMAL" };
        self.db.execute_batch(&format!("PRAGMA synchronous = {level}; BEGIN IMMEDIATE"))?;
        Ok(())
    }

    /// Stores what was refused, all of it, synced.
    fn pay(&mut self) -> Result<(), JournalError> {
        if self.owed.is_empty() {
            return Ok(());
        }
        self.begin(true)?;
        let applied = self.owed.iter().try_for_each(|owed| owed.apply(&self.db));
        let done = applied.and_then(|()| Ok(self.db.execute_batch("COMMIT")?));
        match &done {
            Ok(()) => {
                tracing::info!(count = self.owed.len(), "the journal stored what it had refused");
                self.owed.drain(..).for_each(|owed| owed.stored());
            }
            Err(_) => drop(self.db.execute_batch("ROLLBACK")),
        }
        done
    }

    /// What was refused at the last moment may stand whole in the log all the same, and the next start would find it: something
    /// else is written over it, now or as soon as the disk takes it.
    fn bury(&mut self) {
        self.owed.push(Box::new(Overwrite));
        // The failure was reported when it began.
        let _ = self.pay();
    }

    fn report(&self, error: &JournalError) {
        tracing::error!(%error, "the journal could not be written");
        if let JournalError::Damaged(_) = error {
            // The log that is left behind makes the next start check the whole file.
            let _ = self.db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }

    fn keep_up(&mut self) {
        if self.since_upkeep < UPKEEP_EVERY {
            return;
        }
        self.since_upkeep = 0;
        for upkeep in self.upkeep {
            if let Err(error) = upkeep(&self.db, now_ms()) {
                tracing::warn!(%error, "the journal could not be cleaned");
            }
        }
    }
}

/// What the thread does next.
enum Next {
    Asked(Asked),
    /// Nothing came: try what was refused.
    Retry,
    Closed,
}
