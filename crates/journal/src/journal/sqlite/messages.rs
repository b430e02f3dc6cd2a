//! Table `inbox`: its writes and reads.

use std::collections::HashMap;

use openclaw_protocol::{RunId, SessionId, SessionKey};
use rusqlite::{Connection, OptionalExtension, Params, params};

use super::arrivals;
use super::queue::{self, NewItem, Retention, States};
use super::refused::RefusedRuns;
use super::writer::DbChange;
use crate::api::{AbortReason, RunRecord};
use crate::inbox::{
    AskedRecords, Attempts, Digest, InboxRow, Insert, KnownRun, MessageRecord, MessageWait, RequestColumns,
    Unfinished,
};
use crate::journal::{CommitDurability, JournalError};
use crate::origin::MessageOrigin;
use crate::queue::DropRule;
use crate::request::RunRequest;

/// Finished rows answer repeated idempotency keys for a day, and are among the newest so many rows.
const RETENTION: Retention = Retention { keep_ms: 24 * 60 * 60 * 1000, keep_rows: 5_000 };

/// States of a message. Progress between the two is read off the transcript, which is the authority
/// on what was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageState {
    /// The run has not ended.
    Accepted,
    /// The run has ended; the row holds the result.
    Finished,
}

impl States for MessageState {
    const TABLE: &'static str = "inbox";
    const KEY: &'static str = "run_id";
    const FIRST: Self = Self::Accepted;
    const ALL: &'static [Self] = &[Self::Accepted, Self::Finished];

    fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Finished => "finished",
        }
    }

    fn next(self) -> &'static [Self] {
        match self {
            Self::Accepted => &[Self::Finished],
            Self::Finished => &[],
        }
    }

    fn is_over(self) -> bool {
        self == Self::Finished
    }
}

/// Change that accepts a message.
pub(super) struct Accept {
    pub(super) row: InboxRow<RequestColumns>,
    pub(super) durability: CommitDurability,
    pub(super) refused: RefusedRuns,
}

impl DbChange for Accept {
    type Done = Insert;

    fn durability(&self) -> CommitDurability {
        self.durability
    }

    fn apply(&self, db: &Connection) -> Result<Insert, JournalError> {
        let row = &self.row;
        let item = NewItem {
            key: row.run_id.as_str(),
            kind: row.payload.kind,
            payload: row.payload.json.get(),
            accepted_at: row.accepted_at,
            columns: &[
                ("session_key", &row.session_key.spelled()),
                ("entry_id", &row.entry_id),
                ("fresh_id", &row.fresh_id.as_str()),
                ("digest", &row.payload.digest),
                ("facts", &row.payload.facts),
                ("queue_mode", &row.payload.queue_mode.as_str()),
            ],
        };
        let is_new = queue::insert::<MessageState>(db, &item)?
            || forget_dropped(db, &row.run_id)? && queue::insert::<MessageState>(db, &item)?;
        arrivals::become_run(db, &row.payload.arrivals, &row.run_id, row.accepted_at)?;
        if is_new {
            return Ok(Insert::New);
        }
        if digest(db, &row.run_id)?.is_some_and(|known| known != row.payload.digest) {
            return Ok(Insert::Conflict);
        }
        let known = match self.refused.find(&row.run_id) {
            Some(record) => Some(KnownRun::Finished(record)),
            None => known(db, &row.run_id)?,
        };
        known.map(Insert::Known).ok_or_else(|| JournalError::Storage(format!("row {} vanished", row.run_id)))
    }
}

/// Counts another attempt at a message.
pub(super) fn attempt(db: &Connection, run_id: &RunId) -> Result<bool, JournalError> {
    let sql = "UPDATE inbox SET attempts = attempts + 1, unprepared = unprepared + 1
         WHERE run_id = ?1 AND state = 'accepted'";
    execute(db, sql, params![run_id.as_str()])
}

/// Notes that the attempt under way is past its preparation.
pub(super) fn prepared(db: &Connection, run_id: &RunId) -> Result<bool, JournalError> {
    execute(db, "UPDATE inbox SET unprepared = 0 WHERE run_id = ?1", params![run_id.as_str()])
}

/// The process did not die of these messages.
pub(super) fn excuse(db: &Connection, runs: &[RunId]) -> Result<bool, JournalError> {
    let sql = "UPDATE inbox SET attempts = max(attempts - 1, 0), unprepared = 0 WHERE run_id = ?1";
    any(runs, |run_id| execute(db, sql, params![run_id.as_str()]))
}

/// Notes that a run begins in a session.
pub(super) fn begin(db: &Connection, run_id: &RunId, session_id: &SessionId) -> Result<bool, JournalError> {
    let sql = "UPDATE inbox SET session_id = ?2, attempts = max(attempts, 1), unprepared = max(unprepared, 1)
         WHERE run_id = ?1";
    execute(db, sql, params![run_id.as_str(), session_id.as_str()])
}

/// Notes that runs are to be stopped.
pub(super) fn abort(db: &Connection, runs: &[RunId], reason: AbortReason) -> Result<bool, JournalError> {
    let sql = "UPDATE inbox SET abort_reason = ?2 WHERE run_id = ?1 AND state = 'accepted' AND abort_reason IS NULL";
    any(runs, |run_id| execute(db, sql, params![run_id.as_str(), reason.as_str()]))
}

/// Notes that a run has taken messages into itself. A message that takes itself belongs to no other
/// run any more.
pub(super) fn taken(db: &Connection, runs: &[RunId], by: &RunId) -> Result<bool, JournalError> {
    let sql = "UPDATE inbox SET taken_by = nullif(?2, run_id) WHERE run_id = ?1 AND state = 'accepted'";
    any(runs, |run_id| execute(db, sql, params![run_id.as_str(), by.as_str()]))
}

/// Returns records of messages, in the order of acceptance.
pub(super) fn records(
    db: &Connection,
    asked: &AskedRecords,
    most: u32,
) -> Result<Vec<MessageRecord>, JournalError> {
    let (which, id) = match asked {
        AskedRecords::Run(run_id) => ("run_id = ?1", Some(run_id.as_str())),
        AskedRecords::Newest => ("?1 IS NULL AND seq = (SELECT max(seq) FROM inbox)", None),
        AskedRecords::TakenBy(run_id) => {
            ("(taken_by = ?1 OR collected_by = ?1) AND run_id <> ?1", Some(run_id.as_str()))
        }
        AskedRecords::Entry(id) => ("?1 IN (entry_id, fresh_id)", Some(id.as_str())),
    };
    let mut statement = db.prepare_cached(&format!(
        "SELECT run_id, kind, session_key, session_id, entry_id, fresh_id, accepted_at, queue_mode,
                coalesce(taken_by, nullif(collected_by, run_id)), attempts,
                abort_reason, cut IS NOT NULL
         FROM inbox WHERE {which} ORDER BY seq LIMIT ?2"
    ))?;
    let rows = statement.query_map(params![id, most], |row| {
        Ok(MessageRecord {
            run_id: RunId::new(row.get::<_, String>(0)?),
            kind: row.get(1)?,
            session_key: row.get(2)?,
            session_id: row.get::<_, Option<String>>(3)?.map(SessionId::new),
            entry_ids: [row.get(4)?, row.get(5)?],
            accepted_at: row.get(6)?,
            queue_mode: row.get(7)?,
            taken_by: row.get::<_, Option<String>>(8)?.map(RunId::new),
            attempts: row.get(9)?,
            stop: row.get(10)?,
            is_cut: row.get(11)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Executes a statement; true if it changed a row.
fn execute(db: &Connection, sql: &str, values: impl Params) -> Result<bool, JournalError> {
    Ok(db.prepare_cached(sql)?.execute(values)? > 0)
}

/// Changes all these runs; true if one of them was changed.
fn any(runs: &[RunId], change: impl Fn(&RunId) -> Result<bool, JournalError>) -> Result<bool, JournalError> {
    runs.iter().try_fold(false, |any, run_id| Ok(change(run_id)? || any))
}

/// Stores the answer of a message, which is on its way to the transcript.
pub(super) fn answered(db: &Connection, record: &RunRecord) -> Result<bool, JournalError> {
    let outcome = serde_json::to_string(&record.outcome)?;
    let sql = "UPDATE inbox SET outcome = ?2, ended_at = ?3 WHERE run_id = ?1 AND state = 'accepted'";
    execute(db, sql, params![record.run_id.as_str(), outcome, record.ended_at])
}

/// Stores the end of a run.
pub(super) fn finish(db: &Connection, record: &RunRecord) -> Result<bool, JournalError> {
    let outcome = serde_json::to_string(&record.outcome)?;
    let is_over = queue::advance(
        db,
        record.run_id.as_str(),
        MessageState::Finished,
        &[
            ("payload", &None::<String>),
            ("outcome", &outcome),
            ("started_at", &record.started_at),
            ("ended_at", &record.ended_at),
            ("unprepared", &0),
        ],
    )?;
    if is_over {
        keep_cut(db, &record.run_id)?;
    }
    Ok(is_over)
}

/// Keeps the end of a message that a full queue had dropped before, whatever became of the run that
/// was told of it.
fn keep_cut(db: &Connection, run_id: &RunId) -> Result<(), JournalError> {
    let outcome = serde_json::to_string(&DropRule::Summarized.outcome())?;
    let sql = "UPDATE inbox SET outcome = ?2, started_at = NULL WHERE run_id = ?1 AND cut IS NOT NULL";
    execute(db, sql, params![run_id.as_str(), outcome])?;
    Ok(())
}

/// Stores that a rule has dropped a message.
pub(super) fn dropped(db: &Connection, record: &RunRecord, rule: DropRule) -> Result<bool, JournalError> {
    let is_over = finish(db, record)?;
    if is_over && rule.may_be_sent_again() {
        let sql = "UPDATE inbox SET may_repeat = 1 WHERE run_id = ?1";
        execute(db, sql, params![record.run_id.as_str()])?;
    }
    Ok(is_over)
}

/// Forgets a dropped message, so that its key is free; true if it was one that may be sent again.
fn forget_dropped(db: &Connection, run_id: &RunId) -> Result<bool, JournalError> {
    let sql = "DELETE FROM inbox WHERE run_id = ?1 AND state = 'finished' AND may_repeat = 1";
    execute(db, sql, params![run_id.as_str()])
}

/// Stores the end of runs that have ended together, all like this one.
pub(super) fn finish_all(
    db: &Connection,
    record: &RunRecord,
    others: &[RunId],
) -> Result<bool, JournalError> {
    for run_id in others {
        finish(db, &RunRecord { run_id: run_id.clone(), ..record.clone() })?;
    }
    finish(db, record)
}

/// Notes which messages are run together.
pub(super) fn gather(
    db: &Connection,
    leader: &RunId,
    others: &[RunId],
    answer_to: Option<&MessageOrigin>,
) -> Result<bool, JournalError> {
    let answer_to = answer_to.map(serde_json::to_string).transpose()?;
    let sql = "UPDATE inbox SET collected_by = ?1, answer_to = ?2 WHERE run_id = ?1 AND state = 'accepted'";
    if !execute(db, sql, params![leader.as_str(), answer_to])? {
        return Ok(false);
    }
    let sql = "UPDATE inbox SET collected_by = ?2 WHERE run_id = ?1 AND state = 'accepted'";
    any(others, |run_id| execute(db, sql, params![run_id.as_str(), leader.as_str()]))?;
    Ok(true)
}

/// Notes that a message is dropped, and that the agent is to be told.
pub(super) fn cut(db: &Connection, run_id: &RunId, dropped: u64) -> Result<bool, JournalError> {
    let dropped = i64::try_from(dropped).unwrap_or(i64::MAX);
    let sql = "UPDATE inbox SET cut = ?2 WHERE run_id = ?1 AND state = 'accepted'";
    execute(db, sql, params![run_id.as_str(), dropped])
}

/// Drops finished rows that are too old or too many.
pub(super) fn prune(db: &Connection, now: i64) -> Result<(), JournalError> {
    prune_to(db, now, RETENTION)
}

/// Walks from the first row to one that stays: both follow the order of acceptance, which no clock that jumps can change.
pub(super) fn prune_to(db: &Connection, now: i64, retention: Retention) -> Result<(), JournalError> {
    let ended = now.saturating_sub(retention.keep_ms);
    db.prepare_cached(
        "DELETE FROM inbox WHERE state = 'finished' AND seq < max(
             (SELECT max(seq) + 1 FROM inbox) - ?2,
             coalesce((SELECT seq FROM inbox WHERE state = 'finished' AND ended_at >= ?1 ORDER BY seq LIMIT 1),
                      (SELECT max(seq) + 1 FROM inbox)))",
    )?
    .execute(params![ended, retention.keep_rows])?;
    Ok(())
}

/// Looks a run id up.
pub(super) fn known(db: &Connection, run_id: &RunId) -> Result<Option<KnownRun>, JournalError> {
    let mut statement = db.prepare_cached(
        "SELECT accepted_at, state, outcome, started_at, ended_at FROM inbox WHERE run_id = ?1",
    )?;
    let found = statement
        .query_row(params![run_id.as_str()], |row| {
            let state: String = row.get(1)?;
            let outcome: Option<String> = row.get(2)?;
            let record = match outcome {
                Some(outcome) if state == "finished" => Some((outcome, row.get(3)?, row.get::<_, i64>(4)?)),
                _ => None,
            };
            Ok((row.get::<_, i64>(0)?, record))
        })
        .optional()?;
    let Some((accepted_at, record)) = found else { return Ok(None) };
    let Some((outcome, started_at, ended_at)) = record else {
        return Ok(Some(KnownRun::Unfinished { accepted_at }));
    };
    let outcome = serde_json::from_str(&outcome).map_err(unreadable("outcome", run_id))?;
    let record = RunRecord { run_id: run_id.clone(), started_at, ended_at, outcome, report: None };
    Ok(Some(KnownRun::Finished(record)))
}

/// Returns the digest of the message that has a run id; `None` for a row that an older version
/// stored without one.
fn digest(db: &Connection, run_id: &RunId) -> Result<Option<Digest>, JournalError> {
    let mut statement = db.prepare_cached("SELECT digest FROM inbox WHERE run_id = ?1")?;
    Ok(statement.query_row(params![run_id.as_str()], |row| row.get(0)).optional()?.flatten())
}

/// Returns the request of a message that is not finished.
pub(super) fn payload(db: &Connection, run_id: &RunId) -> Result<RunRequest, JournalError> {
    let mut statement = db.prepare_cached("SELECT payload FROM inbox WHERE run_id = ?1")?;
    let text =
        statement.query_row(params![run_id.as_str()], |row| row.get::<_, Option<String>>(0)).optional()?;
    serde_json::from_str(&text.flatten().unwrap_or_default()).map_err(unreadable("payload", run_id))
}

/// Returns both ids that the entry of each message accepted since may have.
pub(super) fn entries_since(
    db: &Connection,
    accepted_at: i64,
) -> Result<HashMap<String, RunId>, JournalError> {
    let mut statement =
        db.prepare_cached("SELECT run_id, entry_id, fresh_id FROM inbox WHERE accepted_at >= ?1")?;
    let mut rows = statement.query(params![accepted_at])?;
    let mut found = HashMap::new();
    while let Some(row) = rows.next()? {
        let run_id = RunId::new(row.get::<_, String>(0)?);
        found.extend([(row.get(1)?, run_id.clone()), (row.get(2)?, run_id)]);
    }
    Ok(found)
}

/// Returns every unfinished row in order of acceptance, without the payloads that have facts beside
/// them. A row whose session or payload can't be read is left alone and logged: a newer version may
/// have written it.
pub(super) fn unfinished(db: &Connection) -> Result<Vec<Unfinished>, JournalError> {
    let mut statement = db.prepare(
        "SELECT run_id, session_key, CASE WHEN facts IS NULL THEN payload END, accepted_at, entry_id, fresh_id,
                session_id, abort_reason, facts, attempts, unprepared, outcome, ended_at, collected_by, cut, answer_to,
                taken_by IS NOT NULL
         FROM inbox WHERE state = 'accepted' ORDER BY seq",
    )?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let run_id = RunId::new(row.get::<_, String>(0)?);
        let session_key = match SessionKey::parse(&row.get::<_, String>(1)?) {
            Ok(key) => key,
            Err(error) => {
                tracing::error!(%run_id, %error, "inbox row is unreadable and stays undone");
                continue;
            }
        };
        let answered = match (row.get::<_, Option<String>>(11)?, row.get(12)?) {
            (Some(outcome), Some(ended_at)) => answer(&run_id, &outcome, ended_at),
            _ => None,
        };
        let message = InboxRow {
            run_id,
            session_key,
            payload: (),
            accepted_at: row.get(3)?,
            entry_id: row.get(4)?,
            fresh_id: SessionId::new(row.get::<_, String>(5)?),
            session_id: row.get::<_, Option<String>>(6)?.map(SessionId::new),
            abort: row.get::<_, Option<String>>(7)?.as_deref().map(AbortReason::parse),
            answered,
            recovered: true,
            gathering: None,
        };
        let (payload, facts) = (row.get::<_, Option<String>>(2)?, row.get::<_, Option<String>>(8)?);
        let attempts = Attempts { all: row.get(9)?, unprepared: row.get(10)? };
        let waited = waited(row)?;
        found.extend(Unfinished::read(message, payload.as_deref(), facts.as_deref(), attempts, waited));
    }
    Ok(found)
}

/// Reads the state of a message's wait. If another place for its answer can't be read, the answer
/// goes to the place where the message was said.
fn waited(row: &rusqlite::Row<'_>) -> Result<MessageWait, JournalError> {
    let answer_to: Option<String> = row.get(15)?;
    Ok(MessageWait {
        collected_by: row.get::<_, Option<String>>(13)?.map(RunId::new),
        cut: row.get::<_, Option<i64>>(14)?.and_then(|cut| u64::try_from(cut).ok()),
        answer_to: answer_to.and_then(|origin| serde_json::from_str(&origin).ok()),
        is_taken: row.get(16)?,
    })
}

/// Reads the answer of a message. An answer that can't be read is made again.
fn answer(run_id: &RunId, outcome: &str, ended_at: i64) -> Option<RunRecord> {
    let outcome = serde_json::from_str(outcome).map_err(unreadable("outcome", run_id));
    let outcome = outcome.inspect_err(|error| tracing::warn!(%run_id, %error, "answered again")).ok()?;
    Some(RunRecord { run_id: run_id.clone(), started_at: None, ended_at, outcome, report: None })
}

fn unreadable(column: &'static str, run_id: &RunId) -> impl FnOnce(serde_json::Error) -> JournalError {
    move |error| JournalError::Storage(format!("inbox row {run_id} has an unreadable {column}: {error}"))
}
