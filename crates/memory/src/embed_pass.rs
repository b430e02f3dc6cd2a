//! Chunks that wait for a vector: which are sent together, and what is done with the answers.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use crate::cache;
use crate::counters;
use crate::db::StoreError;
use crate::identity::IndexMeta;
use crate::settings::CacheSettings;
use crate::writer::IndexWriter;
use openclaw_embedding::{BatchLimits, EmbedError};

/// Failures after which a chunk is left without a vector.
const MOST_FAILURES: i64 = 3;

/// Bytes of text above which another model is not used until somebody asks for it: it would cost money.
pub(crate) const MOST_UNASKED: i64 = 20 * 1024 * 1024;

/// Documents that are looked at for one round.
const LOOKED_AT: usize = 4_096;

/// Texts of one request, each once, with the documents that wait for it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Pack {
    pub(crate) texts: Vec<String>,
    pub(crate) waiting: Vec<Waiting>,
    units: usize,
}

/// Documents with one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) hash: String,
    pub(crate) documents: Vec<i64>,
}

/// Work of the next round.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub(crate) packs: Vec<Pack>,
    /// Documents that got a remembered vector.
    pub(crate) remembered: usize,
}

/// Returns the number of documents that wait for a vector.
pub(crate) fn pending(connection: &Connection) -> Result<usize, StoreError> {
    let sql = "SELECT count(*) FROM openclaw_pending WHERE failures < ?1";
    Ok(connection.query_row(sql, [MOST_FAILURES], |row| row.get(0))?)
}

/// Lets documents that have failed too often be tried again.
pub(crate) fn forget_failures(connection: &Connection) -> Result<(), StoreError> {
    connection.execute("UPDATE openclaw_pending SET failures = 0 WHERE failures > 0", [])?;
    Ok(())
}

/// Takes the next requests, across files, up to the limits. Documents whose text was embedded before get its vector.
/// Blocks.
pub(crate) fn next_round(
    connection: &Connection,
    meta: &IndexMeta,
    limits: &BatchLimits,
    cache_settings: &CacheSettings,
) -> Result<Round, StoreError> {
    let mut round = Round::default();
    let mut places: HashMap<String, (usize, usize)> = HashMap::new();
    let mut found: Vec<(i64, String, Vec<f32>)> = Vec::new();
    {
        let sql = "SELECT p.doc, c.hash, c.text FROM openclaw_pending p
            JOIN openclaw_docs d ON d.doc = p.doc JOIN chunks c ON c.rowid = d.chunk
            WHERE p.failures < ?1 AND d.words >= 0 ORDER BY p.doc LIMIT ?2";
        let mut rows = connection.prepare_cached(sql)?;
        let mut rows = rows.query(params![MOST_FAILURES, LOOKED_AT.max(limits.texts) as i64])?;
        while let Some(row) = rows.next()? {
            let (document, hash): (i64, String) = (row.get(0)?, row.get(1)?);
            if let Some(waiting) = places
                .get(&hash)
                .and_then(|(pack, place)| round.packs.get_mut(*pack)?.waiting.get_mut(*place))
            {
                waiting.documents.push(document);
                continue;
            }
            if cache_settings.enabled
                && let Some(vector) = cache::get(connection, meta, &hash)?
            {
                found.push((document, hash, vector));
                continue;
            }
            let text: String = row.get(2)?;
            if !add_text(&mut round.packs, limits, text) {
                break;
            }
            if let Some(pack) = round.packs.last_mut() {
                pack.waiting.push(Waiting { hash: hash.clone(), documents: vec![document] });
            }
            let place = round.packs.last().map_or(0, |pack| pack.waiting.len() - 1);
            places.insert(hash, (round.packs.len() - 1, place));
        }
    }
    if !found.is_empty() {
        let mut writer = IndexWriter::begin(connection, meta, true)?;
        round.remembered = found.len();
        for (document, hash, vector) in &found {
            writer.put_embedding(*document, hash, vector, false)?;
        }
        writer.commit()?;
    }
    Ok(round)
}

/// Adds a text to the last pack, or to a new one if it does not fit. Returns `false` if the round is full.
fn add_text(packs: &mut Vec<Pack>, limits: &BatchLimits, text: String) -> bool {
    let units: usize = text.chars().map(char::len_utf16).sum();
    let fits = packs
        .last()
        .is_some_and(|pack| pack.texts.len() < limits.texts && pack.units + units <= limits.units);
    if !fits {
        if packs.len() >= limits.requests.max(1) {
            return false;
        }
        packs.push(Pack::default());
    }
    if let Some(pack) = packs.last_mut() {
        pack.units += units;
        pack.texts.push(text);
    }
    true
}

impl Pack {
    /// Parts the pack in two, or returns `None` if it holds one text alone.
    pub(crate) fn halves(mut self) -> Option<(Self, Self)> {
        let middle = self.texts.len() / 2;
        if middle == 0 {
            return None;
        }
        let second =
            Self { texts: self.texts.split_off(middle), waiting: self.waiting.split_off(middle), units: 0 };
        Some((self, second))
    }
}

/// Checks that an answer has a vector for each text, all of one length and finite.
///
/// # Errors
///
/// [`EmbedError::Invalid`] says what is wrong.
pub(crate) fn check(texts: usize, vectors: &[Vec<f32>], dimensions: Option<usize>) -> Result<(), EmbedError> {
    let invalid = |message: String| Err(EmbedError::Invalid { message });
    if vectors.len() != texts {
        return invalid(format!(
            "the embedding server answered {texts} texts with {} vectors",
            vectors.len()
        ));
    }
    let expected = dimensions.or_else(|| vectors.first().map(Vec::len)).unwrap_or_default();
    for vector in vectors {
        if vector.is_empty() || vector.len() != expected {
            return invalid(format!(
                "the embedding server answered a vector of {} dimensions instead of {expected}",
                vector.len()
            ));
        }
        if vector.iter().any(|value| !value.is_finite()) {
            return invalid(
                "the embedding server answered a vector with a value that is no number".to_owned(),
            );
        }
    }
    Ok(())
}

/// Returns the dimensions of an answer if it makes sense but for having others than the index.
pub(crate) fn other_dimensions(
    texts: usize,
    vectors: &[Vec<f32>],
    dimensions: Option<usize>,
) -> Option<usize> {
    let found = vectors.first().map(Vec::len)?;
    (dimensions? != found && check(texts, vectors, None).is_ok()).then_some(found)
}

/// Returns the number of dimensions that the vectors of the index have.
pub(crate) fn dimensions(connection: &Connection) -> Result<Option<usize>, StoreError> {
    Ok(counters::number(connection, "dimensions")?.and_then(|number| usize::try_from(number).ok()))
}

/// Stores the vectors of a pack. Blocks.
pub(crate) fn store(
    connection: &Connection,
    meta: &IndexMeta,
    pack: &Pack,
    vectors: &[Vec<f32>],
    cache_settings: &CacheSettings,
) -> Result<(), StoreError> {
    let mut writer = IndexWriter::begin(connection, meta, true)?;
    for (waiting, vector) in pack.waiting.iter().zip(vectors) {
        for (index, document) in waiting.documents.iter().enumerate() {
            writer.put_embedding(*document, &waiting.hash, vector, cache_settings.enabled && index == 0)?;
        }
    }
    writer.commit()
}

/// Records that the texts of a pack could not be embedded. Blocks.
pub(crate) fn store_failure(
    connection: &Connection,
    meta: &IndexMeta,
    pack: &Pack,
) -> Result<(), StoreError> {
    let mut writer = IndexWriter::begin(connection, meta, true)?;
    for document in pack.waiting.iter().flat_map(|waiting| &waiting.documents) {
        writer.count_failure(*document)?;
    }
    writer.commit()
}

/// Returns whether embedding all texts would cost so much that somebody is to ask for it.
pub(crate) fn is_costly(connection: &Connection) -> Result<bool, StoreError> {
    Ok(text_bytes(connection)? > MOST_UNASKED)
}

/// Returns the bytes of all files.
pub(crate) fn text_bytes(connection: &Connection) -> Result<i64, StoreError> {
    let bytes: f64 = connection.query_row("SELECT total(size) FROM files", [], |row| row.get(0))?;
    Ok(bytes as i64)
}

/// Takes the vectors of a model that answers other dimensions by now out of the index, so that all texts are embedded
/// anew. Blocks.
pub(crate) fn change_dimensions(
    connection: &Connection,
    meta: &IndexMeta,
    dimensions: usize,
) -> Result<(), StoreError> {
    let mut writer = IndexWriter::begin(connection, meta, true)?;
    writer.change_dimensions(dimensions)?;
    writer.commit()
}

/// Returns a request with one text of the index, to see what a model answers now.
pub(crate) fn probe(connection: &Connection) -> Result<Option<Pack>, StoreError> {
    let sql = "SELECT text FROM chunks LIMIT 1";
    let text: Option<String> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    Ok(text.map(|text| Pack { texts: vec![text], ..Pack::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_packed_by_number_and_size() {
        let limits = BatchLimits { texts: 3, units: 10, requests: 2, ..BatchLimits::UNKNOWN };
        let mut packs = Vec::new();
        let added: Vec<bool> = ["aaaa", "bbbb", "cccc", "dddddddddddd", "e"]
            .map(|text| add_text(&mut packs, &limits, text.to_owned()))
            .to_vec();
        assert_eq!(added, [true, true, true, false, true]);
        let sizes: Vec<usize> = packs.iter().map(|pack| pack.texts.len()).collect();
        assert_eq!(sizes, [2, 2]);
        let mut alone = Vec::new();
        assert!(add_text(&mut alone, &limits, "larger than the limit".to_owned()));
    }

    #[test]
    fn answers_that_make_no_sense_are_refused() {
        type AnswerRow = (usize, &'static [&'static [f32]], Option<usize>, bool);
        let rows: &[AnswerRow] = &[
            (2, &[&[1.0, 0.0], &[0.0, 1.0]], None, true),
            (2, &[&[1.0, 0.0]], None, false),
            (1, &[&[1.0], &[1.0]], None, false),
            (2, &[&[1.0, 0.0], &[0.0]], None, false),
            (1, &[&[1.0, 0.0]], Some(3), false),
            (1, &[&[]], None, false),
            (1, &[&[f32::NAN]], None, false),
            (1, &[&[0.0]], None, true),
        ];
        for (texts, vectors, dimensions, is_right) in rows {
            let vectors: Vec<Vec<f32>> = vectors.iter().map(|vector| vector.to_vec()).collect();
            assert_eq!(check(*texts, &vectors, *dimensions).is_ok(), *is_right, "{vectors:?}");
        }
    }
}
