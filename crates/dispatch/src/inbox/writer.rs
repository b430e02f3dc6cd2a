//! The thread that writes the inbox: group commit, retries of what must not be lost, pruning.

use std::time::Duration;

use openclaw_protocol::{RunId, SessionId};
use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

use super::format::StoredOutcome;
use super::refused::Refused;
use super::{InboxError, Insert, Known, Row, reader};
use crate::api::{AbortReason, RunRecord};

/// Commands in one transaction.
const BATCH: usize = 256;
/// Finished rows answer repeated idempotency keys for this long, in milliseconds.
const KEEP_MS: i64 = 24 * 60 * 60 * 1000;
/// And never more of them than this.
const KEEP_ROWS: i64 = 5_000;
/// Rows finished between two prunings.
const PRUNE_EVERY: u32 = 256;
/// Pause before refused finished runs are tried again while nothing else is to be written.
const RETRY: Duration = Duration::from_millis(500);

type Reply<T> = oneshot::Sender<Result<T, InboxError>>;

pub(super) enum Command {
    Accept { row: Box<Row>, reply: Reply<Insert> },
    Begin { run_id: RunId, session_id: SessionId, reply: Reply<()> },
    Abort { runs: Vec<RunId>, reason: AbortReason, reply: Reply<()> },
    Finish { record: RunRecord, reply: Reply<()> },
    Close,
}

/// An applied command whose sender waits for the commit.
enum Waiting {
    Accept(Reply<Insert>, Insert),
    Done(Reply<()>),
}

/// What the thread does next.
enum Next {
    Command(Command),
    /// Nothing came: try what was refused.
    Retry,
    Closed,
}

/// What a transaction holds so far.
#[derive(Default)]
struct Applied {
    waiting: Vec<Waiting>,
    finished: Vec<RunRecord>,
}

impl Applied {
    fn settle(&mut self, reply: Reply<()>, done: Result<(), InboxError>) {
        match done {
            Ok(()) => self.waiting.push(Waiting::Done(reply)),
            Err(error) => drop(reply.send(Err(error))),
        }
    }
}

pub(super) struct Writer {
    connection: Connection,
    /// They go before everything else.
    refused: Refused,
    finished_since_prune: u32,
}

impl Writer {
    pub(super) fn new(connection: Connection, refused: Refused) -> Self {
        Self { connection, refused, finished_since_prune: PRUNE_EVERY }
    }

    /// Works until the last handle is gone or [`Command::Close`] comes.
    pub(super) fn run(mut self, mut mailbox: mpsc::Receiver<Command>) {
        let mut open = true;
        while open {
            let first = match self.next(&mut mailbox) {
                Next::Command(first) => first,
                Next::Retry => {
                    // The failure was reported when it began.
                    let _ = self.retry_refused();
                    continue;
                }
                Next::Closed => break,
            };
            let mut batch = vec![first];
            while batch.len() < BATCH
                && let Ok(next) = mailbox.try_recv()
            {
                batch.push(next);
            }
            open = !batch.iter().any(|command| matches!(command, Command::Close));
            self.write(batch);
        }
        if !self.refused.is_empty() {
            // Their rows stay 'accepted': the next start finds the answers in the transcripts.
            let _ = self.retry_refused();
        }
    }

    /// Waits for the next command; while finished runs are refused, not for long.
    fn next(&self, mailbox: &mut mpsc::Receiver<Command>) -> Next {
        if self.refused.is_empty() {
            return mailbox.blocking_recv().map_or(Next::Closed, Next::Command);
        }
        let Ok(clock) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
            return mailbox.blocking_recv().map_or(Next::Closed, Next::Command);
        };
        match clock.block_on(async { tokio::time::timeout(RETRY, mailbox.recv()).await }) {
            Ok(Some(command)) => Next::Command(command),
            Ok(None) => Next::Closed,
            Err(_) => Next::Retry,
        }
    }

    fn write(&mut self, batch: Vec<Command>) {
        if let Err(error) = self.retry_refused() {
            tracing::warn!(%error, waiting = self.refused.len(), "inbox still refuses finished runs");
        }
        let durable = batch.iter().any(|command| matches!(command, Command::Accept { .. }));
        if let Err(error) = self.begin(durable) {
            tracing::error!(%error, "inbox could not be written");
            batch.into_iter().for_each(|command| self.refuse(command, &error));
            return;
        }
        let mut applied = Applied::default();
        for command in batch {
            // A full disk ends the whole transaction, not the statement alone; what follows must not commit by itself.
            if self.connection.is_autocommit() {
                self.refuse(command, &InboxError::Storage("the transaction was rolled back".to_owned()));
            } else {
                self.apply(command, &mut applied);
            }
        }
        match self.connection.execute_batch("COMMIT").map_err(InboxError::from) {
            Ok(()) => {
                self.finished_since_prune += u32::try_from(applied.finished.len()).unwrap_or(u32::MAX);
                applied.waiting.into_iter().for_each(answer);
                self.prune();
            }
            Err(error) => {
                tracing::error!(%error, "inbox could not be written");
                // Nothing to roll back when the disk's refusal did it already.
                let _ = self.connection.execute_batch("ROLLBACK");
                self.refused.add(applied.finished);
                applied.waiting.into_iter().for_each(|one| deny(one, &error));
            }
        }
    }

    /// Opens a transaction whose commit is synced to disk if `durable`.
    fn begin(&self, durable: bool) -> Result<(), InboxError> {
        let level = if durable { "FULL" } else { "NORMAL" };
        self.connection.execute_batch(&format!("PRAGMA synchronous = {level}; BEGIN IMMEDIATE"))?;
        Ok(())
    }

    /// Applies one command inside the open transaction. A command that fails alone is answered at once.
    fn apply(&mut self, command: Command, applied: &mut Applied) {
        match command {
            Command::Accept { row, reply } => match self.accept(&row) {
                Ok(insert) => applied.waiting.push(Waiting::Accept(reply, insert)),
                Err(error) => drop(reply.send(Err(error))),
            },
            Command::Begin { run_id, session_id, reply } => {
                applied.settle(reply, self.session(&run_id, &session_id));
            }
            Command::Abort { runs, reason, reply } => applied.settle(reply, self.abort(&runs, reason)),
            Command::Finish { record, reply } => {
                let done = self.finish(&record);
                if done.is_ok() {
                    applied.finished.push(record);
                } else {
                    self.refused.add([record]);
                }
                applied.settle(reply, done);
            }
            Command::Close => {}
        }
    }

    /// Answers a command that could not even be tried. Finished runs are kept for the next try.
    fn refuse(&mut self, command: Command, error: &InboxError) {
        match command {
            Command::Accept { reply, .. } => drop(reply.send(Err(error.clone()))),
            Command::Begin { reply, .. } | Command::Abort { reply, .. } => {
                drop(reply.send(Err(error.clone())))
            }
            Command::Finish { record, reply } => {
                self.refused.add([record]);
                drop(reply.send(Err(error.clone())));
            }
            Command::Close => {}
        }
    }

    fn accept(&self, row: &Row) -> Result<Insert, InboxError> {
        let payload =
            serde_json::to_string(&row.payload).map_err(|error| InboxError::Storage(error.to_string()))?;
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO inbox (run_id, kind, session_key, payload, accepted_at, entry_id, fresh_id, state)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'accepted') ON CONFLICT (run_id) DO NOTHING",
        )?;
        let inserted = insert.execute(params![
            row.run_id.as_str(),
            row.payload.kind(),
            row.session_key,
            payload,
            row.accepted_at,
            row.entry_id,
            row.fresh_id.as_str(),
        ])?;
        if inserted == 1 {
            return Ok(Insert::New);
        }
        let known = match self.refused.find(&row.run_id) {
            Some(record) => Some(Known::Finished(record)),
            None => reader::known(&self.connection, &row.run_id)?,
        };
        known.map(Insert::Known).ok_or_else(|| InboxError::Storage(format!("row {} vanished", row.run_id)))
    }

    fn session(&self, run_id: &RunId, session_id: &SessionId) -> Result<(), InboxError> {
        self.connection
            .prepare_cached("UPDATE inbox SET session_id = ?2 WHERE run_id = ?1")?
            .execute(params![run_id.as_str(), session_id.as_str()])?;
        Ok(())
    }

    fn abort(&self, runs: &[RunId], reason: AbortReason) -> Result<(), InboxError> {
        let mut update = self.connection.prepare_cached(
            "UPDATE inbox SET abort_reason = ?2 WHERE run_id = ?1 AND state = 'accepted' AND abort_reason IS NULL",
        )?;
        for run_id in runs {
            update.execute(params![run_id.as_str(), reason.as_str()])?;
        }
        Ok(())
    }

    fn finish(&self, record: &RunRecord) -> Result<(), InboxError> {
        let outcome = serde_json::to_string(&StoredOutcome::of(record.outcome.clone()))
            .map_err(|error| InboxError::Storage(error.to_string()))?;
        self.connection
            .prepare_cached(
                "UPDATE inbox SET state = 'finished', payload = NULL, outcome = ?2, started_at = ?3, ended_at = ?4
                 WHERE run_id = ?1 AND state = 'accepted'",
            )?
            .execute(params![record.run_id.as_str(), outcome, record.started_at, record.ended_at])?;
        Ok(())
    }

    fn retry_refused(&mut self) -> Result<(), InboxError> {
        if self.refused.is_empty() {
            return Ok(());
        }
        self.begin(false)?;
        let records = self.refused.all();
        let done = records
            .iter()
            .try_for_each(|record| self.finish(record))
            .and_then(|()| Ok(self.connection.execute_batch("COMMIT")?));
        match done {
            Ok(()) => {
                tracing::info!(count = records.len(), "inbox stored the finished runs it had refused");
                self.refused.clear();
            }
            Err(_) => drop(self.connection.execute_batch("ROLLBACK")),
        }
        done
    }

    /// Drops finished rows that are too old or too many.
    fn prune(&mut self) {
        if self.finished_since_prune < PRUNE_EVERY {
            return;
        }
        self.finished_since_prune = 0;
        let oldest = jiff::Timestamp::now().as_millisecond() - KEEP_MS;
        if let Err(error) = prune(&self.connection, oldest, KEEP_ROWS) {
            tracing::warn!(%error, "inbox could not be pruned");
        }
    }
}

/// Drops finished rows that ended before `oldest`, and all but the newest `keep`.
pub(super) fn prune(connection: &Connection, oldest: i64, keep: i64) -> Result<(), InboxError> {
    connection
        .prepare_cached("DELETE FROM inbox WHERE state = 'finished' AND ended_at < ?1")?
        .execute(params![oldest])?;
    connection
        .prepare_cached(
            "DELETE FROM inbox WHERE state = 'finished' AND seq IN
             (SELECT seq FROM inbox WHERE state = 'finished' ORDER BY ended_at DESC, seq DESC LIMIT -1 OFFSET ?1)",
        )?
        .execute(params![keep])?;
    Ok(())
}

/// Tells a sender that its command is committed. One who went away meanwhile needs no answer.
fn answer(waiting: Waiting) {
    match waiting {
        Waiting::Accept(reply, insert) => drop(reply.send(Ok(insert))),
        Waiting::Done(reply) => drop(reply.send(Ok(()))),
    }
}

fn deny(waiting: Waiting, error: &InboxError) {
    match waiting {
        Waiting::Accept(reply, _) => drop(reply.send(Err(error.clone()))),
        Waiting::Done(reply) => drop(reply.send(Err(error.clone()))),
    }
}
