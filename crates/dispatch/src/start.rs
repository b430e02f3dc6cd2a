//! Start of a dispatcher: opens the inbox and takes up the messages that the last process did not
//! finish.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openclaw_delivery::outbox::{self, Outbox};
use openclaw_journal::clock::Clock;
use openclaw_journal::journal::OpenedJournal;
use openclaw_journal::journal::sqlite::{FILE_NAME, SqliteJournal};
use openclaw_runs::RunHost;
use openclaw_runs::parts::RunSources;
use openclaw_runs::secrets::KnownSecrets;
use openclaw_runtime::global_lanes::{GlobalLanes, LaneSizes};
use openclaw_runtime::setup::{Deps, Settings};
use openclaw_runtime::stopping::Stopping;
use openclaw_runtime::work_tasks::WorkTasks;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::assemble::{Assembled, assemble};
use crate::handle::Dispatch;
use crate::parts::DispatchFamilies;
use crate::subagents;

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
        let (stops, tasks) = (Stopping::default(), WorkTasks::default());
        let journal = opened.journal;
        let (stopping, kill) = (stops.stopping.clone(), stops.kill.clone());
        let outbox = Outbox::new(Arc::clone(&journal), clock.clone(), stopping.clone(), kill);
        outbox.keep_files_in(deps.state_dir.join(outbox::files::FOLDER));
        // Nothing is taken yet that has no row.
        if let Err(error) = outbox.sweep_files(Duration::ZERO).await {
            tracing::warn!(%error, "files that no delivery names are left where they are");
        }
        let lanes_of_all = Arc::new(GlobalLanes::new(sizes));
        let Assembled { families, lanes, recovery, host, secrets } = assemble(RunSources {
            deps,
            clock,
            journal,
            outbox,
            hub: Arc::default(),
            registry: Arc::default(),
            lanes: Arc::clone(&lanes_of_all),
            tasks: tasks.clone(),
            stops,
        });
        let around: Arc<dyn RunHost> = Arc::<DispatchFamilies>::clone(&families);
        host.set(Arc::downgrade(&around));
        tasks.accepting.spawn(follow(stopping, secrets, lanes_of_all, settings));
        subagents::restore(&families, &opened.unfinished).await;
        let beats = recovery.recover(&lanes, opened.unfinished).await;
        subagents::begin(&families);
        Self::with(families, lanes, beats)
    }
}

/// Applies changes of the settings for as long as messages are accepted.
async fn follow(
    stopping: CancellationToken,
    secrets: Arc<KnownSecrets>,
    lanes: Arc<GlobalLanes>,
    mut settings: watch::Receiver<Arc<Settings>>,
) {
    loop {
        tokio::select! { biased;
            () = stopping.cancelled() => return,
            changed = settings.changed() => if changed.is_err() { return },
        }
        let config = Arc::clone(&settings.borrow_and_update().config);
        secrets.learn_settings(&config);
        lanes.resize(LaneSizes::of_config(&config));
    }
}
