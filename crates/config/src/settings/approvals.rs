//! `approvals`: where people are asked in chats about commands (spec `config.md`, `approvals.exec`).

use serde::Deserialize;

use super::TextOrNumber;

/// `approvals`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Approvals {
    /// Commands.
    pub exec: ForwardedApprovals,
}

/// `approvals.exec`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ForwardedApprovals {
    /// Default false.
    pub enabled: bool,
    /// Places in which people are asked.
    pub mode: ForwardMode,
    /// Only these agents; empty: all.
    pub agent_filter: Vec<String>,
    /// Only sessions whose key has one of these in it, or matches it as a regular expression; empty: all.
    pub session_filter: Vec<String>,
    /// Named conversations.
    pub targets: Vec<ForwardTarget>,
}

/// Places in which people are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForwardMode {
    /// Chat in which the session was last talked to.
    #[default]
    Session,
    /// Asks in the named conversations.
    Targets,
    /// Asks in both.
    Both,
}

/// A conversation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForwardTarget {
    /// Channel of the chat.
    pub channel: String,
    /// Chat on that channel.
    pub to: String,
    /// Account that sends it; by default the channel's default one.
    #[serde(default)]
    pub account_id: Option<String>,
    /// Thread to send it to.
    #[serde(default)]
    pub thread_id: Option<TextOrNumber>,
}
