//! Talk between two sessions, as it is stored with each message of it (spec `sessions.md` §8.3). [`crate::talk`] decides about its steps.

use openclaw_channels::Address;
use openclaw_protocol::{AgentId, RunId, SessionKey};
use serde::{Deserialize, Serialize};

/// Party of a talk: one of the two sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Party {
    /// Key of the session.
    pub key: SessionKey,
    /// Agent of the session.
    pub agent: AgentId,
    /// The channel it is used over, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
}

/// Step of a talk that a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExchangeStep {
    /// First message.
    Primary,
    /// A reply to a reply; the first is the requester's.
    Turn(u8),
    /// Message of the target to its channel.
    Announce,
}

/// A talk so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exchange {
    /// The run that began it.
    pub id: RunId,
    /// Session that began it.
    pub requester: Party,
    /// Session that was written to.
    pub target: Party,
    /// Name by which the requester calls the target.
    pub target_shown: String,
    /// First message.
    pub asked: String,
    /// Replies to replies at most.
    pub max_turns: u8,
    /// Address of the last word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announce_to: Option<Address>,
    /// The step that this run does.
    pub step: ExchangeStep,
    /// Answer to the first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// The newest reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<String>,
}

impl Exchange {
    /// Returns about how many bytes it has besides the text of its step.
    pub fn weight(&self) -> usize {
        let replies = [&self.first, &self.latest].into_iter().flatten();
        self.asked.len() + replies.map(String::len).sum::<usize>()
    }
}
