//! `session.*`.

mod maintenance;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use maintenance::{MaintenanceMode, SessionMaintenance};

/// `session`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Session {
    /// One session a sender, or one for all.
    pub scope: SessionScope,
    /// How direct chats share sessions.
    pub dm_scope: DmScope,
    /// Canonical name to the `channel:id`s that are the same person.
    pub identity_links: BTreeMap<String, Vec<String>>,
    /// Messages that start a new session; default `/new` and `/reset`.
    pub reset_triggers: Option<Vec<String>>,
    /// Older form of `reset.idleMinutes`.
    pub idle_minutes: Option<u64>,
    /// When a session starts afresh.
    pub reset: Option<ResetPolicy>,
    /// The same by kind of chat.
    pub reset_by_type: ResetByType,
    /// The same by channel.
    pub reset_by_channel: BTreeMap<String, ResetPolicy>,
    /// Path of the store; `{agentId}` is replaced. See [`crate::Config::session_store`].
    pub store: Option<String>,
    /// Always `main` (spec `config.md` §5.3).
    pub main_key: Option<String>,
    /// Where replies may go.
    pub send_policy: Option<SendPolicy>,
    /// Talks between agents.
    pub agent_to_agent: AgentToAgent,
    /// Pruning and archiving; ours, absent nothing is pruned.
    pub maintenance: Option<SessionMaintenance>,
}

impl Session {
    /// The key of the main session. Other values in the file are warned about and not used.
    pub fn main_key(&self) -> &'static str {
        "main"
    }

    /// Messages that start a new session.
    pub fn reset_triggers(&self) -> Vec<String> {
        self.reset_triggers.clone().unwrap_or_else(|| vec!["/new".to_owned(), "/reset".to_owned()])
    }
}

/// `session.scope`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionScope {
    /// One session a sender or group.
    #[default]
    PerSender,
    /// One for everything.
    Global,
}

/// `session.dmScope`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DmScope {
    /// All direct chats share the main session.
    #[default]
    Main,
    /// One a person.
    PerPeer,
    /// One a person and channel.
    PerChannelPeer,
    /// One a person, channel and account.
    PerAccountChannelPeer,
}

/// `session.reset` and its variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResetPolicy {
    /// What triggers it.
    pub mode: Option<ResetMode>,
    /// Local hour of the daily reset, 0 to 23; default 4.
    pub at_hour: Option<u8>,
    /// Minutes without a message.
    pub idle_minutes: Option<u64>,
}

/// `session.reset.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResetMode {
    /// Every day at an hour.
    Daily,
    /// After a time without messages.
    Idle,
}

/// `session.resetByType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct ResetByType {
    /// Direct chats; see [`ResetByType::direct`].
    direct: Option<ResetPolicy>,
    /// Older name of `direct`.
    dm: Option<ResetPolicy>,
    /// Groups and channels.
    pub group: Option<ResetPolicy>,
    /// Threads and topics.
    pub thread: Option<ResetPolicy>,
}

impl ResetByType {
    /// Direct chats; `direct` counts before its older name `dm`.
    pub fn direct(&self) -> Option<ResetPolicy> {
        self.direct.or(self.dm)
    }
}

/// `session.sendPolicy`: rules; one that denies and fits outweighs all that allow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct SendPolicy {
    /// When no rule matches; absent is allow.
    pub default: Option<RuleAction>,
    /// The rules.
    pub rules: Vec<SendRule>,
}

/// One rule of a [`SendPolicy`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SendRule {
    /// What it decides.
    pub action: RuleAction,
    /// When it applies; absent is always.
    #[serde(default, rename = "match")]
    pub matches: RuleMatch,
}

/// The conditions of a rule; all given ones must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RuleMatch {
    /// Channel id.
    pub channel: Option<String>,
    /// Kind of chat.
    pub chat_type: Option<ChatType>,
    /// Prefix of the session key.
    pub key_prefix: Option<String>,
}

/// `allow` or `deny`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleAction {
    /// Let it through.
    Allow,
    /// Refuse it.
    Deny,
}

/// Kind of chat in rules; `dm` reads as `direct`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatType {
    /// One person.
    #[serde(alias = "dm")]
    Direct,
    /// A group.
    Group,
    /// A channel of a workspace or server.
    Channel,
}

/// `session.agentToAgent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentToAgent {
    /// Replies back and forth, 0 to 5; default 5.
    pub max_ping_pong_turns: Option<u8>,
}
