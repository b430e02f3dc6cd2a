//! Changes of the index: one transaction that brings OpenClaw 2026.2.9's tables and our own from one state to the next.

mod documents;
mod file_rows;
mod meta;
mod reconcile;
mod renewal;
mod rewriting;
mod shared_vectors;
mod vectors;

use std::collections::{HashMap, HashSet};
use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::cache;
use crate::chunk::Chunk;
use crate::codes::Codebook;
use crate::counters::{self, Counters, Stamp};
use crate::db::StoreError;
use crate::files::FileStat;
use crate::identity::{IndexMeta, chunk_id};
use crate::segments::SegmentBuilder;
use crate::steps::{Step, reached};

pub(crate) use meta::read_meta;
pub(crate) use reconcile::reconcile;
pub(crate) use renewal::renew_codes;
pub(crate) use rewriting::{Rewrite, Rewriting};
#[cfg(test)]
pub(crate) use shared_vectors::MOST_SHARED;
pub(crate) use shared_vectors::{is_shared, needs_sharing};

/// Source of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Memory files.
    Memory,
    /// Transcripts.
    Sessions,
}

impl Source {
    /// Returns the name that the index and the tools use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sessions => "sessions",
        }
    }

    /// Reads the name of a source.
    pub(crate) fn parse(name: &str) -> Self {
        if name == "sessions" { Self::Sessions } else { Self::Memory }
    }
}

/// A file with its chunks, as it is to stand in the index.
#[derive(Debug)]
pub(crate) struct IndexedFile<'a> {
    pub(crate) path: &'a str,
    pub(crate) source: Source,
    pub(crate) hash: String,
    pub(crate) stat: FileStat,
    pub(crate) chunks: Vec<Chunk>,
}

/// A transaction that changes the index.
pub(crate) struct IndexWriter<'c> {
    transaction: Transaction<'c>,
    meta: IndexMeta,
    /// True if documents are to have vectors.
    wants_vectors: bool,
    counters: Counters,
    stamp: Stamp,
    segment: SegmentBuilder,
    codebook: Option<Codebook>,
    /// Dimensions of the other program's table of vectors, or `None` if there is none.
    shared_dimensions: Option<usize>,
    /// True while everything is written anew.
    is_rewriting: bool,
    has_changed: bool,
    now: i64,
}

impl<'c> IndexWriter<'c> {
    /// Begins a transaction. `connection` must be in step, see [`reconcile()`].
    pub(crate) fn begin(
        connection: &'c Connection,
        meta: &IndexMeta,
        wants_vectors: bool,
    ) -> Result<Self, StoreError> {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        let counters = counters::read(&transaction)?;
        let stamp = counters::stamp(&transaction)?.unwrap_or_default();
        let codebook = counters::codebook(&transaction)?;
        let shared_dimensions = shared_vectors::table_dimensions(&transaction)?;
        let is_rewriting = Rewriting::read(&transaction)?.is_some();
        Ok(Self {
            transaction,
            meta: meta.clone(),
            wants_vectors,
            counters,
            stamp,
            segment: SegmentBuilder::default(),
            codebook,
            shared_dimensions,
            is_rewriting,
            has_changed: false,
            now: now_ms(),
        })
    }

    /// Ends the transaction; without a change nothing is written.
    pub(crate) fn commit(mut self) -> Result<(), StoreError> {
        if !self.has_changed {
            return Ok(());
        }
        self.write_segment()?;
        self.end_sharing_if_outgrown()?;
        self.counters.revision += 1;
        counters::write(&self.transaction, &self.counters, &self.stamp)?;
        reached(Step::BeforeCommit);
        self.transaction.commit()?;
        reached(Step::AfterCommit);
        Ok(())
    }

    /// Writes what the index is made with.
    pub(crate) fn set_meta(&mut self, meta: &IndexMeta) -> Result<(), StoreError> {
        self.has_changed = true;
        self.meta = IndexMeta { vector_dims: self.shared_dimensions, ..meta.clone() };
        meta::write_meta(&self.transaction, &self.meta)?;
        counters::set_chunker(&self.transaction)?;
        Ok(())
    }

    /// Brings one file into the index, in place of what it has of it.
    pub(crate) fn put_file(&mut self, file: &IndexedFile<'_>, rewrite: Rewrite) -> Result<(), StoreError> {
        self.has_changed = true;
        let before = self.chunks_of(file.path)?;
        let vectors =
            if rewrite == Rewrite::NewIdentity { ChunkVectors::default() } else { self.vectors_of(&before)? };
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut wanted = Vec::with_capacity(file.chunks.len());
        for chunk in file.chunks.iter().filter(|chunk| !chunk.is_blank()) {
            let hash = chunk.hash();
            let lines = (chunk.start_line, chunk.end_line);
            let first = chunk_id(file.source.as_str(), file.path, lines, &hash, &self.meta.model, 0);
            let ordinal = seen.entry(first.clone()).and_modify(|count| *count += 1).or_insert(0);
            let id = if *ordinal == 0 {
                first
            } else {
                chunk_id(file.source.as_str(), file.path, lines, &hash, &self.meta.model, *ordinal)
            };
            wanted.push((id, hash, chunk));
        }
        let kept: HashSet<&str> = if rewrite == Rewrite::Changed {
            let ids: HashSet<&str> = before.iter().map(|row| row.id.as_str()).collect();
            wanted.iter().map(|(id, _, _)| id.as_str()).filter(|id| ids.contains(id)).collect()
        } else {
            HashSet::new()
        };
        for row in before.iter().filter(|row| !kept.contains(row.id.as_str())) {
            self.remove_chunk(row, file.path)?;
            if !(vectors.ids.contains(&row.id) && wanted.iter().any(|(id, _, _)| *id == row.id)) {
                self.remove_shared(&row.id)?;
            }
        }
        for (id, hash, chunk) in wanted.iter().filter(|(id, _, _)| !kept.contains(id.as_str())) {
            let vector = match vectors.by_hash.get(hash) {
                Some(vector) => Some(vector.clone()),
                None if self.wants_vectors => cache::get(&self.transaction, &self.meta, hash)?,
                None => None,
            };
            let vector = vector.filter(|vector| self.fits(vector));
            let document = self.add_chunk(file, id, hash, chunk, vector.as_deref())?;
            match vector {
                // The other program's table has it under this id already.
                Some(vector) if vectors.ids.contains(id) => self.put_own_vector(document, &vector)?,
                Some(vector) => self.put_vector(document, id, &vector)?,
                None if self.wants_vectors => self.add_pending(document)?,
                None => {}
            }
        }
        self.put_file_row(file)?;
        reached(Step::FileWritten);
        Ok(())
    }

    /// Removes a file from the index.
    pub(crate) fn remove_file(&mut self, path: &str) -> Result<(), StoreError> {
        self.has_changed = true;
        for row in self.chunks_of(path)? {
            self.remove_chunk(&row, path)?;
            self.remove_shared(&row.id)?;
        }
        self.forget_file_row(path)?;
        self.transaction.prepare_cached("DELETE FROM openclaw_files WHERE path = ?1")?.execute([path])?;
        reached(Step::FileRemoved);
        Ok(())
    }

    fn chunks_of(&self, path: &str) -> Result<Vec<ChunkRow>, StoreError> {
        let sql = "SELECT c.rowid, c.id, c.hash, d.doc, d.fts FROM chunks c LEFT JOIN openclaw_docs d ON d.chunk = c.rowid AND d.words >= 0
            WHERE c.path = ?1";
        let mut rows = self.transaction.prepare_cached(sql)?;
        let rows = rows.query_map([path], |row| {
            Ok(ChunkRow {
                row: row.get(0)?,
                id: row.get(1)?,
                hash: row.get(2)?,
                document: row.get(3)?,
                fts: row.get(4)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn remove_chunk(&mut self, row: &ChunkRow, path: &str) -> Result<(), StoreError> {
        self.transaction.prepare_cached("DELETE FROM chunks WHERE rowid = ?1")?.execute([row.row])?;
        self.stamp.chunks -= 1;
        self.stamp.rows = self.stamp.rows.wrapping_sub(row.row);
        let is_there = match row.fts {
            None => false,
            Some(fts) => {
                let mut id = self.transaction.prepare_cached("SELECT id FROM chunks_fts WHERE rowid = ?1")?;
                id.query_row([fts], |found| found.get::<_, String>(0)).optional()?.as_deref()
                    == Some(row.id.as_str())
            }
        };
        if is_there {
            self.transaction.prepare_cached("DELETE FROM chunks_fts WHERE rowid = ?1")?.execute([row.fts])?;
        } else {
            self.transaction
                .prepare_cached("DELETE FROM chunks_fts WHERE path = ?1 AND id = ?2")?
                .execute([path, &row.id])?;
        }
        match row.document {
            Some(document) => self.end_document(document),
            None => Ok(()),
        }
    }

    /// Adds a chunk and returns its document, whose vector is still to be stored.
    fn add_chunk(
        &mut self,
        file: &IndexedFile<'_>,
        id: &str,
        hash: &str,
        chunk: &Chunk,
        vector: Option<&[f32]>,
    ) -> Result<i64, StoreError> {
        let embedding = match vector {
            Some(vector) if self.is_shared() => cache::to_json(vector),
            _ => "[]".to_owned(),
        };
        let source = file.source.as_str();
        let sql = "INSERT INTO chunks (id, path, source, start_line, end_line, hash, model, text, embedding, updated_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let mut insert = self.transaction.prepare_cached(sql)?;
        insert.execute(params![
            id,
            file.path,
            source,
            chunk.start_line,
            chunk.end_line,
            hash,
            self.meta.model,
            chunk.text,
            embedding,
            self.now
        ])?;
        let row = self.transaction.last_insert_rowid();
        drop(insert);
        self.stamp.chunks += 1;
        self.stamp.rows = self.stamp.rows.wrapping_add(row);
        let sql = "INSERT INTO chunks_fts (text, id, path, source, model, start_line, end_line) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let mut insert = self.transaction.prepare_cached(sql)?;
        insert.execute(params![
            chunk.text,
            id,
            file.path,
            source,
            self.meta.model,
            chunk.start_line,
            chunk.end_line
        ])?;
        let fts = self.transaction.last_insert_rowid();
        drop(insert);
        self.add_document(row, id, Some(fts), &chunk.text)
    }
}

/// A chunk in the index.
#[derive(Debug)]
struct ChunkRow {
    row: i64,
    id: String,
    hash: String,
    document: Option<i64>,
    fts: Option<i64>,
}

/// Vectors that chunks of a file have.
#[derive(Debug, Default)]
struct ChunkVectors {
    by_hash: HashMap<String, Vec<f32>>,
    /// Ids of the chunks that have one.
    ids: HashSet<String>,
}

/// Returns the first bits of a chunk's id, which tell whether a row still is the same chunk.
fn mark(id: &str) -> i64 {
    let bits = id.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default();
    i64::from_ne_bytes(bits.to_ne_bytes())
}

/// Time of now, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
