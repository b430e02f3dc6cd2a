//! Salvage of a damaged database: rows are copied one by one from both ends of each table, as far
//! as each end goes.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};

use super::file::{IDENTIFIED_FORMERLY, TABLES};
use crate::journal::JournalError;

/// Counts of the rows that were taken over from a damaged database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Messages, those that were answered included.
    pub messages: usize,
    /// Deliveries, those that were made included.
    pub deliveries: usize,
    /// Events of chat platforms, including those that were decided about.
    pub arrivals: usize,
}

/// Copies the readable rows.
pub(super) fn copy(damaged: &Path, to: &mut Connection) -> Result<Salvaged, JournalError> {
    let mut salvaged = Salvaged::default();
    let Ok(from) = Connection::open_with_flags(damaged, OpenFlags::SQLITE_OPEN_READ_ONLY) else {
        return Ok(salvaged);
    };
    // Reads a file that is shorter than it says, too.
    let _ = from.pragma_update(None, "writable_schema", true);
    let transaction = to.transaction()?;
    for table in TABLES {
        let count = copy_table(&from, &transaction, table)?;
        match table {
            "inbox" => salvaged.messages = count,
            "outbox" => salvaged.deliveries = count,
            "arrivals" => salvaged.arrivals = count,
            // Too few to be worth a word.
            _ => {}
        }
    }
    // The file may be of a version that had no such column.
    transaction.execute_batch(IDENTIFIED_FORMERLY)?;
    transaction.commit()?;
    Ok(salvaged)
}

fn copy_table(from: &Connection, to: &Connection, table: &str) -> Result<usize, JournalError> {
    let old = columns(from, table).unwrap_or_default();
    let shared: Vec<String> = columns(to, table)?.into_iter().filter(|name| old.contains(name)).collect();
    let mut copied = 0;
    // The order of the table itself: an index may be what is damaged.
    for direction in ["ASC", "DESC"] {
        if !shared.is_empty() && copy_rows(from, to, table, &shared, direction, &mut copied)? {
            break;
        }
    }
    Ok(copied)
}

/// Copies the readable rows in one direction; true if the end of the table was reached.
fn copy_rows(
    from: &Connection,
    to: &Connection,
    table: &str,
    columns: &[String],
    direction: &str,
    copied: &mut usize,
) -> Result<bool, JournalError> {
    let names = columns.join(", ");
    let marks = vec!["?"; columns.len()].join(", ");
    let mut insert = to.prepare(&format!("INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})"))?;
    let select = format!("SELECT {names} FROM {table} NOT INDEXED ORDER BY seq {direction}");
    let Ok(mut select) = from.prepare(&select) else { return Ok(false) };
    let Ok(mut rows) = select.query([]) else { return Ok(false) };
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(true),
            Err(_) => return Ok(false),
        };
        let values: Result<Vec<Value>, _> = (0..columns.len()).map(|at| row.get(at)).collect();
        let Ok(values) = values else { continue };
        match insert.execute(params_from_iter(values)) {
            Ok(count) => *copied += count,
            // A row whose bytes make no sense to the new table is as good as unreadable.
            Err(error) if makes_no_sense(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn makes_no_sense(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch))
}

fn columns(db: &Connection, table: &str) -> Result<Vec<String>, JournalError> {
    let mut statement = db.prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}
