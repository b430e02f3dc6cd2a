//! Vectors of documents: in the form that either program reads, and as codes for our searches.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, params};

use super::{ChunkRow, IndexWriter, meta};
use crate::cache::{self, CacheForm};
use crate::codes::{Codebook, code_bytes, normalised, read_vector, vector_bytes};
use crate::counters;
use crate::db::StoreError;

/// Number of chunks from which vectors are not written in the form of OpenClaw 2026.2.9 any more: it takes ten times
/// the space, and that program would take seconds to search them.
pub(crate) const MOST_SHARED: i64 = 20_000;
/// Vectors from which on their mean is worth knowing.
const CENTRE_FROM: i64 = 512;

/// Vectors of which the mean is taken.
const CENTRE_SAMPLE: i64 = 4_096;

impl IndexWriter<'_> {
    /// Forgets all vectors, because they are of another model.
    pub(crate) fn clear_vectors(&mut self) -> Result<(), StoreError> {
        self.has_changed = true;
        self.counters.epoch += 1;
        self.codebook = None;
        self.transaction.execute_batch(
            "DELETE FROM openclaw_vectors; DELETE FROM openclaw_codes; DELETE FROM openclaw_pending;",
        )?;
        counters::clear_codebook(&self.transaction)
    }

    /// Returns the vectors of chunks, by the hashes of their texts.
    pub(super) fn vectors_of(&self, rows: &[ChunkRow]) -> Result<HashMap<String, Vec<f32>>, StoreError> {
        let mut vectors = HashMap::new();
        if !self.wants_vectors {
            return Ok(vectors);
        }
        let mut read =
            self.transaction.prepare_cached("SELECT vector FROM openclaw_vectors WHERE doc = ?1")?;
        for row in rows {
            let bytes: Option<Vec<u8>> = read.query_row([row.document], |row| row.get(0)).optional()?;
            let mut values = Vec::new();
            read_vector(&bytes.unwrap_or_default(), &mut values);
            if !values.is_empty() {
                vectors.insert(row.hash.clone(), values);
            }
        }
        Ok(vectors)
    }

    pub(super) fn add_pending(&mut self, document: i64) -> Result<(), StoreError> {
        self.transaction
            .prepare_cached("INSERT OR IGNORE INTO openclaw_pending VALUES (?1, 0)")?
            .execute([document])?;
        Ok(())
    }

    /// Returns whether OpenClaw 2026.2.9 is to find vectors in the file.
    pub(super) fn is_shared(&self) -> bool {
        self.stamp.chunks < MOST_SHARED
    }

    /// Stores the vector of a document, for our searches.
    pub(super) fn put_vector(&mut self, document: i64, vector: &[f32]) -> Result<(), StoreError> {
        let dimensions = vector.len();
        if self.codebook.is_none() {
            counters::set_codebook(&self.transaction, dimensions, None, 0)?;
            self.codebook = Some(Codebook::new(dimensions, None));
        }
        if self.meta.vector_dims != Some(dimensions) && self.is_shared() {
            self.meta.vector_dims = Some(dimensions);
            meta::write_meta(&self.transaction, &self.meta)?;
        }
        let mut insert =
            self.transaction.prepare_cached("INSERT OR REPLACE INTO openclaw_vectors VALUES (?1, ?2)")?;
        insert.execute(params![document, vector_bytes(vector)])?;
        drop(insert);
        let Some(codebook) = self.codebook.as_ref().filter(|codebook| codebook.dimensions() == dimensions)
        else {
            return Ok(());
        };
        if let Some(vector) = normalised(vector) {
            let code = code_bytes(&codebook.code(&vector));
            self.transaction
                .prepare_cached("INSERT OR REPLACE INTO openclaw_codes VALUES (?1, ?2)")?
                .execute(params![document, code])?;
        }
        Ok(())
    }

    /// Stores the answer of an embedder for a document that waits for it, for both programs, and remembers it.
    pub(crate) fn put_embedding(
        &mut self,
        document: i64,
        hash: &str,
        vector: &[f32],
        is_remembered: bool,
    ) -> Result<(), StoreError> {
        self.has_changed = true;
        if self.is_shared() {
            let sql = "UPDATE chunks SET embedding = ?2, updated_at = ?3
                WHERE rowid = (SELECT chunk FROM openclaw_docs WHERE doc = ?1 AND words >= 0)";
            self.transaction.prepare_cached(sql)?.execute(params![
                document,
                cache::to_json(vector),
                self.now
            ])?;
        }
        if is_remembered {
            let form = if self.is_shared() { CacheForm::Shared } else { CacheForm::Own };
            cache::put(&self.transaction, &self.meta, hash, vector, self.now, form)?;
        }
        // The chunk may have gone while its text was on the way.
        let mut row = self
            .transaction
            .prepare_cached("UPDATE openclaw_docs SET revision = ?2 WHERE doc = ?1 AND words >= 0")?;
        let is_live = row.execute(params![document, self.counters.revision + 1])? > 0;
        drop(row);
        self.transaction
            .prepare_cached("DELETE FROM openclaw_pending WHERE doc = ?1")?
            .execute([document])?;
        if is_live { self.put_vector(document, vector) } else { Ok(()) }
    }

    /// Records that a document could not be embedded.
    pub(crate) fn count_failure(&mut self, document: i64) -> Result<(), StoreError> {
        self.has_changed = true;
        self.transaction
            .prepare_cached("UPDATE openclaw_pending SET failures = failures + 1 WHERE doc = ?1")?
            .execute([document])?;
        Ok(())
    }

    /// Makes codes anew around the mean of the vectors, when there are many more of them than the last time. Returns
    /// whether it did.
    pub(crate) fn renew_codes(&mut self) -> Result<bool, StoreError> {
        let count: i64 =
            self.transaction.query_row("SELECT count(*) FROM openclaw_codes", [], |row| row.get(0))?;
        let before = counters::number(&self.transaction, "centre_count")?.unwrap_or_default();
        let Some(dimensions) = self.codebook.as_ref().map(Codebook::dimensions) else { return Ok(false) };
        if count < CENTRE_FROM || count < before.saturating_mul(4) {
            return Ok(false);
        }
        let centre = self.mean(dimensions, count)?;
        let codebook = Codebook::new(dimensions, Some(centre.clone()));
        counters::set_codebook(&self.transaction, dimensions, Some(&centre), count)?;
        let mut documents = Vec::new();
        {
            let mut rows = self.transaction.prepare("SELECT doc FROM openclaw_codes")?;
            let mut rows = rows.query([])?;
            while let Some(row) = rows.next()? {
                documents.push(row.get::<_, i64>(0)?);
            }
        }
        let mut values = Vec::new();
        let mut read =
            self.transaction.prepare_cached("SELECT vector FROM openclaw_vectors WHERE doc = ?1")?;
        let mut write =
            self.transaction.prepare_cached("UPDATE openclaw_codes SET code = ?2 WHERE doc = ?1")?;
        for document in documents {
            let bytes: Option<Vec<u8>> = read.query_row([document], |row| row.get(0)).optional()?;
            read_vector(&bytes.unwrap_or_default(), &mut values);
            if let Some(vector) = normalised(&values) {
                write.execute(params![document, code_bytes(&codebook.code(&vector))])?;
            }
        }
        drop((read, write));
        self.codebook = Some(codebook);
        self.counters.epoch += 1;
        self.has_changed = true;
        Ok(true)
    }

    fn mean(&self, dimensions: usize, count: i64) -> Result<Vec<f32>, StoreError> {
        let step = (count / CENTRE_SAMPLE).max(1);
        let mut sum = vec![0.0_f32; dimensions];
        let mut taken = 0.0_f32;
        let mut values = Vec::new();
        let mut rows = self.transaction.prepare("SELECT vector FROM openclaw_vectors WHERE doc % ?1 = 0")?;
        let mut rows = rows.query([step])?;
        while let Some(row) = rows.next()? {
            read_vector(row.get_ref(0)?.as_blob().unwrap_or_default(), &mut values);
            if let Some(vector) = normalised(&values).filter(|vector| vector.len() == dimensions) {
                sum.iter_mut().zip(&vector).for_each(|(sum, value)| *sum += value);
                taken += 1.0;
            }
        }
        sum.iter_mut().for_each(|value| *value /= taken.max(1.0));
        Ok(sum)
    }

    /// Removes some remembered vectors if there are more than `most`. Returns whether it did.
    pub(crate) fn prune_cache(&mut self, most: usize) -> Result<bool, StoreError> {
        let has_removed = cache::prune(&self.transaction, most)?;
        self.has_changed |= has_removed;
        Ok(has_removed)
    }

    /// Removes what is remembered of a text.
    pub(crate) fn forget_text(&mut self, hash: &str) -> Result<(), StoreError> {
        self.has_changed = true;
        cache::remove(&self.transaction, hash)
    }
}
