//! Dependencies and settings that a dispatcher is started with.

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::compaction::memory_flush::MemoryFlush;
use openclaw_agent::hooks::HookSet;
use openclaw_agent::prompt::HostFacts;
use openclaw_agent::pruning::PruneSettings;
use openclaw_agent::skills::SkillBook;
use openclaw_channels::Platforms;
use openclaw_config::{Config, Unmet, unmet_protections};
use openclaw_models::{ModelSettings, Models};
use openclaw_sessions::transcript::Transcripts;
use openclaw_sessions::{SessionSettings, SessionStore};
use openclaw_tools::approvals::Approvals;
use openclaw_tools::sandbox::Sandboxes;
use openclaw_tools::{CommandLock, CommandSessions};
use secrecy::SecretString;
use tokio::sync::watch;

use crate::memory::Memories;
use crate::surroundings::Surroundings;
use crate::system_events::SystemEvents;

/// Dependencies of dispatch.
pub struct Deps {
    /// The state directory; `gateway.sqlite` lies in it.
    pub state_dir: PathBuf,
    /// The settings in force. Runs take the newest when they begin.
    pub settings: watch::Receiver<Arc<Settings>>,
    /// The rows of all sessions.
    pub store: Arc<dyn SessionStore>,
    /// Store of transcripts.
    pub transcripts: Transcripts,
    /// Source of models.
    pub models: Models,
    /// Skills of all agents; the owner of the process watches for edits of them.
    pub skills: Arc<SkillBook>,
    /// Memory of the agents.
    pub memories: Memories,
    /// The chat platforms there are, and their accounts at work.
    pub platforms: Arc<Platforms>,
    /// Facts about this machine for the prompt.
    pub host: HostFacts,
    /// Lines that agents are told besides messages.
    pub system_events: Arc<SystemEvents>,
    /// Variables that commands of tools have besides the configured ones.
    pub command_variables: Vec<(String, String)>,
    /// Held by the commands of tools, so that the next gateway can wait for them to be gone.
    pub command_lock: Option<CommandLock>,
    /// Commands that wait for a person's word.
    pub approvals: Arc<Approvals>,
    /// The commands that run.
    pub command_sessions: Arc<CommandSessions>,
    /// Sandboxes for runs that the config wants held in one.
    pub sandboxes: Arc<Sandboxes>,
    /// The gateway's own secrets: no tool may print them.
    pub secrets: Vec<SecretString>,
    /// Services of the gateway, for chat commands; `None` if there is no gateway.
    pub surroundings: Option<Arc<dyn Surroundings>>,
}

/// The settings in force, for parts that work for as long as the gateway does.
#[derive(Debug, Clone)]
pub struct LiveSettings(watch::Receiver<Arc<Settings>>);

impl LiveSettings {
    /// Follows the settings of the gateway.
    pub fn new(settings: watch::Receiver<Arc<Settings>>) -> Self {
        Self(settings)
    }

    /// Returns the settings in force now.
    pub fn now(&self) -> Arc<Settings> {
        Arc::clone(&self.0.borrow())
    }
}

/// Reading of the configuration, in the shapes the crates below want it.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The whole.
    pub config: Arc<Config>,
    /// Settings of sessions.
    pub sessions: Arc<SessionSettings>,
    /// Settings of models.
    pub models: Arc<ModelSettings>,
    /// Settings for pruning old tool results; `None` prunes none.
    pub pruning: Option<Arc<PruneSettings>>,
    /// Settings for saving memory before a compaction; `None` if it is not saved.
    pub memory_flush: Option<Arc<MemoryFlush>>,
    /// Protections the config asks for and this version can't give.
    pub unmet: Arc<[Unmet]>,
    /// The hooks in use; see [`Settings::with_hooks`].
    pub hooks: Arc<HookSet>,
}

impl From<Arc<Config>> for Settings {
    fn from(config: Arc<Config>) -> Self {
        Self {
            sessions: Arc::new(SessionSettings::from(config.as_ref())),
            models: Arc::new(ModelSettings::from(config.as_ref())),
            pruning: PruneSettings::of(&config.agents.defaults.context_pruning).map(Arc::new),
            memory_flush: MemoryFlush::of(&config.agents.defaults.compaction).map(Arc::new),
            unmet: unmet_protections(&config).into(),
            hooks: Arc::default(),
            config,
        }
    }
}

impl Settings {
    /// Loads the hooks that the configuration asks for from disk.
    pub async fn with_hooks(self) -> Self {
        if !self.config.hooks.internal.is_on() {
            return self;
        }
        let config = Arc::clone(&self.config);
        match tokio::task::spawn_blocking(move || HookSet::load(&config)).await {
            Ok(hooks) => Self { hooks: Arc::new(hooks), ..self },
            Err(error) => {
                tracing::error!(%error, "hooks could not be loaded");
                self
            }
        }
    }
}
