//! Vectors of documents: in the form that either program reads, and as codes for our searches.

use rusqlite::{OptionalExtension, params};

use super::{ChunkRow, ChunkVectors, IndexWriter};
use crate::cache::{self, CacheForm};
use crate::codes::{Codebook, code_bytes, normalised, read_vector, vector_bytes};
use crate::counters;
use crate::db::StoreError;
use crate::steps::{Step, reached};

impl IndexWriter<'_> {
    /// Forgets all vectors, because they are of another model.
    pub(crate) fn clear_vectors(&mut self) -> Result<(), StoreError> {
        self.has_changed = true;
        self.counters.epoch += 1;
        self.codebook = None;
        self.end_sharing()?;
        self.transaction.execute_batch(
            "DELETE FROM openclaw_vectors; DELETE FROM openclaw_codes; DELETE FROM openclaw_pending;",
        )?;
        counters::clear_codebook(&self.transaction)
    }

    /// Returns the vectors that chunks have.
    pub(super) fn vectors_of(&self, rows: &[ChunkRow]) -> Result<ChunkVectors, StoreError> {
        let mut vectors = ChunkVectors::default();
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
                vectors.by_hash.insert(row.hash.clone(), values);
                vectors.ids.insert(row.id.clone());
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

    /// Returns whether a vector has the dimensions of the others.
    pub(super) fn fits(&self, vector: &[f32]) -> bool {
        self.codebook.as_ref().is_none_or(|codebook| codebook.dimensions() == vector.len())
    }

    /// Stores the vector of a document, which is the chunk `id`, for searches of both programs. Its dimensions are those
    /// of the others, see [`Self::fits`].
    pub(super) fn put_vector(&mut self, document: i64, id: &str, vector: &[f32]) -> Result<(), StoreError> {
        if self.is_shared() {
            self.put_shared(id, vector)?;
        }
        self.put_own_vector(document, vector)
    }

    /// Stores the vector of a document for our searches.
    pub(super) fn put_own_vector(&mut self, document: i64, vector: &[f32]) -> Result<(), StoreError> {
        let codebook = match self.codebook.take() {
            Some(codebook) => codebook,
            None => {
                counters::set_codebook(&self.transaction, vector.len(), None, 0)?;
                Codebook::new(vector.len(), None)
            }
        };
        let codebook = self.codebook.insert(codebook);
        self.transaction
            .prepare_cached("INSERT OR REPLACE INTO openclaw_vectors VALUES (?1, ?2)")?
            .execute(params![document, vector_bytes(vector)])?;
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
        if !self.fits(vector) {
            // It waits on: the next round compares with the dimensions that the index has by now.
            return Ok(());
        }
        self.has_changed = true;
        if is_remembered {
            let form = if self.is_shared() { CacheForm::Shared } else { CacheForm::Own };
            cache::put(&self.transaction, &self.meta, hash, vector, self.now, form)?;
        }
        self.transaction
            .prepare_cached("DELETE FROM openclaw_pending WHERE doc = ?1")?
            .execute([document])?;
        // The chunk may have gone while its text was on the way.
        let sql = "SELECT c.rowid, c.id FROM openclaw_docs d JOIN chunks c ON c.rowid = d.chunk
            WHERE d.doc = ?1 AND d.words >= 0";
        let chunk: Option<(i64, String)> = self
            .transaction
            .prepare_cached(sql)?
            .query_row([document], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((chunk, id)) = chunk else { return Ok(()) };
        self.transaction
            .prepare_cached("UPDATE openclaw_docs SET revision = ?2 WHERE doc = ?1")?
            .execute(params![document, self.counters.revision + 1])?;
        if self.is_shared() {
            self.transaction
                .prepare_cached("UPDATE chunks SET embedding = ?2, updated_at = ?3 WHERE rowid = ?1")?
                .execute(params![chunk, cache::to_json(vector), self.now])?;
        }
        self.put_vector(document, &id, vector)?;
        reached(Step::VectorStored);
        Ok(())
    }

    /// Forgets all vectors because the model answers others by now, and lets all documents wait for new ones.
    pub(crate) fn change_dimensions(&mut self, dimensions: usize) -> Result<(), StoreError> {
        let is_shared = self.is_shared();
        self.clear_vectors()?;
        cache::remove_other_dimensions(&self.transaction, &self.meta, dimensions)?;
        self.transaction.execute_batch(
            "UPDATE chunks SET embedding = '[]' WHERE embedding <> '[]';
            INSERT OR IGNORE INTO openclaw_pending SELECT doc, 0 FROM openclaw_docs WHERE words >= 0;",
        )?;
        counters::set_codebook(&self.transaction, dimensions, None, 0)?;
        self.codebook = Some(Codebook::new(dimensions, None));
        if is_shared { self.begin_sharing(dimensions) } else { Ok(()) }
    }

    /// Records that a document could not be embedded.
    pub(crate) fn count_failure(&mut self, document: i64) -> Result<(), StoreError> {
        self.has_changed = true;
        self.transaction
            .prepare_cached("UPDATE openclaw_pending SET failures = failures + 1 WHERE doc = ?1")?
            .execute([document])?;
        Ok(())
    }

    /// Removes some remembered vectors if there are more than `most`. Returns whether it did.
    pub(crate) fn prune_cache(&mut self, most: usize) -> Result<bool, StoreError> {
        let has_removed = cache::prune(&self.transaction, most)?;
        self.has_changed |= has_removed;
        Ok(has_removed)
    }

    /// Forgets vectors of texts that no chunk holds, as a removal that was interrupted leaves them.
    pub(crate) fn forget_unheld(&mut self) -> Result<(), StoreError> {
        self.has_changed = true;
        for table in ["embedding_cache", "openclaw_cache"] {
            let sql = format!("DELETE FROM {table} WHERE hash NOT IN (SELECT hash FROM chunks)");
            self.transaction.execute(&sql, [])?;
        }
        Ok(())
    }

    /// Removes what is remembered of a text.
    pub(crate) fn forget_text(&mut self, hash: &str) -> Result<(), StoreError> {
        self.has_changed = true;
        cache::remove(&self.transaction, hash)
    }
}
