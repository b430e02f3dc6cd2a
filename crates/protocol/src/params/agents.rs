//! `agents.list` (spec `gateway-protocol.md` §6.6).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

super::call! {
    /// The agents, default first.
    AgentsList: "agents.list" as Strict, super::Nothing => AgentsListResult
}

/// Result of `agents.list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentsListResult {
    /// The default agent.
    pub default_id: String,
    /// The configured name of the main session.
    pub main_key: String,
    /// `per-sender` or `global`.
    pub scope: String,
    /// Configured order, default first.
    pub agents: Vec<AgentRow>,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentRow {
    /// Its id.
    pub id: String,
    /// Its configured name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its configured identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<IdentityRow>,
}

/// Identity in an [`AgentRow`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityRow {
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
    /// Its emoji.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emoji: Option<String>,
    /// As configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avatar: Option<String>,
    /// A URL a page can show; a data URL for files of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avatar_url: Option<String>,
}
