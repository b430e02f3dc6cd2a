//! Vectors of texts that were embedded before, by the hash of the text.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params};

use crate::codes::{read_vector, vector_bytes};
use crate::db::StoreError;
use crate::identity::IndexMeta;

/// Remembered vectors that are removed at once.
const REMOVED_AT_ONCE: i64 = 500;

/// Table in which vectors are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheForm {
    /// As JSON in the table of OpenClaw 2026.2.9, which reads them there.
    Shared,
    /// As bytes in a table of our own.
    Own,
}

/// Returns the remembered vector of a text.
pub(crate) fn get(
    connection: &Connection,
    meta: &IndexMeta,
    hash: &str,
) -> Result<Option<Vec<f32>>, StoreError> {
    let key = params![meta.provider, meta.model, meta.provider_key, hash];
    let theirs = "SELECT embedding FROM embedding_cache WHERE provider = ?1 AND model = ?2 AND provider_key = ?3 AND hash = ?4";
    let mut row = connection.prepare_cached(theirs)?;
    let text: Option<String> = row.query_row(key, |row| row.get(0)).optional()?;
    if let Some(vector) = text.and_then(|text| from_json(&text)) {
        return Ok(Some(vector));
    }
    let ours = "SELECT vector FROM openclaw_cache WHERE provider = ?1 AND model = ?2 AND provider_key = ?3 AND hash = ?4";
    let mut row = connection.prepare_cached(ours)?;
    let bytes: Option<Vec<u8>> = row.query_row(key, |row| row.get(0)).optional()?;
    let mut values = Vec::new();
    read_vector(&bytes.unwrap_or_default(), &mut values);
    Ok((!values.is_empty()).then_some(values))
}

/// Remembers the vector of a text.
pub(crate) fn put(
    connection: &Connection,
    meta: &IndexMeta,
    hash: &str,
    vector: &[f32],
    now: i64,
    form: CacheForm,
) -> Result<(), StoreError> {
    let (sql, stored) = match form {
        CacheForm::Shared => (
            "INSERT INTO embedding_cache VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            ON CONFLICT DO UPDATE SET embedding = excluded.embedding, dims = excluded.dims, updated_at = excluded.updated_at",
            Value::Text(to_json(vector)),
        ),
        // It counts the dimensions by the bytes.
        CacheForm::Own => (
            "INSERT INTO openclaw_cache VALUES (?1, ?2, ?3, ?4, ?5, ?7)
            ON CONFLICT DO UPDATE SET vector = excluded.vector, updated_at = excluded.updated_at",
            Value::Blob(vector_bytes(vector)),
        ),
    };
    let dimensions = i64::try_from(vector.len()).unwrap_or(i64::MAX);
    connection.prepare_cached(sql)?.execute(params![
        meta.provider,
        meta.model,
        meta.provider_key,
        hash,
        stored,
        dimensions,
        now
    ])?;
    Ok(())
}

/// Returns how many vectors are remembered.
pub(crate) fn count(connection: &Connection) -> Result<usize, StoreError> {
    let sql = "SELECT (SELECT count(*) FROM embedding_cache) + (SELECT count(*) FROM openclaw_cache)";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

/// Removes some of the oldest vectors if there are more than `most`, and returns whether it did.
pub(crate) fn prune(connection: &Connection, most: usize) -> Result<bool, StoreError> {
    let above =
        i64::try_from(count(connection)?.saturating_sub(most)).unwrap_or(i64::MAX).min(REMOVED_AT_ONCE);
    if above <= 0 {
        return Ok(false);
    }
    let sql = "DELETE FROM embedding_cache WHERE rowid IN (SELECT rowid FROM embedding_cache ORDER BY updated_at LIMIT ?1)";
    let removed = i64::try_from(connection.execute(sql, [above])?).unwrap_or(i64::MAX);
    if removed < above {
        let sql = "DELETE FROM openclaw_cache WHERE (provider, model, provider_key, hash) IN
            (SELECT provider, model, provider_key, hash FROM openclaw_cache ORDER BY updated_at LIMIT ?1)";
        connection.execute(sql, [above - removed])?;
    }
    Ok(true)
}

/// Removes vectors of a model that have other dimensions than `dimensions`.
pub(crate) fn remove_other_dimensions(
    connection: &Connection,
    meta: &IndexMeta,
    dimensions: usize,
) -> Result<(), StoreError> {
    let of_model = "provider = ?1 AND model = ?2 AND provider_key = ?3";
    let dimensions = i64::try_from(dimensions).unwrap_or(i64::MAX);
    for (table, differs) in
        [("embedding_cache", "coalesce(dims, 0) <> ?4"), ("openclaw_cache", "length(vector) <> 4 * ?4")]
    {
        let sql = format!("DELETE FROM {table} WHERE {of_model} AND {differs}");
        connection.execute(&sql, params![meta.provider, meta.model, meta.provider_key, dimensions])?;
    }
    Ok(())
}

/// Removes what is remembered of texts, by their hashes.
pub(crate) fn remove(connection: &Connection, hash: &str) -> Result<(), StoreError> {
    connection.execute("DELETE FROM embedding_cache WHERE hash = ?1", [hash])?;
    connection.execute("DELETE FROM openclaw_cache WHERE hash = ?1", [hash])?;
    Ok(())
}

/// Returns a vector as a JSON array.
pub(crate) fn to_json(vector: &[f32]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(vector.len() * 11 + 2);
    text.push('[');
    for (index, value) in vector.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        // Writing to a string does not fail.
        let _ = write!(text, "{value}");
    }
    text.push(']');
    text
}

/// Reads a vector from a JSON array of numbers; anything else, and an empty one, is none.
pub(crate) fn from_json(text: &str) -> Option<Vec<f32>> {
    if text.len() <= 2 {
        return None;
    }
    serde_json::from_str::<Vec<f32>>(text).ok().filter(|vector| !vector.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Chunking;

    #[test]
    fn numbers_come_back_as_they_were() {
        let vector = [0.049788, -1.0, 3.0, 1e-12, f32::MAX, 0.1 + 0.2];
        assert_eq!(from_json(&to_json(&vector)).unwrap(), vector);
        assert_eq!(to_json(&[1.0, -0.5]), "[1,-0.5]");
        assert_eq!(from_json("[1, 2.5, -3e-2]"), Some(vec![1.0, 2.5, -0.03]));
        for wrong in ["", "[]", "{}", "[null]", "[\"a\"]", "[1"] {
            assert_eq!(from_json(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_oldest_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let connection = crate::db::open_for_writing(&dir.path().join("m.sqlite")).unwrap();
        let meta = IndexMeta::new(None, Chunking::default());
        for (index, form) in
            [CacheForm::Shared, CacheForm::Own, CacheForm::Shared, CacheForm::Own].into_iter().enumerate()
        {
            put(&connection, &meta, &index.to_string(), &[1.0], i64::try_from(index).unwrap(), form).unwrap();
        }
        assert!(!prune(&connection, 4).unwrap());
        assert!(prune(&connection, 1).unwrap());
        assert_eq!(count(&connection).unwrap(), 1);
        assert_eq!(get(&connection, &meta, "3").unwrap(), Some(vec![1.0]));
    }
}
