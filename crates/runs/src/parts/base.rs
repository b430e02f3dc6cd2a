//! Parts that the gateway hands in, and the state that more than one subject needs.

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::prompt::HostFacts;
use openclaw_agent::skills::SkillBook;
use openclaw_channels::Platforms;
use openclaw_delivery::outbox::Outbox;
use openclaw_journal::clock::Clock;
use openclaw_journal::journal::Journal;
use openclaw_models::Models;
use openclaw_runtime::child_runs::ChildRuns;
use openclaw_runtime::events::Hub;
use openclaw_runtime::global_lanes::GlobalLanes;
use openclaw_runtime::memory::Memories;
use openclaw_runtime::registry::Registry;
use openclaw_runtime::session_model::SessionModels;
use openclaw_runtime::setup::{Deps, LiveSettings};
use openclaw_runtime::stopping::Stopping;
use openclaw_runtime::surroundings::Surroundings;
use openclaw_runtime::system_events::SystemEvents;
use openclaw_runtime::work_tasks::WorkTasks;
use openclaw_sessions::SessionStore;
use openclaw_sessions::transcript::Transcripts;
use openclaw_tools::approvals::Approvals;
use openclaw_tools::sandbox::Sandboxes;
use openclaw_tools::{CommandLock, CommandSessions};

use super::RunSources;
use crate::kept::KeptTranscripts;
use crate::run_host::HostLink;
use crate::secrets::KnownSecrets;

/// Parts from which all others are made.
pub(super) struct Base {
    pub(super) settings: LiveSettings,
    pub(super) state_dir: PathBuf,
    pub(super) store: Arc<dyn SessionStore>,
    pub(super) transcripts: Transcripts,
    /// Transcripts that stay open.
    pub(super) kept: Arc<KeptTranscripts>,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) clock: Clock,
    pub(super) outbox: Outbox,
    pub(super) hub: Arc<Hub>,
    pub(super) registry: Arc<Registry>,
    pub(super) lanes: Arc<GlobalLanes>,
    pub(super) tasks: WorkTasks,
    pub(super) stops: Stopping,
    /// Models of all agents.
    pub(super) all_models: Models,
    /// Models that sessions have chosen.
    pub(super) models: Arc<SessionModels>,
    pub(super) child_runs: Arc<ChildRuns>,
    pub(super) secrets: Arc<KnownSecrets>,
    pub(super) skills: Arc<SkillBook>,
    pub(super) memories: Memories,
    pub(super) platforms: Arc<Platforms>,
    pub(super) system_events: Arc<SystemEvents>,
    pub(super) host_facts: HostFacts,
    pub(super) command_variables: Vec<(String, String)>,
    pub(super) command_lock: Option<CommandLock>,
    pub(super) command_sessions: Arc<CommandSessions>,
    pub(super) approvals: Arc<Approvals>,
    pub(super) sandboxes: Arc<Sandboxes>,
    pub(super) surroundings: Option<Arc<dyn Surroundings>>,
    /// The gateway around the runs, once there is one.
    pub(super) host: Arc<HostLink>,
}

impl Base {
    pub(super) fn new(sources: RunSources) -> Self {
        let RunSources { deps, clock, journal, outbox, hub, registry, lanes, tasks, stops } = sources;
        let Deps { settings, state_dir, store, models: all_models, system_events, .. } = deps;
        let config = Arc::clone(&settings.borrow().config);
        let models =
            SessionModels::new(all_models.clone(), store.clone(), system_events.clone(), clock.clone());
        Self {
            settings: LiveSettings::new(settings),
            transcripts: deps.transcripts,
            kept: Arc::default(),
            journal,
            clock,
            outbox,
            hub,
            registry,
            lanes,
            tasks,
            stops,
            models: Arc::new(models),
            child_runs: Arc::new(ChildRuns::new(&state_dir)),
            secrets: Arc::new(KnownSecrets::new(deps.secrets, &state_dir, &config)),
            skills: deps.skills,
            memories: deps.memories,
            platforms: deps.platforms,
            host_facts: deps.host,
            command_variables: deps.command_variables,
            command_lock: deps.command_lock,
            command_sessions: deps.command_sessions,
            approvals: deps.approvals,
            sandboxes: deps.sandboxes,
            surroundings: deps.surroundings,
            host: Arc::default(),
            state_dir,
            store,
            all_models,
            system_events,
        }
    }
}
