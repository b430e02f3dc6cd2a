//! One agent's `qmd`: its collections, its updates, and searches in it.

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_memory::{GetAnswer, GetError, GetRequest, Hit, Source, TranscriptSource, get_below};
use parking_lot::Mutex as Lock;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::collections::QmdGetError;
use crate::engine::{QmdEngine, UpdateProgress};
use crate::error::QmdError;
use crate::programs::QmdPrograms;
use crate::scope;
use crate::searches::QmdQuestion;
use crate::settings::QmdSettings;
use crate::updates::{UpdateWish, run_schedule};

/// State of the index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QmdStatus {
    /// The index file.
    pub index: PathBuf,
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

/// One agent's `qmd`. Making one starts nothing; the first [`Qmd::start`], [`Qmd::update`] or [`Qmd::search`] does.
/// [`Qmd::status`] and [`Qmd::get`] start nothing and write nothing.
pub struct Qmd {
    engine: Arc<QmdEngine>,
    schedule: Lock<Option<JoinHandle<()>>>,
}

impl Qmd {
    /// Makes one. `transcripts` are asked only if the settings have exports.
    pub fn new(
        settings: QmdSettings,
        programs: Arc<dyn QmdPrograms>,
        transcripts: Option<Arc<dyn TranscriptSource>>,
    ) -> Self {
        let engine = QmdEngine::new(settings, programs, transcripts);
        Self { engine: Arc::new(engine), schedule: Lock::default() }
    }

    /// Returns the settings that it was made with.
    pub fn settings(&self) -> &QmdSettings {
        &self.engine.settings
    }

    /// Makes collections and the first update in the background, and further updates from then on.
    pub fn start(&self) {
        let mut schedule = self.schedule.lock();
        if schedule.is_none() {
            *schedule = Some(tokio::spawn(run_schedule(Arc::clone(&self.engine))));
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
        scope::check(&self.engine.settings.scope, session)
    }

    /// The last failure of a search, or the reason why the program can't be started; `None` if searches are answered.
    pub fn failure(&self) -> Option<String> {
        let missing = self.engine.settings.program.as_ref().err();
        missing.cloned().or_else(|| self.engine.backoff.lock().reason().map(str::to_owned))
    }

    /// Searches all collections, one call for each.
    ///
    /// # Errors
    /// [`QmdError`], also for a while after failures: then nothing is called.
    pub async fn search(&self, question: &QmdQuestion) -> Result<Vec<Hit>, QmdError> {
        let engine = &self.engine;
        if let Err(reason) = &engine.settings.program {
            return Err(QmdError::Missing(reason.clone()));
        }
        if let Some(reason) = engine.backoff.lock().pausing(Instant::now()) {
            return Err(QmdError::Pausing(reason.to_owned()));
        }
        let has_schedule = self.schedule.lock().is_some();
        let found = engine.search(question, has_schedule).await;
        match &found {
            Ok(_) if engine.backoff.lock().succeeded() => tracing::info!("qmd answers again"),
            Ok(_) => {}
            // Its first start takes its time; later ones have none to take.
            Err(QmdError::Starting) if !engine.progress.borrow().is_booted => {}
            Err(error) => {
                tracing::warn!(%error, "qmd does not answer: the index of this program is searched");
                engine.backoff.lock().failed(Instant::now(), error.to_string());
                // The next request begins anew.
                if let Ok(mut known) = engine.known.try_lock() {
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
        self.engine.update(wish).await
    }

    /// Reads lines of a file of a collection; `None` if the path names none.
    pub async fn get(&self, request: &GetRequest) -> Option<Result<GetAnswer, QmdGetError>> {
        let (collections, request) = (Arc::clone(&self.engine.collections), request.clone());
        let read = tokio::task::spawn_blocking(move || match collections.readable(&request.path) {
            Ok(Some(file)) => Some(get_below(file.root, &file.inside, &request).map_err(QmdGetError::from)),
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        });
        read.await.unwrap_or_else(|_| Some(Err(GetError::NotFound.into())))
    }

    /// Reads the state.
    pub async fn status(&self) -> QmdStatus {
        let UpdateProgress { updated_at, error: update_error, .. } = self.engine.progress.borrow().clone();
        let sources = [Some(Source::Memory), self.engine.settings.exports.as_ref().map(|_| Source::Sessions)];
        let (counts, error) = match self.engine.counts().await {
            Ok(counts) => (counts, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let list = &self.engine.collections.list;
        let of = |source: Source| {
            let of_source = list.iter().filter(move |collection| collection.source == source);
            of_source.filter_map(|collection| counts.iter().find(|(name, _)| *name == collection.name))
        };
        QmdStatus {
            index: self.engine.settings.index(),
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
