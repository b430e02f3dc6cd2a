//! One agent's `qmd`: its collections, its updates, and searches in it.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::private_file;
use openclaw_config::settings::MemoryQmdSearch;
use openclaw_memory::{GetAnswer, GetError, GetRequest, Hit, Source, TranscriptSource, get_below};
use parking_lot::Mutex as Lock;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::clock::{FailureBackoff, UpdateClock};
use crate::collections::{Collection, Collections, QmdGetError};
use crate::command_line::{CommandLine, query_argument};
use crate::export::export;
use crate::hits::{PrintedHit, best, listed_names, printed_hits};
use crate::index::QmdIndex;
use crate::programs::{QmdCall, QmdCallError, QmdPrograms};
use crate::scope;
use crate::settings::QmdSettings;

/// Longest wait of a search for an update that runs.
const UPDATE_WAIT: Duration = Duration::from_millis(500);

/// A search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QmdQuestion {
    /// Query in plain words.
    pub query: String,
    /// Largest number of hits, below that of the settings.
    pub max_results: Option<usize>,
    /// Smallest score; default 0.
    pub min_score: Option<f64>,
}

/// Wishes for an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateWish {
    /// One that runs is joined, and a young one is enough.
    IfDue,
    /// One more runs, behind those that are wished for already; vectors are made too.
    Forced,
}

/// State of the index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QmdStatus {
    /// The index file.
    pub index: std::path::PathBuf,
    /// Number of documents of each source that is searched.
    pub documents: Vec<(Source, u64)>,
    /// Number of collections.
    pub collections: usize,
    /// Time of the last update by this process, in Unix milliseconds.
    pub updated_at: Option<i64>,
    /// Reason for which the index can't be read.
    pub error: Option<String>,
    /// Reason for which the last update failed.
    pub update_error: Option<String>,
}

/// Reasons for which `qmd` does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QmdError {
    /// The program is not there.
    #[error("{0}")]
    Missing(String),
    /// A command failed.
    #[error("{}", told(.command, .error, .limit))]
    Command {
        /// The command as it is shown.
        command: String,
        /// The failure.
        error: QmdCallError,
        /// Its time limit.
        limit: Duration,
    },
    /// A command printed something else than asked for.
    #[error("{command} returned invalid JSON: {reason}")]
    Output {
        /// The command as it is shown.
        command: String,
        /// What is wrong.
        reason: String,
    },
    /// The index file can't be read.
    #[error("the index of qmd can't be read: {0}")]
    Index(String),
    /// Collections are still being made.
    #[error("qmd is still starting")]
    Starting,
    /// The last searches failed, and it is not asked for a while.
    #[error("{0}")]
    Pausing(String),
}

fn told(command: &str, error: &QmdCallError, limit: &Duration) -> String {
    match error {
        QmdCallError::NotStarted(reason) => format!("{command} could not be started: {reason}"),
        QmdCallError::TimedOut => format!("{command} timed out after {}ms", limit.as_millis()),
        QmdCallError::Failed { code: Some(code), said } => format!("{command} failed (code {code}): {said}"),
        QmdCallError::Failed { code: None, said } => format!("{command} was killed: {said}"),
        QmdCallError::TooMuchOutput => format!("{command} printed too much"),
    }
}

/// One agent's `qmd`. Making one starts nothing; the first [`Qmd::start`], [`Qmd::update`] or [`Qmd::search`] does.
/// [`Qmd::status`] and [`Qmd::get`] start nothing and write nothing.
pub struct Qmd {
    shared: Arc<QmdShared>,
    schedule: Lock<Option<JoinHandle<()>>>,
}

struct QmdShared {
    settings: QmdSettings,
    collections: Arc<Collections>,
    programs: Arc<dyn QmdPrograms>,
    transcripts: Option<Arc<dyn TranscriptSource>>,
    /// Names of the collections that `qmd` has; `None` if it was not asked yet.
    known: Mutex<Option<HashSet<String>>>,
    /// Held by the update that runs. Others wait for their turn.
    clock: Mutex<UpdateClock>,
    progress: watch::Sender<UpdateProgress>,
    backoff: Lock<FailureBackoff>,
}

#[derive(Debug, Clone, Default)]
struct UpdateProgress {
    /// Updates that run or wait for their turn.
    active: usize,
    /// True once the schedule has made its first update, or decided to make none.
    is_booted: bool,
    updated_at: Option<i64>,
    error: Option<QmdError>,
}

impl Qmd {
    /// Makes one. `transcripts` are asked only if the settings have exports.
    pub fn new(
        settings: QmdSettings,
        programs: Arc<dyn QmdPrograms>,
        transcripts: Option<Arc<dyn TranscriptSource>>,
    ) -> Self {
        let collections = Arc::new(Collections::of(&settings));
        let shared = QmdShared {
            settings,
            collections,
            programs,
            transcripts,
            known: Mutex::default(),
            clock: Mutex::default(),
            progress: watch::Sender::default(),
            backoff: Lock::default(),
        };
        Self { shared: Arc::new(shared), schedule: Lock::default() }
    }

    /// Returns the settings that it was made with.
    pub fn settings(&self) -> &QmdSettings {
        &self.shared.settings
    }

    /// Makes collections and the first update in the background, and further updates from then on.
    pub fn start(&self) {
        let mut schedule = self.schedule.lock();
        if schedule.is_none() {
            *schedule = Some(tokio::spawn(run_schedule(Arc::clone(&self.shared))));
        }
    }

    /// Ends the schedule and what it runs.
    pub async fn close(&self) {
        let task = self.schedule.lock().take();
        if let Some(task) = task {
            task.abort();
            let _ = task.await;
        }
    }

    /// Checks whether a session may search.
    ///
    /// # Errors
    /// The refusal, for the log.
    pub fn check_scope(&self, session: &str) -> Result<(), String> {
        scope::check(&self.shared.settings.scope, session)
    }

    /// The last failure of a search, or the reason why the program can't be started; `None` if searches are answered.
    pub fn failure(&self) -> Option<String> {
        let missing = self.shared.settings.program.as_ref().err();
        missing.cloned().or_else(|| self.shared.backoff.lock().reason().map(str::to_owned))
    }

    /// Searches all collections, one call for each.
    ///
    /// # Errors
    /// [`QmdError`], also for a while after failures: then nothing is called.
    pub async fn search(&self, question: &QmdQuestion) -> Result<Vec<Hit>, QmdError> {
        let shared = &self.shared;
        if let Err(reason) = &shared.settings.program {
            return Err(QmdError::Missing(reason.clone()));
        }
        if let Some(reason) = shared.backoff.lock().pausing(Instant::now()) {
            return Err(QmdError::Pausing(reason.to_owned()));
        }
        let has_schedule = self.schedule.lock().is_some();
        let found = shared.search(question, has_schedule).await;
        match &found {
            Ok(_) if shared.backoff.lock().succeeded() => tracing::info!("qmd answers again"),
            Ok(_) | Err(QmdError::Starting) => {}
            Err(error) => {
                tracing::warn!(%error, "qmd does not answer: the index of this program is searched");
                shared.backoff.lock().failed(Instant::now(), error.to_string());
                // The next request begins anew.
                if let Ok(mut known) = shared.known.try_lock() {
                    *known = None;
                }
            }
        }
        found
    }

    /// Brings the index in step with the files.
    ///
    /// # Errors
    /// [`QmdError`]; vectors that can't be made are no error.
    pub async fn update(&self, wish: UpdateWish) -> Result<(), QmdError> {
        self.shared.update(wish).await
    }

    /// Reads lines of a file of a collection; `None` if the path names none.
    pub async fn get(&self, request: &GetRequest) -> Option<Result<GetAnswer, QmdGetError>> {
        let (collections, request) = (Arc::clone(&self.shared.collections), request.clone());
        let read = tokio::task::spawn_blocking(move || match collections.readable(&request.path) {
            Ok(Some(file)) => Some(get_below(file.root, &file.inside, &request).map_err(QmdGetError::from)),
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        });
        read.await.unwrap_or_else(|_| Some(Err(GetError::NotFound.into())))
    }

    /// Reads the state.
    pub async fn status(&self) -> QmdStatus {
        let UpdateProgress { updated_at, error: update_error, .. } = self.shared.progress.borrow().clone();
        let sources = [Some(Source::Memory), self.shared.settings.exports.as_ref().map(|_| Source::Sessions)];
        let (counts, error) = match self.shared.counts().await {
            Ok(counts) => (counts, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let list = &self.shared.collections.list;
        let of = |source: Source| {
            let of_source = list.iter().filter(move |collection| collection.source == source);
            of_source.filter_map(|collection| counts.iter().find(|(name, _)| *name == collection.name))
        };
        QmdStatus {
            index: self.shared.settings.index(),
            documents: sources
                .into_iter()
                .flatten()
                .map(|source| (source, of(source).map(|(_, count)| count).sum()))
                .collect(),
            collections: list.len(),
            updated_at,
            error,
            update_error: update_error.map(|error| error.to_string()),
        }
    }
}

impl Drop for Qmd {
    fn drop(&mut self) {
        if let Some(task) = self.schedule.lock().take() {
            task.abort();
        }
    }
}

/// Updates at the start and once in a while.
async fn run_schedule(shared: Arc<QmdShared>) {
    let update = &shared.settings.update;
    let begun = if update.on_boot() {
        shared.update(UpdateWish::Forced).await
    } else {
        shared.make_collections().await.map(|_| ())
    };
    let mut last = report(begun, None);
    shared.progress.send_modify(|progress| progress.is_booted = true);
    let Some(interval) = update.interval() else { return };
    loop {
        tokio::time::sleep(interval).await;
        last = report(shared.update(UpdateWish::IfDue).await, last);
    }
}

/// Logs a failure, unless it is the one before, and returns it.
fn report(done: Result<(), QmdError>, last: Option<QmdError>) -> Option<QmdError> {
    let error = done.err()?;
    if last.as_ref() != Some(&error) {
        tracing::warn!(%error, "the index of qmd was not updated");
    }
    Some(error)
}

impl QmdShared {
    async fn run(&self, line: CommandLine) -> Result<Vec<u8>, QmdError> {
        let program = self.settings.program.clone().map_err(QmdError::Missing)?;
        let directory = match self.settings.workspace.is_dir() {
            true => &self.settings.workspace,
            false => &self.settings.home,
        };
        let call = QmdCall {
            program,
            arguments: line.arguments.clone(),
            environment: self.settings.variables(),
            directory: directory.clone(),
            limit: line.limit,
        };
        let failed = |error| QmdError::Command { command: line.shown(), error, limit: line.limit };
        self.programs.run(call).await.map_err(failed)
    }

    /// Makes the collections that `qmd` does not have yet and whose directory is there. Returns the names of those that it
    /// has then.
    async fn make_collections(&self) -> Result<HashSet<String>, QmdError> {
        let mut known = self.known.lock().await;
        let update = &self.settings.update;
        if known.is_none() {
            self.make_home();
            let listed = match self.run(CommandLine::list(update)).await {
                Ok(printed) => listed_names(&printed),
                Err(error) if is_hopeless(&error) => return Err(error),
                // Older versions can't list as JSON.
                Err(_) => Vec::new(),
            };
            *known = Some(listed.into_iter().collect());
        }
        let names = known.get_or_insert_default();
        let mut refusal = None;
        for collection in &self.collections.list {
            if names.contains(&collection.name) || !collection.root.is_dir() {
                continue;
            }
            match self.run(CommandLine::add(collection, update)).await {
                Ok(_) => {}
                Err(error) if is_hopeless(&error) => return Err(error),
                Err(error) if says_exists(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, collection = %collection.name, "qmd has not taken a collection");
                    refusal = Some(error);
                    continue;
                }
            }
            names.insert(collection.name.clone());
        }
        let has_some = self.collections.list.iter().any(|collection| names.contains(&collection.name));
        refusal.filter(|_| !has_some).map_or_else(|| Ok(names.clone()), Err)
    }

    /// Makes the directories of `qmd`, and leads it to the models that its user has already.
    fn make_home(&self) {
        let cache = self.settings.cache().join("qmd");
        let exports = self.settings.exports.iter().map(|exports| exports.dir.clone());
        for dir in [self.settings.home.join("xdg-config"), cache.clone()].into_iter().chain(exports) {
            if let Err(error) = private_file::make_dir(&dir) {
                tracing::warn!(%error, dir = %dir.display(), "a directory of qmd can't be made");
            }
        }
        let models = cache.join("models");
        let is_there = std::fs::symlink_metadata(&models).is_ok();
        if let Some(shared) = self.settings.models.as_deref().filter(|dir| !is_there && dir.is_dir())
            && let Err(error) = link(shared, &models)
        {
            tracing::debug!(%error, "the models of qmd are not shared");
        }
    }

    async fn update(&self, wish: UpdateWish) -> Result<(), QmdError> {
        if wish == UpdateWish::IfDue && self.progress.borrow().active > 0 {
            self.idle().await;
            return self.progress.borrow().error.clone().map_or(Ok(()), Err);
        }
        let _active = ActiveUpdate::of(&self.progress);
        let mut clock = self.clock.lock().await;
        let update = &self.settings.update;
        if wish == UpdateWish::IfDue && clock.is_debounced(Instant::now(), update.debounce()) {
            return Ok(());
        }
        let done = self.update_now(&mut clock, wish).await;
        self.progress.send_modify(|progress| {
            progress.error = done.clone().err();
            if done.is_ok() {
                progress.updated_at = Some(openclaw_config::clock::now_ms());
            }
        });
        done
    }

    async fn update_now(&self, clock: &mut UpdateClock, wish: UpdateWish) -> Result<(), QmdError> {
        let update = &self.settings.update;
        self.make_collections().await?;
        self.export().await;
        self.run(CommandLine::update(update)).await?;
        clock.updated(Instant::now());
        let interval = update.embed_interval();
        let is_due = wish == UpdateWish::Forced || clock.is_embed_due(Instant::now(), interval);
        // Words need no vectors.
        if self.settings.search != MemoryQmdSearch::Search && is_due {
            match self.run(CommandLine::embed(update)).await {
                Ok(_) => clock.embedded(Instant::now()),
                Err(error) => {
                    tracing::warn!(%error, "qmd has made no vectors");
                    clock.embed_failed(Instant::now(), interval);
                }
            }
        }
        Ok(())
    }

    async fn export(&self) {
        let (Some(exports), Some(transcripts)) = (self.settings.exports.clone(), self.transcripts.clone())
        else {
            return;
        };
        let work = tokio::task::spawn_blocking(move || export(&exports, transcripts.as_ref()));
        if let Ok(Err(error)) = work.await {
            tracing::warn!(%error, "transcripts could not be exported for qmd");
        }
    }

    /// Waits until no update runs.
    async fn idle(&self) {
        // The sender lives as long as this.
        let _ = self.progress.subscribe().wait_for(|progress| progress.active == 0).await;
    }

    async fn search(&self, question: &QmdQuestion, has_schedule: bool) -> Result<Vec<Hit>, QmdError> {
        let Some(query) = query_argument(&question.query) else { return Ok(Vec::new()) };
        let limits = &self.settings.limits;
        let names = if has_schedule {
            if self.settings.update.waits_for_boot() {
                let _ = self.progress.subscribe().wait_for(|progress| progress.is_booted).await;
            }
            let names = timeout(limits.timeout(), self.make_collections()).await;
            let names = names.map_err(|_| QmdError::Starting)??;
            let _ = timeout(UPDATE_WAIT, self.idle()).await;
            names
        } else if self.settings.index().is_file() {
            self.make_collections().await?
        } else {
            // Nobody else does it.
            self.update(UpdateWish::IfDue).await?;
            self.make_collections().await?
        };
        let counts = self.counts().await?;
        let all = self.collections.list.iter().filter(|collection| names.contains(&collection.name));
        let is_filled = |collection: &&Collection| counts.iter().any(|(name, _)| *name == collection.name);
        // A collection without documents is not asked; if none has any, the index is not what it is taken for.
        let filled: Vec<&Collection> = all.clone().filter(is_filled).collect();
        let asked = if filled.is_empty() { all.collect() } else { filled };
        let most = question.max_results.unwrap_or(usize::MAX).clamp(1, limits.max_results());
        let least = question.min_score.unwrap_or(0.0);
        let mut hits = Vec::new();
        // One after the other: each call loads models, and writes to a cache of answers in the index.
        for collection in asked {
            let line =
                CommandLine::search(self.settings.search, &query, most, &collection.name, limits.timeout());
            let printed = self.run(line.clone()).await?;
            let printed = printed_hits(&printed)
                .map_err(|reason| QmdError::Output { command: line.shown(), reason })?;
            let printed = printed.into_iter().filter(|hit| hit.score >= least).take(most).collect();
            hits.extend(self.located(collection, printed).await?);
        }
        Ok(best(hits, most, limits.max_snippet_chars(), limits.max_injected_chars()))
    }

    /// Finds the files of hits. Hits that are not in the collection are left out.
    async fn located(&self, collection: &Collection, printed: Vec<PrintedHit>) -> Result<Vec<Hit>, QmdError> {
        if printed.is_empty() {
            return Ok(Vec::new());
        }
        let (collections, collection) = (Arc::clone(&self.collections), collection.clone());
        self.with_index(move |index| {
            let index = index.ok_or_else(|| "it is not there".to_owned())?;
            let mut hits = Vec::new();
            for hit in printed {
                let Some(hash) = hit.hash() else { continue };
                let document = index.path_of(&collection.name, hash).map_err(|error| error.to_string())?;
                let Some(document) = document else { continue };
                let (start_line, end_line) = hit.lines();
                hits.push(Hit {
                    path: collections.result_path(&collection, &document),
                    start_line,
                    end_line,
                    score: hit.score,
                    snippet: hit.snippet,
                    source: collection.source,
                });
            }
            Ok(hits)
        })
        .await
    }

    /// Number of documents of each collection that has some.
    async fn counts(&self) -> Result<Vec<(String, u64)>, QmdError> {
        self.with_index(|index| match index {
            Some(index) => index.counts().map_err(|error| error.to_string()),
            None => Ok(Vec::new()),
        })
        .await
    }

    async fn with_index<T: Send + 'static>(
        &self,
        work: impl FnOnce(Option<QmdIndex>) -> Result<T, String> + Send + 'static,
    ) -> Result<T, QmdError> {
        let path = self.settings.index();
        let done = tokio::task::spawn_blocking(move || {
            QmdIndex::open(&path).map_err(|error| error.to_string()).and_then(work)
        });
        done.await.unwrap_or_else(|error| Err(error.to_string())).map_err(QmdError::Index)
    }
}

/// True for an error that the next command would have too.
fn is_hopeless(error: &QmdError) -> bool {
    match error {
        QmdError::Missing(_) => true,
        QmdError::Command { error, .. } => {
            matches!(error, QmdCallError::NotStarted(_) | QmdCallError::TimedOut)
        }
        QmdError::Output { .. } | QmdError::Index(_) | QmdError::Starting | QmdError::Pausing(_) => false,
    }
}

/// True if `qmd` refuses a collection because it has it. It has no code of its own for this.
fn says_exists(error: &QmdError) -> bool {
    match error {
        QmdError::Command { error: QmdCallError::Failed { said, .. }, .. } => {
            said.to_lowercase().contains("exists")
        }
        _ => false,
    }
}

#[cfg(unix)]
fn link(target: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// An update that runs or waits for its turn.
struct ActiveUpdate<'a>(&'a watch::Sender<UpdateProgress>);

impl<'a> ActiveUpdate<'a> {
    fn of(progress: &'a watch::Sender<UpdateProgress>) -> Self {
        progress.send_modify(|progress| progress.active += 1);
        Self(progress)
    }
}

impl Drop for ActiveUpdate<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|progress| progress.active = progress.active.saturating_sub(1));
    }
}
