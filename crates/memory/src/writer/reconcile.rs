//! Chunks that OpenClaw 2026.2.9 has written: they are taken into our own tables.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use super::{IndexWriter, Rewriting, mark, now_ms, read_meta};
use crate::cache;
use crate::counters::{self, Counters, Stamp};
use crate::db::{self, StoreError};
use crate::identity::IndexMeta;

/// Brings our tables in step with those of OpenClaw 2026.2.9, if that program has written to the file, or ours are
/// missing or of another version. Returns whether anything had changed.
pub(crate) fn reconcile(connection: &Connection, wants_vectors: bool) -> Result<bool, StoreError> {
    let actual = Stamp::actual(connection)?;
    let is_current = counters::is_current(connection)?;
    if is_current && counters::stamp(connection)? == Some(actual) {
        return Ok(false);
    }
    // What is being written anew will be of the model that it is written for.
    let meta = Rewriting::read(connection)?.map(|rewriting| rewriting.meta).or(read_meta(connection)?);
    let model = meta.as_ref().map(|meta| meta.model.clone());
    let meta = meta.unwrap_or_else(|| IndexMeta::new(None, crate::chunk::Chunking::default()));
    let mut writer = IndexWriter::begin(connection, &meta, wants_vectors && model.is_some())?;
    if !is_current {
        db::drop_our_tables(&writer.transaction)?;
        counters::set_current(&writer.transaction)?;
        // Other than any that a search may remember.
        writer.counters = Counters { epoch: now_ms(), ..Counters::default() };
        writer.codebook = None;
        writer.is_rewriting = false;
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
        let mut surplus: Vec<i64> = Vec::new();
        {
            let mut known = self.transaction.prepare("SELECT id FROM chunks")?;
            let known: HashSet<String> = known.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            let mut rows = self.transaction.prepare("SELECT rowid, id FROM chunks_fts")?;
            let mut rows = rows.query([])?;
            while let Some(row) = rows.next()? {
                let (place, id): (i64, String) = (row.get(0)?, row.get(1)?);
                if !known.contains(&id) {
                    surplus.push(place);
                } else if let Some(before) = places.insert(id, place) {
                    surplus.push(before);
                }
            }
        }
        // OpenClaw 2026.2.9 gives equal pieces of one line one id and a row each, and would find them for ever.
        for place in surplus {
            self.transaction.prepare_cached("DELETE FROM chunks_fts WHERE rowid = ?1")?.execute([place])?;
        }
        for (row, id) in chunks {
            let sql = "SELECT text, embedding, model FROM chunks WHERE rowid = ?1";
            let (text, embedding, of): (String, String, String) = self
                .transaction
                .prepare_cached(sql)?
                .query_row([row], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            let document = self.add_document(*row, id, places.get(id).copied(), &text)?;
            let vector =
                cache::from_json(&embedding).filter(|vector| model == Some(of.as_str()) && self.fits(vector));
            match vector {
                Some(vector) => self.put_vector(document, id, &vector)?,
                None if self.wants_vectors => self.add_pending(document)?,
                None => {}
            }
        }
        Ok(())
    }
}
