//! `agents.*` and the settings of one agent after its own and the shared ones are laid over each other.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use indexmap::IndexMap;
use openclaw_protocol::AgentId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    AgentTools, BlockChunk, BlockCoalesce, Config, Exec, GroupChat, Heartbeat, HumanDelay, MemoryOff,
    MemorySearch, Sandbox, ToolPolicy,
};

/// `agents`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Agents {
    /// Defaults of every agent.
    pub defaults: AgentDefaults,
    /// The configured agents; empty means one agent, `main`.
    pub list: Vec<AgentEntry>,
}

/// `agents.defaults`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentDefaults {
    /// Model and its fallbacks.
    pub model: Option<ModelChoice>,
    /// Model for images.
    pub image_model: Option<ModelChoice>,
    /// Known models: `provider/id` to alias and parameters, in the file's order. Not empty means: only these may be chosen.
    pub models: IndexMap<String, ModelEntry>,
    /// Workspace of the default agent.
    pub workspace: Option<String>,
    /// Root that the prompt names as repository.
    pub repo_root: Option<String>,
    /// Don't create or inject the workspace's start files.
    pub skip_bootstrap: bool,
    /// Length at which one injected file is cut, in UTF-16 units; default 20,000.
    pub bootstrap_max_chars: Option<u64>,
    /// IANA name.
    pub user_timezone: Option<String>,
    /// Clock shown to the model.
    pub time_format: TimeFormat,
    /// `utc`, `local`, `user` or an IANA name.
    pub envelope_timezone: Option<String>,
    /// Timestamp in message envelopes; default on.
    pub envelope_timestamp: Option<OnOff>,
    /// Elapsed time in message envelopes; default on.
    pub envelope_elapsed: Option<OnOff>,
    /// Context window to assume, in tokens.
    pub context_tokens: Option<u64>,
    /// Deadline of a run in seconds; see [`AgentDefaults::run_timeout`].
    pub timeout_seconds: Option<u64>,
    /// Model calls that ask for tools before a run is stopped (ours); absent is unlimited.
    pub max_tool_rounds: Option<NonZeroU32>,
    /// Largest file of an answer; absent leaves it to the platform.
    pub media_max_mb: Option<f64>,
    /// Runs at the same time on lane `main`; see [`AgentDefaults::max_concurrent`].
    pub max_concurrent: Option<u64>,
    /// Interval of typing signals in seconds; default 6.
    pub typing_interval_seconds: Option<u64>,
    /// Moment at which typing signals start.
    pub typing_mode: Option<TypingMode>,
    /// Thinking level when the session has none.
    pub thinking_default: Option<String>,
    /// Verbose level when the session has none.
    pub verbose_default: Option<String>,
    /// Elevated mode when the session has none.
    pub elevated_default: Option<String>,
    /// Streaming of replies in blocks; default off.
    pub block_streaming_default: Option<OnOff>,
    /// Event at which a block ends; default `text_end`.
    pub block_streaming_break: Option<BlockStreamingBreak>,
    /// Size of a block.
    pub block_streaming_chunk: BlockChunk,
    /// Coalescing of small blocks.
    pub block_streaming_coalesce: BlockCoalesce,
    /// Pauses between blocks.
    pub human_delay: HumanDelay,
    /// Periodic turns.
    pub heartbeat: Option<Heartbeat>,
    /// Sub-agents.
    pub subagents: SubagentDefaults,
    /// Sandbox in which tools run.
    pub sandbox: Sandbox,
    /// Dropping old tool results.
    pub context_pruning: ContextPruning,
    /// Summarising old turns.
    pub compaction: Compaction,
    /// Index of memory files.
    pub memory_search: MemorySearch,
}

impl AgentDefaults {
    pub(crate) const MAX_CONCURRENT: u64 = 4;

    /// Runs at the same time on lane `main`, one at least.
    pub fn max_concurrent(&self) -> usize {
        places(self.max_concurrent, Self::MAX_CONCURRENT)
    }

    /// Deadline of a run: ten minutes unless configured, and a second at least (spec `config.md` §5.2).
    pub fn run_timeout(&self) -> Duration {
        const DEFAULT_SECONDS: u64 = 600;
        Duration::from_secs(self.timeout_seconds.unwrap_or(DEFAULT_SECONDS).max(1))
    }
}

/// `agents.list[]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentEntry {
    /// Id as written; normalise with [`AgentId::normalize`].
    pub id: String,
    /// Marks the default agent.
    pub default: bool,
    /// Display name.
    pub name: Option<String>,
    /// Workspace directory.
    pub workspace: Option<String>,
    /// Directory of credentials and models.
    pub agent_dir: Option<String>,
    /// Model and fallbacks.
    pub model: Option<ModelChoice>,
    /// Skills this agent may use; absent means all.
    pub skills: Option<Vec<String>>,
    /// Periodic turns.
    pub heartbeat: Option<Heartbeat>,
    /// Identity: name, looks and the like.
    pub identity: Identity,
    /// Behaviour in groups.
    pub group_chat: GroupChat,
    /// Pauses between blocks.
    pub human_delay: HumanDelay,
    /// Sub-agents.
    pub subagents: AgentSubagents,
    /// Sandbox in which its tools run.
    pub sandbox: Sandbox,
    /// Tool policy.
    pub tools: AgentTools,
    /// Index of its memory files.
    pub memory_search: MemorySearch,
}

/// A model with fallbacks. In the file a plain string is the same as `{primary}`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelChoice {
    /// `provider/id` or an alias.
    pub primary: Option<String>,
    /// Tried in order when the primary fails; `None` where the file names none.
    pub fallbacks: Option<Vec<String>>,
}

impl<'de> Deserialize<'de> for ModelChoice {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw {
            Text(String),
            Full { primary: Option<String>, fallbacks: Option<Vec<String>> },
        }
        Ok(match Raw::deserialize(deserializer)? {
            Raw::Text(primary) => Self { primary: Some(primary), fallbacks: None },
            Raw::Full { primary, fallbacks } => Self { primary, fallbacks },
        })
    }
}

/// `agents.defaults.models.<provider/id>`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ModelEntry {
    /// Short name.
    pub alias: Option<String>,
    /// Parameters for the provider, such as `temperature` or `cacheRetention`.
    pub params: serde_json::Map<String, Value>,
    /// `false` asks the provider for whole answers.
    pub streaming: Option<bool>,
}

/// `identity`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    /// Name the agent goes by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Nature of the agent, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
    /// Emoji that stands for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emoji: Option<String>,
    /// Workspace-relative path, http(s) URL or data URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avatar: Option<String>,
}

/// `agents.defaults.subagents`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubagentDefaults {
    /// Runs at the same time on lane `subagent`; see [`SubagentDefaults::max_concurrent`].
    pub max_concurrent: Option<u64>,
    /// Age at which a finished child is archived, in minutes; default 60.
    pub archive_after_minutes: Option<u64>,
    /// Model of children.
    pub model: Option<ModelChoice>,
    /// Thinking level of children.
    pub thinking: Option<String>,
    /// Children of one agent that may be at work or wait at the same time; unlimited unless set. Ours.
    pub max_children_per_agent: Option<u64>,
    /// Form in which the end of a child is announced. Ours.
    pub announce_mode: Option<AnnounceMode>,
}

/// `agents.defaults.subagents.announceMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnnounceMode {
    /// The child words it in a turn of its own, and that is posted to the requester's chat.
    #[default]
    Step,
    /// The requester's agent is told, and tells it in its own words.
    Summary,
    /// The child's result is posted as it is.
    Raw,
}

impl SubagentDefaults {
    pub(crate) const MAX_CONCURRENT: u64 = 8;
    /// Age at which a child is archived unless configured, in minutes.
    const ARCHIVE_AFTER_MINUTES: u64 = 60;

    /// Age at which a child that has ended is archived; `None` never.
    pub fn archive_after(&self) -> Option<Duration> {
        let minutes = self.archive_after_minutes.unwrap_or(Self::ARCHIVE_AFTER_MINUTES);
        (minutes > 0).then(|| Duration::from_secs(minutes.saturating_mul(60)))
    }

    /// Runs at the same time on lane `subagent`, one at least.
    pub fn max_concurrent(&self) -> usize {
        places(self.max_concurrent, Self::MAX_CONCURRENT)
    }
}

/// `agents.list[].subagents`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentSubagents {
    /// Other agents it may spawn; `*` is any.
    pub allow_agents: Vec<String>,
    /// Model of children.
    pub model: Option<ModelChoice>,
    /// Thinking level of children.
    pub thinking: Option<String>,
}

/// `agents.defaults.contextPruning`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContextPruning {
    /// Mode of dropping old tool results; default off.
    pub mode: Option<ContextPruningMode>,
    /// Age of the provider's cache, as a duration; default 5m.
    pub ttl: Option<String>,
    /// Answers whose results are never pruned, counted from the last; default 3.
    pub keep_last_assistants: Option<f64>,
    /// Share of the window at which trimming begins; default 0.3.
    pub soft_trim_ratio: Option<f64>,
    /// Share of the window at which clearing begins; default 0.5.
    pub hard_clear_ratio: Option<f64>,
    /// Tool text below this length is left alone; default 50,000.
    pub min_prunable_tool_chars: Option<f64>,
    /// Trimming of long results.
    pub soft_trim: SoftTrim,
    /// Clearing of old results.
    pub hard_clear: HardClear,
    /// The tools whose results may be pruned.
    pub tools: PrunedTools,
}

/// `contextPruning.softTrim`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SoftTrim {
    /// Longer results are trimmed; default 4,000 characters.
    pub max_chars: Option<f64>,
    /// Characters kept of the beginning; default 1,500.
    pub head_chars: Option<f64>,
    /// Characters kept of the end; default 1,500.
    pub tail_chars: Option<f64>,
}

/// `contextPruning.hardClear`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HardClear {
    /// Default true.
    pub enabled: Option<bool>,
    /// Placeholder for a cleared result.
    pub placeholder: Option<String>,
}

/// `contextPruning.tools`. Patterns with `*`, in any case.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PrunedTools {
    /// The only ones; empty allows all.
    pub allow: Vec<String>,
    /// Never these.
    pub deny: Vec<String>,
}

/// `contextPruning.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum ContextPruningMode {
    /// Nothing is dropped.
    #[serde(rename = "off")]
    Off,
    /// Dropped when the provider's cache has expired anyway. Older names of modes mean this one.
    #[serde(rename = "cache-ttl", alias = "adaptive", alias = "aggressive")]
    CacheTtl,
}

/// `agents.defaults.compaction`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Compaction {
    /// Mode of summarising history; default `safeguard`.
    pub mode: Option<CompactionMode>,
    /// Tokens always kept free; default 20,000.
    pub reserve_tokens_floor: Option<u64>,
    /// Share of the window that kept history may take; default 0.5.
    pub max_history_share: Option<f64>,
    /// Saving to memory before summarising.
    pub memory_flush: MemoryFlush,
}

/// `compaction.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompactionMode {
    /// Single summary.
    Default,
    /// Summaries in parts, so that the summary request always fits.
    Safeguard,
}

/// `compaction.memoryFlush`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryFlush {
    /// Default true.
    pub enabled: Option<bool>,
    /// Tokens before the compaction threshold at which it happens; default 4,000.
    pub soft_threshold_tokens: Option<u64>,
    /// Prompt for the agent.
    pub prompt: Option<String>,
    /// Added to the system prompt of that turn.
    pub system_prompt: Option<String>,
}

/// `on` or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnOff {
    /// Switched on.
    On,
    /// Switched off.
    Off,
}

/// `timeFormat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum TimeFormat {
    /// Clock as the system shows it.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// 12 hours.
    #[serde(rename = "12")]
    Twelve,
    /// 24 hours.
    #[serde(rename = "24")]
    TwentyFour,
}

/// `typingMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TypingMode {
    /// Never: no signals.
    Never,
    /// Signals from the moment a run starts.
    Instant,
    /// Signals from the first thought.
    Thinking,
    /// Signals from the first text.
    Message,
}

/// `blockStreamingBreak`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockStreamingBreak {
    /// Block ends after each text block.
    #[default]
    TextEnd,
    /// Block ends after the whole message.
    MessageEnd,
}

/// Settings that apply to one agent.
#[derive(Debug, Clone)]
pub struct ResolvedAgent {
    /// The agent.
    pub id: AgentId,
    /// True if it answers what no binding claims.
    pub is_default: bool,
    /// Display name.
    pub name: Option<String>,
    /// Identity: name, looks and the like.
    pub identity: Identity,
    /// Absolute workspace directory.
    pub workspace: PathBuf,
    /// Absolute directory of credentials and models.
    pub agent_dir: PathBuf,
    /// Absolute directory of session store and transcripts.
    pub sessions_dir: PathBuf,
    /// Primary model, `provider/id` or an alias; `None` where nothing is configured.
    pub model_primary: Option<String>,
    /// Fallbacks in order.
    pub model_fallbacks: Vec<String>,
    /// Verbose level when the session has none.
    pub verbose_default: Option<String>,
    /// Deadline of a run.
    pub run_timeout: Duration,
    /// Length at which one injected file is cut, in UTF-16 units.
    pub bootstrap_max_chars: u64,
    /// Configured IANA time zone.
    pub user_timezone: Option<String>,
    /// Don't create or inject the workspace's start files.
    pub skip_bootstrap: bool,
    /// Root that the prompt names as repository.
    pub repo_root: Option<String>,
    /// Tool policy of the agent, applied after the shared one in [`super::Tools`].
    pub tool_policy: ToolPolicy,
    /// Tool policies of the agent by provider or `provider/model`.
    pub tool_policy_by_provider: BTreeMap<String, ToolPolicy>,
    /// Settings of the `exec` tool: its own laid over the shared ones.
    pub exec: Exec,
    /// Reason why it has no memory; `None` if it has one.
    pub memory_off: Option<MemoryOff>,
}

/// Length at which an injected file is cut unless configured (spec `agent-runtime.md`, bootstrap files).
const DEFAULT_BOOTSTRAP_MAX_CHARS: u64 = 20_000;

impl Config {
    /// The agent that answers what no binding claims: the first entry marked `default`, else the first entry, else `main`.
    pub fn default_agent(&self) -> AgentId {
        let list = &self.agents.list;
        list.iter()
            .find(|entry| entry.default)
            .or_else(|| list.first())
            .map_or_else(AgentId::default, |entry| AgentId::normalize(&entry.id))
    }

    /// All configured agents, the default agent first and each once; `main` alone without a list.
    pub fn agent_ids(&self) -> Vec<AgentId> {
        let mut ids = vec![self.default_agent()];
        for entry in &self.agents.list {
            let id = AgentId::normalize(&entry.id);
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids
    }

    /// True if the agent is configured; with an empty list only `main` is.
    pub fn has_agent(&self, id: &AgentId) -> bool {
        self.agent_ids().contains(id)
    }

    /// The agent's own entry.
    pub fn agent_entry(&self, id: &AgentId) -> Option<&AgentEntry> {
        self.agents.list.iter().find(|entry| AgentId::normalize(&entry.id) == *id)
    }

    /// Settings that apply to one agent. An agent without an entry gets the shared settings.
    pub fn agent(&self, id: &AgentId) -> ResolvedAgent {
        let entry = self.agent_entry(id).cloned().unwrap_or_default();
        let defaults = &self.agents.defaults;
        let is_default = *id == self.default_agent();
        let shared = defaults.model.clone().unwrap_or_default();
        let own = entry.model.clone().unwrap_or_default();
        ResolvedAgent {
            workspace: self.workspace_of(&entry, id),
            agent_dir: nonblank(entry.agent_dir.as_deref())
                .map_or_else(|| self.paths().agent_dir(id), |dir| self.environment().expand_path(dir)),
            sessions_dir: self.paths().sessions_dir(id),
            model_primary: nonblank(own.primary.as_deref())
                .or_else(|| nonblank(shared.primary.as_deref()))
                .map(str::to_owned),
            model_fallbacks: own.fallbacks.or(shared.fallbacks).unwrap_or_default(),
            verbose_default: defaults.verbose_default.clone(),
            run_timeout: defaults.run_timeout(),
            bootstrap_max_chars: defaults.bootstrap_max_chars.unwrap_or(DEFAULT_BOOTSTRAP_MAX_CHARS),
            user_timezone: defaults.user_timezone.clone(),
            skip_bootstrap: defaults.skip_bootstrap,
            repo_root: defaults.repo_root.clone(),
            exec: entry.tools.exec.over(&self.tools.exec),
            memory_off: self.memory_off_by(entry.memory_search.enabled),
            tool_policy: entry.tools.policy,
            tool_policy_by_provider: entry.tools.by_provider,
            name: entry.name,
            identity: entry.identity,
            id: id.clone(),
            is_default,
        }
    }

    /// Behaviour of an agent in groups.
    pub fn group_chat_of(&self, id: &AgentId) -> GroupChat {
        self.agent_entry(id).map(|entry| entry.group_chat.clone()).unwrap_or_default()
    }

    /// An agent's own pauses between blocks.
    pub fn human_delay_of(&self, id: &AgentId) -> HumanDelay {
        self.agent_entry(id).map(|entry| entry.human_delay).unwrap_or_default()
    }

    /// The session store file of an agent: `session.store` with `{agentId}` replaced, else `sessions.json` in its
    /// sessions directory.
    pub fn session_store(&self, id: &AgentId) -> PathBuf {
        nonblank(self.session.store.as_deref()).map_or_else(
            || self.paths().sessions_dir(id).join("sessions.json"),
            |template| self.environment().expand_path(&template.replace("{agentId}", id.as_str())),
        )
    }

    fn workspace_of(&self, entry: &AgentEntry, id: &AgentId) -> PathBuf {
        let is_default = *id == self.default_agent();
        let shared = nonblank(self.agents.defaults.workspace.as_deref()).filter(|_| is_default);
        nonblank(entry.workspace.as_deref())
            .or(shared)
            .map_or_else(|| self.paths().workspace(id, is_default), |dir| self.environment().expand_path(dir))
    }
}

fn places(configured: Option<u64>, default: u64) -> usize {
    usize::try_from(configured.unwrap_or(default)).unwrap_or(usize::MAX).max(1)
}

fn nonblank(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}
