//! The typed configuration, one struct a section.
//!
//! It is built from a validated document with all defaults of the file applied; defaults that only matter where a value is
//! used stand in the accessor beside the field. Secrets are [`Secret`]s: they never show in `Debug`.

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
mod messages;
mod models;
mod sandbox;
mod session;
mod skills;
mod streaming;
mod tools;
mod ui;
mod web;

use serde::Deserialize;
use serde_json::Value;

use crate::{Environment, Paths};

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
    AuthKind, BindMode, ControlUi, Gateway, GatewayAuth, GatewayHttp, GatewayMode, GatewayReload,
    GatewayRemote, GatewayTls, HttpEndpoint, HttpEndpoints, ReloadMode, RemoteTransport, Tailscale,
    TailscaleMode,
};
pub use heartbeat::{ActiveHours, Heartbeat};
pub use hooks::{HookCommand, HookEntry, HookModule, Hooks, HooksLoad, InternalHooks};
pub use logging::{ConsoleStyle, LogLevel, Logging, RedactSensitive};
pub use messages::{Commands, GroupChat, Inbound, Messages, Queue, QueueDrop, QueueMode, UnknownQueueMode};
pub use models::{
    BedrockDiscovery, CustomModel, ModelApi, ModelCompat, ModelCost, Models, ModelsMode, Provider,
    ProviderAuth,
};
pub use sandbox::{
    Sandbox, SandboxBackend, SandboxDocker, SandboxMode, SandboxPrune, SandboxScope, SessionToolsVisibility,
    Ulimit, WorkspaceAccess,
};
pub use session::{
    AgentToAgent, MaintenanceMode, ResetByType, ResetMode, ResetRule, RuleMatch, SendPolicyRules, SendRule,
    Session, SessionMaintenance,
};
pub use skills::{NodeManager, SkillEntry, Skills, SkillsInstall, SkillsLoad};
pub use streaming::{
    BlockChunk, BlockCoalesce, BreakPreference, ChannelMarkdown, ChannelReplies, HumanDelay, HumanDelayMode,
    ReplyToMode, ReplyToModeByChatType, StreamMode,
};
pub use tools::{
    AgentTools, ApplyPatch, Broadcast, CrossContext, Elevated, Exec, ExecAsk, ExecGate, ExecHost,
    ExecSecurity, LoopGuard, Marker, TextOrNumber, ToolPolicy, ToolProfile, Tools, ToolsAgentToAgent,
    ToolsMessage, ToolsScope,
};
pub use ui::{Assistant, Discovery, MdnsMode, MdnsSettings, Ui};
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
    /// Where people are asked in chats.
    pub approvals: Approvals,
    /// Credential profiles and their order.
    pub auth: Auth,
    /// Which agent answers where.
    pub bindings: Vec<Binding>,
    /// Chat platforms.
    pub channels: Channels,
    /// Chat commands.
    pub commands: Commands,
    /// What is written down for whoever looks for a fault.
    pub diagnostics: Diagnostics,
    /// Announcing the gateway on the network.
    pub discovery: Discovery,
    /// The daemon's listener, authentication and web surfaces.
    pub gateway: Gateway,
    /// Programs that are told what happens.
    pub hooks: Hooks,
    /// Log file and console.
    pub logging: Logging,
    /// Queueing, prefixes, acknowledgements.
    pub messages: Messages,
    /// Model providers beyond the built-in ones.
    pub models: Models,
    /// Session keys, resets and send policy.
    pub session: Session,
    /// Skills.
    pub skills: Skills,
    /// Tool policy and tool settings.
    pub tools: Tools,
    /// How the user interfaces look.
    pub ui: Ui,
    /// The document this was read from, for sections that have no type yet.
    #[serde(skip)]
    document: Value,
    #[serde(skip)]
    paths: Paths,
    #[serde(skip)]
    environment: Environment,
}

impl Config {
    /// Reads the typed view of a validated document.
    pub(crate) fn from_document(
        document: &Value,
        paths: &Paths,
        environment: &Environment,
    ) -> Result<Self, serde_json::Error> {
        let mut config = Self::deserialize(document)?;
        config.document = document.clone();
        config.paths = paths.clone();
        config.environment = environment.clone();
        Ok(config)
    }

    /// The runtime document (includes, variables, migrations and defaults applied). Holds secrets: redact before it
    /// leaves the process.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Where this instance's files are.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The environment with `.env` files and the config's own `env` applied.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }
}

/// Without the document, which holds secrets.
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
