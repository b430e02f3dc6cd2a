//! The index file of `qmd`, which is only read.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

/// Wait for a writer: none is worth more.
const BUSY: Duration = Duration::from_millis(1);

/// An open index file.
pub(crate) struct QmdIndex(Connection);

impl QmdIndex {
    /// Opens the file; `None` if it is not there.
    pub(crate) fn open(path: &Path) -> rusqlite::Result<Option<Self>> {
        if !path.is_file() {
            return Ok(None);
        }
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(BUSY)?;
        Ok(Some(Self(connection)))
    }

    /// Path of the document of a collection whose hash begins so.
    pub(crate) fn path_of(&self, collection: &str, hash: &str) -> rusqlite::Result<Option<String>> {
        let sql = "SELECT path FROM documents WHERE hash >= ?1 AND hash < ?2 AND collection = ?3 AND active = 1 \
                   ORDER BY path LIMIT 1";
        let beyond = format!("{hash}{}", char::MAX);
        self.0.prepare_cached(sql)?.query_row(params![hash, beyond, collection], |row| row.get(0)).optional()
    }

    /// Number of documents of each collection that has some.
    pub(crate) fn counts(&self) -> rusqlite::Result<Vec<(String, u64)>> {
        let sql = "SELECT collection, count(*) FROM documents WHERE active = 1 GROUP BY collection";
        let mut rows = self.0.prepare(sql)?;
        let counts = rows.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?;
        counts.collect()
    }
}
