//! The task that keeps an index in step with the files: one for each index, so that no two syncs run at once.
//!
//! It does small pieces of work and looks for what is more urgent between them: texts come before vectors, so that a
//! changed file is found at once although thousands of chunks wait for an embedder.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::{Notify, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::db::{self, FileMark, StoreError};
use crate::embed_pass::{self, Pack};
use crate::embedder::{EmbedError, Embedder};
use crate::files::Roots;
use crate::get::cut;
use crate::search::Searcher;
use crate::sessions::{Growth, Thresholds, TranscriptSource};
use crate::settings::MemorySettings;
use crate::text_pass::{self, PassOutcome, PassRequest, SessionScope};
use crate::watch::DirectoryWatch;
use crate::writer::{IndexWriter, read_meta};

/// Time after which memory is given back when nobody searches.
const IDLE: Duration = Duration::from_secs(600);

/// Longest time that further changes put off a sync.
const LONGEST_DEBOUNCE: Duration = Duration::from_secs(10);

/// Time in which appends to transcripts are gathered.
const TRANSCRIPT_DEBOUNCE: Duration = Duration::from_secs(5);

/// Failures in a row after which those who wait for vectors are answered.
const MOST_ATTEMPTS: u32 = 5;

/// Pause after an answer that makes no sense.
const INVALID_PAUSE: Duration = Duration::from_secs(60);

/// Pause after the index file could not be written.
const STORE_PAUSE: Duration = Duration::from_secs(30);

/// Options of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncRequest {
    /// Write everything anew. Texts that were embedded before are not embedded again.
    pub force: bool,
    /// Moment at which the caller is answered.
    pub until: SyncUntil,
}

/// Moment at which the caller of a sync is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncUntil {
    /// As soon as keywords find everything.
    Searchable,
    /// As soon as all chunks have vectors, or it is clear that they will not get them now.
    Embedded,
}

/// Result of a sync.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncReport {
    /// Files that were written to the index.
    pub indexed: usize,
    /// Files that were removed from it.
    pub removed: usize,
    /// Files that stayed as they were.
    pub unchanged: usize,
    /// Reason for which everything was written anew.
    pub reindexed: Option<&'static str>,
    /// Files that were left out, in words for people.
    pub issues: Vec<String>,
    /// Chunks that wait for a vector.
    pub pending: usize,
    /// Reason for which they do.
    pub embed_error: Option<String>,
    /// True if another model is set and is used only after a forced sync, because it would embed much text anew.
    pub needs_force: bool,
    /// Reason for which the index could not be written.
    pub error: Option<String>,
}

/// State that the worker and the callers share.
pub(crate) struct Shared {
    pub(crate) settings: MemorySettings,
    pub(crate) roots: Roots,
    pub(crate) searcher: Searcher,
    pub(crate) transcripts: Option<Arc<dyn TranscriptSource>>,
    pub(crate) embedder: Mutex<Option<Arc<dyn Embedder>>>,
    wanted: Mutex<WantedWork>,
    wake: Notify,
    pub(crate) progress: Mutex<Progress>,
    /// True after the first look at the files in this process.
    pub(crate) first_pass: watch::Sender<bool>,
    stopping: AtomicBool,
    stop: CancellationToken,
}

/// Requests to the worker that are still to be taken.
#[derive(Default)]
struct WantedWork {
    pass: bool,
    force: bool,
    /// The file is damaged: move it aside first.
    damaged: bool,
    /// Times of the first and the last change that the watch told of.
    changed: Option<(Instant, Instant)>,
    transcripts: HashSet<String>,
    transcripts_since: Option<Instant>,
    waiting: Vec<(SyncUntil, oneshot::Sender<SyncReport>)>,
    forgotten: Vec<ForgetWork>,
    /// Callers who want memory to be given back.
    releasing: Vec<oneshot::Sender<()>>,
    /// True after the worker has ended.
    is_closed: bool,
}

/// State that others look at.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) report: SyncReport,
    /// Time of the last look at the files.
    pub(crate) last_pass: Option<Instant>,
    pub(crate) last_search: Option<Instant>,
    /// True if every change is told of by the watch.
    pub(crate) is_watched: bool,
    pub(crate) is_running: bool,
}

impl Shared {
    pub(crate) fn new(
        settings: MemorySettings,
        embedder: Option<Arc<dyn Embedder>>,
        transcripts: Option<Arc<dyn TranscriptSource>>,
    ) -> Self {
        Self {
            roots: Roots::new(&settings.workspace, &settings.extra_paths),
            searcher: Searcher::new(&settings.store),
            settings,
            transcripts,
            embedder: Mutex::new(embedder),
            wanted: Mutex::default(),
            wake: Notify::new(),
            progress: Mutex::default(),
            first_pass: watch::Sender::new(false),
            stopping: AtomicBool::new(false),
            stop: CancellationToken::new(),
        }
    }

    /// Does nothing after the worker has ended; whoever waits is told.
    fn want(&self, want: impl FnOnce(&mut WantedWork)) {
        let mut wanted = self.wanted.lock();
        if !wanted.is_closed {
            want(&mut wanted);
        }
        drop(wanted);
        self.wake.notify_one();
    }

    /// Asks for a look at the files, without waiting.
    pub(crate) fn request_pass(&self) {
        self.want(|wanted| wanted.pass = true);
    }

    /// Asks for a sync; the receiver is told what it did.
    pub(crate) fn request_sync(&self, request: SyncRequest) -> oneshot::Receiver<SyncReport> {
        let (sender, receiver) = oneshot::channel();
        self.want(|wanted| {
            wanted.pass = true;
            wanted.force |= request.force;
            wanted.waiting.push((request.until, sender));
        });
        receiver
    }

    /// Tells that a transcript has grown.
    pub(crate) fn transcript_changed(&self, name: &str) {
        self.want(|wanted| {
            wanted.transcripts.insert(name.to_owned());
            wanted.transcripts_since.get_or_insert_with(Instant::now);
        });
    }

    /// Tells that the index file is damaged.
    pub(crate) fn damaged(&self) {
        self.want(|wanted| (wanted.damaged, wanted.pass) = (true, true));
    }

    /// Asks to remove what the index remembers of files that were changed to forget something.
    pub(crate) fn request_forget(&self, paths: Vec<String>) -> oneshot::Receiver<Result<(), StoreError>> {
        let (sender, receiver) = oneshot::channel();
        self.want(|wanted| wanted.forgotten.push(ForgetWork { paths, answer: sender }));
        receiver
    }

    /// Asks to give back memory and open files.
    pub(crate) fn request_release(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.want(|wanted| wanted.releasing.push(sender));
        receiver
    }

    /// Tells that another embedder is used now.
    pub(crate) fn embedder_changed(&self) {
        self.want(|wanted| wanted.pass = true);
    }

    /// Ends the worker after the transaction that it is in.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.stop.cancel();
    }

    fn changed(&self) {
        self.want(|wanted| {
            let now = Instant::now();
            let first = wanted.changed.map_or(now, |(first, _)| first);
            wanted.changed = Some((first, now));
        });
    }
}

/// The task. [`Worker::run`] ends when [`Shared::stop`] is called.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    connection: Option<OpenIndex>,
    watch: Option<DirectoryWatch>,
    has_tried_watch: bool,
    growth: Arc<Mutex<Growth>>,
    /// Callers who wait for vectors.
    waiting: Vec<oneshot::Sender<SyncReport>>,
    /// True if chunks may wait for vectors.
    may_embed: bool,
    has_embedded: bool,
    paused_until: Option<Instant>,
    attempts: u32,
}

/// The connection that writes, and which file it has open.
struct OpenIndex {
    connection: Connection,
    of: Option<FileMark>,
    /// Version of the data after the last look at the files; it changes when another connection writes.
    version: Cell<Option<i64>>,
}

impl Deref for OpenIndex {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

/// End of a round of embedding.
enum EmbedStep {
    /// No chunk waits, or no embedder can help.
    Done,
    /// More chunks may wait.
    Progress,
    /// A failure; the next attempt is later.
    Failed { error: EmbedError, again: Instant },
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            connection: None,
            watch: None,
            has_tried_watch: false,
            growth: Arc::default(),
            waiting: Vec::new(),
            may_embed: false,
            has_embedded: false,
            paused_until: None,
            attempts: 0,
        }
    }

    /// Works until it is stopped.
    pub(crate) async fn run(mut self) {
        let stop = self.shared.stop.clone();
        let mut last_pass = Instant::now();
        while !stop.is_cancelled() {
            let now = Instant::now();
            if let Some(ForgetWork { paths, answer }) = self.take_forgotten() {
                let forgotten = self.forget(paths).await;
                // The caller may have gone.
                let _ = answer.send(forgotten);
                continue;
            }
            let grown = self.grown_transcripts(now).await;
            if let Some(work) = self.take_pass(now, last_pass, grown) {
                last_pass = Instant::now();
                self.pass(work).await;
                continue;
            }
            if self.may_embed && self.paused_until.is_none_or(|until| until <= now) {
                self.embed().await;
                continue;
            }
            self.release_if_idle(now).await;
            let due = self.next_due(now, last_pass);
            tokio::select! { biased;
                () = stop.cancelled() => break,
                () = self.shared.wake.notified() => {}
                () = sleep_until(due) => {}
            }
        }
        *self.shared.wanted.lock() = WantedWork { is_closed: true, ..WantedWork::default() };
        self.release().await;
    }

    fn take_forgotten(&self) -> Option<ForgetWork> {
        self.shared.wanted.lock().forgotten.pop()
    }

    /// Returns the transcripts that have grown enough, when it is time to look.
    async fn grown_transcripts(&mut self, now: Instant) -> HashSet<String> {
        let names: Vec<String> = {
            let mut wanted = self.shared.wanted.lock();
            if wanted.transcripts_since.is_none_or(|since| now < since + TRANSCRIPT_DEBOUNCE) {
                return HashSet::new();
            }
            wanted.transcripts_since = None;
            wanted.transcripts.drain().collect()
        };
        let Some(transcripts) = self.shared.transcripts.clone().filter(|_| self.shared.settings.sessions)
        else {
            return HashSet::new();
        };
        let growth = Arc::clone(&self.growth);
        let sync = &self.shared.settings.sync;
        let thresholds = Thresholds { bytes: sync.session_bytes, messages: sync.session_messages };
        let grown = tokio::task::spawn_blocking(move || {
            let sizes = transcripts.list().unwrap_or_default();
            let mut growth = growth.lock();
            let is_due = |name: &String| {
                let Some(file) = sizes.iter().find(|file| file.name == *name) else { return false };
                let lines = |from: u64| {
                    let text = transcripts.read(name).unwrap_or_default();
                    let rest = text
                        .as_bytes()
                        .get(usize::try_from(from).unwrap_or(usize::MAX)..)
                        .unwrap_or_default();
                    rest.iter().filter(|byte| **byte == b'\n').count() as u64
                };
                growth.grew(name, file.size, thresholds, lines)
            };
            names.into_iter().filter(is_due).collect()
        });
        grown.await.unwrap_or_default()
    }

    /// Returns what the next look at the files is to do, if one is due.
    fn take_pass(&mut self, now: Instant, last_pass: Instant, grown: HashSet<String>) -> Option<PassWork> {
        let sync = &self.shared.settings.sync;
        let mut wanted = self.shared.wanted.lock();
        let is_changed =
            wanted.changed.is_some_and(|changed| change_due(changed, sync.watch_debounce) <= now);
        let is_interval = sync.interval.is_some_and(|interval| now >= last_pass + interval);
        if !wanted.pass && !is_changed && !is_interval && grown.is_empty() {
            return None;
        }
        // Changes that come from here on lead to another pass.
        if wanted.pass || is_changed {
            wanted.changed = None;
        }
        let is_first = !*self.shared.first_pass.borrow();
        let is_asked = !wanted.waiting.is_empty();
        let sessions =
            if is_first || is_asked || wanted.force { SessionScope::All } else { SessionScope::Only(grown) };
        let force = std::mem::take(&mut wanted.force);
        wanted.pass = false;
        Some(PassWork {
            force,
            sessions,
            is_damaged: std::mem::take(&mut wanted.damaged),
            waiting: std::mem::take(&mut wanted.waiting),
        })
    }

    /// Looks at the files and answers those who wait for it.
    async fn pass(&mut self, work: PassWork) {
        let PassWork { force, sessions, is_damaged, waiting } = work;
        self.start_watch();
        self.shared.progress.lock().is_running = true;
        if force {
            (self.paused_until, self.attempts) = (None, 0);
        }
        let shared = Arc::clone(&self.shared);
        if is_damaged {
            self.discard_damaged().await;
        }
        let outcome = self
            .with_index(move |connection| {
                let version = db::data_version(connection)?;
                let embedder = shared.embedder.lock().clone();
                if force {
                    embed_pass::forget_failures(connection)?;
                }
                let request = PassRequest {
                    settings: &shared.settings,
                    roots: &shared.roots,
                    embedder: embedder.as_ref().map(|embedder| embedder.identity()),
                    transcripts: shared.transcripts.as_deref(),
                    sessions: sessions.clone(),
                    force,
                    stop: &shared.stopping,
                    is_untouched: connection.version.replace(None) == Some(version),
                };
                let outcome = text_pass::run(connection, &request)?;
                connection.version.set(Some(version));
                Ok((outcome, embed_pass::pending(connection)?))
            })
            .await;
        self.record(outcome);
        self.shared.first_pass.send_replace(true);
        self.may_embed = true;
        for (until, sender) in waiting {
            match until {
                SyncUntil::Embedded => self.waiting.push(sender),
                // The caller may have gone.
                SyncUntil::Searchable => drop(sender.send(self.report())),
            }
        }
    }

    fn record(&mut self, outcome: Result<(PassOutcome, usize), StoreError>) {
        let mut progress = self.shared.progress.lock();
        (progress.last_pass, progress.is_running) = (Some(Instant::now()), false);
        match outcome {
            Ok((outcome, pending)) => {
                for (name, size) in &outcome.transcripts {
                    self.growth.lock().indexed(name, *size);
                }
                let embed_error = progress.report.embed_error.take().filter(|_| pending > 0);
                progress.report = SyncReport {
                    indexed: outcome.indexed,
                    removed: outcome.removed,
                    unchanged: outcome.unchanged,
                    reindexed: outcome.reindexed,
                    issues: outcome.issues,
                    pending,
                    embed_error,
                    needs_force: outcome.needs_force,
                    error: None,
                };
                let directories = outcome.directories;
                drop(progress);
                self.set_watch(directories);
            }
            Err(error) => {
                drop(progress);
                self.store_failed(&error);
            }
        }
    }

    /// Records that the index could not be written. Files are looked at again after a while.
    fn store_failed(&self, error: &StoreError) {
        let text = error.to_string();
        let is_new = self.shared.progress.lock().report.error.replace(text.clone()) != Some(text.clone());
        if is_new {
            tracing::warn!(error = text, "memory sync failed");
        }
        let again = Instant::now() + STORE_PAUSE;
        self.shared.wanted.lock().changed.get_or_insert((again, again));
    }

    fn report(&self) -> SyncReport {
        self.shared.progress.lock().report.clone()
    }

    fn start_watch(&mut self) {
        if self.has_tried_watch || !self.shared.settings.sync.watch {
            return;
        }
        self.has_tried_watch = true;
        let shared = Arc::downgrade(&self.shared);
        self.watch = DirectoryWatch::new(move || {
            if let Some(shared) = shared.upgrade() {
                shared.changed();
            }
        });
        // Changes during the first look at the files are told of already.
        let roots: Vec<PathBuf> = self
            .shared
            .roots
            .watched()
            .map(PathBuf::from)
            .chain([self.shared.settings.workspace.join("memory")])
            .collect();
        self.set_watch(roots);
    }

    fn set_watch(&mut self, directories: Vec<PathBuf>) {
        let Some(watch) = &mut self.watch else { return };
        let roots = self.shared.roots.watched().filter_map(|root| {
            if root.is_dir() {
                Some(root.to_owned())
            } else {
                root.parent().filter(|parent| parent.is_dir()).map(PathBuf::from)
            }
        });
        watch.set(roots.chain(directories).collect::<Vec<_>>());
        self.shared.progress.lock().is_watched = watch.is_reliable();
    }

    /// Embeds some texts, and answers those who wait if there is nothing left to do.
    async fn embed(&mut self) {
        match self.embed_round().await {
            Ok(EmbedStep::Progress) => {
                (self.attempts, self.has_embedded, self.paused_until) = (0, true, None);
                self.shared.progress.lock().report.embed_error = None;
            }
            Ok(EmbedStep::Done) => {
                self.may_embed = false;
                self.after_embedding().await;
                self.answer_waiting();
            }
            Ok(EmbedStep::Failed { error, again }) => {
                self.attempts += 1;
                self.paused_until = Some(again);
                self.update_pending().await;
                let text = error.to_string();
                let is_new = self.shared.progress.lock().report.embed_error.replace(text.clone())
                    != Some(text.clone());
                if is_new {
                    tracing::warn!(error = text, "memory texts can't be embedded; keywords go on");
                }
                if !error.is_temporary() || self.attempts >= MOST_ATTEMPTS {
                    self.answer_waiting();
                }
            }
            Err(error) => {
                self.may_embed = false;
                self.store_failed(&error);
                self.answer_waiting();
            }
        }
    }

    async fn after_embedding(&mut self) {
        self.update_pending().await;
        if !std::mem::take(&mut self.has_embedded) {
            return;
        }
        let renewed = self.with_index(|connection| {
            read_meta(connection)?.map_or(Ok(()), |meta| embed_pass::renew_codes(connection, &meta))
        });
        if let Err(error) = renewed.await {
            tracing::warn!(%error, "codes of memory vectors were not renewed");
        }
    }

    async fn update_pending(&mut self) {
        if let Ok(pending) = self.with_index(|connection| embed_pass::pending(connection)).await {
            self.shared.progress.lock().report.pending = pending;
        }
    }

    fn answer_waiting(&mut self) {
        let report = self.report();
        for sender in self.waiting.drain(..) {
            let _ = sender.send(report.clone());
        }
    }

    async fn embed_round(&mut self) -> Result<EmbedStep, StoreError> {
        let Some(embedder) = self.shared.embedder.lock().clone().filter(|_| self.shared.settings.vectors)
        else {
            return Ok(EmbedStep::Done);
        };
        if let Some(left) = embedder.cooldown().remaining(Instant::now()) {
            let message = self
                .report()
                .embed_error
                .unwrap_or_else(|| "the embedding provider asked to wait".to_owned());
            return Ok(EmbedStep::Failed {
                error: EmbedError::Unavailable { message },
                again: Instant::now() + left,
            });
        }
        let (cache, limits, identity) =
            (self.shared.settings.cache.clone(), embedder.limits(), embedder.identity().clone());
        let next = self.with_index(move |connection| {
            let Some(meta) = read_meta(connection)?.filter(|meta| meta.is_of(&identity)) else {
                return Ok(None);
            };
            let round = embed_pass::next_round(connection, &meta, &limits, &cache)?;
            Ok(Some((round, meta, embed_pass::dimensions(connection)?)))
        });
        let Some((round, meta, dimensions)) = next.await? else { return Ok(EmbedStep::Done) };
        if round.packs.is_empty() {
            return Ok(if round.remembered > 0 { EmbedStep::Progress } else { EmbedStep::Done });
        }
        let calls: FuturesUnordered<_> =
            round.packs.into_iter().map(|pack| embed_pack(embedder.as_ref(), pack, dimensions)).collect();
        let stop = self.shared.stop.clone();
        let answered: Vec<_> = tokio::select! { biased;
            () = stop.cancelled() => return Ok(EmbedStep::Done),
            answered = calls.collect::<Vec<_>>() => answered,
        };
        let mut failed = None;
        for (pack, answer) in answered.into_iter().flatten() {
            let (meta, cache) = (meta.clone(), self.shared.settings.cache.clone());
            match answer {
                Ok(vectors) => {
                    let (pack, vectors) = (Arc::new(pack), Arc::new(vectors));
                    self.with_index(move |connection| {
                        embed_pass::store(connection, &meta, &pack, &vectors, &cache)
                    })
                    .await?;
                    self.has_embedded = true;
                }
                Err(error) => {
                    if !error.is_temporary() && !matches!(error, EmbedError::Unauthorized { .. }) {
                        let pack = Arc::new(pack);
                        self.with_index(move |connection| {
                            embed_pass::store_failure(connection, &meta, &pack)
                        })
                        .await?;
                    }
                    failed = Some(error);
                }
            }
        }
        let Some(error) = failed else {
            embedder.cooldown().succeeded();
            return Ok(EmbedStep::Progress);
        };
        let now = Instant::now();
        let wait = embedder.cooldown().failed(&error, now);
        // A text that is too large is left after some attempts, and others go on at once.
        let wait = if matches!(error, EmbedError::Invalid { .. }) { INVALID_PAUSE } else { wait };
        Ok(EmbedStep::Failed { error, again: now + wait })
    }

    /// Removes what the index holds of texts that were forgotten: rows, terms and vectors, also from free pages.
    async fn forget(&mut self, paths: Vec<String>) -> Result<(), StoreError> {
        let before = self.with_index({
            let paths = paths.clone();
            move |connection| hashes_of(connection, &paths)
        });
        let before = before.await?;
        self.with_index(|connection| Ok(connection.pragma_update(None, "secure_delete", "ON")?)).await?;
        self.pass(PassWork {
            force: false,
            sessions: SessionScope::Only(HashSet::new()),
            is_damaged: false,
            waiting: Vec::new(),
        })
        .await;
        if let Some(error) = self.report().error {
            return Err(StoreError::Other(error));
        }
        let purged = self.with_index(move |connection| {
            let after = hashes_of(connection, &paths)?;
            let Some(meta) = read_meta(connection)? else { return Ok(()) };
            let mut writer = IndexWriter::begin(connection, &meta, false)?;
            for hash in before.difference(&after) {
                writer.forget_text(hash)?;
            }
            writer.merge_all_segments()?;
            writer.commit()?;
            connection.execute("INSERT INTO chunks_fts(chunks_fts) VALUES('optimize')", [])?;
            // Fails while a search is under way: then the log is written over later.
            let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            connection.pragma_update(None, "secure_delete", "OFF")?;
            Ok(())
        });
        purged.await
    }

    /// Calls `work` on the blocking pool with the connection that writes. A damaged file is moved aside, and `work` is
    /// done again on a new one.
    async fn with_index<T: Send + 'static>(
        &mut self,
        work: impl Fn(&OpenIndex) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let path = self.shared.settings.store.clone();
        let open = self.connection.take();
        let done = tokio::task::spawn_blocking(move || {
            let mut open = open.filter(|open| open.of.is_some() && open.of == FileMark::of(&path));
            let mut answer = Err(StoreError::Missing);
            for _ in 0..2 {
                let connection = match open.take() {
                    Some(open) => Ok(open),
                    None => open_index(&path),
                };
                answer = connection.and_then(|connection| {
                    let answer = work(&connection);
                    open = Some(connection);
                    answer
                });
                let Err(StoreError::Damaged(reason)) = &answer else { break };
                open = None;
                rebuild_damaged(&path, reason)?;
            }
            Ok((open, answer))
        });
        match done.await {
            Ok(Ok((open, answer))) => {
                self.connection = open;
                answer
            }
            Ok(Err(error)) => Err(error),
            Err(error) => Err(StoreError::Other(error.to_string())),
        }
    }

    async fn discard_damaged(&mut self) {
        let is_damaged = self.with_index(|connection| {
            let answer: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            if answer == "ok" { Ok(()) } else { Err(StoreError::Damaged(answer)) }
        });
        if let Err(error) = is_damaged.await {
            tracing::warn!(%error, "the memory index can't be checked");
        }
    }

    /// Gives back memory and open files if nobody has searched for long, or somebody asks for it.
    async fn release_if_idle(&mut self, now: Instant) {
        let asked = std::mem::take(&mut self.shared.wanted.lock().releasing);
        let is_idle = {
            let mut progress = self.shared.progress.lock();
            progress.last_search.take_if(|time| now >= *time + IDLE).is_some()
        };
        if !is_idle && asked.is_empty() {
            return;
        }
        self.release().await;
        for sender in asked {
            let _ = sender.send(());
        }
    }

    async fn release(&mut self) {
        let (shared, connection) = (Arc::clone(&self.shared), self.connection.take());
        let released = tokio::task::spawn_blocking(move || {
            shared.searcher.release();
            drop(connection);
            openclaw_heap::trim();
        });
        // It panics only if a connection does.
        let _ = released.await;
    }

    /// Returns when something is to be done without anybody asking.
    fn next_due(&self, now: Instant, last_pass: Instant) -> Option<Instant> {
        let sync = &self.shared.settings.sync;
        let wanted = self.shared.wanted.lock();
        let idle = self.shared.progress.lock().last_search.map(|time| time + IDLE);
        let times = [
            wanted.changed.map(|changed| change_due(changed, sync.watch_debounce)),
            wanted.transcripts_since.map(|since| since + TRANSCRIPT_DEBOUNCE),
            sync.interval.map(|interval| last_pass + interval),
            self.paused_until.filter(|_| self.may_embed),
            idle,
        ];
        times.into_iter().flatten().min().map(|due| due.max(now))
    }
}

/// Files whose forgotten texts are to be removed from the index.
struct ForgetWork {
    paths: Vec<String>,
    answer: oneshot::Sender<Result<(), StoreError>>,
}

/// Options of the next look at the files.
struct PassWork {
    force: bool,
    sessions: SessionScope,
    is_damaged: bool,
    waiting: Vec<(SyncUntil, oneshot::Sender<SyncReport>)>,
}

fn change_due((first, last): (Instant, Instant), debounce: Duration) -> Instant {
    (last + debounce).min(first + LONGEST_DEBOUNCE.max(debounce))
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

fn open_index(path: &std::path::Path) -> Result<OpenIndex, StoreError> {
    db::remove_leftovers(path);
    let connection = db::open_for_writing(path)?;
    Ok(OpenIndex { connection, of: FileMark::of(path), version: Cell::new(None) })
}

/// Moves a damaged index aside and saves the vectors that can still be read in it.
fn rebuild_damaged(path: &std::path::Path, reason: &str) -> Result<(), StoreError> {
    let aside = db::move_aside(path)?;
    tracing::warn!(reason, aside = %aside.display(), "the memory index was damaged; it was moved aside and is built anew");
    let new = db::open_for_writing(path)?;
    let Ok(Some(old)) = db::open_for_reading(&aside) else { return Ok(()) };
    let saved = || -> Result<(), rusqlite::Error> {
        let mut rows = old.prepare(
            "SELECT provider, model, provider_key, hash, embedding, dims, updated_at FROM embedding_cache",
        )?;
        let mut rows = rows.query([])?;
        let mut insert =
            new.prepare("INSERT OR IGNORE INTO embedding_cache VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
        new.execute_batch("BEGIN")?;
        while let Ok(Some(row)) = rows.next() {
            let values = (0..7)
                .map(|column| row.get::<_, rusqlite::types::Value>(column))
                .collect::<Result<Vec<_>, _>>()?;
            insert.execute(rusqlite::params_from_iter(values))?;
        }
        Ok(())
    };
    if let Err(error) = saved() {
        tracing::debug!(%error, "not all remembered vectors could be saved");
    }
    if !new.is_autocommit() {
        new.execute_batch("COMMIT")?;
    }
    Ok(())
}

fn hashes_of(connection: &Connection, paths: &[String]) -> Result<HashSet<String>, StoreError> {
    let mut hashes = HashSet::new();
    let mut rows = connection.prepare_cached("SELECT hash FROM chunks WHERE path = ?1")?;
    for path in paths {
        for hash in rows.query_map([path], |row| row.get::<_, String>(0))? {
            hashes.insert(hash?);
        }
    }
    Ok(hashes)
}

/// Embeds a pack. One that is too large is asked for in halves, and a text that is too large alone is cut.
async fn embed_pack(
    embedder: &dyn Embedder,
    pack: Pack,
    dimensions: Option<usize>,
) -> Vec<(Pack, Result<Vec<Vec<f32>>, EmbedError>)> {
    let timeout = embedder.limits().batch_timeout;
    let mut left = vec![pack];
    let mut done = Vec::new();
    while let Some(mut pack) = left.pop() {
        let answer = match tokio::time::timeout(timeout, embedder.embed_batch(&pack.texts)).await {
            Ok(answer) => answer,
            Err(_) => Err(EmbedError::Unavailable {
                message: format!("memory embeddings timed out after {}s", timeout.as_secs()),
            }),
        };
        let answer = answer
            .and_then(|vectors| embed_pass::check(pack.texts.len(), &vectors, dimensions).map(|()| vectors));
        match answer {
            Err(EmbedError::TooLarge { message }) => match pack.clone().halves() {
                Some((first, second)) => left.extend([second, first]),
                None => {
                    let units = pack.texts.first().map_or(0, |text| text.encode_utf16().count());
                    if units < 64 {
                        done.push((pack, Err(EmbedError::TooLarge { message })));
                        continue;
                    }
                    for text in &mut pack.texts {
                        *text = cut(text, units / 2).to_owned();
                    }
                    left.push(pack);
                }
            },
            answer => {
                let is_over = answer.is_err();
                done.push((pack, answer));
                if is_over {
                    // Whatever is wrong is wrong for the rest too.
                    break;
                }
            }
        }
    }
    done
}
