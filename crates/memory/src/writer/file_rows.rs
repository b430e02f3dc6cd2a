//! Rows of files, with what tells that a file has changed without reading it.

use rusqlite::{Connection, OptionalExtension, params};

use super::{IndexWriter, IndexedFile, now_ms};
use crate::counters::Stamp;
use crate::db::StoreError;
use crate::files::FileStat;

/// Time within which a file system may not tell two changes apart.
const CLOCK_GRAIN_MS: i64 = 100;

impl IndexWriter<'_> {
    pub(super) fn put_file_row(&mut self, file: &IndexedFile<'_>) -> Result<(), StoreError> {
        self.forget_file_row(file.path)?;
        let sql = "INSERT INTO files (path, source, hash, mtime, size) VALUES (?1, ?2, ?3, ?4, ?5)";
        let size = i64::try_from(file.stat.size).unwrap_or(i64::MAX);
        let mut row = self.transaction.prepare_cached(sql)?;
        row.execute(params![file.path, file.source.as_str(), file.hash, file.stat.modified_ms(), size])?;
        self.stamp.files = self.stamp.files.wrapping_add(Stamp::of_file(file.path, &file.hash));
        write_stat(&self.transaction, file.path, &file.stat)
    }

    /// Records that a file was looked at and has not changed.
    pub(crate) fn touch_file(&mut self, path: &str, stat: &FileStat) -> Result<(), StoreError> {
        self.has_changed = true;
        let mut row =
            self.transaction.prepare_cached("UPDATE files SET mtime = ?2, size = ?3 WHERE path = ?1")?;
        row.execute(params![path, stat.modified_ms(), i64::try_from(stat.size).unwrap_or(i64::MAX)])?;
        write_stat(&self.transaction, path, stat)
    }

    pub(super) fn forget_file_row(&mut self, path: &str) -> Result<(), StoreError> {
        let mut row = self.transaction.prepare_cached("SELECT hash FROM files WHERE path = ?1")?;
        if let Some(hash) = row.query_row([path], |row| row.get::<_, String>(0)).optional()? {
            self.stamp.files = self.stamp.files.wrapping_sub(Stamp::of_file(path, &hash));
            self.transaction.prepare_cached("DELETE FROM files WHERE path = ?1")?.execute([path])?;
        }
        Ok(())
    }
}

/// Returns a stat that is believed later: one whose file was changed just now is not, because a further change may leave
/// size and time as they are.
fn settled(stat: FileStat) -> FileStat {
    let is_fresh = now_ms() - stat.modified / 1_000_000 < CLOCK_GRAIN_MS;
    if is_fresh && stat.inode != 0 { FileStat { modified: 0, ..stat } } else { stat }
}

fn write_stat(connection: &Connection, path: &str, stat: &FileStat) -> Result<(), StoreError> {
    let stat = settled(*stat);
    let sql = "INSERT OR REPLACE INTO openclaw_files (path, size, modified, inode, device) VALUES (?1, ?2, ?3, ?4, ?5)";
    let number = |number: u64| i64::from_ne_bytes(number.to_ne_bytes());
    let mut row = connection.prepare_cached(sql)?;
    row.execute(params![path, number(stat.size), stat.modified, number(stat.inode), number(stat.device)])?;
    Ok(())
}
