//! A message that waits for its turn: the facts that the lane has to know, and the request itself
//! if it is small. A big request stays on disk until its run begins.

use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::Address;
use serde::{Deserialize, Serialize};

use super::deadline::chat_deadline_ms;
use crate::backlog::Share;
use crate::beat::BeatChat;
use crate::queue::QueueSettings;
use crate::request::{MAIN_LANE, RunRequest};
use crate::rights::Rights;
use crate::source::{RequestKind, RequestSource};

/// Requests up to this many bytes wait in memory: an ordinary message is not read from disk again.
const KEPT: usize = 16 * 1024;

/// A waiting message: its facts, and its request if that is small.
#[derive(Debug, Clone)]
pub struct Queued {
    /// Facts that its lane has to know.
    pub facts: QueuedFacts,
    /// Number of attempts by processes that have died.
    pub attempts: Attempts,
    /// The numbers of the events it is made of, while the process that took them lives.
    pub said: Box<[i64]>,
    kept: Option<Arc<RunRequest>>,
    /// Share of what may wait, given back with the last clone.
    _share: Arc<Share>,
}

/// Facts of a waiting message that its lane has to know. Stored beside a request that is not kept
/// in memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedFacts {
    /// Kind of request that brought it.
    pub kind: RequestKind,
    /// Size of the request.
    pub bytes: usize,
    /// A chat's deadline, as the client sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    /// Wall time of its run in seconds; absent is unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time_limit: Option<u64>,
    /// True if it was said on a chat platform.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_platform: bool,
    /// Name of its global lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lane: Option<String>,
    /// Settings of its wait during another run of its session.
    #[serde(default, alias = "queueMode")]
    pub queue: QueueSettings,
    /// Conversation that it was said in, if on a chat platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Box<MessageRef>>,
    /// True if it asks for a run of its own, such as with another model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// Rights of its run. Absent in messages that an older version stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<Rights>,
    /// Requests to the gateway itself.
    #[serde(default)]
    pub wants: Wants,
    /// True if it tells the agent of a sub-agent that has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub announces: bool,
    /// Part of a heartbeat that clients see as a chat; `None` for other messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beat: Option<BeatChat>,
}

impl QueuedFacts {
    /// Collects the facts of a request that was decided about.
    pub fn of(request: &RunRequest) -> Self {
        let decided = request.decided.as_ref();
        let intent = request.to_gateway();
        Self {
            kind: request.source.kind(),
            bytes: request.weight(),
            timeout_ms: request.source.client().and_then(|client| client.timeout_ms),
            time_limit: decided.and_then(|decided| decided.time_limit),
            from_platform: matches!(request.source, RequestSource::Platform(_)),
            lane: request.lane.clone(),
            queue: decided.map(|decided| decided.queue).unwrap_or_default(),
            place: place(request).map(Box::new),
            announces: request.is_announcement(),
            alone: intent.is_for_one_run(),
            rights: request.rights.clone(),
            wants: Wants {
                reset: request.behind_reset().is_some(),
                command: intent.is_for_gateway_alone(),
                compaction: request.compacts(),
                tool: intent.tool().is_some(),
                shortcuts: intent.hints().is_some_and(|hints| !hints.shortcuts.is_empty()),
            },
            beat: request.source.beat().map(|beat| beat.chat),
        }
    }

    /// The global lane.
    pub fn lane(&self) -> &str {
        self.lane.as_deref().unwrap_or(MAIN_LANE)
    }

    /// True for a `chat.send`: its client follows the `chat` stream of its run.
    pub fn is_clients_chat(&self) -> bool {
        self.kind == RequestKind::Chat && !self.from_platform
    }

    /// Returns the time that a `chat.send` may take from acceptance; all others have their run's
    /// time limit only.
    pub fn deadline(&self) -> Option<Duration> {
        let limit = self.time_limit.map(|seconds| seconds.saturating_mul(1_000));
        self.is_clients_chat().then(|| Duration::from_millis(chat_deadline_ms(self.timeout_ms, limit)))
    }
}

/// Conversation and id of a message on a platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageRef {
    /// The conversation.
    pub address: Address,
    /// The platform's id of the message, by which it waits only once; empty if it has none of its own.
    pub message_id: String,
}

/// Returns the conversation that the request was said in, or that an announcement is to be sent to.
fn place(request: &RunRequest) -> Option<MessageRef> {
    if let Some(origin) = request.source.origin() {
        // Presses of buttons below the same message are different messages.
        let message_id = if origin.is_press { String::new() } else { origin.message_id.clone() };
        return Some(MessageRef { address: origin.address.clone(), message_id });
    }
    let announced = request.source.deliver_to().filter(|_| request.is_announcement());
    announced.map(|address| MessageRef { address: address.clone(), message_id: String::new() })
}

/// Requests of a message to the gateway itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wants {
    /// A new conversation.
    pub reset: bool,
    /// True if it wants nothing but an answer of the gateway.
    pub command: bool,
    /// True if it wants the conversation compacted: it takes its turn, and the run under way is
    /// stopped for it.
    #[serde(default)]
    pub compaction: bool,
    /// True if that answer is a tool's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tool: bool,
    /// True if commands among its words are answered at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shortcuts: bool,
}

impl Wants {
    /// True if the gateway does it by itself at once, so that no lane is needed.
    pub fn is_light(self) -> bool {
        self.command && !self.tool
    }
}

impl Default for Wants {
    /// Wants of a message that an older version accepted: it may want to change something.
    fn default() -> Self {
        Self { reset: true, command: false, compaction: false, tool: false, shortcuts: false }
    }
}

/// Number of times a message was tried (`docs/durability.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attempts {
    /// Number of all attempts.
    pub all: u32,
    /// Number of attempts since one was last prepared.
    pub unprepared: u32,
}

/// Equal if both are the same message.
impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.facts == other.facts && self.attempts == other.attempts && self.kept == other.kept
    }
}

impl Queued {
    /// Waiting form of a message, with its request if that is small.
    pub fn of(request: RunRequest, attempts: Attempts, share: Share) -> Self {
        let facts = QueuedFacts::of(&request);
        let said = request.arrivals.said.as_slice().into();
        let kept = (facts.bytes <= KEPT).then(|| Arc::new(request));
        Self { facts, attempts, said, kept, _share: Arc::new(share) }
    }

    /// Waiting form of a message whose request is on disk.
    pub fn on_disk(facts: QueuedFacts, attempts: Attempts, share: Share) -> Self {
        Self { facts, attempts, said: Box::default(), kept: None, _share: Arc::new(share) }
    }

    /// Returns the request, if it is in memory.
    pub fn kept(&self) -> Option<&RunRequest> {
        self.kept.as_deref()
    }

    /// Returns the facts that have to be stored beside the request because the request is not kept
    /// in memory.
    pub(super) fn stored_facts(&self) -> Option<&QueuedFacts> {
        self.kept.is_none().then_some(&self.facts)
    }

    /// True if it waits in the queue of a session: words of a person to the agent, which do not
    /// alter the session.
    pub fn is_prompt(&self) -> bool {
        let Wants { reset, command, compaction, tool, shortcuts: _ } = self.facts.wants;
        let is_said = self.is_chat() || self.facts.announces;
        is_said && self.facts.beat.is_none() && !(reset || command || compaction || tool)
    }

    /// True if it is a `chat.send`.
    pub fn is_chat(&self) -> bool {
        self.facts.kind == RequestKind::Chat
    }
}
