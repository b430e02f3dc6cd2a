//! Dependencies and settings that a dispatcher is started with.

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::prompt::HostFacts;
use openclaw_agent::skills::SkillBook;
use openclaw_channels::Platforms;
use openclaw_models::Models;
use openclaw_sessions::SessionStore;
use openclaw_sessions::transcript::Transcripts;
use openclaw_tools::approvals::Approvals;
use openclaw_tools::sandbox::Sandboxes;
use openclaw_tools::{CommandLock, CommandSessions};
use secrecy::SecretString;
use tokio::sync::watch;

use crate::memory::Memories;
pub use crate::settings::{LiveSettings, Settings};
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
