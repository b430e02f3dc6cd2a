//! A message that waits for its turn: what the lane has to know of it, and the request itself where it is small. What is big
//! stays on disk until its run begins.

use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::Address;
use serde::{Deserialize, Serialize};

use super::deadline::chat_deadline_ms;
use crate::backlog::Share;
use crate::beat::BeatChat;
use crate::queue::QueueSettings;
use crate::request::{Kind, MAIN_LANE, Request};

/// Requests up to this many bytes wait in memory: an ordinary message is not read from disk again.
const KEPT: usize = 16 * 1024;

/// What waits of a message.
#[derive(Debug, Clone)]
pub(crate) struct Queued {
    /// What its lane has to know of it.
    pub(crate) facts: Facts,
    /// How often it was tried by processes that have died.
    pub(crate) attempts: Attempts,
    /// The numbers of the events it is made of, while the process that took them lives.
    pub(crate) said: Box<[i64]>,
    kept: Option<Arc<Request>>,
    /// Its part of what may wait, given back with the last clone.
    _share: Arc<Share>,
}

/// What a lane has to know of a message that waits. Stored beside a request that is not kept in memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Facts {
    /// What brought it.
    pub(crate) kind: Kind,
    /// Size of the request.
    pub(crate) bytes: usize,
    /// A chat's deadline, as the client sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    /// Wall time of its run in seconds; absent is unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time_limit: Option<u64>,
    /// Whether it was said on a chat platform.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) from_platform: bool,
    /// Its global lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lane: Option<String>,
    /// How it waits during another run of its session.
    #[serde(default, alias = "queueMode")]
    pub(crate) queue: QueueSettings,
    /// Where it was said, if on a chat platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<Box<Place>>,
    /// Whether it asks for a run of its own, such as with another model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) alone: bool,
    /// Whether somebody else than the owner says it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) strangers: bool,
    /// What it wants of the gateway itself.
    #[serde(default)]
    pub(crate) wants: Wants,
    /// Whether it tells the agent of a sub-agent that has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) announces: bool,
    /// Of a heartbeat: what clients see of it as a chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) beat: Option<BeatChat>,
}

impl Facts {
    /// Of a request that was decided about.
    pub(crate) fn of(request: &Request) -> Self {
        let decided = request.decided.as_ref();
        let intent = request.to_gateway();
        Self {
            kind: request.kind,
            bytes: request.weight(),
            timeout_ms: request.timeout_ms,
            time_limit: decided.and_then(|decided| decided.time_limit),
            from_platform: request.origin.is_some(),
            lane: request.lane.clone(),
            queue: decided.map(|decided| decided.queue).unwrap_or_default(),
            place: place(request).map(Box::new),
            announces: request.is_announcement(),
            alone: intent.is_for_one_run(),
            strangers: request.origin.as_ref().is_some_and(|origin| !origin.is_owner),
            wants: Wants {
                reset: request.behind_reset().is_some(),
                command: intent.is_for_gateway_alone(),
                compaction: request.compacts(),
                tool: intent.tool().is_some(),
                shortcuts: intent.hints().is_some_and(|hints| !hints.shortcuts.is_empty()),
            },
            beat: request.beat.as_ref().map(|beat| beat.chat),
        }
    }

    /// The global lane.
    pub(crate) fn lane(&self) -> &str {
        self.lane.as_deref().unwrap_or(MAIN_LANE)
    }

    /// How long a `chat.send` may take from acceptance; all others have their run's time limit only.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let limit = self.time_limit.map(|seconds| seconds.saturating_mul(1_000));
        let is_chat = self.kind == Kind::Chat && !self.from_platform;
        is_chat.then(|| Duration::from_millis(chat_deadline_ms(self.timeout_ms, limit)))
    }
}

/// Where a message was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Place {
    /// The conversation.
    pub(crate) address: Address,
    /// The platform's id of the message.
    pub(crate) message_id: String,
}

/// Where it was said, or where an announcement is to be told.
fn place(request: &Request) -> Option<Place> {
    if let Some(origin) = &request.origin {
        return Some(Place { address: origin.address.clone(), message_id: origin.message_id.clone() });
    }
    let announced = request.deliver_to.as_ref().filter(|_| request.is_announcement());
    announced.map(|address| Place { address: address.clone(), message_id: String::new() })
}

/// What a message wants of the gateway itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Wants {
    /// A new conversation.
    pub(crate) reset: bool,
    /// Nothing but an answer of the gateway.
    pub(crate) command: bool,
    /// That the conversation is compacted: it takes its turn, and the run under way is stopped for it.
    #[serde(default)]
    pub(crate) compaction: bool,
    /// That answer is a tool's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tool: bool,
    /// That commands among its words are answered at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) shortcuts: bool,
}

impl Wants {
    /// Whether the gateway does it by itself at once: no lane is needed for it.
    pub(crate) fn is_light(self) -> bool {
        self.command && !self.tool
    }
}

impl Default for Wants {
    /// Of a message that an older version accepted: it may want to change something.
    fn default() -> Self {
        Self { reset: true, command: false, compaction: false, tool: false, shortcuts: false }
    }
}

/// How often a message was tried (`docs/durability.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Attempts {
    /// All times.
    pub(crate) all: u32,
    /// Those since one was last prepared.
    pub(crate) unprepared: u32,
}

/// They are the same message.
impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.facts == other.facts && self.attempts == other.attempts && self.kept == other.kept
    }
}

impl Queued {
    /// What waits of a message, with its request if that is small.
    pub(crate) fn of(request: Request, attempts: Attempts, share: Share) -> Self {
        let facts = Facts::of(&request);
        let said = request.arrivals.said.as_slice().into();
        let kept = (facts.bytes <= KEPT).then(|| Arc::new(request));
        Self { facts, attempts, said, kept, _share: Arc::new(share) }
    }

    /// What waits of a message whose request is on disk.
    pub(crate) fn on_disk(facts: Facts, attempts: Attempts, share: Share) -> Self {
        Self { facts, attempts, said: Box::default(), kept: None, _share: Arc::new(share) }
    }

    /// The request, if it is in memory.
    pub(crate) fn kept(&self) -> Option<&Request> {
        self.kept.as_deref()
    }

    /// What has to be stored beside the request because it is not kept.
    pub(super) fn stored_facts(&self) -> Option<&Facts> {
        self.kept.is_none().then_some(&self.facts)
    }

    /// Whether it waits in the queue of a session: what a person says to the agent, and nothing that alters the session.
    pub(crate) fn is_prompt(&self) -> bool {
        let Wants { reset, command, compaction, tool, shortcuts: _ } = self.facts.wants;
        let is_said = self.is_chat() || self.facts.announces;
        is_said && self.facts.beat.is_none() && !(reset || command || compaction || tool)
    }

    /// Whether it is a `chat.send`.
    pub(crate) fn is_chat(&self) -> bool {
        self.facts.kind == Kind::Chat
    }
}
