//! Changes of the index: one transaction that brings OpenClaw 2026.2.9's tables and our own from one state to the next.

use std::collections::{HashMap, HashSet};
use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::cache::{self, CacheForm};
use crate::chunk::Chunk;
use crate::codes::{Codebook, code_bytes, normalised, read_vector, vector_bytes};
use crate::counters::{self, Counters, Stamp};
use crate::db::{self, StoreError};
use crate::files::FileStat;
use crate::identity::{IndexMeta, chunk_id};
use crate::segments::{self, SegmentBuilder};

/// Number of chunks from which vectors are not written in the form of OpenClaw 2026.2.9 any more: it takes ten times
/// the space, and that program would take seconds to search them.
pub(crate) const MOST_SHARED: i64 = 20_000;

/// Documents of one segment at most.
const SEGMENT_DOCUMENTS: u32 = 8_192;

/// Ends of documents that are remembered for searches that follow the index.
const MOST_ENDED: i64 = 10_000;

/// Vectors from which on their mean is worth knowing.
const CENTRE_FROM: i64 = 512;

/// Vectors of which the mean is taken.
const CENTRE_SAMPLE: i64 = 4_096;

/// Time within which a file system may not tell two changes apart.
const CLOCK_GRAIN_MS: i64 = 100;

/// Source of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Memory files.
    Memory,
    /// TranscriptSource.
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

/// Treatment of chunks that the index has already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rewrite {
    /// Unchanged chunks stay.
    Changed,
    /// All chunks are written anew; their vectors are kept.
    All,
    /// All chunks are written anew without vectors, because the model is another one.
    NewIdentity,
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
    has_changed: bool,
    now: i64,
}

impl<'c> IndexWriter<'c> {
    /// Begins a transaction. `connection` must be in step, see [`reconcile`].
    pub(crate) fn begin(
        connection: &'c Connection,
        meta: &IndexMeta,
        wants_vectors: bool,
    ) -> Result<Self, StoreError> {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        let counters = counters::read(&transaction)?;
        let stamp = counters::stamp(&transaction)?.unwrap_or_default();
        let codebook = counters::codebook(&transaction)?;
        Ok(Self {
            transaction,
            meta: meta.clone(),
            wants_vectors,
            counters,
            stamp,
            segment: SegmentBuilder::default(),
            codebook,
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
        self.counters.revision += 1;
        counters::write(&self.transaction, &self.counters, &self.stamp)?;
        self.transaction.commit()?;
        Ok(())
    }

    /// Writes what the index is made with.
    pub(crate) fn set_meta(&mut self, meta: &IndexMeta) -> Result<(), StoreError> {
        self.has_changed = true;
        write_meta(&self.transaction, meta)?;
        counters::set_chunker(&self.transaction)?;
        self.meta = meta.clone();
        Ok(())
    }

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

    /// Brings one file into the index, in place of what it has of it.
    pub(crate) fn put_file(&mut self, file: &IndexedFile<'_>, rewrite: Rewrite) -> Result<(), StoreError> {
        self.has_changed = true;
        let before = self.chunks_of(file.path)?;
        let mut vectors =
            if rewrite == Rewrite::NewIdentity { HashMap::new() } else { self.vectors_of(&before)? };
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
        }
        for (id, hash, chunk) in wanted.iter().filter(|(id, _, _)| !kept.contains(id.as_str())) {
            let vector = match vectors.remove(hash) {
                Some(vector) => Some(vector),
                None if self.wants_vectors => cache::get(&self.transaction, &self.meta, hash)?,
                None => None,
            };
            self.add_chunk(file, id, hash, chunk, vector)?;
        }
        self.put_file_row(file)
    }

    fn put_file_row(&mut self, file: &IndexedFile<'_>) -> Result<(), StoreError> {
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

    fn forget_file_row(&mut self, path: &str) -> Result<(), StoreError> {
        let mut row = self.transaction.prepare_cached("SELECT hash FROM files WHERE path = ?1")?;
        if let Some(hash) = row.query_row([path], |row| row.get::<_, String>(0)).optional()? {
            self.stamp.files = self.stamp.files.wrapping_sub(Stamp::of_file(path, &hash));
            self.transaction.prepare_cached("DELETE FROM files WHERE path = ?1")?.execute([path])?;
        }
        Ok(())
    }

    /// Removes a file from the index.
    pub(crate) fn remove_file(&mut self, path: &str) -> Result<(), StoreError> {
        self.has_changed = true;
        for row in self.chunks_of(path)? {
            self.remove_chunk(&row, path)?;
        }
        self.forget_file_row(path)?;
        self.transaction.prepare_cached("DELETE FROM openclaw_files WHERE path = ?1")?.execute([path])?;
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

    /// Returns the vectors of chunks, by the hashes of their texts.
    fn vectors_of(&self, rows: &[ChunkRow]) -> Result<HashMap<String, Vec<f32>>, StoreError> {
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

    /// Takes a document out of the index. Its row stays for searches that follow it.
    pub(crate) fn end_document(&mut self, document: i64) -> Result<(), StoreError> {
        self.has_changed = true;
        let mut row = self.transaction.prepare_cached(
            "UPDATE openclaw_docs SET words = -1, chunk = -1, revision = ?2 WHERE doc = ?1",
        )?;
        row.execute(params![document, self.counters.revision + 1])?;
        for table in ["openclaw_vectors", "openclaw_codes", "openclaw_pending"] {
            self.transaction
                .prepare_cached(&format!("DELETE FROM {table} WHERE doc = ?1"))?
                .execute([document])?;
        }
        Ok(())
    }

    fn add_chunk(
        &mut self,
        file: &IndexedFile<'_>,
        id: &str,
        hash: &str,
        chunk: &Chunk,
        vector: Option<Vec<f32>>,
    ) -> Result<(), StoreError> {
        let embedding = match &vector {
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
        let document = self.add_document(row, id, Some(fts), &chunk.text)?;
        match vector {
            Some(vector) => self.put_vector(document, &vector),
            None if self.wants_vectors => self.add_pending(document),
            None => Ok(()),
        }
    }

    fn add_pending(&mut self, document: i64) -> Result<(), StoreError> {
        self.transaction
            .prepare_cached("INSERT OR IGNORE INTO openclaw_pending VALUES (?1, 0)")?
            .execute([document])?;
        Ok(())
    }

    /// Returns whether OpenClaw 2026.2.9 is to find vectors in the file.
    fn is_shared(&self) -> bool {
        self.stamp.chunks < MOST_SHARED
    }

    fn add_document(&mut self, row: i64, id: &str, fts: Option<i64>, text: &str) -> Result<i64, StoreError> {
        let document = self.counters.next_doc;
        self.counters.next_doc += 1;
        let words = self.segment.add(u32::try_from(document).unwrap_or(u32::MAX), text);
        let sql = "INSERT INTO openclaw_docs (doc, chunk, mark, fts, words, revision) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let mut insert = self.transaction.prepare_cached(sql)?;
        insert.execute(params![document, row, mark(id), fts, words, self.counters.revision + 1])?;
        drop(insert);
        if self.segment.documents >= SEGMENT_DOCUMENTS {
            self.write_segment()?;
        }
        Ok(document)
    }

    fn write_segment(&mut self) -> Result<(), StoreError> {
        if self.segment.documents > 0 {
            self.segment.write(&self.transaction, self.counters.next_segment)?;
            self.counters.next_segment += 1;
        }
        Ok(())
    }

    /// Stores the vector of a document, for our searches.
    fn put_vector(&mut self, document: i64, vector: &[f32]) -> Result<(), StoreError> {
        let dimensions = vector.len();
        if self.codebook.is_none() {
            counters::set_codebook(&self.transaction, dimensions, None, 0)?;
            self.codebook = Some(Codebook::new(dimensions, None));
        }
        if self.meta.vector_dims != Some(dimensions) && self.is_shared() {
            self.meta.vector_dims = Some(dimensions);
            write_meta(&self.transaction, &self.meta)?;
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

    /// Merges segments of one size, once. Returns whether there were any.
    pub(crate) fn merge_segments(&mut self) -> Result<bool, StoreError> {
        let Some(together) = segments::to_merge(&segments::list(&self.transaction)?) else {
            return Ok(false);
        };
        let live = live_documents(&self.transaction)?;
        segments::merge(&self.transaction, &together, self.counters.next_segment, |document| {
            live.contains(&i64::from(document))
        })?;
        self.counters.next_segment += 1;
        self.has_changed = true;
        self.forget_ended()?;
        Ok(true)
    }

    /// Merges all segments, so that no term is left that only texts had which are no more.
    pub(crate) fn merge_all_segments(&mut self) -> Result<(), StoreError> {
        let together: Vec<i64> =
            segments::list(&self.transaction)?.into_iter().map(|(segment, _)| segment).collect();
        let live = live_documents(&self.transaction)?;
        segments::merge(&self.transaction, &together, self.counters.next_segment, |document| {
            live.contains(&i64::from(document))
        })?;
        self.counters.next_segment += 1;
        self.has_changed = true;
        Ok(())
    }

    /// Forgets documents that are no more, when there are many. Searches read the index anew then.
    fn forget_ended(&mut self) -> Result<(), StoreError> {
        let ended: i64 =
            self.transaction
                .query_row("SELECT count(*) FROM openclaw_docs WHERE words < 0", [], |row| row.get(0))?;
        if ended > MOST_ENDED {
            self.transaction.execute("DELETE FROM openclaw_docs WHERE words < 0", [])?;
            self.counters.epoch += 1;
        }
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

/// A chunk in the index.
#[derive(Debug)]
struct ChunkRow {
    row: i64,
    id: String,
    hash: String,
    document: Option<i64>,
    fts: Option<i64>,
}

/// Returns the first bits of a chunk's id, which tell whether a row still is the same chunk.
fn mark(id: &str) -> i64 {
    let bits = id.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default();
    i64::from_ne_bytes(bits.to_ne_bytes())
}

fn live_documents(connection: &Connection) -> Result<HashSet<i64>, StoreError> {
    let mut rows = connection.prepare_cached("SELECT doc FROM openclaw_docs WHERE words >= 0")?;
    let rows = rows.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Reads what the index is made with, or `None` if it is empty or the record makes no sense.
pub(crate) fn read_meta(connection: &Connection) -> Result<Option<IndexMeta>, StoreError> {
    let sql = "SELECT value FROM meta WHERE key = 'memory_index_meta_v1'";
    let text: Option<String> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

fn write_meta(connection: &Connection, meta: &IndexMeta) -> Result<(), StoreError> {
    let text = serde_json::to_string(meta).map_err(|error| StoreError::Other(error.to_string()))?;
    let sql = "INSERT INTO meta VALUES ('memory_index_meta_v1', ?1) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    connection.execute(sql, [text])?;
    Ok(())
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

/// Time of now, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Brings our tables in step with those of OpenClaw 2026.2.9, if that program has written to the file, or ours are
/// missing or of another version. Returns whether anything had changed.
pub(crate) fn reconcile(connection: &Connection, wants_vectors: bool) -> Result<bool, StoreError> {
    let actual = Stamp::actual(connection)?;
    let is_current = counters::is_current(connection)?;
    if is_current && counters::stamp(connection)? == Some(actual) {
        return Ok(false);
    }
    let meta = read_meta(connection)?;
    let model = meta.as_ref().map(|meta| meta.model.clone());
    let meta = meta.unwrap_or_else(|| IndexMeta::new(None, crate::chunk::Chunking::default()));
    let mut writer = IndexWriter::begin(connection, &meta, wants_vectors && model.is_some())?;
    if !is_current {
        db::drop_our_tables(&writer.transaction)?;
        counters::set_current(&writer.transaction)?;
        // Other than any that a search may remember.
        writer.counters = Counters { epoch: now_ms(), ..Counters::default() };
        writer.codebook = None;
    }
    writer.stamp = actual;
    writer.has_changed = true;
    let mut known = documents_by_row(&writer.transaction)?;
    let mut missing = Vec::new();
    {
        let mut rows = writer.transaction.prepare("SELECT rowid, id FROM chunks")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let (row, id): (i64, String) = (row.get(0)?, row.get(1)?);
            match known.get(&row) {
                Some((_, known_mark)) if *known_mark == mark(&id) => {
                    known.remove(&row);
                }
                _ => missing.push((row, id)),
            }
        }
    }
    for (document, _) in known.into_values() {
        writer.end_document(document)?;
    }
    writer.adopt(&missing, model.as_deref())?;
    writer.commit()?;
    Ok(true)
}

fn documents_by_row(connection: &Connection) -> Result<HashMap<i64, (i64, i64)>, StoreError> {
    let mut rows = connection.prepare("SELECT chunk, doc, mark FROM openclaw_docs WHERE words >= 0")?;
    let rows = rows.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

impl IndexWriter<'_> {
    /// Takes chunks that another program wrote into our tables.
    fn adopt(&mut self, chunks: &[(i64, String)], model: Option<&str>) -> Result<(), StoreError> {
        if chunks.is_empty() {
            return Ok(());
        }
        let mut places: HashMap<String, i64> = HashMap::new();
        {
            let mut rows = self.transaction.prepare("SELECT rowid, id FROM chunks_fts")?;
            let mut rows = rows.query([])?;
            while let Some(row) = rows.next()? {
                places.insert(row.get(1)?, row.get(0)?);
            }
        }
        for (row, id) in chunks {
            let sql = "SELECT text, embedding, model FROM chunks WHERE rowid = ?1";
            let (text, embedding, of): (String, String, String) = self
                .transaction
                .prepare_cached(sql)?
                .query_row([row], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            let document = self.add_document(*row, id, places.get(id).copied(), &text)?;
            let vector = cache::from_json(&embedding).filter(|_| model == Some(of.as_str()));
            match vector {
                Some(vector) => self.put_vector(document, &vector)?,
                None if self.wants_vectors => self.add_pending(document)?,
                None => {}
            }
        }
        Ok(())
    }
}
