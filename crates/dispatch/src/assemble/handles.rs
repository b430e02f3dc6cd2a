//! Parts that the gateway hands in, as far as dispatch itself uses them.

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::skills::SkillBook;
use openclaw_channels::Platforms;
use openclaw_delivery::outbox::Outbox;
use openclaw_journal::clock::Clock;
use openclaw_journal::journal::Journal;
use openclaw_models::Models;
use openclaw_runs::parts::RunSources;
use openclaw_runtime::events::Hub;
use openclaw_runtime::global_lanes::GlobalLanes;
use openclaw_runtime::memory::Memories;
use openclaw_runtime::registry::Registry;
use openclaw_runtime::stopping::Stopping;
use openclaw_runtime::surroundings::Surroundings;
use openclaw_runtime::system_events::SystemEvents;
use openclaw_runtime::work_tasks::WorkTasks;
use openclaw_sessions::SessionStore;
use openclaw_sessions::transcript::Transcripts;
use openclaw_tools::CommandSessions;

/// Handles from which each family is given its own.
pub(super) struct Handles {
    pub(super) state_dir: PathBuf,
    pub(super) store: Arc<dyn SessionStore>,
    pub(super) transcripts: Transcripts,
    pub(super) models: Models,
    pub(super) memories: Memories,
    pub(super) skills: Arc<SkillBook>,
    pub(super) platforms: Arc<Platforms>,
    pub(super) system_events: Arc<SystemEvents>,
    pub(super) command_sessions: Arc<CommandSessions>,
    pub(super) surroundings: Option<Arc<dyn Surroundings>>,
    pub(super) clock: Clock,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) outbox: Outbox,
    pub(super) hub: Arc<Hub>,
    pub(super) registry: Arc<Registry>,
    pub(super) lanes: Arc<GlobalLanes>,
    pub(super) tasks: WorkTasks,
    pub(super) stops: Stopping,
}

impl Handles {
    pub(super) fn of(sources: &RunSources) -> Self {
        let deps = &sources.deps;
        Self {
            state_dir: deps.state_dir.clone(),
            store: deps.store.clone(),
            transcripts: deps.transcripts.clone(),
            models: deps.models.clone(),
            memories: deps.memories.clone(),
            skills: deps.skills.clone(),
            platforms: deps.platforms.clone(),
            system_events: deps.system_events.clone(),
            command_sessions: deps.command_sessions.clone(),
            surroundings: deps.surroundings.clone(),
            clock: sources.clock.clone(),
            journal: sources.journal.clone(),
            outbox: sources.outbox.clone(),
            hub: sources.hub.clone(),
            registry: sources.registry.clone(),
            lanes: sources.lanes.clone(),
            tasks: sources.tasks.clone(),
            stops: sources.stops.clone(),
        }
    }
}
