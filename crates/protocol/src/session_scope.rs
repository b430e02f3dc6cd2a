//! Session scopes: the words of the config that decide who shares a session, and by which session
//! keys are made.

use serde::{Deserialize, Serialize};

/// `session.scope`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionScope {
    /// Each sender or group has its own session.
    #[default]
    PerSender,
    /// All share one session.
    Global,
}

impl SessionScope {
    /// The word used in the config and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PerSender => "per-sender",
            Self::Global => "global",
        }
    }
}

/// `session.dmScope`: how direct chats are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DmScope {
    /// All direct chats share the main session.
    #[default]
    Main,
    /// Each person has a session.
    PerPeer,
    /// Each person has a session per channel.
    PerChannelPeer,
    /// Each person has a session per account and channel.
    PerAccountChannelPeer,
}

impl DmScope {
    /// The word used in the config.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::PerPeer => "per-peer",
            Self::PerChannelPeer => "per-channel-peer",
            Self::PerAccountChannelPeer => "per-account-channel-peer",
        }
    }
}

/// Kinds of chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerKind {
    /// Person in a direct chat. `dm` in the config and in keys means the same.
    #[serde(alias = "dm")]
    Direct,
    /// A group.
    Group,
    /// A room of a server or workspace.
    Channel,
}

impl PeerKind {
    /// The word used in the config.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Group => "group",
            Self::Channel => "channel",
        }
    }

    /// The name in keys; direct chats are created as `dm` (decision 1).
    pub fn segment(self) -> &'static str {
        match self {
            Self::Direct => "dm",
            Self::Group | Self::Channel => self.as_str(),
        }
    }
}

/// Person or place that a message came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Kind of chat.
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

/// `session.identityLinks`: canonical names with the platform ids behind them, in the order of the file.
pub type IdentityLinks = Vec<(String, Vec<String>)>;
