//! Common parts of the tables. Each is a queue: items in a table, each in one of a few states;
//! which state may follow which is a pure function, and no statement changes a state past it.
//!
//! Every queue's table has the columns `seq` (order of acceptance), a unique key (by which a second
//! item of the same key is recognised), `kind` and `payload` (JSON, typed by the queue),
//! `accepted_at`, `state` and `ended_at` (Unix milliseconds), and further columns of the queue.

use rusqlite::{Connection, ToSql};

use crate::journal::JournalError;

/// The states of a queue's items.
pub(super) trait States: Copy + Eq + Send + Sync + 'static {
    /// The queue's table.
    const TABLE: &'static str;
    /// Unique column of the table.
    const KEY: &'static str;
    /// The state of a new item.
    const FIRST: Self;
    /// All states.
    const ALL: &'static [Self];

    /// The text in the column `state`.
    fn name(self) -> &'static str;

    /// Returns the states an item may go to from this one.
    fn next(self) -> &'static [Self];

    /// True if no work is left to be done by itself: such items are kept for a while to answer for
    /// their key.
    fn is_over(self) -> bool;

    /// Reads the column.
    fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.name() == name)
    }
}

/// A new item.
pub(super) struct NewItem<'a> {
    /// Unique key of the item.
    pub(super) key: &'a str,
    /// Kind of payload that it carries.
    pub(super) kind: &'a str,
    /// The payload, JSON.
    pub(super) payload: &'a str,
    /// Unix milliseconds.
    pub(super) accepted_at: i64,
    /// The queue's own columns.
    pub(super) columns: &'a [(&'a str, &'a dyn ToSql)],
}

/// Adds an item in its first state. `false`: there is one with this key already, and nothing was changed.
pub(super) fn insert<S: States>(db: &Connection, item: &NewItem<'_>) -> Result<bool, JournalError> {
    let state = S::FIRST.name();
    let mut names = format!("{}, kind, payload, accepted_at, state", S::KEY);
    let mut values: Vec<&dyn ToSql> = vec![&item.key, &item.kind, &item.payload, &item.accepted_at, &state];
    for (name, value) in item.columns {
        names = format!("{names}, {name}");
        values.push(*value);
    }
    let marks = vec!["?"; values.len()].join(", ");
    let sql =
        format!("INSERT INTO {} ({names}) VALUES ({marks}) ON CONFLICT ({}) DO NOTHING", S::TABLE, S::KEY);
    Ok(db.prepare_cached(&sql)?.execute(values.as_slice())? == 1)
}

/// Brings an item into a state, and changes other columns with it. `false`: it is not there, or in
/// a state from which this one can't be reached, and nothing was changed.
pub(super) fn advance<S: States>(
    db: &Connection,
    key: &str,
    to: S,
    columns: &[(&str, &dyn ToSql)],
) -> Result<bool, JournalError> {
    let mut sets = "state = ?".to_owned();
    let name = to.name();
    let mut values: Vec<&dyn ToSql> = vec![&name];
    for (column, value) in columns {
        sets = format!("{sets}, {column} = ?");
        values.push(*value);
    }
    values.push(&key);
    let from = names(S::ALL.iter().copied().filter(|state| state.next().contains(&to)));
    let sql = format!("UPDATE {} SET {sets} WHERE {} = ? AND state IN ({from})", S::TABLE, S::KEY);
    Ok(db.prepare_cached(&sql)?.execute(values.as_slice())? == 1)
}

/// Counts the items that are not over.
pub(super) fn count_open<S: States>(db: &Connection) -> Result<u64, JournalError> {
    let sql = format!("SELECT count(*) FROM {} WHERE state IN ({})", S::TABLE, open_names::<S>());
    let count: i64 = db.prepare_cached(&sql)?.query_row([], |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Limits on keeping items that are over. Those accepted first go first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retention {
    /// Milliseconds since their end.
    pub(super) keep_ms: i64,
    /// Number of items kept at most. The inbox counts all numbers it gave out since, including
    /// those of unfinished rows.
    pub(super) keep_rows: i64,
}

/// Returns the names of the states in which work is left to be done, as SQL.
pub(super) fn open_names<S: States>() -> String {
    names(S::ALL.iter().copied().filter(|state| !state.is_over()))
}

fn names<S: States>(states: impl Iterator<Item = S>) -> String {
    let quoted: Vec<String> = states.map(|state| format!("'{}'", state.name())).collect();
    quoted.join(", ")
}
