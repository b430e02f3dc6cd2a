//! The inbox's tables and the settings of its connections.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::InboxError;

/// `PRAGMA user_version` of a database this version writes.
const VERSION: i64 = 1;

const CREATE: &str = "
CREATE TABLE inbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    session_key TEXT NOT NULL,
    payload TEXT,
    accepted_at INTEGER NOT NULL,
    entry_id TEXT NOT NULL,
    fresh_id TEXT NOT NULL,
    session_id TEXT,
    abort_reason TEXT,
    state TEXT NOT NULL CHECK (state IN ('accepted', 'finished')),
    outcome TEXT,
    started_at INTEGER,
    ended_at INTEGER
) STRICT;
CREATE INDEX inbox_unfinished ON inbox (seq) WHERE state = 'accepted';
CREATE INDEX inbox_ended ON inbox (ended_at) WHERE state = 'finished';
PRAGMA user_version = 1;
";

/// How long a connection waits for the other one; only a checkpoint can make it wait at all.
const BUSY: Duration = Duration::from_secs(5);

/// The writer's connection, schema in place.
pub(super) fn open(path: &Path) -> Result<Connection, InboxError> {
    create_private(path)?;
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "cache_size", -512)?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match version {
        VERSION => {}
        0 => {
            let transaction = connection.transaction()?;
            transaction.execute_batch(CREATE)?;
            transaction.commit()?;
        }
        newer => {
            return Err(InboxError::Storage(format!(
                "it has schema version {newer}, this version knows {VERSION}: start the newer openclaw, or move the file away"
            )));
        }
    }
    Ok(connection)
}

/// A connection beside the writer that can't change anything.
pub(super) fn open_reader(path: &Path) -> Result<Connection, InboxError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "cache_size", -128)?;
    Ok(connection)
}

/// SQLite would create the file with the process's umask; messages are private. Its `-wal` and `-shm` take the mode over.
fn create_private(path: &Path) -> Result<(), InboxError> {
    use std::os::unix::fs::OpenOptionsExt;
    let opened = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    opened.map(drop).map_err(|error| InboxError::Storage(error.to_string()))
}
