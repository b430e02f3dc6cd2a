//! Statements of the table `outbox`.

use openclaw_channels::{Address, Part};
use openclaw_protocol::SessionKey;
use rusqlite::{Connection, Row, ToSql, params};

use super::rows::{execute, order, read_few, read_some, written};
use crate::delivery::{Author, Delivery, DeliveryFailure, DeliveryState};
use crate::journal::rows::{
    DeliveryProgress, DeliveryQuery, DeliveryRow, DeliveryTotal, NewContent, RowContent,
};
use crate::journal::{JournalError, NewDelivery};

/// Condition of rows that are not over. With it SQLite finds them by an index.
macro_rules! open {
    () => {
        "kind = 'part' AND state IN ('pending', 'sending', 'uncertain')"
    };
}

/// Columns of a delivery, in the order in which [`read`] reads them.
const COLUMNS: &str = "seq, id, channel, account, target, thread, session_key, author, asked, accepted_at, \
     state, attempts, next_at, expires_at, receipt, error, ended_at, may_repeat, given_up, left_out";

/// Counts those that are not over, of whatever kind.
pub(super) const COUNT_OPEN: &str =
    "SELECT count(*) FROM outbox WHERE state IN ('pending', 'sending', 'uncertain')";

/// Adds a delivery. `false`: there is one with its id.
pub(super) fn insert(db: &Connection, new: &NewDelivery) -> Result<bool, JournalError> {
    let sql = "INSERT INTO outbox (id, kind, payload, accepted_at, state, channel, account, target, thread,
            session_key, expires_at, next_at, asked, author)
         VALUES (?1, 'part', ?2, ?3, 'pending', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT (id) DO NOTHING";
    let Delivery { id, address, session_key, author, part, expires_at, asked } = &new.delivery;
    let values = params![
        id,
        serde_json::to_string(part)?,
        new.accepted_at,
        address.channel,
        address.account,
        address.target,
        address.thread,
        session_key.as_ref().map(SessionKey::spelled),
        expires_at,
        new.not_before,
        asked,
        author.column(),
    ];
    execute(db, sql, values)
}

/// Replaces what changes of a delivery.
pub(super) fn set(
    db: &Connection,
    number: i64,
    progress: &DeliveryProgress,
    content: NewContent<'_, Part>,
) -> Result<bool, JournalError> {
    let sql = "UPDATE outbox SET state = ?2, attempts = ?3, next_at = ?4, expires_at = ?5, receipt = ?6,
            error = ?7, ended_at = ?8, may_repeat = ?9, given_up = ?10, left_out = ?11,
            payload = iif(?12, payload, ?13)
         WHERE seq = ?1";
    let content = written(content)?;
    let values = params![
        number,
        progress.state.as_str(),
        progress.attempts,
        progress.next_at,
        progress.expires_at,
        progress.receipt.as_ref().map(serde_json::to_string).transpose()?,
        progress.error,
        progress.ended_at,
        progress.may_repeat,
        progress.given_up.map(DeliveryFailure::as_str),
        progress.left_out,
        content.is_none(),
        content.flatten(),
    ];
    execute(db, sql, values)
}

/// Returns the deliveries that a query means.
pub(super) fn select(
    db: &Connection,
    query: &DeliveryQuery<'_>,
    content: RowContent,
    most: u32,
) -> Result<Vec<DeliveryRow>, JournalError> {
    let content = if content == RowContent::Omitted { "NULL" } else { "coalesce(payload, '')" };
    let order = order(query.is_newest_first());
    let sql = |which: &str| format!("SELECT {COLUMNS}, {content} FROM outbox WHERE {which} {order}");
    let some = |which: &str, values: &[&dyn ToSql]| {
        read_some(db.prepare_cached(&sql(which))?, values, most, read, |row| query.matches(row))
    };
    let few = |which: &str, values: &[&dyn ToSql]| {
        let sql = format!("SELECT {COLUMNS}, {content} FROM outbox WHERE {which}");
        let order = (query.is_newest_first(), most);
        read_few(db.prepare_cached(&sql)?, values, order, read, |row| query.matches(row), |row| row.number)
    };
    match query {
        DeliveryQuery::Id(id) => some("id = ?1", &[id]),
        DeliveryQuery::Number(number) => some("seq = ?1", &[number]),
        DeliveryQuery::OfRun(run_id) => few("id >= ?1 || ':' AND id < ?1 || ';'", &[&run_id.as_str()]),
        DeliveryQuery::Named(id) => some("(id = ?1 OR instr(receipt, ?2))", &[id, &quoted(id)?]),
        DeliveryQuery::Sent { channel, message_id } => {
            let which = "state = 'sent' AND channel = ?1 AND instr(receipt, ?2)";
            some(which, &[channel, &quoted(message_id)?])
        }
        DeliveryQuery::Open { after } => some(concat!(open!(), " AND seq > ?1"), &[after]),
        DeliveryQuery::OpenOf { channel, account } => {
            some(concat!(open!(), " AND channel = ?1 AND account = ?2"), &[channel, account])
        }
        DeliveryQuery::OpenIn(Address { channel, account, target, .. }) => {
            let which = concat!(open!(), " AND channel = ?1 AND account = ?2 AND target = ?3");
            some(which, &[channel, account, target])
        }
        DeliveryQuery::GivenUp => some("state = 'failed' AND given_up IS NOT 'discarded'", &[]),
        DeliveryQuery::GivenUpOf(message) => {
            few("id >= ?1 || ':' AND id < ?1 || ';' AND state = 'failed'", &[message])
        }
        DeliveryQuery::HeldIn(Address { channel, account, target, .. }) => {
            // Both states are named for the index of deliveries that are over: SQLite does not see
            // by itself that one of them is among them.
            let which = "state = 'failed' AND state IN ('sent', 'failed') AND next_at > ended_at \
                         AND channel = ?1 AND account = ?2 AND target = ?3";
            few(which, &[channel, account, target])
        }
    }
}

/// Returns the text in which an id stands in a receipt, which is JSON with texts in it.
fn quoted(id: &str) -> Result<String, JournalError> {
    Ok(serde_json::to_string(id)?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<DeliveryRow> {
    let text = |at: usize| row.get::<_, Option<String>>(at);
    let part = text(20)?.map(|part| serde_json::from_str(&part).map_err(|error| error.to_string()));
    Ok(DeliveryRow {
        number: row.get(0)?,
        id: row.get(1)?,
        address: Address {
            channel: row.get(2)?,
            account: row.get(3)?,
            target: row.get(4)?,
            thread: row.get(5)?,
        },
        // One that can't be read counts as none.
        session_key: text(6)?.and_then(|key| SessionKey::parse(&key).ok()),
        author: Author::of_column(text(7)?.as_deref()),
        // One that a damaged file has is none: the delivery goes on without it.
        asked: row.get(8).unwrap_or_default(),
        accepted_at: row.get(9)?,
        progress: DeliveryProgress {
            state: state_at(row, 10)?,
            attempts: row.get(11)?,
            next_at: row.get(12)?,
            expires_at: row.get(13)?,
            receipt: text(14)?.and_then(|receipt| serde_json::from_str(&receipt).ok()),
            error: row.get(15)?,
            ended_at: row.get(16)?,
            may_repeat: row.get(17)?,
            given_up: failure_at(row, 18)?,
            left_out: row.get(19)?,
        },
        part,
    })
}

fn state_at(row: &Row<'_>, at: usize) -> rusqlite::Result<DeliveryState> {
    Ok(DeliveryState::parse(row.get_ref(at)?.as_str()?))
}

fn failure_at(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<DeliveryFailure>> {
    Ok(row.get_ref(at)?.as_str_or_null()?.and_then(DeliveryFailure::parse))
}

/// Counts deliveries by their states and reasons for giving up.
pub(super) fn totals(
    db: &Connection,
    account: Option<(&str, &str)>,
) -> Result<Vec<DeliveryTotal>, JournalError> {
    let (channel, name) = account.unzip();
    let sql = "SELECT state, given_up, count(*), max(ended_at) FROM outbox
         WHERE ?1 IS NULL OR (channel = ?1 AND account = ?2) GROUP BY state, given_up";
    let read = |row: &Row<'_>| {
        Ok(DeliveryTotal {
            state: state_at(row, 0)?,
            given_up: failure_at(row, 1)?,
            count: row.get(2)?,
            last_ended_at: row.get(3)?,
        })
    };
    read_some(db.prepare_cached(sql)?, params![channel, name], u32::MAX, read, |_| true)
}
