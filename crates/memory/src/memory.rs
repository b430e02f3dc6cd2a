//! The memory of one agent, as its callers see it.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::db::StoreError;
use crate::forget::{self, ForgetEntry, ForgetOutcome};
use crate::get::{self, GetAnswer, GetError, GetRequest, cut};
use crate::search::{Hit, SearchFound, SearchPlan};
use crate::sessions::TranscriptSource;
use crate::settings::MemorySettings;
use crate::shared::Shared;
use crate::status::{self, MemoryStatus};
use crate::sync::{SyncReport, SyncRequest};
use crate::worker::Worker;
use openclaw_embedding::{EmbedError, Embedder, EmbedderIdentity};

/// Longest query that is looked at, in UTF-16 code units.
const LONGEST_QUERY: usize = 8_000;

/// Longest wait of a search for the first look at the files, while the index is empty.
const FIRST_WAIT: Duration = Duration::from_secs(2);

/// Longest wait of a search for a look at files that have changed a moment ago.
const CHANGE_WAIT: Duration = Duration::from_millis(250);

/// Time between two looks at the files that searches start, when changes are not told of.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The same when they are.
const LOOK_RARELY: Duration = Duration::from_secs(300);

/// Sessions whose first search is remembered.
const MOST_SESSIONS: usize = 1_024;

/// A search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchRequest {
    /// Query in plain words.
    pub query: String,
    /// Largest number of hits, or `None` for that of the settings.
    pub max_results: Option<usize>,
    /// Smallest score, or `None` for that of the settings. Hits below it are shown only in places that stay free, and
    /// only if they hold the words of the query.
    pub min_score: Option<f64>,
    /// Key of the session that asks. Its first search looks at the files.
    pub session: Option<String>,
}

/// Searches that answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchMode {
    /// Keywords and vectors.
    Hybrid,
    /// Keywords alone.
    Keyword,
}

/// Answer to a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchAnswer {
    /// The hits, the best first.
    pub hits: Vec<Hit>,
    /// Searches that answered.
    pub mode: SearchMode,
    /// True if a hit reaches the smallest score. Without one, hits are no more than the best that there is.
    pub is_confident: bool,
    /// Reason for which the answer is less than it could be, for people and models.
    pub warning: Option<String>,
    /// Reason for which the embedder gave no vector of the query.
    pub embed_error: Option<String>,
    /// The embedder that is set.
    pub embedder: Option<EmbedderIdentity>,
}

/// Reasons for which memory does not answer.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The index file can't be used, although it may be later.
    #[error("{0}")]
    Store(String),
    /// The memory was closed.
    #[error("memory is closed")]
    Closed,
}

impl From<StoreError> for MemoryError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}

/// Memory of one agent: its files, their index, and search in it.
///
/// Opening does nothing but begin a task that waits; the index is built by the first [`Memory::start`],
/// [`Memory::sync`] or [`Memory::search`]. [`Memory::status`] and [`Memory::get`] write nothing. Everything that blocks
/// runs on the blocking pool.
pub struct Memory {
    shared: Arc<Shared>,
    task: Mutex<Option<JoinHandle<()>>>,
    sessions: Mutex<SeenSessions>,
}

/// A query with its vector, and who made that.
struct EmbeddedQuery {
    text: String,
    vector: Option<(Vec<f32>, EmbedderIdentity)>,
}

#[derive(Default)]
struct SeenSessions {
    known: HashSet<String>,
    order: VecDeque<String>,
}

impl Memory {
    /// Opens the memory. Must be called within a Tokio runtime.
    #[must_use]
    pub fn open(
        settings: MemorySettings,
        embedder: Option<Arc<dyn Embedder>>,
        transcripts: Option<Arc<dyn TranscriptSource>>,
    ) -> Self {
        let shared = Arc::new(Shared::new(settings, embedder, transcripts));
        let task = tokio::spawn(Worker::new(Arc::clone(&shared)).run());
        Self { shared, task: Mutex::new(Some(task)), sessions: Mutex::default() }
    }

    /// Returns the settings that it was opened with.
    #[must_use]
    pub fn settings(&self) -> &MemorySettings {
        &self.shared.settings
    }

    /// Begins to watch the files and to index them in the background.
    pub fn start(&self) {
        self.shared.request_pass();
    }

    /// Uses another embedder from now on, or none. An index of another model is embedded anew.
    pub fn set_embedder(&self, embedder: Option<Arc<dyn Embedder>>) {
        *self.shared.embedder.lock() = embedder;
        self.shared.embedder_changed();
    }

    /// Tells that a transcript of the agent has grown.
    pub fn transcript_changed(&self, name: &str) {
        self.shared.transcript_changed(name);
    }

    /// Looks at all files and waits as `request` says. Calls at the same time share one look, which begins after the
    /// last of them.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Closed`]. What went wrong with files or the provider is in the report.
    pub async fn sync(&self, request: SyncRequest) -> Result<SyncReport, MemoryError> {
        self.shared.request_sync(request).await.map_err(|_| MemoryError::Closed)
    }

    /// Searches. Waits for no sync, but up to two seconds for the first look at the files while the index is empty, and a
    /// quarter of a second for one at files that have changed a moment ago, if the index is idle.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Store`] if the index file can't be read or made. A failing embedder is no error: the answer has a warning.
    pub async fn search(&self, request: &SearchRequest) -> Result<SearchAnswer, MemoryError> {
        let embedder = self.shared.embedder.lock().clone();
        let query = cut(request.query.trim(), LONGEST_QUERY).to_owned();
        let mut answer = SearchAnswer {
            hits: Vec::new(),
            mode: SearchMode::Keyword,
            is_confident: false,
            warning: None,
            embed_error: None,
            embedder: embedder.as_ref().map(|embedder| embedder.identity().clone()),
        };
        let look = self.look_if_needed(request.session.as_deref());
        if query.is_empty() {
            return Ok(answer);
        }
        let vector = match embedder.filter(|_| self.shared.settings.vectors) {
            None => None,
            Some(embedder) => match embed_query(embedder.as_ref(), &query).await {
                Ok(vector) => Some((vector, embedder.identity().clone())),
                Err(error) => {
                    answer.warning = Some(format!("{error}; searched by keywords alone"));
                    answer.embed_error = Some(error);
                    None
                }
            },
        };
        if let Some(number) = look {
            self.wait_for_pass(number, CHANGE_WAIT).await;
        }
        let dimensions = vector.as_ref().map(|(vector, _)| vector.len());
        let found = self.find(query, vector, request).await?;
        if let Some(dimensions) = dimensions.filter(|_| !found.used_vectors && found.chunks > 0) {
            self.shared.vectors_doubted(dimensions);
            answer.warning =
                Some("vectors of this model are still being made; searched by keywords alone".to_owned());
        }
        if found.is_foreign {
            self.shared.request_pass();
        }
        answer.mode = if found.used_vectors { SearchMode::Hybrid } else { SearchMode::Keyword };
        (answer.hits, answer.is_confident) = (found.hits, found.is_confident);
        Ok(answer)
    }

    /// Searches, and once more if the first look at the files was still to come.
    async fn find(
        &self,
        query: String,
        vector: Option<(Vec<f32>, EmbedderIdentity)>,
        request: &SearchRequest,
    ) -> Result<SearchFound, MemoryError> {
        let query = Arc::new(EmbeddedQuery { text: query, vector });
        let first = self.find_now(&query, request).await;
        let is_empty = match &first {
            Ok(found) => found.chunks == 0,
            Err(StoreError::Missing) => true,
            Err(_) => false,
        };
        if !is_empty {
            return Ok(first?);
        }
        let ended = *self.shared.passes.borrow();
        if ended == 0 || matches!(first, Err(StoreError::Missing)) {
            // Nobody has looked yet, or the file was deleted.
            self.shared.request_pass();
            self.wait_for_pass(ended + 1, FIRST_WAIT).await;
        }
        match self.find_now(&query, request).await {
            Err(StoreError::Missing) => match self.last_sync().error {
                Some(error) => Err(MemoryError::Store(error)),
                None => Ok(SearchFound::default()),
            },
            found => Ok(found?),
        }
    }

    async fn find_now(
        &self,
        query: &Arc<EmbeddedQuery>,
        request: &SearchRequest,
    ) -> Result<SearchFound, StoreError> {
        let (shared, query) = (Arc::clone(&self.shared), Arc::clone(query));
        let settings = &self.shared.settings.query;
        let (max_results, min_score) = (
            request.max_results.unwrap_or(settings.max_results),
            request.min_score.unwrap_or(settings.min_score),
        );
        let found = tokio::task::spawn_blocking(move || {
            let plan = SearchPlan {
                query: &query.text,
                vector: query.vector.as_ref().map(|(vector, identity)| (vector.as_slice(), identity)),
                settings: &shared.settings.query,
                max_results,
                min_score,
                sessions: shared.settings.sessions,
            };
            let found = shared.searcher.search(&plan);
            if matches!(found, Err(StoreError::Damaged(_))) {
                shared.searcher.release();
                shared.damaged();
            }
            found
        });
        found.await.unwrap_or_else(|error| Err(StoreError::Other(error.to_string())))
    }

    /// Waits for the end of a look at the files. Neither a slow disk nor a closed memory keeps the caller longer.
    async fn wait_for_pass(&self, number: u64, longest: Duration) {
        let mut passes = self.shared.passes.subscribe();
        let _ = tokio::time::timeout(longest, passes.wait_for(|ended| *ended >= number)).await;
    }

    /// Asks for a look at the files if something has changed or may have, or the session is new. Returns the number of the
    /// look to wait for, if it is short: what was written a moment ago is to be found.
    fn look_if_needed(&self, session: Option<&str>) -> Option<u64> {
        let sync = &self.shared.settings.sync;
        let is_new = session.is_some_and(|session| self.sessions.lock().is_first(session));
        let now = Instant::now();
        let (last_pass, is_watched, is_running) = {
            let mut progress = self.shared.progress.lock();
            progress.last_search = Some(now);
            (progress.last_pass, progress.is_watched, progress.is_running)
        };
        let every = if is_watched { LOOK_RARELY } else { LOOK_EVERY };
        let has_changed = self.shared.wanted.lock().changed.is_some_and(|(_, last)| last <= now);
        let is_due = has_changed || last_pass.is_none_or(|last| now >= last + every);
        if !(sync.on_search && is_due || sync.on_session_start && is_new) {
            return None;
        }
        let ended = *self.shared.passes.borrow();
        self.shared.request_pass();
        (sync.on_search && is_due && !is_running && last_pass.is_some()).then_some(ended + 1)
    }

    /// Reads lines of a memory file.
    ///
    /// # Errors
    ///
    /// [`GetError`] says why not, in words for a model.
    pub async fn get(&self, request: &GetRequest) -> Result<GetAnswer, GetError> {
        let (shared, request) = (Arc::clone(&self.shared), request.clone());
        let answer = tokio::task::spawn_blocking(move || get::get(&shared.roots, &request));
        answer.await.unwrap_or(Err(GetError::Unreadable(std::io::ErrorKind::Other)))
    }

    /// Says what the index holds. Writes nothing.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Store`] if the index file can't be read.
    pub async fn status(&self) -> Result<MemoryStatus, MemoryError> {
        let shared = Arc::clone(&self.shared);
        let read = tokio::task::spawn_blocking(move || status::read(&shared));
        Ok(read.await.unwrap_or_else(|error| Err(StoreError::Other(error.to_string())))?)
    }

    /// Returns what the last look at the files did. Waits for nothing.
    #[must_use]
    pub fn last_sync(&self) -> SyncReport {
        self.shared.progress.lock().report.clone()
    }

    /// Finds the entries of memory files that hold all words of `query`, for [`Memory::forget`].
    ///
    /// # Errors
    ///
    /// [`MemoryError::Closed`] if the runtime ends.
    pub async fn forget_preview(&self, query: &str) -> Result<Vec<ForgetEntry>, MemoryError> {
        let (shared, query) = (Arc::clone(&self.shared), query.to_owned());
        tokio::task::spawn_blocking(move || forget::find(&shared.roots, &query))
            .await
            .map_err(|_| MemoryError::Closed)
    }

    /// Removes entries from their files, and from the index what it holds of them. Entries whose lines have changed
    /// since the preview stay.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Store`] if the index can't be changed.
    pub async fn forget(&self, entries: Vec<ForgetEntry>) -> Result<ForgetOutcome, MemoryError> {
        let mut paths: Vec<String> = entries.iter().map(|entry| entry.path.clone()).collect();
        paths.sort_unstable();
        paths.dedup();
        let shared = Arc::clone(&self.shared);
        let outcome = tokio::task::spawn_blocking(move || forget::remove(&shared.roots, &entries));
        let outcome = outcome.await.map_err(|_| MemoryError::Closed)?;
        self.shared.request_forget(paths).await.map_err(|_| MemoryError::Closed)??;
        Ok(outcome)
    }

    /// Gives back memory and open files. The next search opens them again.
    pub async fn release(&self) {
        // A memory that is closed holds nothing.
        let _ = self.shared.request_release().await;
    }

    /// Ends the task after the transaction that it is in, and closes the file.
    pub async fn close(&self) {
        self.shared.stop();
        let task = self.task.lock().take();
        if let Some(task) = task {
            // A task that panicked has nothing left to close.
            let _ = task.await;
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl SeenSessions {
    /// Returns whether `session` was not seen before, and remembers it.
    fn is_first(&mut self, session: &str) -> bool {
        if !self.known.insert(session.to_owned()) {
            return false;
        }
        self.order.push_back(session.to_owned());
        if self.order.len() > MOST_SESSIONS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

/// Embeds a query within the time that it may take, or says why not.
async fn embed_query(embedder: &dyn Embedder, query: &str) -> Result<Vec<f32>, String> {
    if embedder.cooldown().remaining(Instant::now()).is_some() {
        return Err("the embedding provider is in a cooldown".to_owned());
    }
    let timeout = embedder.limits().query_timeout;
    match tokio::time::timeout(timeout, embedder.embed_query(query)).await {
        Err(_) => {
            let message = format!("the embedding provider did not answer within {} s", timeout.as_secs());
            let silent = EmbedError::Unavailable { message: message.clone() };
            embedder.cooldown().failed(&silent, Instant::now());
            Err(message)
        }
        Ok(Err(error)) => {
            embedder.cooldown().failed(&error, Instant::now());
            Err(error.to_string())
        }
        Ok(Ok(vector)) if vector.iter().any(|value| !value.is_finite()) => {
            Err("the embedding provider answered no numbers".to_owned())
        }
        Ok(Ok(vector)) => Ok(vector),
    }
}
