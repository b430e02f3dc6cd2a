//! `bindings[]`: which agent answers where.

use std::fmt;

use openclaw_protocol::Peer;
use serde::Deserialize;

/// Binding of an agent to messages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    /// The agent, as written.
    pub agent_id: String,
    /// Messages that it claims.
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
    pub account_id: Option<String>,
    /// Chat to match.
    pub peer: Option<Peer>,
    /// Discord server.
    pub guild_id: Option<String>,
    /// Slack or Teams team.
    pub team_id: Option<String>,
}

/// `telegram accountId=default peer=group:1`
impl fmt::Display for BindingMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.channel)?;
        let mut part = |name: &str, text: &Option<String>| match text {
            Some(text) => write!(f, " {name}={text}"),
            None => Ok(()),
        };
        part("accountId", &self.account_id)?;
        part("peer", &self.peer.as_ref().map(|peer| format!("{}:{}", peer.kind.as_str(), peer.id)))?;
        part("guild", &self.guild_id)?;
        part("team", &self.team_id)
    }
}
