//! Checks `gateway.sqlite` and repairs a damaged one, for `openclaw doctor`.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::file::{put_in_place, salvage};
use super::salvage::Salvaged;
use crate::journal::JournalError;

/// The state of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseState {
    /// No file; the next start creates it.
    Absent,
    /// Intact file.
    Sound,
    /// No database, or a partly destroyed one. The text is SQLite's.
    Damaged(String),
    /// In use by a gateway, so that no other process can look into it.
    InUse,
    /// The file could not be read.
    Unknown(String),
}

/// Reads the whole file; changes nothing in it. Blocking.
pub fn check_database(path: &Path) -> DatabaseState {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return DatabaseState::Absent,
        Err(error) => return DatabaseState::Unknown(error.to_string()),
        // An empty file is a database without tables: one that was made and never written.
        Ok(meta) if meta.len() == 0 => return DatabaseState::Sound,
        Ok(_) => {}
    }
    match quick_check(path) {
        Ok(lines) if lines.first().is_some_and(|line| line == "ok") => DatabaseState::Sound,
        Ok(lines) => DatabaseState::Damaged(lines.join("; ")),
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                DatabaseState::Damaged(error.to_string())
            }
            Some(ErrorCode::DatabaseBusy) => DatabaseState::InUse,
            _ => DatabaseState::Unknown(error.to_string()),
        },
    }
}

fn quick_check(path: &Path) -> rusqlite::Result<Vec<String>> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    // A gateway has it for as long as it runs.
    connection.busy_timeout(Duration::ZERO)?;
    let mut statement = connection.prepare("PRAGMA quick_check(10)")?;
    let lines = statement.query_map([], |row| row.get(0))?;
    lines.collect()
}

/// Repairs a damaged database as a start does: puts a new one in its place that has what can be
/// read of it. `set_aside` moves the damaged one out of the way, log and all; when it fails,
/// everything is as it was. No other process may use the database. Blocking.
///
/// # Errors
/// When the disk refuses. Should the process end in between, the next start finishes it.
pub fn renew_database(
    path: &Path,
    set_aside: impl FnOnce() -> std::io::Result<()>,
) -> Result<Salvaged, JournalError> {
    let refused = |error: std::io::Error| JournalError::Storage(error.to_string());
    let salvaged = salvage(path)?;
    set_aside().map_err(refused)?;
    put_in_place(path).map_err(refused)?;
    Ok(salvaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_told_from_a_sound_and_from_an_absent_database() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway.sqlite");
        assert_eq!(check_database(&path), DatabaseState::Absent);
        std::fs::write(&path, "").unwrap();
        assert_eq!(check_database(&path), DatabaseState::Sound);
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.execute_batch("CREATE TABLE t (a TEXT); CREATE INDEX i ON t (a);").unwrap();
        for _ in 0..500 {
            connection.execute("INSERT INTO t VALUES (hex(randomblob(200)))", []).unwrap();
        }
        assert_eq!(check_database(&path), DatabaseState::Sound, "what is in the log counts");
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE").unwrap();
        connection.execute("DELETE FROM t WHERE a = 'none'", []).unwrap();
        assert_eq!(check_database(&path), DatabaseState::InUse);
        drop(connection);
        let whole = std::fs::read(&path).unwrap();
        let mut holed = whole;
        holed[8192..20_000].fill(0xaa);
        for bytes in [b"hello, this is no database at all".to_vec(), holed] {
            std::fs::write(&path, bytes).unwrap();
            assert!(
                matches!(check_database(&path), DatabaseState::Damaged(_)),
                "{:?}",
                check_database(&path)
            );
        }
    }
}
