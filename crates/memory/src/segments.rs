//! The keyword index: for each term the documents that hold it, in segments that are merged as they grow in number.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use rusqlite::{Connection, OptionalExtension, params};

use crate::db::StoreError;
use crate::postings::{PostingsBuilder, for_each_posting};
use crate::words::{self, QueryTerm, WordForm};

/// Terms of a query that are looked for; the rarest count. A sentence of a script without spaces has as many pairs.
const MOST_TERMS: usize = 32;

/// Terms of a query that are looked at.
const MOST_QUERY_TERMS: usize = 256;

/// Smallest number of documents among which a term can be too common.
const COMMON_FROM: usize = 32;

/// Segments of about one size that are merged into one.
const MERGED_TOGETHER: usize = 6;

/// Factor between two sizes of segments.
const SIZE_FACTOR: u64 = 8;

/// Constants of BM25, chosen by `cargo xtask recall`: what more of a term adds, and what a longer text takes away.
const K1: f32 = 1.4;
const B: f32 = 0.9;

/// Weight of a term that half of the documents hold is about the logarithm of this and one. Below [`COMMON_FROM`]
/// documents it is 1, so that every term counts.
const COMMON_TERM: f32 = 0.3;

/// Smallest weight of a term.
const SMALLEST_WEIGHT: f32 = 0.01;

/// Documents that are still to be written as a segment.
#[derive(Debug, Default)]
pub(crate) struct SegmentBuilder {
    terms: HashMap<Box<str>, PostingsBuilder, RandomState>,
    /// Times of each term in the document at hand.
    counts: HashMap<Box<str>, u32, RandomState>,
    /// Number of documents.
    pub(crate) documents: u32,
}

impl SegmentBuilder {
    /// Adds a document and returns its number of words. Documents come in ascending order.
    pub(crate) fn add(&mut self, document: u32, text: &str) -> u32 {
        let mut words = 0;
        self.counts.clear();
        words::for_each_term(text, WordForm::Stem, |term| {
            words += 1;
            match self.counts.get_mut(term) {
                Some(count) => *count += 1,
                None => {
                    self.counts.insert(term.into(), 1);
                }
            }
        });
        for (term, count) in self.counts.drain() {
            self.terms.entry(term).or_default().push(document, count);
        }
        self.documents += 1;
        words
    }

    /// Writes the segment and begins the next.
    pub(crate) fn write(&mut self, connection: &Connection, segment: i64) -> Result<(), StoreError> {
        let mut terms: Vec<_> = self.terms.drain().collect();
        terms.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        let mut insert = connection.prepare_cached(INSERT_TERM)?;
        for (term, postings) in &terms {
            insert.execute(params![segment, term, postings.documents, postings.bytes()])?;
        }
        connection
            .execute("INSERT INTO openclaw_segments VALUES (?1, ?2)", params![segment, self.documents])?;
        self.documents = 0;
        Ok(())
    }
}

const INSERT_TERM: &str =
    "INSERT INTO openclaw_terms (segment, term, documents, postings) VALUES (?1, ?2, ?3, ?4)";

/// Returns the segments that are to be merged now: several of about one size, or none.
pub(crate) fn to_merge(segments: &[(i64, u64)]) -> Option<Vec<i64>> {
    let mut tiers: HashMap<u32, Vec<i64>> = HashMap::new();
    for (segment, documents) in segments {
        tiers.entry((*documents).max(1).ilog(SIZE_FACTOR)).or_default().push(*segment);
    }
    tiers
        .into_values()
        .filter(|tier| tier.len() >= MERGED_TOGETHER)
        .min_by_key(|tier| tier.iter().max().copied())
}

/// Returns all segments with their numbers of documents.
pub(crate) fn list(connection: &Connection) -> Result<Vec<(i64, u64)>, StoreError> {
    let mut rows =
        connection.prepare_cached("SELECT segment, documents FROM openclaw_segments ORDER BY segment")?;
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Writes `segments` as one, the segment `merged`, without the documents that are no more.
pub(crate) fn merge(
    connection: &Connection,
    segments: &[i64],
    merged: i64,
    is_live: impl Fn(u32) -> bool,
) -> Result<(), StoreError> {
    let mut cursors: Vec<TermCursor> = Vec::new();
    for segment in segments {
        cursors.push(TermCursor::new(connection, *segment)?);
    }
    let mut documents = std::collections::HashSet::new();
    let mut postings: Vec<(u32, u32)> = Vec::new();
    let mut insert = connection.prepare_cached(INSERT_TERM)?;
    while let Some(term) = cursors.iter().filter_map(TermCursor::term).min().map(str::to_owned) {
        postings.clear();
        for cursor in cursors.iter_mut().filter(|cursor| cursor.term() == Some(&term)) {
            for_each_posting(cursor.postings(), |document, times| {
                if is_live(document) {
                    postings.push((document, times));
                }
            });
            cursor.advance(connection)?;
        }
        if postings.is_empty() {
            continue;
        }
        postings.sort_unstable_by_key(|(document, _)| *document);
        let mut builder = PostingsBuilder::default();
        for (document, times) in &postings {
            documents.insert(*document);
            builder.push(*document, *times);
        }
        insert.execute(params![merged, term, builder.documents, builder.bytes()])?;
    }
    let mut delete_terms = connection.prepare_cached("DELETE FROM openclaw_terms WHERE segment = ?1")?;
    let mut delete_segment = connection.prepare_cached("DELETE FROM openclaw_segments WHERE segment = ?1")?;
    for segment in segments {
        delete_terms.execute([segment])?;
        delete_segment.execute([segment])?;
    }
    let documents = i64::try_from(documents.len()).unwrap_or(i64::MAX);
    connection.execute("INSERT INTO openclaw_segments VALUES (?1, ?2)", params![merged, documents])?;
    Ok(())
}

/// Reads the terms of one segment in order, some at a time.
struct TermCursor {
    segment: i64,
    /// Terms that were read, the next one last.
    read: Vec<(String, Vec<u8>)>,
}

impl TermCursor {
    const AT_ONCE: usize = 512;

    fn new(connection: &Connection, segment: i64) -> Result<Self, StoreError> {
        let mut cursor = Self { segment, read: Vec::new() };
        cursor.fill(connection, "")?;
        Ok(cursor)
    }

    fn term(&self) -> Option<&str> {
        self.read.last().map(|(term, _)| term.as_str())
    }

    fn postings(&self) -> &[u8] {
        self.read.last().map(|(_, postings)| postings.as_slice()).unwrap_or_default()
    }

    fn advance(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let last = self.read.pop();
        match last {
            Some((term, _)) if self.read.is_empty() => self.fill(connection, &term),
            _ => Ok(()),
        }
    }

    fn fill(&mut self, connection: &Connection, after: &str) -> Result<(), StoreError> {
        let sql = "SELECT term, postings FROM openclaw_terms WHERE segment = ?1 AND term > ?2 ORDER BY term LIMIT ?3";
        let mut rows = connection.prepare_cached(sql)?;
        let rows = rows.query_map(params![self.segment, after, Self::AT_ONCE as i64], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        self.read = rows.collect::<Result<_, _>>()?;
        self.read.reverse();
        Ok(())
    }
}

/// Lengths of all documents, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Lengths {
    /// One more than the number of words, at most 65,535; 0 for documents that are no more.
    lengths: Vec<u16>,
    live: usize,
    words: u64,
}

impl Lengths {
    /// Sets the number of words of a document, or that it is no more.
    pub(crate) fn set(&mut self, document: u32, words: Option<u32>) {
        let index = document as usize;
        if index >= self.lengths.len() {
            self.lengths.resize(index + 1, 0);
        }
        let Some(length) = self.lengths.get_mut(index) else { return };
        if let Some(before) = length.checked_sub(1) {
            self.live -= 1;
            self.words -= u64::from(before);
        }
        *length = words.map_or(0, |words| u16::try_from(words.saturating_add(1)).unwrap_or(u16::MAX));
        if let Some(now) = length.checked_sub(1) {
            self.live += 1;
            self.words += u64::from(now);
        }
    }

    /// Returns the number of words of a document, or `None` if it is no more.
    pub(crate) fn get(&self, document: u32) -> Option<u32> {
        self.lengths.get(document as usize)?.checked_sub(1).map(u32::from)
    }

    /// Number of documents.
    pub(crate) fn live(&self) -> usize {
        self.live
    }
}

/// A document that holds terms of a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TextHit {
    pub(crate) document: u32,
    /// Sum of the BM25 weights.
    pub(crate) weight: f64,
    /// Part of the weight of all terms of the query.
    pub(crate) share: f32,
}

/// Finds the best documents for a query: those that hold all of its terms if there are enough, else those that hold any
/// of the rarest.
pub(crate) fn search(
    connection: &Connection,
    segments: &[i64],
    lengths: &Lengths,
    query: &str,
    most: usize,
) -> Result<Vec<TextHit>, StoreError> {
    let terms = words::query_terms(query, WordForm::Stem, MOST_QUERY_TERMS);
    if terms.is_empty() || lengths.live() == 0 {
        return Ok(Vec::new());
    }
    let mut counted = Vec::with_capacity(terms.len());
    for term in terms {
        counted.push((count(connection, segments, &term)?, term));
    }
    counted.sort_by_key(|(documents, _)| *documents);
    let unknown = counted.iter().filter(|(documents, _)| *documents == 0).count();
    let mut known: Vec<(u64, QueryTerm)> =
        counted.into_iter().filter(|(documents, _)| *documents > 0).collect();
    let is_common = |documents: u64| lengths.live() >= COMMON_FROM && documents * 2 > lengths.live() as u64;
    if known.first().is_some_and(|(documents, _)| !is_common(*documents)) {
        known.retain(|(documents, _)| !is_common(*documents));
    }
    known.truncate(MOST_TERMS);
    let mut scores = Scores::new(lengths);
    let mut found = Vec::new();
    for (_, term) in &known {
        found.clear();
        gather(connection, segments, term, lengths, &mut found)?;
        scores.add(&found);
    }
    scores.add_unknown(unknown.min(MOST_TERMS.saturating_sub(known.len())));
    Ok(scores.best(most))
}

fn count(connection: &Connection, segments: &[i64], term: &QueryTerm) -> Result<u64, StoreError> {
    let mut documents = 0;
    for segment in segments {
        documents += match term {
            QueryTerm::Whole(term) => {
                let mut row = connection.prepare_cached(
                    "SELECT documents FROM openclaw_terms WHERE segment = ?1 AND term = ?2",
                )?;
                row.query_row(params![segment, term], |row| row.get::<_, u64>(0))
                    .optional()?
                    .unwrap_or_default()
            }
            QueryTerm::FirstOf(letter) => {
                let sql = "SELECT total(documents) FROM openclaw_terms WHERE segment = ?1 AND term >= ?2 AND term < ?3";
                let mut row = connection.prepare_cached(sql)?;
                let (first, last) = beginning(*letter);
                row.query_row(params![segment, first, last], |row| row.get::<_, f64>(0))? as u64
            }
        };
    }
    Ok(documents)
}

/// Returns the range of terms that begin with `letter`.
fn beginning(letter: char) -> (String, String) {
    (letter.to_string(), format!("{letter}{}", char::MAX))
}

/// Adds the live documents that hold `term`, and how often, in ascending order within a segment.
fn gather(
    connection: &Connection,
    segments: &[i64],
    term: &QueryTerm,
    lengths: &Lengths,
    found: &mut Vec<(u32, u32)>,
) -> Result<(), StoreError> {
    let mut add = |postings: &[u8]| {
        for_each_posting(postings, |document, times| {
            if lengths.get(document).is_some() {
                found.push((document, times));
            }
        });
    };
    for segment in segments {
        match term {
            QueryTerm::Whole(term) => {
                let mut rows = connection
                    .prepare_cached("SELECT postings FROM openclaw_terms WHERE segment = ?1 AND term = ?2")?;
                let mut rows = rows.query(params![segment, term])?;
                while let Some(row) = rows.next()? {
                    add(row.get_ref(0)?.as_blob().unwrap_or_default());
                }
            }
            QueryTerm::FirstOf(letter) => {
                let sql =
                    "SELECT postings FROM openclaw_terms WHERE segment = ?1 AND term >= ?2 AND term < ?3";
                let mut rows = connection.prepare_cached(sql)?;
                let (first, last) = beginning(*letter);
                let mut rows = rows.query(params![segment, first, last])?;
                while let Some(row) = rows.next()? {
                    add(row.get_ref(0)?.as_blob().unwrap_or_default());
                }
            }
        }
    }
    if matches!(term, QueryTerm::FirstOf(_)) {
        found.sort_unstable_by_key(|(document, _)| *document);
        found.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 += next.1;
            }
            is_same
        });
    }
    Ok(())
}

/// Sums of the documents, by their numbers.
struct Scores<'a> {
    lengths: &'a Lengths,
    average: f32,
    sums: Vec<Sum>,
    /// Documents with a sum.
    touched: Vec<u32>,
    /// Terms that were added.
    terms: u32,
    /// Sum of the weights of all terms, also of those that no document holds.
    total: f32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    weight: f32,
    /// Sum of the weights of the terms themselves, however often and in how long a text.
    held: f32,
    terms: u32,
}

impl<'a> Scores<'a> {
    fn new(lengths: &'a Lengths) -> Self {
        let average = (lengths.words as f32 / lengths.live.max(1) as f32).max(1.0);
        Self {
            lengths,
            average,
            sums: vec![Sum::default(); lengths.lengths.len()],
            touched: Vec::new(),
            terms: 0,
            total: 0.0,
        }
    }

    fn term_weight(&self, documents: usize) -> f32 {
        let (all, with) = (self.lengths.live as f32, documents as f32);
        let least = if self.lengths.live >= COMMON_FROM { COMMON_TERM } else { 1.0 };
        (least + (all - with + 0.5).max(0.0) / (with + 0.5)).ln().max(SMALLEST_WEIGHT)
    }

    fn add(&mut self, found: &[(u32, u32)]) {
        let weight = self.term_weight(found.len());
        self.terms += 1;
        self.total += weight;
        for (document, times) in found {
            let length = self.lengths.get(*document).unwrap_or_default() as f32;
            let times = *times as f32;
            let Some(sum) = self.sums.get_mut(*document as usize) else { continue };
            if sum.terms == 0 {
                self.touched.push(*document);
            }
            sum.terms += 1;
            sum.held += weight;
            sum.weight += weight * times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length / self.average));
        }
    }

    fn add_unknown(&mut self, terms: usize) {
        self.total += self.term_weight(0) * terms as f32;
        self.terms += u32::try_from(terms).unwrap_or(u32::MAX);
    }

    fn best(self, most: usize) -> Vec<TextHit> {
        let mut hits: Vec<(u32, Sum)> = self
            .touched
            .iter()
            .filter_map(|document| Some((*document, *self.sums.get(*document as usize)?)))
            .collect();
        let all = hits.iter().filter(|(_, sum)| sum.terms == self.terms).count();
        if all >= most {
            hits.retain(|(_, sum)| sum.terms == self.terms);
        }
        let order = |left: &(u32, Sum), right: &(u32, Sum)| {
            right.1.weight.total_cmp(&left.1.weight).then(left.0.cmp(&right.0))
        };
        if hits.len() > most {
            hits.select_nth_unstable_by(most, order);
            hits.truncate(most);
        }
        hits.sort_unstable_by(order);
        let total = self.total.max(f32::MIN_POSITIVE);
        hits.into_iter()
            .map(|(document, sum)| TextHit {
                document,
                weight: f64::from(sum.weight),
                share: sum.held / total,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Corpus {
        _dir: tempfile::TempDir,
        connection: Connection,
        lengths: Lengths,
        next: u32,
        segment: i64,
    }

    impl Corpus {
        fn new(texts: &[&str]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let connection = crate::db::open_for_writing(&dir.path().join("m.sqlite")).unwrap();
            let mut corpus = Self { _dir: dir, connection, lengths: Lengths::default(), next: 0, segment: 0 };
            corpus.add(texts);
            corpus
        }

        fn add(&mut self, texts: &[&str]) {
            let mut builder = SegmentBuilder::default();
            for text in texts {
                self.lengths.set(self.next, Some(builder.add(self.next, text)));
                self.next += 1;
            }
            builder.write(&self.connection, self.segment).unwrap();
            self.segment += 1;
        }

        fn find(&self, query: &str) -> Vec<u32> {
            let segments: Vec<i64> =
                list(&self.connection).unwrap().into_iter().map(|(segment, _)| segment).collect();
            search(&self.connection, &segments, &self.lengths, query, 200)
                .unwrap()
                .iter()
                .map(|hit| hit.document)
                .collect()
        }
    }

    #[test]
    fn finds_words_pairs_and_single_characters() {
        let corpus = Corpus::new(&[
            "commit a828e60 fixes the backoff",
            "会议记录：网关架构评审，使用gen-itgc脚本",
            "Встреча с Олегом перенесена на четверг",
            "배포 전략을 논의했다",
            "昨日デプロイ戦略を話した",
            "ประชุมทีมวันพฤหัส",
            "Συνάντηση την Πέμπτη",
            "اجتماع يوم الخميس",
        ]);
        let rows: &[(&str, u32)] = &[
            ("a828e60", 0),
            ("会议记录", 1),
            ("架构", 1),
            ("审", 1),
            ("gen-itgc", 1),
            ("Олегом четверг", 2),
            ("전략", 3),
            ("デプロイ", 4),
            ("戦", 4),
            ("ประชุม", 5),
            ("πεμπτη", 6),
            ("الخميس", 7),
            ("what does commit a828e60 do?", 0),
        ];
        for (query, document) in rows {
            assert_eq!(corpus.find(query).first(), Some(document), "{query}");
        }
        for nothing in ["zzz", "", "!!!", "\"", "* OR NEAR(", "\u{0}"] {
            assert!(corpus.find(nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn merged_segments_answer_as_before_and_forget_what_is_gone() {
        let mut corpus = Corpus::new(&["alpha beta", "beta gamma"]);
        corpus.add(&["gamma delta", "alpha alpha"]);
        corpus.add(&["beta"]);
        corpus.lengths.set(1, None);
        let queries = ["alpha", "beta", "gamma delta", "alpha beta"];
        let before: Vec<_> = queries.iter().map(|query| corpus.find(query)).collect();
        merge(&corpus.connection, &[0, 2], 7, |document| corpus.lengths.get(document).is_some()).unwrap();
        merge(&corpus.connection, &[1, 7], 8, |document| corpus.lengths.get(document).is_some()).unwrap();
        assert_eq!(list(&corpus.connection).unwrap(), [(8, 4)]);
        assert_eq!(queries.iter().map(|query| corpus.find(query)).collect::<Vec<_>>(), before);
        let held: i64 = corpus
            .connection
            .query_row("SELECT documents FROM openclaw_terms WHERE term = 'beta'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(held, 2);
    }

    #[test]
    fn segments_of_one_size_are_merged() {
        assert_eq!(to_merge(&[(1, 10), (2, 12), (3, 5_000)]), None);
        let small: Vec<_> = (0..6).map(|segment| (segment, 9_u64)).chain([(9, 100_000)]).collect();
        let mut merged = to_merge(&small).unwrap();
        merged.sort_unstable();
        assert_eq!(merged, [0, 1, 2, 3, 4, 5]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn any_query_is_answered(query in any::<String>()) {
            let corpus = Corpus::new(&["some text", "网关"]);
            corpus.find(&query);
        }
    }
}
