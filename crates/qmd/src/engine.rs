//! Parts that updates and searches of one agent's `qmd` share: settings, collections, calls and the index file.

use std::collections::HashSet;
use std::sync::Arc;

use openclaw_memory::TranscriptSource;
use parking_lot::Mutex as Lock;
use tokio::sync::{Mutex, watch};

use crate::clock::{FailureBackoff, UpdateClock};
use crate::collections::Collections;
use crate::command_line::CommandLine;
use crate::error::QmdError;
use crate::index::QmdIndex;
use crate::programs::{QmdCall, QmdPrograms};
use crate::settings::QmdSettings;

/// `qmd` with all that it was made with and what is known of it.
pub(crate) struct QmdEngine {
    pub(crate) settings: QmdSettings,
    pub(crate) collections: Arc<Collections>,
    pub(crate) programs: Arc<dyn QmdPrograms>,
    pub(crate) transcripts: Option<Arc<dyn TranscriptSource>>,
    /// Names of the collections that `qmd` has; `None` if it was not asked yet.
    pub(crate) known: Mutex<Option<HashSet<String>>>,
    /// Held by the update that runs. Others wait for their turn.
    pub(crate) clock: Mutex<UpdateClock>,
    pub(crate) progress: watch::Sender<UpdateProgress>,
    pub(crate) backoff: Lock<FailureBackoff>,
}

/// Updates, for whoever waits for them.
#[derive(Debug, Clone, Default)]
pub(crate) struct UpdateProgress {
    /// Updates that run or wait for their turn.
    pub(crate) active: usize,
    /// True once the schedule has made its first update, or decided to make none.
    pub(crate) is_booted: bool,
    pub(crate) updated_at: Option<i64>,
    pub(crate) error: Option<QmdError>,
}

impl QmdEngine {
    pub(crate) fn new(
        settings: QmdSettings,
        programs: Arc<dyn QmdPrograms>,
        transcripts: Option<Arc<dyn TranscriptSource>>,
    ) -> Self {
        Self {
            collections: Arc::new(Collections::of(&settings)),
            settings,
            programs,
            transcripts,
            known: Mutex::default(),
            clock: Mutex::default(),
            progress: watch::Sender::default(),
            backoff: Lock::default(),
        }
    }

    /// Runs `qmd` to its end and returns what it prints.
    pub(crate) async fn run(&self, line: CommandLine) -> Result<Vec<u8>, QmdError> {
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

    /// Number of documents of each collection that has some.
    pub(crate) async fn counts(&self) -> Result<Vec<(String, u64)>, QmdError> {
        self.with_index(|index| match index {
            Some(index) => index.counts().map_err(|error| error.to_string()),
            None => Ok(Vec::new()),
        })
        .await
    }

    /// Does something with the index file, which may not be there.
    pub(crate) async fn with_index<T: Send + 'static>(
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
