//! What a dispatcher is started with.

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::prompt::HostFacts;
use openclaw_config::{Config, Unmet, unmet_protections};
use openclaw_models::{ModelSettings, Models};
use openclaw_sessions::transcript::Transcripts;
use openclaw_sessions::{SessionSettings, SessionStore};
use openclaw_tools::CommandLock;
use secrecy::SecretString;
use tokio::sync::watch;

use crate::system_events::SystemEvents;

/// What dispatch stands on.
pub struct Deps {
    /// The state directory; `gateway.sqlite` lies in it.
    pub state_dir: PathBuf,
    /// The settings in force. Runs take the newest when they begin.
    pub settings: watch::Receiver<Arc<Settings>>,
    /// The rows of all sessions.
    pub store: Arc<dyn SessionStore>,
    /// Where transcripts are.
    pub transcripts: Arc<dyn Transcripts>,
    /// Where models come from.
    pub models: Models,
    /// What the prompt says about this machine.
    pub host: HostFacts,
    /// What agents are told besides messages.
    pub system_events: Arc<SystemEvents>,
    /// Variables that commands of tools have besides the configured ones.
    pub command_variables: Vec<(String, String)>,
    /// Held by the commands of tools, so that the next gateway can wait for them to be gone.
    pub command_lock: Option<CommandLock>,
    /// The gateway's own secrets: no tool may print them.
    pub secrets: Vec<SecretString>,
}

/// One reading of the configuration, in the shapes the crates below want it.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The whole.
    pub config: Arc<Config>,
    /// What concerns sessions.
    pub sessions: Arc<SessionSettings>,
    /// What concerns models.
    pub models: Arc<ModelSettings>,
    /// Protections the config asks for and this version can't give.
    pub unmet: Arc<[Unmet]>,
}

impl From<Arc<Config>> for Settings {
    fn from(config: Arc<Config>) -> Self {
        Self {
            sessions: Arc::new(SessionSettings::from(config.as_ref())),
            models: Arc::new(ModelSettings::from(config.as_ref())),
            unmet: unmet_protections(&config).into(),
            config,
        }
    }
}
