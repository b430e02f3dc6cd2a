//! One look at all files: what has changed is cut into chunks and written to the index. Needs no embedder; it says which
//! chunks wait for one.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::chunk::{CHUNKER_VERSION, Chunk, chunks, sha256_hex};
use crate::counters;
use crate::db::StoreError;
use crate::embed_pass::{MOST_UNASKED, text_bytes};
use crate::files::{FileStat, Roots, Scan};
use crate::identity::IndexMeta;
use crate::sessions::{RenderedTranscript, TranscriptSource, render};
use crate::settings::MemorySettings;
use crate::steps::{Step, reached};
use crate::writer::{
    IndexWriter, IndexedFile, Rewrite, Rewriting, Source, needs_sharing, read_meta, reconcile,
};
use openclaw_embedding::EmbedderIdentity;

/// Files of one transaction at most. Each transaction writes a segment of keywords, so that few are better than many.
const BATCH_FILES: usize = 2_048;

/// Chunks of one transaction, about; a file is never parted.
const BATCH_CHUNKS: usize = 4_096;

/// Time of one transaction, about: others wait for five seconds to write.
const BATCH_TIME: Duration = Duration::from_secs(1);

/// Transcripts that are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionScope {
    /// All whose size or time has changed.
    All,
    /// Only transcripts that have grown enough.
    Only(HashSet<String>),
}

/// Settings and handles of a pass.
pub(crate) struct PassRequest<'a> {
    pub(crate) settings: &'a MemorySettings,
    pub(crate) roots: &'a Roots,
    pub(crate) embedder: Option<&'a EmbedderIdentity>,
    pub(crate) transcripts: Option<&'a dyn TranscriptSource>,
    pub(crate) sessions: SessionScope,
    /// Index everything anew.
    pub(crate) force: bool,
    /// True if no other program has written to the index since the last pass.
    pub(crate) is_untouched: bool,
    /// Ends the pass between two transactions.
    pub(crate) stop: &'a AtomicBool,
}

/// Result of a pass.
#[derive(Debug, Default)]
pub(crate) struct PassOutcome {
    pub(crate) indexed: usize,
    pub(crate) removed: usize,
    pub(crate) unchanged: usize,
    /// Files that were found, by source.
    pub(crate) found: HashMap<Source, usize>,
    pub(crate) issues: Vec<String>,
    /// Directories to watch.
    pub(crate) directories: Vec<PathBuf>,
    /// Transcripts that were indexed, with their sizes.
    pub(crate) transcripts: Vec<(String, u64)>,
    /// Reason for which everything was indexed anew.
    pub(crate) reindexed: Option<&'static str>,
    /// True if the index stays with another model until somebody asks for the change.
    pub(crate) needs_force: bool,
    /// True if the pass was stopped.
    pub(crate) was_stopped: bool,
}

/// Decision about the index as a whole.
struct PassPlan {
    meta: IndexMeta,
    /// Reason to write everything anew, and how.
    anew: Option<(&'static str, Rewrite)>,
    /// True if a pass before has begun with that and did not come to the end.
    is_begun: bool,
    is_new: bool,
    needs_force: bool,
}

/// Looks at all files and brings the index in step with them. Blocks.
pub(crate) fn run(connection: &Connection, request: &PassRequest<'_>) -> Result<PassOutcome, StoreError> {
    let wants = |meta: &IndexMeta| request.settings.vectors && meta.provider != "none";
    let existing = read_meta(connection)?;
    if !request.is_untouched {
        reconcile(connection, existing.as_ref().is_some_and(wants))?;
    }
    let plan = go_on(connection, plan(connection, existing, request)?, request)?;
    let mut outcome = PassOutcome { needs_force: plan.needs_force, ..PassOutcome::default() };
    outcome.reindexed = plan.anew.map(|(reason, _)| reason);
    let scan = if request.settings.memory_files { request.roots.scan() } else { Scan::default() };
    reached(Step::Scanned);
    let mut known = Known::read(connection)?;
    if plan.anew.is_some() && !plan.is_begun {
        known.files.values_mut().for_each(|known| known.stat = None);
    }
    let listed = list_transcripts(request, &mut outcome);
    let mut pass = Pass {
        connection,
        request,
        wants_vectors: wants(&plan.meta),
        plan: &plan,
        known: &known,
        batch: None,
        files: 0,
        chunks: 0,
        begun: Instant::now(),
    };
    pass.begin_all()?;
    pass.memory_files(&scan, &mut outcome)?;
    if let Some(listed) = &listed {
        pass.transcripts(listed, &mut outcome)?;
    }
    pass.remove_stale(&scan, listed.as_ref(), &mut outcome)?;
    pass.finish(&outcome)?;
    if !outcome.was_stopped {
        want_vectors(connection, wants(&plan.meta))?;
    }
    outcome.issues.extend(scan.issues);
    outcome.directories = scan.directories;
    if !outcome.was_stopped {
        tidy(connection, &plan.meta, request)?;
    }
    Ok(outcome)
}

fn plan(
    connection: &Connection,
    existing: Option<IndexMeta>,
    request: &PassRequest<'_>,
) -> Result<PassPlan, StoreError> {
    let chunking = request.settings.chunking;
    let same =
        |meta: IndexMeta, anew| PassPlan { meta, anew, is_begun: false, is_new: false, needs_force: false };
    let Some(existing) = existing else {
        let meta = IndexMeta::new(request.embedder, chunking);
        let is_empty = counters::Stamp::actual(connection)?.chunks == 0;
        let anew = (!is_empty).then_some(("the index says not what it was made with", Rewrite::NewIdentity));
        return Ok(PassPlan { is_new: true, ..same(meta, anew) });
    };
    if let Some(embedder) = request.embedder.filter(|embedder| !existing.is_of(embedder)) {
        let bytes = text_bytes(connection)?;
        if bytes > MOST_UNASKED && !request.force && existing.provider != "none" {
            return Ok(PassPlan { needs_force: true, ..same(existing, None) });
        }
        if existing.provider != "none" {
            let tokens = bytes / 4;
            tracing::warn!(
                from = existing.model,
                to = embedder.model,
                tokens,
                "another embedding model: all memory is embedded anew"
            );
        }
        let meta = IndexMeta::new(Some(embedder), chunking);
        let anew = Some(("another embedding model", Rewrite::NewIdentity));
        return Ok(PassPlan { is_new: true, ..same(meta, anew) });
    }
    let resized = IndexMeta {
        chunk_tokens: chunking.resolved().tokens,
        chunk_overlap: chunking.resolved().overlap,
        ..existing.clone()
    };
    let is_chunker_other =
        counters::chunker(connection)?.is_some_and(|version| version != i64::from(CHUNKER_VERSION));
    Ok(if !existing.has_chunking(chunking) {
        PassPlan { is_new: true, ..same(resized, Some(("other sizes of chunks", Rewrite::All))) }
    } else if is_chunker_other {
        PassPlan { is_new: true, ..same(existing, Some(("chunks are cut in another way", Rewrite::All))) }
    } else if request.force {
        same(existing, Some(("asked for", Rewrite::All)))
    } else {
        same(existing, None)
    })
}

/// Goes on with what a pass before has begun to write anew, if that still is what is wanted.
fn go_on(connection: &Connection, plan: PassPlan, request: &PassRequest<'_>) -> Result<PassPlan, StoreError> {
    let Some(begun) = Rewriting::read(connection)? else { return Ok(plan) };
    Ok(if !begun.is_to(&plan.meta) {
        // The index is neither what it was nor what it was to become.
        let reason = plan.anew.map_or("other settings during a reindex", |(reason, _)| reason);
        PassPlan { anew: Some((reason, Rewrite::NewIdentity)), is_new: true, ..plan }
    } else if request.force {
        PassPlan { anew: Some(("asked for", begun.rewrite)), ..plan }
    } else {
        let reason = plan.anew.map_or("a reindex was interrupted", |(reason, _)| reason);
        PassPlan { anew: Some((reason, begun.rewrite)), is_begun: true, ..plan }
    })
}

/// Files that the index has, by their paths.
struct Known {
    files: HashMap<String, KnownFile>,
}

struct KnownFile {
    source: Source,
    hash: String,
    stat: Option<FileStat>,
}

impl Known {
    fn read(connection: &Connection) -> Result<Self, StoreError> {
        let sql = "SELECT f.path, f.source, f.hash, o.size, o.modified, o.inode, o.device
            FROM files f LEFT JOIN openclaw_files o ON o.path = f.path";
        let mut rows = connection.prepare_cached(sql)?;
        let mut rows = rows.query([])?;
        let mut files = HashMap::new();
        let number = |number: i64| u64::from_ne_bytes(number.to_ne_bytes());
        while let Some(row) = rows.next()? {
            let stat = match row.get::<_, Option<i64>>(3)? {
                Some(size) => Some(FileStat {
                    size: number(size),
                    modified: row.get(4)?,
                    inode: number(row.get(5)?),
                    device: number(row.get(6)?),
                }),
                None => None,
            };
            let source = Source::parse(row.get_ref(1)?.as_str().unwrap_or_default());
            files.insert(row.get(0)?, KnownFile { source, hash: row.get(2)?, stat });
        }
        Ok(Self { files })
    }
}

fn list_transcripts(
    request: &PassRequest<'_>,
    outcome: &mut PassOutcome,
) -> Option<Vec<crate::sessions::TranscriptFile>> {
    let transcripts = request.transcripts.filter(|_| request.settings.sessions)?;
    match transcripts.list() {
        Ok(listed) => Some(listed),
        Err(error) => {
            outcome.issues.push(format!("sessions directory not readable ({})", error.kind()));
            None
        }
    }
}

/// A pass that is under way.
struct Pass<'a> {
    connection: &'a Connection,
    request: &'a PassRequest<'a>,
    plan: &'a PassPlan,
    wants_vectors: bool,
    known: &'a Known,
    batch: Option<IndexWriter<'a>>,
    /// Files and chunks of the batch, and since when others can't write because of it.
    files: usize,
    chunks: usize,
    begun: Instant,
}

impl<'a> Pass<'a> {
    fn writer(&mut self) -> Result<&mut IndexWriter<'a>, StoreError> {
        let writer = match self.batch.take() {
            Some(writer) => writer,
            None => {
                (self.files, self.chunks, self.begun) = (0, 0, Instant::now());
                IndexWriter::begin(self.connection, &self.plan.meta, self.wants_vectors)?
            }
        };
        Ok(self.batch.insert(writer))
    }

    /// Begins to write everything anew, or records what a new index is made with.
    fn begin_all(&mut self) -> Result<(), StoreError> {
        let (is_new, is_begun, meta) = (self.plan.is_new, self.plan.is_begun, self.plan.meta.clone());
        match self.plan.anew {
            Some((_, rewrite)) if !is_begun => {
                self.writer()?.begin_rewriting(&Rewriting { meta, rewrite })?;
            }
            None if is_new => self.writer()?.set_meta(&meta)?,
            Some(_) | None => {}
        }
        Ok(())
    }

    /// Returns whether a file is to be written although it may be as it was.
    fn is_due(&self, path: &str) -> bool {
        self.plan.anew.is_some() && self.known.files.get(path).is_none_or(|known| known.stat.is_none())
    }

    /// Ends the transaction if it is large enough.
    fn end_batch(&mut self, outcome: &mut PassOutcome) -> Result<(), StoreError> {
        if self.request.stop.load(Ordering::Relaxed) {
            outcome.was_stopped = true;
            return Ok(());
        }
        let is_full = self.files >= BATCH_FILES || self.chunks >= BATCH_CHUNKS;
        if is_full || self.begun.elapsed() >= BATCH_TIME { self.commit() } else { Ok(()) }
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.batch.take().map_or(Ok(()), IndexWriter::commit)
    }

    fn finish(&mut self, outcome: &PassOutcome) -> Result<(), StoreError> {
        if !outcome.was_stopped && self.plan.anew.is_some() {
            let meta = self.plan.meta.clone();
            self.writer()?.end_rewriting(&meta)?;
        }
        self.commit()
    }

    fn memory_files(&mut self, scan: &Scan, outcome: &mut PassOutcome) -> Result<(), StoreError> {
        outcome.found.insert(Source::Memory, scan.files.len());
        for file in &scan.files {
            if outcome.was_stopped {
                return Ok(());
            }
            let known = self.known.files.get(&file.path);
            if known.is_some_and(|known| known.stat == Some(file.stat) && known.source == Source::Memory) {
                outcome.unchanged += 1;
                continue;
            }
            let read = match file.read() {
                Ok(read) => read,
                Err(error) => {
                    // A file that has just gone is removed by the next pass.
                    if error.kind() != std::io::ErrorKind::NotFound {
                        outcome.issues.push(format!("{} not readable ({})", file.path, error.kind()));
                    }
                    continue;
                }
            };
            let hash = sha256_hex(read.text.as_bytes());
            let made = || chunks(&read.text, self.request.settings.chunking);
            self.put(&file.path, Source::Memory, hash, read.stat, made, outcome)?;
        }
        Ok(())
    }

    fn put(
        &mut self,
        path: &str,
        source: Source,
        hash: String,
        stat: FileStat,
        made: impl FnOnce() -> Vec<Chunk>,
        outcome: &mut PassOutcome,
    ) -> Result<(), StoreError> {
        let known = self.known.files.get(path);
        let is_due = self.is_due(path);
        if !is_due && known.is_some_and(|known| known.hash == hash && known.source == source) {
            outcome.unchanged += 1;
            if known.and_then(|known| known.stat) != Some(stat) {
                self.writer()?.touch_file(path, &stat)?;
                self.files += 1;
            }
            return self.end_batch(outcome);
        }
        let rewrite = self.plan.anew.filter(|_| is_due).map_or(Rewrite::Changed, |(_, rewrite)| rewrite);
        let chunks = made();
        let written = chunks.len();
        self.writer()?.put_file(&IndexedFile { path, source, hash, stat, chunks }, rewrite)?;
        self.files += 1;
        self.chunks += written;
        outcome.indexed += 1;
        self.end_batch(outcome)
    }

    fn transcripts(
        &mut self,
        listed: &[crate::sessions::TranscriptFile],
        outcome: &mut PassOutcome,
    ) -> Result<(), StoreError> {
        outcome.found.insert(Source::Sessions, listed.len());
        let Some(transcripts) = self.request.transcripts else { return Ok(()) };
        for file in listed {
            if outcome.was_stopped {
                return Ok(());
            }
            let path = session_path(&file.name);
            let stat = FileStat { size: file.size, modified: file.modified, inode: 0, device: 0 };
            let is_known = self.known.files.get(&path).is_some_and(|known| known.stat == Some(stat));
            let is_looked_at = match &self.request.sessions {
                SessionScope::All => true,
                SessionScope::Only(names) => names.contains(&file.name),
            };
            if !self.is_due(&path) && (is_known || !is_looked_at) {
                outcome.unchanged += 1;
                continue;
            }
            let rendered = match transcripts.read(&file.name) {
                Ok(jsonl) => render(&jsonl, |text| transcripts.redact(text)),
                Err(error) => {
                    outcome.issues.push(format!("{path} not readable ({})", error.kind()));
                    continue;
                }
            };
            let RenderedTranscript { text, .. } = &rendered;
            let hash = sha256_hex(text.as_bytes());
            let made = || rendered.with_file_lines(chunks(text, self.request.settings.chunking));
            self.put(&path, Source::Sessions, hash, stat, made, outcome)?;
            outcome.transcripts.push((file.name.clone(), file.size));
        }
        Ok(())
    }

    /// Removes files that are no more, and those of a source that is not indexed any more.
    fn remove_stale(
        &mut self,
        scan: &Scan,
        listed: Option<&Vec<crate::sessions::TranscriptFile>>,
        outcome: &mut PassOutcome,
    ) -> Result<(), StoreError> {
        let memory: HashSet<&str> = scan.files.iter().map(|file| file.path.as_str()).collect();
        let sessions: Option<HashSet<String>> =
            listed.map(|listed| listed.iter().map(|file| session_path(&file.name)).collect());
        let is_stale = |path: &str, source: Source| match source {
            Source::Memory => !memory.contains(path) && scan.is_gone(path),
            Source::Sessions => match &sessions {
                Some(sessions) => !sessions.contains(path),
                None => !self.request.settings.sessions,
            },
        };
        let stale = self.known.files.iter().filter(|(path, known)| is_stale(path, known.source));
        let stale: Vec<String> = stale.map(|(path, _)| path.clone()).collect();
        for path in stale {
            if outcome.was_stopped {
                return Ok(());
            }
            self.writer()?.remove_file(&path)?;
            self.files += 1;
            outcome.removed += 1;
            self.end_batch(outcome)?;
        }
        Ok(())
    }
}

/// Lets all documents without a vector wait for one, when vectors were not wanted before.
fn want_vectors(connection: &Connection, are_wanted: bool) -> Result<(), StoreError> {
    if counters::number(connection, "wants_vectors")? == Some(i64::from(are_wanted)) {
        return Ok(());
    }
    let transaction =
        rusqlite::Transaction::new_unchecked(connection, rusqlite::TransactionBehavior::Immediate)?;
    counters::set_number(&transaction, "wants_vectors", i64::from(are_wanted))?;
    if are_wanted {
        let sql = "INSERT OR IGNORE INTO openclaw_pending SELECT doc, 0 FROM openclaw_docs
            WHERE words >= 0 AND doc NOT IN (SELECT doc FROM openclaw_vectors)";
        transaction.execute(sql, [])?;
    } else {
        transaction.execute("DELETE FROM openclaw_pending", [])?;
    }
    transaction.commit()?;
    Ok(())
}

/// Merges segments, shows the other program vectors that it would not find, and removes remembered vectors above their
/// number, in transactions of their own.
fn tidy(connection: &Connection, meta: &IndexMeta, request: &PassRequest<'_>) -> Result<(), StoreError> {
    let is_stopped = || request.stop.load(Ordering::Relaxed);
    while !is_stopped() && crate::segments::to_merge(&crate::segments::list(connection)?).is_some() {
        let mut writer = IndexWriter::begin(connection, meta, false)?;
        writer.merge_segments()?;
        writer.commit()?;
    }
    if !is_stopped() && needs_sharing(connection)? {
        let mut writer = IndexWriter::begin(connection, meta, false)?;
        writer.share_vectors()?;
        writer.commit()?;
    }
    while !is_stopped() && crate::cache::count(connection)? > request.settings.cache.max_entries {
        let mut writer = IndexWriter::begin(connection, meta, false)?;
        writer.prune_cache(request.settings.cache.max_entries)?;
        writer.commit()?;
    }
    Ok(())
}

/// Returns the path by which the index knows a transcript.
fn session_path(name: &str) -> String {
    format!("sessions/{name}")
}
