//! The rows of `gateway.sqlite` on a connection: one table for each kind, each with a column `seq`
//! for the number. [`messages`], [`deliveries`], [`arrivals`] and [`notices`] have their statements.
//!
//! A statement selects at least the rows that a query means, in its order; the query itself has the
//! last word.

use openclaw_protocol::RunId;
use rusqlite::{CachedStatement, Connection, Params, Row};

use super::refused::RefusedRuns;
use super::{arrivals, deliveries, messages, notices};
use crate::api::RunRecord;
use crate::journal::JournalError;
use crate::journal::rows::{
    ArrivalQuery, ArrivalRow, DeliveryQuery, DeliveryRow, Forgettable, JournalRows, MessageQuery, MessageRow,
    MessageState, NewContent, NewRow, NoticeRows, Open, Removal, Retention, RowContent, RowTotals, SetRow,
};

/// The rows, on the writer's connection.
pub(super) struct SqliteRows<'a> {
    pub(super) db: &'a Connection,
    pub(super) refused: &'a RefusedRuns,
}

impl JournalRows for SqliteRows<'_> {
    fn message(&self, run_id: &RunId) -> Result<Option<MessageState>, JournalError> {
        messages::state(self.db, run_id)
    }

    fn messages(
        &self,
        query: &MessageQuery<'_>,
        content: RowContent,
        most: u32,
    ) -> Result<Vec<MessageRow>, JournalError> {
        messages::select(self.db, query, content, most)
    }

    fn deliveries(
        &self,
        query: &DeliveryQuery<'_>,
        content: RowContent,
        most: u32,
    ) -> Result<Vec<DeliveryRow>, JournalError> {
        deliveries::select(self.db, query, content, most)
    }

    fn arrivals(
        &self,
        query: &ArrivalQuery<'_>,
        content: RowContent,
        most: u32,
    ) -> Result<Vec<ArrivalRow>, JournalError> {
        arrivals::select(self.db, query, content, most)
    }

    fn notices(&self) -> Result<NoticeRows, JournalError> {
        notices::all(self.db)
    }

    fn count(&self, open: Open) -> Result<u64, JournalError> {
        let sql = match open {
            Open::Deliveries => deliveries::COUNT_OPEN,
            Open::Arrivals => arrivals::COUNT_WAITING,
        };
        let count: i64 = self.db.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    fn totals(&self, account: Option<(&str, &str)>) -> Result<RowTotals, JournalError> {
        let events = arrivals::totals(self.db, account)?;
        Ok(RowTotals { events, deliveries: deliveries::totals(self.db, account)? })
    }

    fn insert(&self, row: NewRow<'_>) -> Result<Option<i64>, JournalError> {
        let is_new = match row {
            NewRow::Message(new) => messages::insert(self.db, new),
            NewRow::Delivery(new) => deliveries::insert(self.db, new),
            NewRow::Arrival(new, content) => arrivals::insert(self.db, new, content),
            NewRow::Promise(new, now) => notices::insert_promise(self.db, new, now),
            NewRow::Line(new) => notices::insert_line(self.db, new),
        }?;
        Ok(is_new.then(|| self.db.last_insert_rowid()))
    }

    fn set(&self, row: SetRow<'_>) -> Result<bool, JournalError> {
        match row {
            SetRow::Message(run_id, progress) => messages::set(self.db, run_id, progress),
            SetRow::Delivery(number, progress, content) => {
                deliveries::set(self.db, number, progress, content)
            }
            SetRow::Arrival(number, progress, content) => arrivals::set(self.db, number, progress, content),
            SetRow::Promise(promise) => notices::set_promise(self.db, promise),
            SetRow::Line(number, told_by) => notices::set_line(self.db, number, told_by),
        }
    }

    fn remove(&self, rows: Removal<'_>) -> Result<bool, JournalError> {
        let db = self.db;
        match rows {
            Removal::Message(run_id) => execute(db, "DELETE FROM inbox WHERE run_id = ?1", [run_id.as_str()]),
            Removal::Delivery(number) => execute(db, "DELETE FROM outbox WHERE seq = ?1", [number]),
            Removal::Promise(id) => execute(db, "DELETE FROM promises WHERE id = ?1", [id]),
            Removal::Line(number) => execute(db, "DELETE FROM system_lines WHERE seq = ?1", [number]),
            Removal::LinesToldBy(run_id) => {
                execute(db, "DELETE FROM system_lines WHERE told_by = ?1", [run_id.as_str()])
            }
            Removal::Old(retention) => remove_old(db, retention),
        }
    }

    fn unstored_end(&self, run_id: &RunId) -> Option<RunRecord> {
        self.refused.find(run_id)
    }
}

fn remove_old(db: &Connection, retention: Retention) -> Result<bool, JournalError> {
    // Both states of the outbox are named for its index: see `DeliveryQuery::HeldIn`.
    let (table, which, ended_at) = match retention.of {
        Forgettable::Messages => return messages::remove_old(db, retention),
        Forgettable::Sent => {
            ("outbox", "state = 'sent' AND state IN ('sent', 'failed') AND author IS NULL", "ended_at")
        }
        Forgettable::SentByGateway => {
            ("outbox", "state = 'sent' AND state IN ('sent', 'failed') AND author = 'gateway'", "ended_at")
        }
        Forgettable::SentWithButtons => {
            ("outbox", "state = 'sent' AND state IN ('sent', 'failed') AND author != 'gateway'", "ended_at")
        }
        Forgettable::Failed => ("outbox", "state = 'failed' AND state IN ('sent', 'failed')", "ended_at"),
        Forgettable::Dropped => ("arrivals", "fate = 'dropped'", "decided_at"),
        Forgettable::Heard => ("arrivals", "fate IN ('run', 'noted', 'handled')", "decided_at"),
        Forgettable::LostPromises => ("promises", "lost_at IS NOT NULL", "lost_at"),
    };
    let Retention { ended_before, keep_rows, .. } = retention;
    let sql = format!("DELETE FROM {table} WHERE {which} AND {ended_at} < ?1");
    let any_old = execute(db, &sql, [ended_before])?;
    // Almost always there are too few to be counted.
    let sql =
        format!("SELECT coalesce((SELECT max(seq) FROM {table}) - (SELECT min(seq) FROM {table}), 0) < ?1");
    if db.prepare_cached(&sql)?.query_row([keep_rows], |row| row.get(0))? {
        return Ok(any_old);
    }
    let sql = format!(
        "DELETE FROM {table} WHERE {which} AND seq <=
         (SELECT seq FROM {table} WHERE {which} ORDER BY seq DESC LIMIT 1 OFFSET ?1)"
    );
    Ok(execute(db, &sql, [keep_rows])? || any_old)
}

/// Executes a statement; true if it changed a row.
pub(super) fn execute(db: &Connection, sql: &str, values: impl Params) -> Result<bool, JournalError> {
    Ok(db.prepare_cached(sql)?.execute(values)? > 0)
}

/// Reads rows until `most` are the ones that were meant.
pub(super) fn read_some<T>(
    mut statement: CachedStatement<'_>,
    values: impl Params,
    most: u32,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    is_meant: impl Fn(&T) -> bool,
) -> Result<Vec<T>, JournalError> {
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while found.len() < most as usize
        && let Some(row) = rows.next()?
    {
        found.extend(Some(read(row)?).filter(&is_meant));
    }
    Ok(found)
}

/// Reads few rows and puts them into a query's order here: SQLite would take more memory to sort two
/// rows than their statement takes otherwise.
pub(super) fn read_few<T>(
    statement: CachedStatement<'_>,
    values: impl Params,
    (is_newest_first, most): (bool, u32),
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    is_meant: impl Fn(&T) -> bool,
    number: impl Fn(&T) -> i64,
) -> Result<Vec<T>, JournalError> {
    let mut found = read_some(statement, values, u32::MAX, read, is_meant)?;
    found.sort_by_key(number);
    if is_newest_first {
        found.reverse();
    }
    found.truncate(most as usize);
    Ok(found)
}

/// Returns the column of a new content, JSON; `None` if the old one stays.
pub(super) fn written<T: serde::Serialize>(
    content: NewContent<'_, T>,
) -> Result<Option<Option<String>>, JournalError> {
    Ok(match content {
        NewContent::Kept => None,
        NewContent::Forgotten => Some(None),
        NewContent::Replaced(new) => Some(Some(serde_json::to_string(new)?)),
    })
}

/// Returns the order of a query, as SQL.
pub(super) fn order(is_newest_first: bool) -> &'static str {
    if is_newest_first { "ORDER BY seq DESC" } else { "ORDER BY seq" }
}
