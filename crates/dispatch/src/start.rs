//! Start of a dispatcher: opens the inbox and takes up the messages that the last process did not
//! finish.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openclaw_delivery::outbox;
use openclaw_journal::clock::Clock;
use openclaw_journal::journal::OpenedJournal;
use openclaw_journal::journal::sqlite::{FILE_NAME, SqliteJournal};
use openclaw_runs::{RunHost, Runner};
use openclaw_runtime::global_lanes::LaneSizes;
use openclaw_runtime::setup::{Deps, Settings};
use openclaw_runtime::shared::SharedState;
use tokio::sync::watch;

use crate::handle::Dispatch;
use crate::lane::Supervisor;
use crate::parts::DispatchParts;
use crate::{intake, subagents};

/// Dispatch could not start; the gateway must not.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The inbox could not be opened or read.
    #[error("cannot open {path}: {reason}")]
    Inbox {
        /// The database file.
        path: PathBuf,
        /// Error of the system, and advice.
        reason: String,
    },
}

impl Dispatch {
    /// Opens the inbox and takes up every unfinished message, in order of acceptance per session.
    ///
    /// # Errors
    /// When the inbox can't be opened or read.
    pub async fn start(deps: Deps) -> Result<Self, StartError> {
        let path = deps.state_dir.join(FILE_NAME);
        let failed = |reason: String| StartError::Inbox { path: path.clone(), reason };
        let dir = deps.state_dir.clone();
        let opened = tokio::task::spawn_blocking(move || SqliteJournal::open(&dir))
            .await
            .map_err(|error| failed(error.to_string()))?
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self::start_with(deps, opened, Clock::system()).await)
    }

    pub(crate) async fn start_with(deps: Deps, opened: OpenedJournal, clock: Clock) -> Self {
        let settings = deps.settings.clone();
        let sizes = LaneSizes::of_config(&settings.borrow().config);
        deps.approvals.remember_forgotten(opened.notices.approvals());
        deps.command_sessions.remember_lost(opened.notices.commands());
        deps.system_events.restore(Arc::clone(&opened.journal), opened.notices.lines);
        let shared = Arc::new(SharedState::new(opened.journal, sizes, clock));
        shared.outbox.keep_files_in(deps.state_dir.join(outbox::files::FOLDER));
        // Nothing is taken yet that has no row.
        if let Err(error) = shared.outbox.sweep_files(Duration::ZERO).await {
            tracing::warn!(%error, "files that no delivery names are left where they are");
        }
        let runner = Arc::new(Runner::new(deps, Arc::clone(&shared)));
        shared.outbox.tell(runner.tell_sent());
        let lanes = Arc::new(Supervisor::new(Arc::clone(&runner)));
        let parts = Arc::new(DispatchParts::new(Arc::clone(&runner), &lanes));
        let host: Arc<dyn RunHost> = Arc::<DispatchParts>::clone(&parts);
        runner.set_host(Arc::downgrade(&host));
        shared.accepting.spawn(follow(Arc::clone(&shared), Arc::clone(&runner), settings));
        subagents::restore(&parts, &opened.unfinished).await;
        let beats = intake::recover(&runner, &lanes, opened.unfinished).await;
        subagents::begin(&parts);
        Self::with(parts, lanes, beats)
    }
}

/// Applies new settings until the gateway stops: resizes the lanes, and remembers the secrets.
async fn follow(shared: Arc<SharedState>, runner: Arc<Runner>, mut settings: watch::Receiver<Arc<Settings>>) {
    loop {
        tokio::select! { biased;
            () = shared.stopping.cancelled() => return,
            changed = settings.changed() => if changed.is_err() { return },
        }
        let config = Arc::clone(&settings.borrow_and_update().config);
        runner.secrets.learn_settings(&config);
        shared.global.resize(LaneSizes::of_config(&config));
    }
}
