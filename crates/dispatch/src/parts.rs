//! Parts of a dispatcher that its handles, sub-agents and tools of runs work with, a struct for each
//! family of work, which names what the family uses. They outlive the handles, and reach the lanes
//! as long as those are there.

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use openclaw_agent::skills::SkillBook;
use openclaw_channels::Platforms;
use openclaw_commands::CommandServices;
use openclaw_delivery::outbox::Outbox;
use openclaw_journal::clock::Clock;
use openclaw_journal::journal::Journal;
use openclaw_models::Models;
use openclaw_runs::acknowledge::Acknowledgements;
use openclaw_runs::conversation_hooks::ConversationHooks;
use openclaw_runs::decide::Decider;
use openclaw_runs::deliver::{Deliveries, Routes};
use openclaw_runs::hooks::Hooks;
use openclaw_runs::inject::Injections;
use openclaw_runs::invoke::ToolInvocations;
use openclaw_runs::message_host::ActionHost;
use openclaw_runs::reply_media::ReplyFiles;
use openclaw_runs::rows::SessionRows;
use openclaw_runs::send_rules::SendRules;
use openclaw_runs::session_messages::SessionMessages;
use openclaw_runtime::child_runs::ChildRuns;
use openclaw_runtime::events::Hub;
use openclaw_runtime::global_lanes::GlobalLanes;
use openclaw_runtime::memory::Memories;
use openclaw_runtime::registry::Registry;
use openclaw_runtime::session_model::SessionModels;
use openclaw_runtime::setup::LiveSettings;
use openclaw_runtime::stopping::Stopping;
use openclaw_runtime::surroundings::Surroundings;
use openclaw_runtime::system_events::SystemEvents;
use openclaw_runtime::work_tasks::WorkTasks;
use openclaw_sessions::SessionStore;
use openclaw_sessions::transcript::Transcripts;
use openclaw_tools::CommandSessions;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::child_tasks::ChildTasks;
use crate::intake::Intake;
use crate::lane::Supervisor;
use crate::waits::Waits;

/// The families of a dispatcher's work.
pub(crate) struct DispatchFamilies {
    pub(crate) requests: RequestParts,
    pub(crate) arrivals: ArrivalParts,
    pub(crate) children: ChildParts,
    pub(crate) session_tools: SessionToolParts,
    pub(crate) hooks: HookParts,
    pub(crate) tools: ToolHostParts,
    /// Acceptance of messages.
    pub(crate) intake: Arc<Intake>,
    /// Sessions whose runs wait for others.
    pub(crate) waits: Waits,
    /// Tasks that look after the sub-agents of its sessions.
    pub(crate) child_tasks: ChildTasks,
    pub(crate) lanes: Weak<Supervisor>,
}

/// Parts for requests of the gateway.
pub(crate) struct RequestParts {
    pub(crate) settings: LiveSettings,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) models: Arc<SessionModels>,
    pub(crate) platforms: Arc<Platforms>,
    pub(crate) skills: Arc<SkillBook>,
    pub(crate) command_sessions: Arc<CommandSessions>,
    pub(crate) child_runs: Arc<ChildRuns>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Clock,
    pub(crate) outbox: Outbox,
    pub(crate) hub: Arc<Hub>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) conversation_hooks: Arc<ConversationHooks>,
    pub(crate) injections: Arc<Injections>,
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) actions: Arc<ActionHost>,
    pub(crate) files: ReplyFiles,
    pub(crate) tasks: WorkTasks,
    pub(crate) stops: Stopping,
}

/// Parts for events of chat platforms.
pub(crate) struct ArrivalParts {
    pub(crate) settings: LiveSettings,
    pub(crate) rows: Arc<SessionRows>,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) transcripts: Transcripts,
    pub(crate) platforms: Arc<Platforms>,
    pub(crate) system_events: Arc<SystemEvents>,
    pub(crate) state_dir: PathBuf,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Clock,
    pub(crate) registry: Arc<Registry>,
    pub(crate) decider: Arc<Decider>,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) conversation_hooks: Arc<ConversationHooks>,
    pub(crate) acks: Arc<Acknowledgements>,
    pub(crate) services: Arc<CommandServices>,
    /// Messages between the client and their lane.
    pub(crate) accepting: TaskTracker,
    /// Cancelled when no run is started any more.
    pub(crate) stopping: CancellationToken,
    /// Cancelled when runs stop where they are.
    pub(crate) kill: CancellationToken,
}

/// Parts for starting, following and clearing away sub-agents.
pub(crate) struct ChildParts {
    pub(crate) settings: LiveSettings,
    pub(crate) rows: Arc<SessionRows>,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) transcripts: Transcripts,
    pub(crate) models: Arc<SessionModels>,
    pub(crate) platforms: Arc<Platforms>,
    pub(crate) child_runs: Arc<ChildRuns>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Clock,
    pub(crate) registry: Arc<Registry>,
    pub(crate) send_rules: Arc<SendRules>,
    pub(crate) routes: Arc<Routes>,
    pub(crate) session_messages: Arc<SessionMessages>,
    /// Messages between the client and their lane.
    pub(crate) accepting: TaskTracker,
    /// Cancelled when no run is started any more.
    pub(crate) stopping: CancellationToken,
}

/// Parts that tools for sessions use.
pub(crate) struct SessionToolParts {
    pub(crate) settings: LiveSettings,
    pub(crate) rows: Arc<SessionRows>,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) transcripts: Transcripts,
    pub(crate) models: Arc<SessionModels>,
    pub(crate) platforms: Arc<Platforms>,
    pub(crate) child_runs: Arc<ChildRuns>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Clock,
    pub(crate) registry: Arc<Registry>,
    /// Lanes that all sessions share.
    pub(crate) lanes: Arc<GlobalLanes>,
    pub(crate) routes: Arc<Routes>,
    pub(crate) services: Arc<CommandServices>,
    pub(crate) invocations: Arc<ToolInvocations>,
}

/// Parts for telling hooks of sessions and of the gateway.
pub(crate) struct HookParts {
    pub(crate) settings: LiveSettings,
    pub(crate) rows: Arc<SessionRows>,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) conversation_hooks: Arc<ConversationHooks>,
    /// Cancelled when runs stop where they are.
    pub(crate) kill: CancellationToken,
}

/// Parts for requests of tools that no other family answers.
pub(crate) struct ToolHostParts {
    pub(crate) settings: LiveSettings,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) models: Models,
    pub(crate) memories: Memories,
    /// Services of the gateway; `None` if there is no gateway.
    pub(crate) surroundings: Option<Arc<dyn Surroundings>>,
    pub(crate) actions: Arc<ActionHost>,
}

impl DispatchFamilies {
    /// Returns the lanes; `None` once the gateway has ended.
    pub(crate) fn lanes(&self) -> Option<Arc<Supervisor>> {
        self.lanes.upgrade()
    }

    /// Begins work on sub-agents that ends with the gateway, wherever it is: the next start does it
    /// again.
    pub(crate) fn spawn_for_children(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.child_tasks.spawn_until(self.children.stopping.clone(), work);
    }
}
