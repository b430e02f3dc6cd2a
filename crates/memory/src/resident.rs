//! The part of an index that searches keep in memory: lengths of documents and codes of vectors. It follows the file by
//! its revision, and can be dropped at any time.

use rusqlite::{Connection, OptionalExtension, params};

use crate::codes::{Codebook, CodedQuery, dot, normalised, read_code, read_vector};
use crate::counters::{self, Counters};
use crate::db::StoreError;
use crate::segments::{self, Lengths};

/// Codes that are estimated at once.
const BLOCK: usize = 4_096;

/// A document that the vectors found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct VectorHit {
    pub(crate) document: u32,
    pub(crate) cosine: f32,
}

/// Part of one index that is held in memory.
#[derive(Debug, Default)]
pub(crate) struct Resident {
    /// The state of the file that this is of, or `None` if nothing was read.
    of: Option<(i64, i64)>,
    pub(crate) lengths: Lengths,
    pub(crate) segments: Vec<i64>,
    vectors: Option<Vectors>,
}

/// Relation of a [`Resident`] to the state that a transaction sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// The same state.
    Current,
    /// An older state, or one of another file.
    Behind,
    /// A newer state, to which another search has brought it.
    Ahead,
}

/// Codes of all vectors, in slots.
#[derive(Debug)]
struct Vectors {
    codebook: Codebook,
    /// Words of the codes, one behind another.
    codes: Vec<u64>,
    factors: Vec<f32>,
    documents: Vec<u32>,
    /// One more than the slot of each document, or 0.
    slots: Vec<u32>,
}

impl Resident {
    /// Compares it with the state that `connection` sees.
    pub(crate) fn freshness(&self, connection: &Connection) -> Result<Freshness, StoreError> {
        let counters = counters::read(connection)?;
        Ok(match self.of {
            Some(of) if of == (counters.epoch, counters.revision) => Freshness::Current,
            Some((epoch, revision)) if epoch >= counters.epoch && revision > counters.revision => {
                Freshness::Ahead
            }
            Some(_) | None => Freshness::Behind,
        })
    }

    /// Brings it to the state that `connection` sees, which is a newer one. Belongs into the transaction of the search.
    pub(crate) fn follow(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let counters = counters::read(connection)?;
        match self.of {
            Some((epoch, revision)) if epoch == counters.epoch => self.read_changes(connection, revision)?,
            Some(_) | None => self.read_all(connection, &counters)?,
        }
        self.segments = segments::list(connection)?.into_iter().map(|(segment, _)| segment).collect();
        self.of = Some((counters.epoch, counters.revision));
        Ok(())
    }

    fn read_all(&mut self, connection: &Connection, counters: &Counters) -> Result<(), StoreError> {
        *self = Self::default();
        let mut rows = connection.prepare("SELECT doc, words FROM openclaw_docs")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            self.lengths.set(row.get(0)?, row.get::<_, Option<u32>>(1).unwrap_or_default());
        }
        let Some(codebook) = counters::codebook(connection)? else { return Ok(()) };
        let mut vectors = Vectors::new(codebook);
        let expected: usize =
            connection.query_row("SELECT count(*) FROM openclaw_codes", [], |row| row.get(0))?;
        vectors.reserve(expected, usize::try_from(counters.next_doc).unwrap_or_default());
        let mut rows = connection.prepare("SELECT doc, code FROM openclaw_codes")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            vectors.set(row.get(0)?, row.get_ref(1)?.as_blob().ok());
        }
        self.vectors = Some(vectors);
        Ok(())
    }

    fn read_changes(&mut self, connection: &Connection, since: i64) -> Result<(), StoreError> {
        if self.vectors.is_none() {
            self.vectors = counters::codebook(connection)?.map(Vectors::new);
        }
        let sql = "SELECT d.doc, d.words, c.code FROM openclaw_docs d LEFT JOIN openclaw_codes c ON c.doc = d.doc WHERE d.revision > ?1";
        let mut rows = connection.prepare_cached(sql)?;
        let mut rows = rows.query([since])?;
        while let Some(row) = rows.next()? {
            let document = row.get(0)?;
            self.lengths.set(document, row.get::<_, Option<u32>>(1).unwrap_or_default());
            if let Some(vectors) = &mut self.vectors {
                vectors.set(document, row.get_ref(2)?.as_blob_or_null().ok().flatten());
            }
        }
        Ok(())
    }

    /// Returns whether there are vectors to compare with, and of how many dimensions.
    pub(crate) fn dimensions(&self) -> Option<usize> {
        self.vectors
            .as_ref()
            .filter(|vectors| !vectors.documents.is_empty())
            .map(|vectors| vectors.codebook.dimensions())
    }

    /// Finds the `most` documents whose vectors have the largest cosine to `query`, in descending order.
    pub(crate) fn nearest(
        &self,
        connection: &Connection,
        query: &[f32],
        most: usize,
    ) -> Result<Vec<VectorHit>, StoreError> {
        let (Some(vectors), Some(query)) = (&self.vectors, normalised(query)) else { return Ok(Vec::new()) };
        if query.len() != vectors.codebook.dimensions() {
            return Ok(Vec::new());
        }
        let mut candidates =
            vectors.candidates(&vectors.codebook.query(&query), vectors.codebook.rescored().max(most));
        candidates.sort_unstable();
        let mut hits = Vec::with_capacity(candidates.len());
        let mut rows = connection.prepare_cached("SELECT vector FROM openclaw_vectors WHERE doc = ?1")?;
        let mut values = Vec::new();
        for document in candidates {
            let cosine = rows.query_row(params![document], |row| {
                let bytes = row.get_ref(0)?.as_blob()?;
                read_vector(bytes, &mut values);
                let length = dot(&values, &values).sqrt();
                Ok(if length > 0.0 { dot(&values, &query) / length } else { 0.0 })
            });
            if let Some(cosine) = cosine.optional()? {
                hits.push(VectorHit { document, cosine });
            }
        }
        hits.sort_unstable_by(|left, right| {
            right.cosine.total_cmp(&left.cosine).then(left.document.cmp(&right.document))
        });
        hits.truncate(most);
        Ok(hits)
    }
}

impl Vectors {
    fn new(codebook: Codebook) -> Self {
        Self { codebook, codes: Vec::new(), factors: Vec::new(), documents: Vec::new(), slots: Vec::new() }
    }

    fn reserve(&mut self, codes: usize, documents: usize) {
        self.codes.reserve_exact(codes * self.codebook.words());
        self.factors.reserve_exact(codes);
        self.documents.reserve_exact(codes);
        self.slots.reserve_exact(documents);
    }

    fn set(&mut self, document: u32, code: Option<&[u8]>) {
        let index = document as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, 0);
        }
        let before = self.slots.get(index).copied().unwrap_or_default().checked_sub(1);
        let code = code.and_then(|code| read_code(code, self.codebook.words()));
        match (before, code) {
            (None, None) => {}
            (None, Some((factor, words))) => {
                self.documents.push(document);
                self.factors.push(factor);
                self.codes.extend(words);
                self.point(document, self.documents.len());
            }
            (Some(slot), Some((factor, words))) => {
                self.write(slot as usize, document, factor, &words.collect::<Vec<_>>())
            }
            (Some(slot), None) => self.remove(slot as usize, document),
        }
    }

    fn write(&mut self, slot: usize, document: u32, factor: f32, words: &[u64]) {
        let length = self.codebook.words();
        if let Some(place) = self.codes.get_mut(slot * length..(slot + 1) * length) {
            place.copy_from_slice(words);
        }
        if let Some(place) = self.factors.get_mut(slot) {
            *place = factor;
        }
        if let Some(place) = self.documents.get_mut(slot) {
            *place = document;
        }
        self.point(document, slot + 1);
    }

    /// Puts the last slot in the place of this one.
    fn remove(&mut self, slot: usize, document: u32) {
        let length = self.codebook.words();
        self.point(document, 0);
        let (Some(last), Some(factor)) = (self.documents.pop(), self.factors.pop()) else { return };
        let words = self.codes.split_off(self.documents.len() * length);
        if last != document {
            self.write(slot, last, factor, &words);
        }
    }

    fn point(&mut self, document: u32, slot: usize) {
        if let Some(place) = self.slots.get_mut(document as usize) {
            *place = u32::try_from(slot).unwrap_or_default();
        }
    }

    /// Returns the documents with the `most` best estimates.
    fn candidates(&self, query: &CodedQuery, most: usize) -> Vec<u32> {
        let mut kept: Vec<(f32, u32)> = Vec::with_capacity(most * 3);
        let mut least = f32::NEG_INFINITY;
        let mut estimates = Vec::new();
        let words = self.codebook.words().max(1);
        let blocks = self
            .codes
            .chunks(BLOCK * words)
            .zip(self.factors.chunks(BLOCK))
            .zip(self.documents.chunks(BLOCK));
        for ((codes, factors), documents) in blocks {
            query.estimate(codes, factors, &mut estimates);
            kept.extend(
                estimates
                    .iter()
                    .zip(documents)
                    .filter(|(estimate, _)| **estimate > least)
                    .map(|(estimate, document)| (*estimate, *document)),
            );
            if kept.len() > most * 2 {
                kept.select_nth_unstable_by(most, |left, right| right.0.total_cmp(&left.0));
                kept.truncate(most);
                least = kept.iter().map(|(estimate, _)| *estimate).fold(f32::INFINITY, f32::min);
            }
        }
        if kept.len() > most {
            kept.select_nth_unstable_by(most, |left, right| right.0.total_cmp(&left.0));
            kept.truncate(most);
        }
        kept.into_iter().map(|(_, document)| document).collect()
    }
}
