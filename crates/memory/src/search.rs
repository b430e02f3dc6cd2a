//! Searches of one index: connections for reading, the part that is held in memory, and the way from a query to hits.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard};
use rusqlite::{Connection, OptionalExtension, params};

use crate::db::{self, FileMark, StoreError};
use crate::get::cut;
use crate::rank::{self, ChunkLines, POOL, Scored, TextCandidate, VectorCandidate, VectorLeg};
use crate::resident::{Freshness, Resident};
use crate::segments;
use crate::settings::{HybridSettings, QuerySettings, Scoring};
use crate::writer::{Source, now_ms, read_meta};
use openclaw_embedding::EmbedderIdentity;

/// Longest snippet, in UTF-16 code units.
const SNIPPET: usize = 700;

/// Connections that are kept.
const MOST_READERS: usize = 4;

/// Candidates whose texts are looked at.
const COMPARED: usize = 50;

/// Newer states that a search follows before it takes what is in memory for that of another file.
const MOST_TRIES: usize = 8;

const DAY_MS: f64 = 86_400_000.0;

/// A chunk that answers a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Path relative to the workspace; `sessions/<file>` for transcripts.
    pub path: String,
    /// First line, counted from one.
    pub start_line: u32,
    /// Last line.
    pub end_line: u32,
    /// Larger is better.
    pub score: f64,
    /// The beginning of the chunk.
    pub snippet: String,
    /// Source of the file.
    pub source: Source,
}

/// A query with its vector and limits.
#[derive(Debug)]
pub(crate) struct SearchPlan<'a> {
    pub(crate) query: &'a str,
    /// Vector of the query, and who made it.
    pub(crate) vector: Option<(&'a [f32], &'a EmbedderIdentity)>,
    pub(crate) settings: &'a QuerySettings,
    pub(crate) max_results: usize,
    pub(crate) min_score: f64,
    /// True if transcripts may be shown.
    pub(crate) sessions: bool,
}

/// Hits, and facts about how they were found.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SearchFound {
    pub(crate) hits: Vec<Hit>,
    pub(crate) is_confident: bool,
    /// True if vectors were compared.
    pub(crate) used_vectors: bool,
    /// Number of chunks in the index.
    pub(crate) chunks: usize,
    /// True if another program has changed the file.
    pub(crate) is_foreign: bool,
}

/// Searches one index file. All calls block.
#[derive(Debug)]
pub(crate) struct Searcher {
    path: PathBuf,
    readers: Mutex<Readers>,
    resident: RwLock<Resident>,
}

#[derive(Debug, Default)]
struct Readers {
    /// The file that they have open.
    of: Option<FileMark>,
    idle: Vec<Reader>,
}

#[derive(Debug)]
struct Reader {
    connection: Connection,
    of: Option<FileMark>,
    /// Version of the file's data when it was seen last, and our revision then.
    seen: Option<(i64, i64)>,
}

impl Searcher {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), readers: Mutex::default(), resident: RwLock::default() }
    }

    /// Gives back memory and files. The next search opens them again.
    pub(crate) fn release(&self) {
        *self.readers.lock() = Readers::default();
        *self.resident.write() = Resident::default();
    }

    fn reader(&self) -> Result<Option<Reader>, StoreError> {
        let of = FileMark::of(&self.path);
        let mut readers = self.readers.lock();
        if readers.of != of {
            // Another program has put a new file in its place.
            *readers = Readers { of, idle: Vec::new() };
            *self.resident.write() = Resident::default();
        }
        if let Some(reader) = readers.idle.pop() {
            return Ok(Some(reader));
        }
        drop(readers);
        Ok(db::open_for_reading(&self.path)?.map(|connection| Reader { connection, of, seen: None }))
    }

    fn give_back(&self, reader: Reader) {
        let mut readers = self.readers.lock();
        if readers.of == reader.of && readers.idle.len() < MOST_READERS {
            readers.idle.push(reader);
        }
    }

    /// Calls `read` with a connection in a transaction of its own.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some(reader) = self.reader()? else { return Err(StoreError::Missing) };
        let transaction = reader.connection.unchecked_transaction()?;
        let answer = read(&transaction)?;
        drop(transaction);
        self.give_back(reader);
        Ok(answer)
    }

    /// Finds what `plan` asks for.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if the index was not built yet.
    pub(crate) fn search(&self, plan: &SearchPlan<'_>) -> Result<SearchFound, StoreError> {
        let Some(mut reader) = self.reader()? else { return Err(StoreError::Missing) };
        let mut tries = 0;
        let (version, revision, is_foreign, found) = loop {
            let version = db::data_version(&reader.connection)?;
            let transaction = reader.connection.unchecked_transaction()?;
            if !db::table_exists(&transaction, "openclaw_docs")?
                || !db::table_exists(&transaction, "openclaw_codes")?
            {
                return Err(StoreError::Missing);
            }
            let revision = crate::counters::read(&transaction)?.revision;
            let is_foreign = reader.seen.is_some_and(|(before, of)| before != version && of == revision);
            // Where another search has seen a newer state meanwhile, this one begins again in that.
            if let Some(found) = self.search_in(&transaction, plan)? {
                break (version, revision, is_foreign, found);
            }
            tries += 1;
            if tries > MOST_TRIES {
                // A copy from before was put into the file.
                *self.resident.write() = Resident::default();
            }
        };
        reader.seen = Some((version, revision));
        self.give_back(reader);
        Ok(SearchFound { is_foreign, ..found })
    }

    /// Searches in the state that `connection` sees, or returns `None` if the part in memory is of a newer one.
    fn search_in(
        &self,
        connection: &Connection,
        plan: &SearchPlan<'_>,
    ) -> Result<Option<SearchFound>, StoreError> {
        let Some(resident) = self.follow(connection)? else { return Ok(None) };
        let meta = read_meta(connection)?;
        let vector =
            plan.vector.filter(|(_, identity)| meta.as_ref().is_some_and(|meta| meta.is_of(identity)));
        let is_searched = vector.is_some_and(|(vector, _)| resident.dimensions() == Some(vector.len()));
        let vectors = match vector {
            Some((vector, _)) if is_searched => resident.nearest(connection, vector, POOL)?,
            _ => Vec::new(),
        };
        let hybrid = &plan.settings.hybrid;
        let is_compat = is_searched && hybrid.scoring == Scoring::Compat;
        let texts = if is_compat || (is_searched && !hybrid.enabled) {
            Vec::new()
        } else {
            segments::search(connection, &resident.segments, &resident.lengths, plan.query, POOL)?
        };
        let chunks = resident.lengths.live();
        drop(resident);
        let mut pool = CandidatePool::default();
        let mut vector_list = Vec::with_capacity(vectors.len());
        for hit in vectors {
            if let Some(row) = pool.add(connection, hit.document, plan.sessions)? {
                vector_list.push(VectorCandidate { row, cosine: hit.cosine });
            }
        }
        let mut text_list = Vec::with_capacity(texts.len());
        for hit in texts {
            if let Some(row) = pool.add(connection, hit.document, plan.sessions)? {
                text_list.push(TextCandidate { row, weight: hit.weight, share: hit.share });
            }
        }
        let selection = if is_compat {
            self.select_compat(
                connection,
                plan,
                &mut pool,
                vector_list,
                meta.as_ref().map(|meta| meta.model.as_str()).unwrap_or_default(),
            )?
        } else {
            let leg = if is_searched { VectorLeg::Searched(&vector_list) } else { VectorLeg::Absent };
            let mut ranked = if is_searched && !hybrid.enabled {
                let alone = |found: &VectorCandidate| Scored {
                    row: found.row,
                    score: f64::from(found.cosine),
                    cosine: Some(found.cosine),
                    text: None,
                    is_backed: false,
                };
                vector_list.iter().map(alone).collect()
            } else {
                rank::merge(leg, &text_list, hybrid)
            };
            pool.age(connection, &mut ranked, plan.settings)?;
            pool.heed_marks(connection, &mut ranked, plan.settings)?;
            let ranked = pool.diversify(connection, ranked, plan.settings)?;
            rank::select(&ranked, plan.max_results, plan.min_score, |row| pool.lines(row))
        };
        let hits = selection
            .hits
            .iter()
            .filter_map(|scored| pool.hit(connection, scored).transpose())
            .collect::<Result<_, _>>()?;
        Ok(Some(SearchFound {
            hits,
            is_confident: selection.is_confident,
            used_vectors: is_searched,
            chunks,
            is_foreign: false,
        }))
    }

    /// Brings the part in memory to what `connection` sees, and holds it for reading. Returns `None` if it is of a newer
    /// state: documents that have ended since are not in it.
    fn follow(&self, connection: &Connection) -> Result<Option<RwLockReadGuard<'_, Resident>>, StoreError> {
        let resident = self.resident.upgradable_read();
        match resident.freshness(connection)? {
            Freshness::Current => Ok(Some(RwLockUpgradableReadGuard::downgrade(resident))),
            Freshness::Ahead => Ok(None),
            Freshness::Behind => {
                let mut resident = RwLockUpgradableReadGuard::upgrade(resident);
                resident.follow(connection)?;
                Ok(Some(RwLockWriteGuard::downgrade(resident)))
            }
        }
    }

    /// Ranks as OpenClaw 2026.2.9 does, with its keyword query on its table.
    fn select_compat(
        &self,
        connection: &Connection,
        plan: &SearchPlan<'_>,
        pool: &mut CandidatePool,
        mut vectors: Vec<VectorCandidate>,
        model: &str,
    ) -> Result<rank::HitSelection, StoreError> {
        let hybrid = &plan.settings.hybrid;
        let most = rank::compat_pool(plan.max_results, hybrid.candidate_multiplier.clamp(1, 20));
        vectors.truncate(most);
        let mut ranked = if hybrid.enabled {
            let keywords = compat_keywords(connection, plan, pool, model, most)?;
            rank::compat_merge(&vectors, &keywords, hybrid)
        } else {
            let vectors_alone = HybridSettings { vector_weight: 1.0, text_weight: 0.0, ..hybrid.clone() };
            rank::compat_merge(&vectors, &[], &vectors_alone)
        };
        ranked.retain(|scored| scored.score >= plan.min_score);
        ranked.truncate(plan.max_results);
        Ok(rank::HitSelection { is_confident: !ranked.is_empty(), hits: ranked })
    }
}

/// The keyword query of OpenClaw 2026.2.9: runs of ASCII letters, digits and `_`, all of which must occur.
pub(crate) fn compat_query(query: &str) -> Option<String> {
    let words = query
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    (!words.is_empty()).then(|| words.join(" AND "))
}

fn compat_keywords(
    connection: &Connection,
    plan: &SearchPlan<'_>,
    pool: &mut CandidatePool,
    model: &str,
    most: usize,
) -> Result<Vec<(i64, f64)>, StoreError> {
    let Some(query) = compat_query(plan.query) else { return Ok(Vec::new()) };
    let sql = "SELECT c.rowid, bm25(chunks_fts) AS rank FROM chunks_fts JOIN chunks c ON c.id = chunks_fts.id
        WHERE chunks_fts MATCH ?1 AND chunks_fts.model = ?2 AND (?3 OR chunks_fts.source = 'memory') ORDER BY rank ASC LIMIT ?4";
    let mut rows = connection.prepare_cached(sql)?;
    let rows = rows.query_map(params![query, model, plan.sessions, most as i64], |row| {
        Ok((row.get(0)?, row.get::<_, f64>(1)?))
    })?;
    let found: Vec<(i64, f64)> = rows.collect::<Result<_, _>>().unwrap_or_default();
    let mut keywords = Vec::with_capacity(found.len());
    for (row, rank) in found {
        if pool.add_row(connection, row, plan.sessions)?.is_some() {
            keywords.push((row, rank::compat_text_score(rank)));
        }
    }
    Ok(keywords)
}

/// The chunks that both searches found.
#[derive(Debug, Default)]
struct CandidatePool {
    /// By row; `None` for those that are not shown.
    chunks: HashMap<i64, Option<PooledChunk>>,
    /// Rows of documents.
    rows: HashMap<u32, Option<i64>>,
}

#[derive(Debug)]
struct PooledChunk {
    path: String,
    source: Source,
    start: u32,
    end: u32,
}

impl CandidatePool {
    /// Adds the chunk of a document and returns its row, or `None` if it is not shown.
    fn add(
        &mut self,
        connection: &Connection,
        document: u32,
        sessions: bool,
    ) -> Result<Option<i64>, StoreError> {
        if let Some(row) = self.rows.get(&document) {
            return Ok(*row);
        }
        let sql = "SELECT chunk FROM openclaw_docs WHERE doc = ?1 AND words >= 0";
        let row = connection.prepare_cached(sql)?.query_row([document], |row| row.get(0)).optional()?;
        let row = match row {
            Some(row) => self.add_row(connection, row, sessions)?,
            None => None,
        };
        self.rows.insert(document, row);
        Ok(row)
    }

    fn add_row(
        &mut self,
        connection: &Connection,
        row: i64,
        sessions: bool,
    ) -> Result<Option<i64>, StoreError> {
        if let Some(known) = self.chunks.get(&row) {
            return Ok(known.as_ref().map(|_| row));
        }
        let sql = "SELECT path, source, start_line, end_line FROM chunks WHERE rowid = ?1";
        let chunk = connection.prepare_cached(sql)?.query_row([row], |row| {
            let source = Source::parse(row.get_ref(1)?.as_str().unwrap_or_default());
            Ok(PooledChunk { path: row.get(0)?, source, start: row.get(2)?, end: row.get(3)? })
        });
        let chunk = chunk.optional()?.filter(|chunk| sessions || chunk.source == Source::Memory);
        let shown = chunk.as_ref().map(|_| row);
        self.chunks.insert(row, chunk);
        Ok(shown)
    }

    fn get(&self, row: i64) -> Option<&PooledChunk> {
        self.chunks.get(&row)?.as_ref()
    }

    fn lines(&self, row: i64) -> Option<ChunkLines<'_>> {
        self.get(row).map(|chunk| ChunkLines { path: &chunk.path, start: chunk.start, end: chunk.end })
    }

    /// Lowers the scores of what is old, if that is asked for.
    fn age(
        &self,
        connection: &Connection,
        ranked: &mut [Scored],
        settings: &QuerySettings,
    ) -> Result<(), StoreError> {
        let Some(half_life) = settings.half_life_days else { return Ok(()) };
        let now = now_ms() as f64;
        for scored in ranked.iter_mut() {
            let Some(chunk) = self.get(scored.row) else { continue };
            if let Some(time) = time_of(connection, chunk)? {
                scored.score = rank::decayed(scored.score, (now - time) / DAY_MS, half_life);
            }
        }
        ranked.sort_by(|left, right| right.score.total_cmp(&left.score));
        Ok(())
    }

    /// Changes the scores of the best by the marks that they hold, if that is asked for.
    fn heed_marks(
        &self,
        connection: &Connection,
        ranked: &mut [Scored],
        settings: &QuerySettings,
    ) -> Result<(), StoreError> {
        if !settings.importance_marks {
            return Ok(());
        }
        for scored in ranked.iter_mut().take(COMPARED) {
            let text = text_of(connection, scored.row)?.unwrap_or_default();
            scored.score *= rank::importance_factor(rank::importance_mark(&text));
        }
        ranked.sort_by(|left, right| right.score.total_cmp(&left.score));
        Ok(())
    }

    /// Orders the best so that they differ, if that is asked for.
    fn diversify(
        &self,
        connection: &Connection,
        mut ranked: Vec<Scored>,
        settings: &QuerySettings,
    ) -> Result<Vec<Scored>, StoreError> {
        let Some(lambda) = settings.diversity_lambda else { return Ok(ranked) };
        let rest = ranked.split_off(ranked.len().min(COMPARED));
        let mut texts = HashMap::new();
        for scored in &ranked {
            texts.insert(scored.row, text_of(connection, scored.row)?.unwrap_or_default());
        }
        let mut chosen = rank::diversify(&ranked, &texts, lambda.clamp(0.0, 1.0));
        chosen.extend(rest);
        Ok(chosen)
    }

    fn hit(&self, connection: &Connection, scored: &Scored) -> Result<Option<Hit>, StoreError> {
        let (Some(chunk), Some(text)) = (self.get(scored.row), text_of(connection, scored.row)?) else {
            return Ok(None);
        };
        Ok(Some(Hit {
            path: chunk.path.clone(),
            start_line: chunk.start,
            end_line: chunk.end,
            score: scored.score,
            snippet: cut(&text, SNIPPET).to_owned(),
            source: chunk.source,
        }))
    }
}

fn text_of(connection: &Connection, row: i64) -> Result<Option<String>, StoreError> {
    let mut read = connection.prepare_cached("SELECT text FROM chunks WHERE rowid = ?1")?;
    Ok(read.query_row([row], |row| row.get(0)).optional()?)
}

/// Returns from when a chunk is, in milliseconds, or `None` if it does not age: curated memory and undated notes.
fn time_of(connection: &Connection, chunk: &PooledChunk) -> Result<Option<f64>, StoreError> {
    if let Some(day) = rank::dated_path(&chunk.path) {
        let midnight = day.to_zoned(jiff::tz::TimeZone::UTC).map(|time| time.timestamp().as_millisecond());
        return Ok(midnight.ok().map(|time| time as f64));
    }
    let is_lasting = matches!(chunk.path.as_str(), "MEMORY.md" | "memory.md" | "USER.md")
        || chunk.path.starts_with("memory/");
    if is_lasting {
        return Ok(None);
    }
    let mut read = connection.prepare_cached("SELECT mtime FROM files WHERE path = ?1")?;
    Ok(read.query_row([&chunk.path], |row| row.get(0)).optional()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::golden;

    #[test]
    fn the_compat_query_is_as_recorded() {
        for row in golden("memory-text.json")["fts_query_2026_2_9"].as_array().unwrap() {
            assert_eq!(compat_query(row[0].as_str().unwrap()).as_deref(), row[1].as_str(), "{row}");
        }
    }
}
