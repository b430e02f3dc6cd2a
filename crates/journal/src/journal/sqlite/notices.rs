//! Statements of the tables `promises` and `system_lines`.

use openclaw_protocol::{RunId, SessionKey};
use openclaw_tools::{Notice, Promise, PromiseKind};
use rusqlite::{Connection, Row, params};

use super::rows::{execute, read_some};
use crate::journal::JournalError;
use crate::journal::rows::{NoticeRows, PromiseRow};
use crate::notices::KeptLine;

/// Adds a promise. `false`: there is one with its id.
pub(super) fn insert_promise(db: &Connection, promise: &Promise, now: i64) -> Result<bool, JournalError> {
    let (session_key, line) = columns(promise);
    let sql = "INSERT INTO promises (id, kind, scope, name, session_key, line, begun_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING";
    let Promise { id, kind, scope, name, .. } = promise;
    execute(db, sql, params![id, kind.as_str(), scope, name, session_key, line, now])
}

/// Replaces a promise.
pub(super) fn set_promise(db: &Connection, row: &PromiseRow) -> Result<bool, JournalError> {
    let (session_key, line) = columns(&row.promise);
    let sql =
        "UPDATE promises SET kind = ?2, scope = ?3, name = ?4, session_key = ?5, line = ?6, lost_at = ?7
         WHERE id = ?1";
    let Promise { id, kind, scope, name, .. } = &row.promise;
    execute(db, sql, params![id, kind.as_str(), scope, name, session_key, line, row.lost_at])
}

fn columns(promise: &Promise) -> (Option<&str>, Option<&str>) {
    let notice = promise.notice.as_ref();
    (notice.map(|notice| notice.session_key.spelled()), notice.map(|notice| notice.line.as_str()))
}

/// Adds a line. `false`: there is one with its number.
pub(super) fn insert_line(db: &Connection, line: &KeptLine) -> Result<bool, JournalError> {
    let sql = "INSERT INTO system_lines (seq, session_key, text, ts) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (seq) DO NOTHING";
    let KeptLine { number, session_key, text, ts, .. } = line;
    execute(db, sql, params![number, session_key.spelled(), text, ts])
}

/// Sets the run that has told a line.
pub(super) fn set_line(db: &Connection, number: i64, told_by: Option<&RunId>) -> Result<bool, JournalError> {
    let sql = "UPDATE system_lines SET told_by = ?2 WHERE seq = ?1";
    execute(db, sql, params![number, told_by.map(RunId::as_str)])
}

/// Returns the promises and lines.
pub(super) fn all(db: &Connection) -> Result<NoticeRows, JournalError> {
    let sql = "SELECT id, kind, scope, name, session_key, line, lost_at FROM promises ORDER BY seq";
    let promises = read_some(db.prepare_cached(sql)?, [], u32::MAX, promise, |_| true)?;
    let sql = "SELECT seq, session_key, text, ts, told_by FROM system_lines ORDER BY seq";
    let lines = read_some(db.prepare_cached(sql)?, [], u32::MAX, line, |_| true)?;
    let last_line = lines.last().map_or(0, |(number, _)| *number);
    Ok(NoticeRows {
        promises: promises.into_iter().flatten().collect(),
        lines: lines.into_iter().filter_map(|(_, line)| line).collect(),
        last_line,
    })
}

/// Reads a promise. One whose session can't be read is for no session.
fn promise(row: &Row<'_>) -> rusqlite::Result<Option<PromiseRow>> {
    let (id, scope, name, lost_at) = (row.get(0)?, row.get(2)?, row.get(3)?, row.get(6)?);
    let (session_key, line): (Option<String>, Option<String>) = (row.get(4)?, row.get(5)?);
    let session_key = session_key.and_then(|key| SessionKey::parse(&key).ok());
    let notice = session_key.zip(line).map(|(session_key, line)| Notice { session_key, line });
    let kind = PromiseKind::parse(row.get_ref(1)?.as_str()?);
    Ok(kind.map(|kind| PromiseRow { promise: Promise { id, kind, scope, name, notice }, lost_at }))
}

/// Reads a line and its number. A line whose session can't be read is for none.
fn line(row: &Row<'_>) -> rusqlite::Result<(i64, Option<KeptLine>)> {
    let (number, session_key, text, ts) = (row.get(0)?, row.get::<_, String>(1)?, row.get(2)?, row.get(3)?);
    let told_by = row.get::<_, Option<String>>(4)?.map(RunId::new);
    let session_key = SessionKey::parse(&session_key).ok();
    Ok((number, session_key.map(|session_key| KeptLine { number, session_key, text, ts, told_by })))
}
