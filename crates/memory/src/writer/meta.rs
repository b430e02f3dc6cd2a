//! The record of what an index is made with.

use rusqlite::{Connection, OptionalExtension};

use crate::db::StoreError;
use crate::identity::IndexMeta;

/// Reads what the index is made with, or `None` if it is empty or the record makes no sense.
pub(crate) fn read_meta(connection: &Connection) -> Result<Option<IndexMeta>, StoreError> {
    let sql = "SELECT value FROM meta WHERE key = 'memory_index_meta_v1'";
    let text: Option<String> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Writes the record.
pub(super) fn write_meta(connection: &Connection, meta: &IndexMeta) -> Result<(), StoreError> {
    let text = serde_json::to_string(meta).map_err(|error| StoreError::Other(error.to_string()))?;
    let sql = "INSERT INTO meta VALUES ('memory_index_meta_v1', ?1) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    connection.execute(sql, [text])?;
    Ok(())
}
