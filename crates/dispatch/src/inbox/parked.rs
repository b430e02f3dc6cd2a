//! A payload that waits for its turn: what the lane has to know of it, and the payload itself where it is small. What is big
//! stays on disk until its run begins.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Payload;
use crate::backlog::Share;

/// Payloads up to this many bytes wait in memory: an ordinary message is not read from disk again.
const KEPT: usize = 16 * 1024;

/// What waits of a payload.
#[derive(Debug, Clone)]
pub(crate) struct Parked {
    /// What brought it.
    pub(crate) origin: Origin,
    /// What it wants of the gateway itself.
    pub(crate) wants: Wants,
    /// How often it was tried by processes that have died.
    pub(crate) attempts: Attempts,
    /// The payload's size.
    bytes: usize,
    kept: Option<Arc<Payload>>,
    /// Its part of what may wait, given back with the last clone.
    _share: Arc<Share>,
}

/// What brought a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(crate) enum Origin {
    /// A `chat.send`.
    Chat {
        /// Its deadline, as the client sent it.
        #[serde(default, skip_serializing_if = "Option::is_none", rename = "timeoutMs")]
        timeout_ms: Option<u64>,
    },
    /// An `agent` request.
    Agent {
        /// Its global lane.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<String>,
    },
}

impl Origin {
    /// What brought a payload.
    pub(crate) fn of(payload: &Payload) -> Self {
        match payload {
            Payload::Chat(chat) => Self::Chat { timeout_ms: chat.timeout_ms },
            Payload::Agent(agent) => Self::Agent { lane: agent.lane.clone() },
        }
    }
}

/// What a message wants of the gateway itself. Decided once, when it is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wants {
    /// A new conversation.
    pub(crate) reset: bool,
    /// Something for its own run alone, such as another model.
    pub(crate) hints: bool,
    /// Nothing but an answer of the gateway.
    pub(crate) command: bool,
}

impl Wants {
    /// Of a message that nobody has looked into since the start: it may want to change something.
    pub(crate) const UNKNOWN: Self = Self { reset: true, hints: false, command: false };
}

/// How often a message was tried (`docs/durability.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Attempts {
    /// All times.
    pub(crate) all: u32,
    /// Those since one was last prepared.
    pub(crate) unprepared: u32,
}

/// What is stored beside a payload that is not kept in memory.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Facts {
    #[serde(flatten)]
    pub(super) origin: Origin,
    pub(super) bytes: usize,
}

impl Parked {
    /// What waits of a message that was just sent.
    pub(crate) fn fresh(payload: &Payload, wants: Wants, share: Share) -> Self {
        Self {
            origin: Origin::of(payload),
            wants,
            attempts: Attempts::default(),
            bytes: payload.weight(),
            kept: None,
            _share: Arc::new(share),
        }
    }

    /// What waits of a message that was found on disk.
    pub(crate) fn found(origin: Origin, attempts: Attempts, bytes: usize, share: Share) -> Self {
        Self { origin, wants: Wants::UNKNOWN, attempts, bytes, kept: None, _share: Arc::new(share) }
    }

    /// The same with its payload, if that is small.
    pub(crate) fn keeping(self, payload: Payload) -> Self {
        let kept = (self.bytes <= KEPT).then(|| Arc::new(payload));
        Self { kept, ..self }
    }

    /// The payload, if it is in memory.
    pub(super) fn kept(&self) -> Option<&Payload> {
        self.kept.as_deref()
    }

    /// What has to be stored beside the payload because it is not kept.
    pub(super) fn facts(&self) -> Option<Facts> {
        self.kept.is_none().then(|| Facts { origin: self.origin.clone(), bytes: self.bytes })
    }

    /// Whether it is a `chat.send`.
    pub(crate) fn is_chat(&self) -> bool {
        matches!(self.origin, Origin::Chat { .. })
    }
}
