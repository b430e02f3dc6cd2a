//! Statements of the table `arrivals`.

use openclaw_channels::{Address, Inbound};
use openclaw_protocol::RunId;
use rusqlite::{Connection, Row, ToSql, params};

use super::rows::{execute, order, read_few, read_some, written};
use crate::arrival::{Fate, NewArrival, Routed};
use crate::journal::rows::{
    ArrivalIdentity, ArrivalProgress, ArrivalQuery, ArrivalRow, NewContent, RowContent,
};
use crate::journal::{EventCount, JournalError};

/// Columns of an event, in the order in which [`read`] reads them.
const COLUMNS: &str = "seq, channel, account, native_id, message_id, target, received_at, said_at, identity, \
     fate, reason, run_id, decided_at, session_key, matched_by, again";

/// Counts those without a fate.
pub(super) const COUNT_WAITING: &str = "SELECT count(*) FROM arrivals WHERE fate IS NULL";

/// Adds an event. `false`: there is one with its dedupe key.
pub(super) fn insert(
    db: &Connection,
    new: &NewArrival,
    content: NewContent<'_, Inbound>,
) -> Result<bool, JournalError> {
    let sql = "INSERT INTO arrivals (channel, account, native_id, message_id, target, received_at, payload, said_at,
            fate, reason, run_id, decided_at, identity)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT (identity) DO NOTHING";
    let NewArrival { event, received_at, .. } = new;
    let ArrivalProgress { fate, run_id, decided_at, .. } = ArrivalProgress::of(new);
    let (fate, reason) = columns(fate.as_ref());
    let values = params![
        event.address.channel,
        event.address.account,
        event.native_id,
        new.message_id(),
        event.address.target,
        received_at,
        written(content)?.flatten(),
        event.at,
        fate,
        reason,
        run_id.as_ref().map(RunId::as_str),
        decided_at,
        event.dedupe_key(),
    ];
    execute(db, sql, values)
}

/// Replaces what changes of an event.
pub(super) fn set(
    db: &Connection,
    number: i64,
    progress: &ArrivalProgress,
    content: NewContent<'_, Inbound>,
) -> Result<bool, JournalError> {
    let sql = "UPDATE arrivals SET fate = ?2, reason = ?3, run_id = ?4, decided_at = ?5, session_key = ?6,
            matched_by = ?7, again = ?8, payload = iif(?9, payload, ?10)
         WHERE seq = ?1";
    let content = written(content)?;
    let (fate, reason) = columns(progress.fate.as_ref());
    let values = params![
        number,
        fate,
        reason,
        progress.run_id.as_ref().map(RunId::as_str),
        progress.decided_at,
        progress.route.as_ref().map(|route| &route.session_key),
        progress.route.as_ref().map(|route| &route.matched_by),
        progress.again,
        content.is_none(),
        content.flatten(),
    ];
    execute(db, sql, values)
}

fn columns(fate: Option<&Fate>) -> (Option<&'static str>, Option<&str>) {
    let columns = fate.map(Fate::columns);
    (columns.map(|(name, ..)| name), columns.and_then(|(_, reason, _)| reason))
}

/// Returns the events that a query means.
pub(super) fn select(
    db: &Connection,
    query: &ArrivalQuery<'_>,
    content: RowContent,
    most: u32,
) -> Result<Vec<ArrivalRow>, JournalError> {
    let content = if content == RowContent::Omitted { "NULL" } else { "coalesce(payload, '')" };
    let order = order(query.is_newest_first());
    let sql = |which: &str| format!("SELECT {COLUMNS}, {content} FROM arrivals WHERE {which} {order}");
    let some = |which: &str, values: &[&dyn ToSql]| {
        read_some(db.prepare_cached(&sql(which))?, values, most, read, |row| query.matches(row))
    };
    match query {
        ArrivalQuery::Number(number) => some("seq = ?1", &[number]),
        ArrivalQuery::Same(ArrivalIdentity { identity, former, .. }) => {
            let sql = format!("SELECT {COLUMNS}, {content} FROM arrivals WHERE identity IN (?1, ?2, ?3)");
            let order = (query.is_newest_first(), most);
            let is_meant = |row: &ArrivalRow| query.matches(row);
            let [by_id, by_account] = former;
            read_few(db.prepare_cached(&sql)?, [identity, by_id, by_account], order, read, is_meant, |row| {
                row.number
            })
        }
        ArrivalQuery::Waiting { after } => some("fate IS NULL AND seq > ?1", &[after]),
        ArrivalQuery::Noted { conversation: Address { channel, account, target, .. }, before } => {
            let which = "fate = 'noted' AND run_id IS NULL AND channel = ?1 AND account = ?2 AND target = ?3
                 AND seq < ?4";
            some(which, &[channel, account, target, before])
        }
        ArrivalQuery::About { conversation: Address { channel, account, target, .. }, message_id } => {
            // Each half has an index of its own.
            let which = "seq IN (
                 SELECT seq FROM arrivals
                 WHERE fate IS NULL AND channel = ?1 AND account = ?2 AND target = ?3 AND message_id = ?4
                 UNION ALL
                 SELECT seq FROM arrivals
                 WHERE fate = 'noted' AND run_id IS NULL AND channel = ?1 AND account = ?2 AND target = ?3
                   AND message_id = ?4)";
            some(which, &[channel, account, target, message_id])
        }
        ArrivalQuery::Newest => some("true", &[]),
        ArrivalQuery::Named(id) => some("(message_id = ?1 OR native_id = ?1 OR run_id = ?1)", &[id]),
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<ArrivalRow> {
    let run_id: Option<String> = row.get(11)?;
    let fate = row.get_ref(9)?.as_str_or_null()?;
    let route = match (row.get(13)?, row.get(14)?) {
        (Some(session_key), Some(matched_by)) => Some(Routed { session_key, matched_by }),
        _ => None,
    };
    let event: Option<String> = row.get(16)?;
    Ok(ArrivalRow {
        number: row.get(0)?,
        channel: row.get(1)?,
        account: row.get(2)?,
        native_id: row.get(3)?,
        message_id: row.get(4)?,
        target: row.get(5)?,
        received_at: row.get(6)?,
        said_at: row.get(7)?,
        identity: row.get::<_, Option<String>>(8)?.unwrap_or_default(),
        progress: ArrivalProgress {
            fate: Fate::read(fate, row.get(10)?, run_id.clone()),
            run_id: run_id.map(RunId::new),
            decided_at: row.get(12)?,
            route,
            again: row.get(15)?,
        },
        event: event.map(|event| serde_json::from_str(&event).map_err(|error| error.to_string())),
    })
}

/// Counts events by fate and reason.
pub(super) fn totals(
    db: &Connection,
    account: Option<(&str, &str)>,
) -> Result<Vec<EventCount>, JournalError> {
    let (channel, name) = account.unzip();
    let sql = "SELECT coalesce(fate, 'waiting'), reason, count(*), sum(again) FROM arrivals
         WHERE ?1 IS NULL OR (channel = ?1 AND account = ?2) GROUP BY 1, 2";
    let read = |row: &Row<'_>| {
        Ok(EventCount { fate: row.get(0)?, reason: row.get(1)?, count: row.get(2)?, repeats: row.get(3)? })
    };
    read_some(db.prepare_cached(sql)?, params![channel, name], u32::MAX, read, |_| true)
}
