//! The index file: opening it, its tables, and what is wrong with it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use crate::steps::{Step, reached};

/// Tables of OpenClaw 2026.2.9, in its words: `sqlite_master` keeps them.
const THEIR_TABLES: &str = "
CREATE TABLE IF NOT EXISTS meta (
      key TEXT PRIMARY KEY,
      value TEXT NOT NULL
    );
CREATE TABLE IF NOT EXISTS files (
      path TEXT PRIMARY KEY,
      source TEXT NOT NULL DEFAULT 'memory',
      hash TEXT NOT NULL,
      mtime INTEGER NOT NULL,
      size INTEGER NOT NULL
    );
CREATE TABLE IF NOT EXISTS chunks (
      id TEXT PRIMARY KEY,
      path TEXT NOT NULL,
      source TEXT NOT NULL DEFAULT 'memory',
      start_line INTEGER NOT NULL,
      end_line INTEGER NOT NULL,
      hash TEXT NOT NULL,
      model TEXT NOT NULL,
      text TEXT NOT NULL,
      embedding TEXT NOT NULL,
      updated_at INTEGER NOT NULL
    );
CREATE TABLE IF NOT EXISTS embedding_cache (
      provider TEXT NOT NULL,
      model TEXT NOT NULL,
      provider_key TEXT NOT NULL,
      hash TEXT NOT NULL,
      embedding TEXT NOT NULL,
      dims INTEGER,
      updated_at INTEGER NOT NULL,
      PRIMARY KEY (provider, model, provider_key, hash)
    );
CREATE INDEX IF NOT EXISTS idx_embedding_cache_updated_at ON embedding_cache(updated_at);
CREATE VIRTUAL TABLE IF NOT EXISTS chunks_fts USING fts5(
  text,
  id UNINDEXED,
  path UNINDEXED,
  source UNINDEXED,
  model UNINDEXED,
  start_line UNINDEXED,
  end_line UNINDEXED
);
CREATE INDEX IF NOT EXISTS idx_chunks_path ON chunks(path);";

/// Index that needs the column which old files lack.
const THEIR_SOURCE_INDEX: &str = "CREATE INDEX IF NOT EXISTS idx_chunks_source ON chunks(source);";

/// Tables of our own. They can be dropped at any time and are made anew from the others.
///
/// - `openclaw_meta`: numbers that count on, the stamp of the other program's tables, what the tables were made with.
/// - `openclaw_files`: what tells that a file has changed without reading it.
/// - `openclaw_docs`: a document is a chunk to the keyword and vector index; its number is never used again. `mark`
///   are the first bits of the chunk's id, `fts` its row in `chunks_fts`, `words` its length, -1 after its end.
/// - `openclaw_terms`: for each segment and term the documents that hold it.
/// - `openclaw_vectors`, `openclaw_codes`: vectors as 32-bit numbers, and their short codes.
/// - `openclaw_pending`: documents that wait for a vector, with the number of failures.
/// - `openclaw_cache`: vectors of texts, where `embedding_cache` would be too large.
const OUR_TABLES: &str = "
CREATE TABLE IF NOT EXISTS openclaw_meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS openclaw_files (
  path TEXT PRIMARY KEY, size INTEGER NOT NULL, modified INTEGER NOT NULL, inode INTEGER NOT NULL, device INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS openclaw_docs (
  doc INTEGER PRIMARY KEY, chunk INTEGER NOT NULL, mark INTEGER NOT NULL, fts INTEGER, words INTEGER NOT NULL,
  revision INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS openclaw_docs_chunk ON openclaw_docs(chunk);
CREATE INDEX IF NOT EXISTS openclaw_docs_revision ON openclaw_docs(revision);
CREATE TABLE IF NOT EXISTS openclaw_segments (segment INTEGER PRIMARY KEY, documents INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS openclaw_terms (
  segment INTEGER NOT NULL, term TEXT NOT NULL, documents INTEGER NOT NULL, postings BLOB NOT NULL,
  PRIMARY KEY (segment, term)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS openclaw_vectors (doc INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS openclaw_codes (doc INTEGER PRIMARY KEY, code BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS openclaw_pending (doc INTEGER PRIMARY KEY, failures INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS openclaw_cache (
  provider TEXT NOT NULL, model TEXT NOT NULL, provider_key TEXT NOT NULL, hash TEXT NOT NULL, vector BLOB NOT NULL,
  updated_at INTEGER NOT NULL, PRIMARY KEY (provider, model, provider_key, hash)
) WITHOUT ROWID;";

/// Names of [`OUR_TABLES`].
pub(crate) const OUR_TABLE_NAMES: &[&str] = &[
    "openclaw_meta",
    "openclaw_files",
    "openclaw_docs",
    "openclaw_segments",
    "openclaw_terms",
    "openclaw_vectors",
    "openclaw_codes",
    "openclaw_pending",
    "openclaw_cache",
];

/// Longest wait for another program that writes.
const BUSY: Duration = Duration::from_secs(5);

/// Reasons for which the index file can't be used, by what the caller does then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The file is damaged or no index: it is moved aside and made anew.
    #[error("the index file is damaged: {0}")]
    Damaged(String),
    /// The disk is full, or another program holds the file for long: the change is given up and tried again later.
    #[error("the index file can't be written now: {0}")]
    Busy(String),
    /// The file or its directory can't be written: searches go on with what it holds.
    #[error("the index file can't be written: {0}")]
    ReadOnly(String),
    /// No file exists yet.
    #[error("the index has not been built yet")]
    Missing,
    /// Any other failure.
    #[error("the index file can't be used: {0}")]
    Other(String),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(text),
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure,
            ) => Self::Busy(text),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly(text),
            _ => Self::Other(text),
        }
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::ReadOnly(error.to_string())
            }
            io::ErrorKind::StorageFull => Self::Busy(error.to_string()),
            _ => Self::Other(error.to_string()),
        }
    }
}

/// Identity of the file that a connection has open. Another program may put a new one in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileMark(u64, u64);

impl FileMark {
    #[cfg(unix)]
    pub(crate) fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self(metadata.dev(), metadata.ino()))
    }

    #[cfg(not(unix))]
    pub(crate) fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|_| Self(0, 0))
    }
}

/// Opens the file for writing; it and its tables are made if they are missing.
pub(crate) fn open_for_writing(path: &Path) -> Result<Connection, StoreError> {
    make_private(path)?;
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(BUSY)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if !mode.eq_ignore_ascii_case("wal") {
        tracing::debug!(mode, "the index file has no write-ahead log");
    }
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "cache_size", -4_096)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "journal_size_limit", 16 * 1024 * 1024)?;
    connection.set_prepared_statement_cache_capacity(64);
    openclaw_vec0::register(&connection)?;
    make_tables(&connection)?;
    Ok(connection)
}

/// Opens the file for searches, or returns `None` if there is none.
pub(crate) fn open_for_reading(path: &Path) -> Result<Option<Connection>, StoreError> {
    if !path.exists() {
        return Ok(None);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    // On a read-only disk the write-ahead log can't be made; then the file is read as it is.
    let connection =
        match connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0)) {
            Ok(_) => connection,
            Err(error)
                if matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)) =>
            {
                let address = format!(
                    "file:{}?immutable=1",
                    path.display().to_string().replace('%', "%25").replace('?', "%3f").replace('#', "%23")
                );
                Connection::open_with_flags(address, flags | OpenFlags::SQLITE_OPEN_URI)?
            }
            Err(error) => return Err(error.into()),
        };
    connection.pragma_update(None, "cache_size", -1_024)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(Some(connection))
}

fn make_private(path: &Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if let Some(directory) = path.parent() {
        make_directory(directory)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn make_directory(directory: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(directory)
}

fn make_tables(connection: &Connection) -> Result<(), StoreError> {
    let has = "SELECT count(*) FROM sqlite_master WHERE name IN ('idx_chunks_source', 'chunks_fts', 'openclaw_cache', 'openclaw_pending')";
    let is_made = connection.query_row(has, [], |row| row.get::<_, i64>(0))? == 4;
    if is_made && OUR_TABLE_NAMES.iter().all(|name| table_exists(connection, name).unwrap_or(false)) {
        return Ok(());
    }
    let transaction =
        rusqlite::Transaction::new_unchecked(connection, rusqlite::TransactionBehavior::Immediate)?;
    transaction.execute_batch(THEIR_TABLES)?;
    for table in ["files", "chunks"] {
        let has_source = format!("SELECT count(*) FROM pragma_table_info('{table}') WHERE name = 'source'");
        if transaction.query_row(&has_source, [], |row| row.get::<_, i64>(0))? == 0 {
            transaction.execute_batch(&format!(
                "ALTER TABLE {table} ADD COLUMN source TEXT NOT NULL DEFAULT 'memory'"
            ))?;
        }
    }
    transaction.execute_batch(THEIR_SOURCE_INDEX)?;
    // They belong together: without one of them the others are of no use.
    drop_our_tables(&transaction)?;
    reached(Step::TablesMade);
    transaction.commit()?;
    Ok(())
}

/// Returns a number that changes when another connection has changed the file.
pub(crate) fn data_version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("PRAGMA data_version", [], |row| row.get(0))?)
}

/// Returns whether there is a table of this name.
pub(crate) fn table_exists(connection: &Connection, name: &str) -> Result<bool, StoreError> {
    let row = connection
        .query_row("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1", [name], |_| Ok(()))
        .optional()?;
    Ok(row.is_some())
}

/// Makes the tables of our own anew, but for the remembered vectors, which are true whatever the index holds.
pub(crate) fn drop_our_tables(connection: &Connection) -> Result<(), StoreError> {
    for name in OUR_TABLE_NAMES.iter().filter(|name| **name != "openclaw_cache") {
        connection.execute_batch(&format!("DROP TABLE IF EXISTS {name}"))?;
    }
    connection.execute_batch(OUR_TABLES)?;
    Ok(())
}

/// Moves a damaged file aside, with what belongs to it, and returns its new path.
pub(crate) fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    let aside = with_suffix(path, &format!(".corrupt-{now}"));
    for suffix in ["-wal", "-shm"] {
        match std::fs::rename(with_suffix(path, suffix), with_suffix(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::rename(path, &aside)?;
    Ok(aside)
}

/// Deletes what a reindex of OpenClaw 2026.2.9 left behind when it was killed, after an hour.
pub(crate) fn remove_leftovers(path: &Path) {
    const OLD: Duration = Duration::from_secs(3_600);
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
    else {
        return;
    };
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let file = entry.file_name();
        let Some(rest) = file.to_str().and_then(|file| file.strip_prefix(name)) else { continue };
        let is_left = rest.starts_with(".tmp-") || rest.starts_with(".backup-");
        let is_old = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > OLD));
        if is_left && is_old {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::golden;

    #[test]
    fn the_tables_are_those_of_2026_2_9() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/main.sqlite");
        let connection = open_for_writing(&path).unwrap();
        for object in golden("memory-schema.json")["objects"].as_array().unwrap() {
            let name = object["name"].as_str().unwrap();
            if name == "chunks_vec" {
                continue;
            }
            let sql: String = connection
                .query_row("SELECT sql FROM sqlite_master WHERE name = ?1", [name], |row| row.get(0))
                .unwrap();
            assert_eq!(sql, object["sql"].as_str().unwrap());
        }
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_file_without_the_source_column_gets_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("main.sqlite");
        let old = Connection::open(&path).unwrap();
        let without = THEIR_TABLES.replace("      source TEXT NOT NULL DEFAULT 'memory',\n", "");
        old.execute_batch(&without).unwrap();
        drop(old);
        let connection = open_for_writing(&path).unwrap();
        connection.execute_batch("SELECT source FROM chunks; SELECT source FROM files;").unwrap();
        connection
            .execute_batch("INSERT INTO files (path, hash, mtime, size) VALUES ('a', 'h', 1.5, 1)")
            .unwrap();
        let source: String = connection.query_row("SELECT source FROM files", [], |row| row.get(0)).unwrap();
        assert_eq!(source, "memory");
    }

    #[test]
    fn what_is_no_index_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("main.sqlite");
        std::fs::write(&path, "this is no database at all, but long enough to be looked at".repeat(20))
            .unwrap();
        assert!(matches!(open_for_writing(&path), Err(StoreError::Damaged(_))));
        let aside = move_aside(&path).unwrap();
        assert!(aside.exists() && !path.exists());
        open_for_writing(&path).unwrap();
    }
}
