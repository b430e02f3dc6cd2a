//! What this crate needs of the configuration, as plain values. The composition root fills it from `openclaw.json`.

use std::collections::BTreeMap;

use openclaw_protocol::AgentId;
use serde::{Deserialize, Serialize};

use crate::key::{DmScope, IdentityLinks, KeyRules, Peer};
use crate::reset::ResetSettings;
use crate::send_policy::SendPolicyRules;

/// `session.scope`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// One bucket a sender or group.
    #[default]
    PerSender,
    /// One bucket for everybody.
    Global,
}

/// The `session` section, the agents and the bindings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionSettings {
    /// `session.scope`
    pub scope: Scope,
    /// `session.mainKey`; blank is `main`.
    pub main_key: String,
    /// `session.dmScope`
    pub dm_scope: DmScope,
    /// `session.identityLinks`
    pub identity_links: IdentityLinks,
    /// `session.store`
    pub store: Option<String>,
    /// `session.resetTriggers`; empty takes `/new` and `/reset`.
    pub reset_triggers: Vec<String>,
    /// `session.reset*` and `session.idleMinutes`
    pub reset: ResetSettings,
    /// `session.sendPolicy`
    pub send_policy: Option<SendPolicyRules>,
    /// `agents.list`, ids and default marks.
    pub agents: Vec<AgentRef>,
    /// `bindings`, in the order of the file.
    pub bindings: Vec<Binding>,
}

/// One entry of `agents.list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRef {
    /// Id, canonical.
    pub id: AgentId,
    /// `default: true`
    pub default: bool,
}

/// One entry of `bindings`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    /// As configured; normalised when used.
    pub agent_id: String,
    /// What must hold of the message.
    #[serde(rename = "match")]
    pub matches: BindingMatch,
}

/// `bindings[].match`: every field given must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingMatch {
    /// Channel id.
    #[serde(default)]
    pub channel: String,
    /// Blank is the account `default`, `*` any account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// A person, group or room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
    /// Discord server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guild_id: Option<String>,
    /// Slack or Teams workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team_id: Option<String>,
}

impl SessionSettings {
    /// The agent that answers when nothing else is said: first with `default: true`, else the first, else `main`
    /// (spec `sessions.md` §2.1).
    pub fn default_agent(&self) -> AgentId {
        let marked = self.agents.iter().find(|agent| agent.default);
        marked.or(self.agents.first()).map(|agent| agent.id.clone()).unwrap_or_default()
    }

    /// The rules for reading keys.
    pub fn key_rules(&self) -> KeyRules {
        KeyRules::new(self.default_agent(), &self.main_key, self.scope)
    }

    /// The effective reset triggers.
    pub fn triggers(&self) -> Vec<&str> {
        let given: Vec<&str> =
            self.reset_triggers.iter().map(|t| t.trim()).filter(|t| !t.is_empty()).collect();
        if given.is_empty() { vec!["/new", "/reset"] } else { given }
    }
}

/// Sections keyed by a name, such as `session.resetByChannel`.
pub(crate) type ByName<T> = BTreeMap<String, T>;
