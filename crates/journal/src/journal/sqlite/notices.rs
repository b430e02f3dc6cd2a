//! Tables `promises` and `system_lines`: promises to agents about their commands, and the lines
//! that wait to be told to them ([`crate::notices`]).

use openclaw_protocol::{RunId, SessionKey};
use openclaw_tools::{Notice, Promise, PromiseKind};
use rusqlite::{Connection, params};

use crate::journal::JournalError;
use crate::notices::{KeptLine, KeptNotices, Lost, lines_of};

/// Time in milliseconds for which a promise that ended with its process is remembered.
const KEEP_MS: i64 = 24 * 60 * 60 * 1000;
/// Number of such promises that are remembered at most.
const KEEP_ROWS: i64 = 512;

/// Stores a promise.
pub(super) fn promise(db: &Connection, promise: &Promise, now: i64) -> Result<bool, JournalError> {
    let (session_key, line) = columns(promise);
    let sql = "INSERT INTO promises (id, kind, scope, name, session_key, line, begun_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING";
    let Promise { id, kind, scope, name, .. } = promise;
    let values = params![id, kind.as_str(), scope, name, session_key, line, now];
    Ok(db.prepare_cached(sql)?.execute(values)? == 1)
}

/// Changes promises. A missing one was fulfilled.
pub(super) fn amend(db: &Connection, promises: &[Promise]) -> Result<bool, JournalError> {
    let sql = "UPDATE promises SET kind = ?2, scope = ?3, name = ?4, session_key = ?5, line = ?6
         WHERE id = ?1 AND lost_at IS NULL";
    let mut any = false;
    for promise in promises {
        let (session_key, line) = columns(promise);
        let Promise { id, kind, scope, name, .. } = promise;
        let values = params![id, kind.as_str(), scope, name, session_key, line];
        any |= db.prepare_cached(sql)?.execute(values)? == 1;
    }
    Ok(any)
}

fn columns(promise: &Promise) -> (Option<&str>, Option<&str>) {
    let notice = promise.notice.as_ref();
    (notice.map(|notice| notice.session_key.spelled()), notice.map(|notice| notice.line.as_str()))
}

/// Stores a line that waits for its session, and removes the promise that it fulfils.
pub(super) fn notice(
    db: &Connection,
    line: Option<&KeptLine>,
    fulfils: Option<&str>,
) -> Result<bool, JournalError> {
    if let Some(id) = fulfils {
        db.prepare_cached("DELETE FROM promises WHERE id = ?1")?.execute(params![id])?;
    }
    if let Some(line) = line {
        add(db, line)?;
    }
    Ok(true)
}

fn add(db: &Connection, line: &KeptLine) -> Result<(), JournalError> {
    let sql = "INSERT INTO system_lines (seq, session_key, text, ts) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (seq) DO NOTHING";
    let KeptLine { number, session_key, text, ts, .. } = line;
    db.prepare_cached(sql)?.execute(params![number, session_key.spelled(), text, ts])?;
    Ok(())
}

/// Notes the lines that the message of a run has told.
pub(super) fn told(db: &Connection, run_id: &RunId, numbers: &[i64]) -> Result<bool, JournalError> {
    each(numbers, |number| {
        let mut tell = db.prepare_cached("UPDATE system_lines SET told_by = ?2 WHERE seq = ?1")?;
        Ok(tell.execute(params![number, run_id.as_str()])?)
    })
}

/// Drops lines to make room for others.
pub(super) fn drop_lines(db: &Connection, numbers: &[i64]) -> Result<bool, JournalError> {
    each(numbers, |number| {
        Ok(db.prepare_cached("DELETE FROM system_lines WHERE seq = ?1")?.execute(params![number])?)
    })
}

fn each(numbers: &[i64], change: impl Fn(i64) -> Result<usize, JournalError>) -> Result<bool, JournalError> {
    let mut any = false;
    for number in numbers {
        any |= change(*number)? == 1;
    }
    Ok(any)
}

/// Forgets the lines that a run has told, as it has ended.
pub(super) fn forget_told(db: &Connection, run_id: &RunId) -> Result<bool, JournalError> {
    db.prepare_cached("DELETE FROM system_lines WHERE told_by = ?1")?.execute(params![run_id.as_str()])?;
    Ok(true)
}

/// Returns the notices that a start finds. Promises that are still open ended with the process
/// before: they become lines, all in one transaction.
pub(super) fn recover(db: &Connection, now: i64) -> Result<KeptNotices, JournalError> {
    let transaction = db.unchecked_transaction()?;
    // Whoever told them is gone without a trace: a damaged database was set aside.
    transaction.execute(
        "UPDATE system_lines SET told_by = NULL WHERE told_by IS NOT NULL
             AND told_by NOT IN (SELECT run_id FROM inbox WHERE state = 'accepted')",
        [],
    )?;
    let owed = owed(&transaction)?;
    let last: i64 =
        transaction.query_row("SELECT coalesce(max(seq), 0) FROM system_lines", [], |row| row.get(0))?;
    for line in lines_of(owed, last + 1, now) {
        add(&transaction, &line)?;
    }
    transaction.execute("UPDATE promises SET lost_at = ?1 WHERE lost_at IS NULL", params![now])?;
    prune(&transaction, now)?;
    let found = KeptNotices { lines: lines(&transaction)?, lost: lost(&transaction)? };
    transaction.commit()?;
    Ok(found)
}

fn owed(db: &Connection) -> Result<Vec<Notice>, JournalError> {
    let mut owed = db.prepare(
        "SELECT session_key, line FROM promises
         WHERE lost_at IS NULL AND session_key IS NOT NULL AND line IS NOT NULL ORDER BY seq",
    )?;
    let rows = owed.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
    let rows = rows.collect::<Result<Vec<_>, _>>()?.into_iter();
    // A key that can't be read is of no session.
    Ok(rows
        .filter_map(|(key, line)| Some(Notice { session_key: SessionKey::parse(&key).ok()?, line }))
        .collect())
}

fn lines(db: &Connection) -> Result<Vec<KeptLine>, JournalError> {
    let mut lines =
        db.prepare("SELECT seq, session_key, text, ts, told_by FROM system_lines ORDER BY seq")?;
    let rows = lines.query_map([], |row| {
        let (key, told_by): (String, Option<String>) = (row.get(1)?, row.get(4)?);
        let (number, text, ts) = (row.get(0)?, row.get(2)?, row.get(3)?);
        let session_key = SessionKey::parse(&key).ok();
        Ok(session_key.map(|session_key| KeptLine {
            number,
            session_key,
            text,
            ts,
            told_by: told_by.map(RunId::new),
        }))
    })?;
    Ok(rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

fn lost(db: &Connection) -> Result<Vec<Lost>, JournalError> {
    let mut lost =
        db.prepare("SELECT kind, scope, name FROM promises WHERE lost_at IS NOT NULL ORDER BY seq")?;
    let rows = lost.query_map([], |row| {
        let kind: String = row.get(0)?;
        let (scope, name) = (row.get(1)?, row.get(2)?);
        Ok(PromiseKind::parse(&kind).map(|kind| Lost { kind, scope, name }))
    })?;
    Ok(rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// Forgets promises that ended with earlier processes, after a while.
pub(super) fn prune(db: &Connection, now: i64) -> Result<(), JournalError> {
    db.prepare_cached("DELETE FROM promises WHERE lost_at < ?1")?
        .execute(params![now.saturating_sub(KEEP_MS)])?;
    db.prepare_cached(
        "DELETE FROM promises WHERE lost_at IS NOT NULL AND seq NOT IN
             (SELECT seq FROM promises WHERE lost_at IS NOT NULL ORDER BY seq DESC LIMIT ?1)",
    )?
    .execute(params![KEEP_ROWS])?;
    Ok(())
}
