//! Building the key of an inbound message's peer (spec `sessions.md` §1.3).

use openclaw_protocol::AgentId;
use serde::{Deserialize, Serialize};

use super::{SessionKey, normalize_account_id};

/// Kinds of conversation partners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerKind {
    /// One person. `dm` in configuration and keys means the same.
    #[serde(alias = "dm")]
    Direct,
    /// A group.
    Group,
    /// A room of a server or workspace.
    Channel,
}

impl PeerKind {
    /// The name in keys; direct chats are created as `dm` (decision 1).
    pub fn segment(self) -> &'static str {
        match self {
            Self::Direct => "dm",
            Self::Group => "group",
            Self::Channel => "channel",
        }
    }
}

/// Who a message came from, or where it was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Kind.
    pub kind: PeerKind,
    /// The platform's id; for a Telegram topic `<chatId>:topic:<n>`.
    pub id: String,
}

impl Peer {
    /// A peer.
    pub fn new(kind: PeerKind, id: impl Into<String>) -> Self {
        Self { kind, id: id.into() }
    }
}

/// How direct chats are told apart (`session.dmScope`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DmScope {
    /// All direct chats share the main bucket.
    #[default]
    Main,
    /// One bucket a person.
    PerPeer,
    /// One bucket a channel and person.
    PerChannelPeer,
    /// One bucket an account, channel and person.
    PerAccountChannelPeer,
}

/// `session.identityLinks`: canonical names with the platform ids behind them, in the order of the file.
pub type IdentityLinks = Vec<(String, Vec<String>)>;

/// Everything a peer's key is made of.
#[derive(Debug, Clone, Copy)]
pub struct PeerKey<'a> {
    /// The agent that answers.
    pub agent: &'a AgentId,
    /// Name of the main bucket.
    pub main_key: &'a str,
    /// Channel id.
    pub channel: &'a str,
    /// Account on that channel.
    pub account: Option<&'a str>,
    /// The peer.
    pub peer: &'a Peer,
    /// How direct chats are told apart.
    pub dm_scope: DmScope,
    /// People known under several ids.
    pub links: &'a [(String, Vec<String>)],
}

impl PeerKey<'_> {
    /// The session key.
    pub fn build(&self) -> SessionKey {
        let channel = normalize_channel(self.channel);
        match self.peer.kind {
            PeerKind::Direct => self.direct(&channel),
            PeerKind::Group | PeerKind::Channel => {
                let id = tidy_id(&self.peer.id);
                let id = if id.is_empty() { "unknown".to_owned() } else { id };
                SessionKey::build(self.agent, &format!("{channel}:{}:{id}", self.peer.kind.segment()))
            }
        }
    }

    fn direct(&self, channel: &str) -> SessionKey {
        let raw = self.peer.id.trim();
        let linked = match self.dm_scope {
            DmScope::Main => None,
            DmScope::PerPeer | DmScope::PerChannelPeer | DmScope::PerAccountChannelPeer => {
                linked_name(self.links, channel, raw)
            }
        };
        let peer = tidy_id(linked.unwrap_or(raw));
        if peer.is_empty() {
            return SessionKey::main(self.agent, self.main_key);
        }
        match self.dm_scope {
            DmScope::Main => SessionKey::main(self.agent, self.main_key),
            DmScope::PerPeer => SessionKey::build(self.agent, &format!("dm:{peer}")),
            DmScope::PerChannelPeer => SessionKey::build(self.agent, &format!("{channel}:dm:{peer}")),
            DmScope::PerAccountChannelPeer => {
                let account = normalize_account_id(self.account.unwrap_or_default());
                SessionKey::build(self.agent, &format!("{channel}:{account}:dm:{peer}"))
            }
        }
    }
}

/// A channel id as a key segment; blank is `unknown`.
pub fn normalize_channel(channel: &str) -> String {
    let lower = channel.trim().to_lowercase();
    if lower.is_empty() { "unknown".to_owned() } else { lower }
}

/// Trimmed, lower case, empty `:` parts dropped: what reading the key back would make of it.
fn tidy_id(id: &str) -> String {
    let lower = id.trim().to_lowercase();
    let parts: Vec<&str> = lower.split(':').filter(|part| !part.is_empty()).collect();
    parts.join(":")
}

/// The first canonical name that has the peer among its ids.
fn linked_name<'a>(links: &'a [(String, Vec<String>)], channel: &str, peer: &str) -> Option<&'a str> {
    let bare = peer.to_lowercase();
    if bare.is_empty() {
        return None;
    }
    let scoped = format!("{channel}:{bare}");
    links.iter().find_map(|(name, ids)| {
        let name = name.trim();
        let hit = ids.iter().map(|id| id.trim().to_lowercase()).any(|id| id == bare || id == scoped);
        (hit && !name.is_empty()).then_some(name)
    })
}
