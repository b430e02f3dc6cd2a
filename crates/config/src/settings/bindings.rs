//! `bindings[]`: which agent answers where.

use serde::Deserialize;

/// One binding.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    /// The agent, as written.
    pub agent_id: String,
    /// What it claims.
    #[serde(rename = "match")]
    pub matches: BindingMatch,
}

/// `bindings[].match`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingMatch {
    /// Channel id.
    pub channel: String,
    /// Account; `*` is any, absent is the default account.
    #[serde(default)]
    pub account_id: Option<String>,
    /// One chat.
    #[serde(default)]
    pub peer: Option<BindingPeer>,
    /// Discord server.
    #[serde(default)]
    pub guild_id: Option<String>,
    /// Slack or Teams team.
    #[serde(default)]
    pub team_id: Option<String>,
}

/// `bindings[].match.peer`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BindingPeer {
    /// Kind of chat.
    pub kind: PeerKind,
    /// Its id at the platform.
    pub id: String,
}

/// `bindings[].match.peer.kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerKind {
    /// One person; `dm` reads the same.
    #[serde(alias = "dm")]
    Direct,
    /// A group.
    Group,
    /// A channel.
    Channel,
}
