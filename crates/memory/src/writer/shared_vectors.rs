//! The vectors that OpenClaw 2026.2.9 searches: its `vec0` table, and the record of their dimensions, without which that
//! program makes the index anew.
//!
//! The record stands there only while the table holds the vector of every chunk that has one. Above [`MOST_SHARED`]
//! chunks there is neither: that program would take seconds for a search.

use rusqlite::{Connection, OptionalExtension, params};

use super::meta::{read_meta, write_meta};
use super::{IndexWriter, Rewriting};
use crate::cache;
use crate::codes::{read_vector, vector_bytes};
use crate::counters::{self, Stamp};
use crate::db::StoreError;
use crate::steps::{Step, reached};

/// Number of chunks from which vectors are not written in the form of OpenClaw 2026.2.9 any more: it takes ten times
/// the space, and that program would take seconds to search them.
pub(crate) const MOST_SHARED: i64 = 20_000;

/// Number of chunks below which an index that had outgrown the form gets it again.
const SHARED_AGAIN: i64 = MOST_SHARED / 4 * 3;

/// Returns the dimensions of the other program's table of vectors, or `None` if there is none.
pub(crate) fn table_dimensions(connection: &Connection) -> Result<Option<usize>, StoreError> {
    let mut row = connection.prepare_cached("SELECT sql FROM sqlite_master WHERE name = 'chunks_vec'")?;
    let sql: Option<String> = row.query_row([], |row| row.get(0)).optional()?;
    let Some((_, rest)) = sql.as_deref().and_then(|sql| sql.split_once("FLOAT[")) else { return Ok(None) };
    Ok(rest.split_once(']').and_then(|(number, _)| number.trim().parse().ok()))
}

/// Returns whether OpenClaw 2026.2.9 uses an index of this many chunks without making it anew.
pub(crate) fn is_shared(connection: &Connection, chunks: i64, has_vectors: bool) -> Result<bool, StoreError> {
    Ok(chunks < MOST_SHARED && (!has_vectors || table_dimensions(connection)?.is_some()))
}

/// Returns whether vectors are there that the other program could use and does not find.
pub(crate) fn needs_sharing(connection: &Connection) -> Result<bool, StoreError> {
    let Some(dimensions) = counters::number(connection, "dimensions")?.and_then(|n| usize::try_from(n).ok())
    else {
        return Ok(false);
    };
    let Some(meta) = read_meta(connection)? else { return Ok(false) };
    let table = table_dimensions(connection)?;
    let is_right = table == Some(dimensions) && meta.vector_dims == table;
    if is_right || Rewriting::read(connection)?.is_some() {
        return Ok(false);
    }
    let chunks = counters::stamp(connection)?.map_or(0, |stamp: Stamp| stamp.chunks);
    Ok(chunks < if table.is_some() { MOST_SHARED } else { SHARED_AGAIN })
}

fn remove_row(connection: &Connection, id: &str) -> Result<(), rusqlite::Error> {
    connection.prepare_cached("DELETE FROM chunks_vec WHERE id = ?1")?.execute([id])?;
    Ok(())
}

fn insert_row(connection: &Connection, id: &str, vector: &[f32]) -> Result<(), rusqlite::Error> {
    connection
        .prepare_cached("INSERT INTO chunks_vec (id, embedding) VALUES (?1, ?2)")?
        .execute(params![id, vector_bytes(vector)])?;
    Ok(())
}

impl IndexWriter<'_> {
    /// Returns whether OpenClaw 2026.2.9 is to find vectors in the file.
    pub(super) fn is_shared(&self) -> bool {
        self.stamp.chunks < MOST_SHARED && (self.shared_dimensions.is_some() || self.codebook.is_none())
    }

    /// Makes the other program's table and its JSON complete.
    pub(crate) fn share_vectors(&mut self) -> Result<(), StoreError> {
        let Some(dimensions) = self.codebook.as_ref().map(crate::codes::Codebook::dimensions) else {
            return Ok(());
        };
        self.make_table(dimensions)?;
        let mut found: Vec<(i64, i64)> = Vec::new();
        {
            let sql = "SELECT d.doc, d.chunk FROM openclaw_docs d JOIN openclaw_vectors v ON v.doc = d.doc WHERE d.words >= 0";
            let mut rows = self.transaction.prepare(sql)?;
            let mut rows = rows.query([])?;
            while let Some(row) = rows.next()? {
                found.push((row.get(0)?, row.get(1)?));
            }
        }
        let mut vector = Vec::new();
        for (document, chunk) in found {
            let bytes: Vec<u8> = self
                .transaction
                .prepare_cached("SELECT vector FROM openclaw_vectors WHERE doc = ?1")?
                .query_row([document], |row| row.get(0))?;
            read_vector(&bytes, &mut vector);
            let (id, has_json): (String, bool) = self
                .transaction
                .prepare_cached("SELECT id, embedding <> '[]' FROM chunks WHERE rowid = ?1")?
                .query_row([chunk], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if !has_json {
                self.transaction
                    .prepare_cached("UPDATE chunks SET embedding = ?2 WHERE rowid = ?1")?
                    .execute(params![chunk, cache::to_json(&vector)])?;
            }
            self.put_row(&id, &vector)?;
        }
        self.has_changed = true;
        reached(Step::VectorsShared);
        self.record_dimensions()
    }

    /// Stores the vector of a chunk for the other program.
    pub(super) fn put_shared(&mut self, id: &str, vector: &[f32]) -> Result<(), StoreError> {
        if self.shared_dimensions.is_none() {
            self.begin_sharing(vector.len())?;
        }
        self.put_row(id, vector)
    }

    /// Makes the other program's table for vectors that are still to come.
    pub(super) fn begin_sharing(&mut self, dimensions: usize) -> Result<(), StoreError> {
        self.make_table(dimensions)?;
        self.record_dimensions()
    }

    /// Removes the vector of a chunk from the other program's table.
    pub(super) fn remove_shared(&mut self, id: &str) -> Result<(), StoreError> {
        if self.shared_dimensions.is_none() {
            return Ok(());
        }
        let removed = remove_row(&self.transaction, id);
        self.or_without_table(removed)
    }

    /// Removes the other program's table and its record if the index has outgrown them.
    pub(super) fn end_sharing_if_outgrown(&mut self) -> Result<(), StoreError> {
        if self.stamp.chunks < MOST_SHARED { Ok(()) } else { self.end_sharing() }
    }

    /// Removes the other program's table and its record: it makes the index anew then.
    pub(super) fn end_sharing(&mut self) -> Result<(), StoreError> {
        if self.shared_dimensions.take().is_some() {
            self.has_changed = true;
            let dropped = self.transaction.execute_batch("DROP TABLE chunks_vec");
            self.or_without_table(dropped)?;
        }
        self.record_dimensions()
    }

    fn put_row(&mut self, id: &str, vector: &[f32]) -> Result<(), StoreError> {
        if self.shared_dimensions != Some(vector.len()) {
            return Ok(());
        }
        // A `vec0` table replaces no rows.
        let put = remove_row(&self.transaction, id).and_then(|()| insert_row(&self.transaction, id, vector));
        self.or_without_table(put)
    }

    fn make_table(&mut self, dimensions: usize) -> Result<(), StoreError> {
        let made = self.transaction.execute_batch(&format!(
            "DROP TABLE IF EXISTS chunks_vec;
            CREATE VIRTUAL TABLE chunks_vec USING vec0(\n  id TEXT PRIMARY KEY,\n  embedding FLOAT[{dimensions}]\n);"
        ));
        self.shared_dimensions = Some(dimensions);
        self.or_without_table(made)
    }

    /// Goes on without the table if sqlite-vec can't use it. Our searches don't need it, and the other program makes the
    /// index anew when its record has no dimensions.
    fn or_without_table(&mut self, done: Result<(), rusqlite::Error>) -> Result<(), StoreError> {
        match done.map_err(StoreError::from) {
            Err(StoreError::Other(reason)) => {
                tracing::warn!(reason, "vectors are not written for OpenClaw 2026.2.9");
                self.shared_dimensions = None;
                self.record_dimensions()
            }
            done => done,
        }
    }

    /// Brings the dimensions in the record in step with the table. While everything is written anew, the record stays as
    /// it was and without dimensions.
    fn record_dimensions(&mut self) -> Result<(), StoreError> {
        let Some(mut meta) = read_meta(&self.transaction)? else { return Ok(()) };
        let dimensions = self.shared_dimensions.filter(|_| !self.is_rewriting);
        if meta.vector_dims != dimensions {
            meta.vector_dims = dimensions;
            self.has_changed = true;
            write_meta(&self.transaction, &meta)?;
        }
        Ok(())
    }
}
