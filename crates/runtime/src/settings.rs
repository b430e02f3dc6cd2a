//! The settings in force, in the shapes that parts of the gateway want.

use std::sync::Arc;

use openclaw_agent::compaction::memory_flush::MemoryFlush;
use openclaw_agent::hooks::HookSet;
use openclaw_agent::pruning::PruneSettings;
use openclaw_config::{Config, Unmet, unmet_protections};
use openclaw_models::ModelSettings;
use openclaw_sessions::SessionSettings;
use tokio::sync::watch;

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
