//! The typed configuration, one struct a section.
//!
//! Built from a validated document with all defaults of the file applied; defaults that only matter
//! where a value is used stand in the accessor beside the field. Secrets are [`Secret`]s: they
//! never show in `Debug`.

mod agents;
mod approvals;
mod auth;
mod bindings;
mod channels;
mod diagnostics;
mod gateway;
mod heartbeat;
mod hooks;
mod logging;
mod memory;
mod messages;
mod models;
mod sandbox;
mod session;
mod skills;
mod streaming;
mod tools;
mod ui;
mod web;

use std::borrow::Cow;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use crate::{Environment, Paths, approvals_files, registry};

pub use crate::reply_to_mode::ReplyToMode;
pub use agents::{
    AgentDefaults, AgentEntry, AgentSubagents, Agents, AnnounceMode, BlockStreamingBreak, Compaction,
    CompactionMode, ContextPruning, ContextPruningMode, HardClear, Identity, MemoryFlush, ModelChoice,
    ModelEntry, OnOff, PrunedTools, ResolvedAgent, SoftTrim, SubagentDefaults, TimeFormat, TypingMode,
};
pub use approvals::{Approvals, ForwardMode, ForwardTarget, ForwardedApprovals};
pub use auth::{Auth, AuthCooldowns, AuthMode, AuthProfile};
pub use bindings::{Binding, BindingMatch};
pub use channels::{BeatVisibility, Channels};
pub use diagnostics::{CacheTrace, Diagnostics};
pub use gateway::{
    AuthKind, BindMode, ControlUi, GatewayAuth, GatewayMode, GatewayReload, GatewayRemote, GatewaySettings,
    GatewayTls, ReloadMode, Tailscale, TailscaleMode,
};
pub use heartbeat::{ActiveHours, Heartbeat};
pub use hooks::{HookCommand, HookEntry, HookModule, Hooks, HooksLoad, InternalHooks};
pub use logging::{ConsoleStyle, LogLevel, Logging, RedactSensitive};
pub use memory::{
    Citations, EmbeddingsFrom, MEMORY_PLUGIN, MemoryBackend, MemoryBatch, MemoryCache, MemoryChunking,
    MemoryExperiments, MemoryHybrid, MemoryLocal, MemoryOff, MemoryQmd, MemoryQmdLimits, MemoryQmdPath,
    MemoryQmdSearch, MemoryQmdSessions, MemoryQmdUpdate, MemoryQuery, MemoryRemote, MemoryScoring,
    MemorySearch, MemorySection, MemorySessionSync, MemorySource, MemoryStore, MemorySync, MemoryVectors,
    ResolvedBatch, ResolvedMemory,
};
pub use messages::{
    Commands, GroupChat, InboundSettings, MessageSettings, Queue, QueueDrop, QueueMode, UnknownQueueMode,
};
pub use models::{
    BedrockDiscovery, CustomModel, ModelApi, ModelCompat, ModelCost, Models, ModelsMode, Provider,
    ProviderAuth,
};
pub use sandbox::{
    Sandbox, SandboxBackend, SandboxDocker, SandboxMode, SandboxPrune, SandboxScope, SandboxWritable,
    SessionToolsVisibility, Ulimit, WorkspaceAccess,
};
pub use session::{
    AgentToAgent, MaintenanceMode, ResetByType, ResetMode, ResetRule, RuleMatch, SendPolicyRules, SendRule,
    Session, SessionMaintenance,
};
pub use skills::{NodeManager, SkillEntry, Skills, SkillsInstall, SkillsLoad};
pub use streaming::{
    BlockChunk, BlockCoalesce, BreakPreference, ChannelMarkdown, ChannelReplies, HumanDelay, HumanDelayMode,
    ReplyToModeByChatType, StreamMode,
};
pub use tools::{
    AgentTools, ApplyPatch, Broadcast, CrossContext, Elevated, Exec, ExecAsk, ExecGate, ExecHost,
    ExecSecurity, LoopGuard, Marker, TextOrNumber, ToolPolicy, ToolProfile, Tools, ToolsAgentToAgent,
    ToolsMessage, ToolsScope,
};
pub use ui::{Assistant, Ui};
pub use web::{Firecrawl, GrokSearch, PerplexitySearch, SearchProvider, WebFetch, WebSearch, WebTools};

pub(crate) use session::is_session_name;

/// Text that is never printed by accident.
pub type Secret = secrecy::SecretString;

/// The whole configuration, defaults applied.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Config {
    /// Agents and what they share.
    pub agents: Agents,
    /// Chats in which people are asked for approval.
    pub approvals: Approvals,
    /// Credential profiles and their order.
    pub auth: Auth,
    /// Bindings of agents to chats.
    pub bindings: Vec<Binding>,
    /// Chat platforms.
    pub channels: Channels,
    /// Chat commands.
    pub commands: Commands,
    /// Diagnostics, for finding faults.
    pub diagnostics: Diagnostics,
    /// The daemon's listener, authentication and web surfaces.
    pub gateway: GatewaySettings,
    /// Hooks: programs that are told what happens.
    pub hooks: Hooks,
    /// Log file and console.
    pub logging: Logging,
    /// Program that searches memory, and citations.
    pub memory: MemorySection,
    /// Queueing, prefixes, acknowledgements.
    pub messages: MessageSettings,
    /// Model providers beyond the built-in ones.
    pub models: Models,
    /// Session keys, resets and send policy.
    pub session: Session,
    /// Skills.
    pub skills: Skills,
    /// Tool policy and tool settings.
    pub tools: Tools,
    /// Look of the user interfaces.
    pub ui: Ui,
    /// The document this was read from, for sections that have no type yet.
    #[serde(skip)]
    document: Value,
    #[serde(skip)]
    paths: Paths,
    #[serde(skip)]
    environment: Environment,
    #[serde(skip)]
    included_files: Vec<PathBuf>,
}

impl Config {
    /// Reads the typed view of a validated document.
    pub(crate) fn from_document(
        document: &Value,
        paths: &Paths,
        environment: &Environment,
        included_files: &[PathBuf],
    ) -> Result<Self, serde_json::Error> {
        let mut config = Self::deserialize(checked_sections(document).as_ref())?;
        config.document = document.clone();
        config.paths = paths.clone();
        config.environment = environment.clone();
        config.included_files = included_files.to_vec();
        Ok(config)
    }

    /// The runtime document (includes, variables, migrations and defaults applied). Holds secrets: redact before it
    /// leaves the process.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Paths of this instance's files.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The environment with `.env` files and the config's own `env` applied.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The gateway's own directories: its state, credentials and logs, and the directories of
    /// agents. `OffLimits` of the crate of agents decides what tools reach there.
    pub fn private_directories(&self) -> Vec<PathBuf> {
        let own = [self.paths.state_dir(), self.paths.credentials_dir(), self.paths.log_dir()];
        let agents = self.agent_ids().into_iter().map(|agent| self.agent(&agent).agent_dir);
        own.into_iter().map(PathBuf::from).chain(agents).collect()
    }

    /// The directories in which hooks are found, whether they exist or not.
    pub fn hook_directories(&self) -> Vec<PathBuf> {
        let expanded = |dir: &str| self.environment.expand_path(dir);
        let extra = self.hooks.internal.load.extra_dirs.iter().map(|dir| expanded(dir));
        let bundled = self.environment.get_nonblank("OPENCLAW_BUNDLED_HOOKS_DIR").map(expanded);
        let workspace = self.agent(&self.default_agent()).workspace.join("hooks");
        extra.chain(bundled).chain([workspace, self.paths.state_dir().join("hooks")]).collect()
    }

    /// The files that the gateway runs by themselves, or does what they say with its owner's rights, whether they exist or not: what
    /// `hooks.internal` names, and `BOOT.md`.
    pub fn hook_files(&self) -> Vec<PathBuf> {
        let hooks = &self.hooks.internal;
        let boot = self.agent(&self.default_agent()).workspace.join("BOOT.md");
        let modules = hooks.handlers.iter().map(|given| self.environment.cwd().join(&given.module));
        // A word may be a script for a shell: each path in it counts.
        let is_gap = |c: char| c.is_whitespace() || "'\";|&()<>=".contains(c);
        let words =
            hooks.commands.iter().flat_map(|given| &given.command).flat_map(|word| word.split(is_gap));
        let words = words.filter(|word| word.contains('/'));
        let commands = words.map(|word| self.paths.state_dir().join(self.environment.expand_path(word)));
        std::iter::once(boot).chain(modules).chain(commands).collect()
    }

    /// The files that the configuration is read from: its own, those it includes, the `.env` files and the rules of approvals where
    /// OpenClaw has them whatever the state directory is, whether they exist or not.
    pub fn source_files(&self) -> Vec<PathBuf> {
        let own = self.paths.config_path().to_owned();
        let variables = [self.environment.cwd(), self.paths.state_dir()].map(|dir| dir.join(".env"));
        let [_, approvals] = approvals_files(self.paths.state_dir(), self.paths.home());
        let others = variables.into_iter().chain([approvals]);
        [own].into_iter().chain(self.included_files.iter().cloned()).chain(others).collect()
    }
}

/// Returns a document without the sections of platforms that nobody checked: they may hold anything,
/// and no type of ours has to fit them.
fn checked_sections(document: &Value) -> Cow<'_, Value> {
    let sections = document.get("channels").and_then(Value::as_object);
    if sections.is_none_or(|sections| sections.keys().all(|name| registry::is_section_checked(name))) {
        return Cow::Borrowed(document);
    }
    let mut document = document.clone();
    if let Some(sections) = document.get_mut("channels").and_then(Value::as_object_mut) {
        sections.retain(|name, _| registry::is_section_checked(name));
    }
    Cow::Owned(document)
}

/// Shows the settings without the document, which holds secrets.
impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("agents", &self.agents)
            .field("bindings", &self.bindings)
            .field("gateway", &self.gateway)
            .field("models", &self.models)
            .field("session", &self.session)
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}
