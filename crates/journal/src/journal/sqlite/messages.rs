//! Statements of the table `inbox`.

use openclaw_protocol::{RunId, SessionId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::rows::{execute, order, read_some};
use crate::api::AbortReason;
use crate::inbox::{Attempts, InboxRow, RequestColumns};
use crate::journal::JournalError;
use crate::journal::rows::{MessageProgress, MessageQuery, MessageRow, MessageState, Retention, RowContent};

/// Columns of what changes, in the order in which [`progress`] reads them.
macro_rules! progress_columns {
    () => {
        "state = 'finished', session_id, attempts, unprepared, abort_reason, outcome, started_at, ended_at,
         taken_by, collected_by, answer_to, cut, may_repeat"
    };
}

/// Adds a message. `false`: there is one of the run.
pub(super) fn insert(db: &Connection, row: &InboxRow<RequestColumns>) -> Result<bool, JournalError> {
    let sql = "INSERT INTO inbox (run_id, kind, payload, accepted_at, state, session_key, entry_id, fresh_id,
            digest, facts, queue_mode)
         VALUES (?1, ?2, ?3, ?4, 'accepted', ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (run_id) DO NOTHING";
    let RequestColumns { kind, json, digest, facts, queue_mode, .. } = &row.payload;
    let values = params![
        row.run_id.as_str(),
        kind,
        json.get(),
        row.accepted_at,
        row.session_key.spelled(),
        row.entry_id,
        row.fresh_id.as_str(),
        digest,
        facts,
        queue_mode.as_str(),
    ];
    execute(db, sql, values)
}

/// Replaces what changes of a message.
pub(super) fn set(db: &Connection, run_id: &RunId, progress: &MessageProgress) -> Result<bool, JournalError> {
    let sql = "UPDATE inbox SET state = iif(?2, 'finished', 'accepted'), session_id = ?3, attempts = ?4,
            unprepared = ?5, abort_reason = ?6, outcome = ?7, started_at = ?8, ended_at = ?9, taken_by = ?10,
            collected_by = ?11, answer_to = ?12, cut = ?13, may_repeat = ?14,
            payload = iif(?2, NULL, payload)
         WHERE run_id = ?1";
    let values = params![
        run_id.as_str(),
        progress.is_finished,
        progress.session_id.as_ref().map(SessionId::as_str),
        progress.attempts.all,
        progress.attempts.unprepared,
        progress.abort.map(AbortReason::as_str),
        progress.outcome,
        progress.started_at,
        progress.ended_at,
        progress.taken_by.as_ref().map(RunId::as_str),
        progress.collected_by.as_ref().map(RunId::as_str),
        progress.answer_to,
        progress.cut.map(|cut| i64::try_from(cut).unwrap_or(i64::MAX)),
        progress.may_repeat,
    ];
    execute(db, sql, values)
}

/// Returns what has to be known to change a message.
pub(super) fn state(db: &Connection, run_id: &RunId) -> Result<Option<MessageState>, JournalError> {
    let sql = concat!("SELECT ", progress_columns!(), ", accepted_at, digest FROM inbox WHERE run_id = ?1");
    let read = |row: &Row<'_>| {
        Ok(MessageState { progress: progress(row)?, accepted_at: row.get(13)?, digest: row.get(14)? })
    };
    Ok(db.prepare_cached(sql)?.query_row([run_id.as_str()], read).optional()?)
}

/// Reads the first columns.
fn progress(row: &Row<'_>) -> rusqlite::Result<MessageProgress> {
    let run = |at: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(at)?.map(RunId::new));
    Ok(MessageProgress {
        is_finished: row.get(0)?,
        session_id: row.get::<_, Option<String>>(1)?.map(SessionId::new),
        attempts: Attempts { all: row.get(2)?, unprepared: row.get(3)? },
        abort: row.get::<_, Option<String>>(4)?.as_deref().map(AbortReason::parse),
        outcome: row.get(5)?,
        started_at: row.get(6)?,
        ended_at: row.get(7)?,
        taken_by: run(8)?,
        collected_by: run(9)?,
        answer_to: row.get(10)?,
        cut: row.get::<_, Option<i64>>(11)?.and_then(|cut| u64::try_from(cut).ok()),
        may_repeat: row.get(12)?,
    })
}

/// Returns the messages that a query means.
pub(super) fn select(
    db: &Connection,
    query: &MessageQuery<'_>,
    content: RowContent,
    most: u32,
) -> Result<Vec<MessageRow>, JournalError> {
    let (which, value): (_, &dyn rusqlite::ToSql) = match query {
        MessageQuery::Run(run_id) => ("run_id = ?1", &run_id.as_str()),
        MessageQuery::Newest => ("?1 IS NULL", &None::<i64>),
        MessageQuery::TakenBy(run_id) => ("(taken_by = ?1 OR collected_by = ?1)", &run_id.as_str()),
        MessageQuery::Entry(id) => ("?1 IN (entry_id, fresh_id)", id),
        MessageQuery::AcceptedSince(time) => ("accepted_at >= ?1", time),
        MessageQuery::Unfinished => ("?1 IS NULL AND state = 'accepted'", &None::<i64>),
    };
    let content = match content {
        RowContent::Omitted => "NULL, NULL",
        RowContent::Small => "facts, iif(facts IS NULL, payload, NULL)",
        RowContent::Whole => "facts, payload",
    };
    // It stands behind the request, which would have to be read for it.
    let queue_mode = match query {
        MessageQuery::AcceptedSince(_) | MessageQuery::Unfinished => "NULL",
        MessageQuery::Run(_) | MessageQuery::Newest | MessageQuery::TakenBy(_) | MessageQuery::Entry(_) => {
            "queue_mode"
        }
    };
    let progress_columns = match query {
        // Without what would be read together with the answer, or stands behind it.
        MessageQuery::AcceptedSince(_) => {
            "state = 'finished', session_id, attempts, unprepared, abort_reason, NULL, started_at, ended_at,
             NULL, NULL, NULL, NULL, FALSE"
        }
        MessageQuery::Run(_)
        | MessageQuery::Newest
        | MessageQuery::TakenBy(_)
        | MessageQuery::Entry(_)
        | MessageQuery::Unfinished => progress_columns!(),
    };
    let order = order(query.is_newest_first());
    let sql = format!(
        "SELECT {progress_columns}, run_id, kind, session_key, accepted_at, entry_id, fresh_id, {queue_mode}, digest, {content}
         FROM inbox WHERE {which} {order}"
    );
    let read = |row: &Row<'_>| {
        Ok(MessageRow {
            progress: progress(row)?,
            run_id: RunId::new(row.get::<_, String>(13)?),
            kind: row.get(14)?,
            session_key: row.get(15)?,
            accepted_at: row.get(16)?,
            entry_id: row.get(17)?,
            fresh_id: row.get(18)?,
            queue_mode: row.get(19)?,
            // One that a damaged file has is none: the message is taken up without it.
            digest: row.get(20).unwrap_or_default(),
            facts: row.get(21)?,
            payload: row.get(22)?,
        })
    };
    read_some(db.prepare_cached(&sql)?, [value], most, read, |row| query.matches(row))
}

/// Removes finished messages that are too old or too many. Walks from the first row to one that
/// stays: both follow the order of acceptance, which no clock that jumps can change.
pub(super) fn remove_old(db: &Connection, retention: Retention) -> Result<bool, JournalError> {
    let sql = "DELETE FROM inbox WHERE state = 'finished' AND seq < max(
             (SELECT max(seq) + 1 FROM inbox) - ?2,
             coalesce((SELECT seq FROM inbox WHERE state = 'finished' AND ended_at >= ?1 ORDER BY seq LIMIT 1),
                      (SELECT max(seq) + 1 FROM inbox)))";
    execute(db, sql, params![retention.ended_before, retention.keep_rows])
}
