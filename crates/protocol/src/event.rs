//! The broadcast events and their payloads (spec `gateway-protocol.md` §7, §8.1).

use std::borrow::Cow;

use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;

use crate::access::Access;
use crate::json_schema::schema_in;
use crate::params::approvals::{ExecApprovalRequested, ExecApprovalResolved};
use crate::params::health::HealthSnapshot;
use crate::params::heartbeat::HeartbeatEvent;
use crate::params::system::PresenceEntry;
use crate::{RunId, SessionKey};

/// Row of [`EVENTS`].
#[derive(Debug, Clone, Copy)]
pub struct EventKind {
    /// The name on the wire.
    pub name: &'static str,
    /// True if a slow client may miss it. `chat` decides by its state: a delta may be missed.
    pub droppable: bool,
    /// Access that an operator needs; absent means that every operator gets it.
    pub access: Option<Access>,
    /// Says if this version sends it, and what.
    pub sending: Sending,
}

/// Says if this version sends an event.
#[derive(Debug, Clone, Copy)]
pub enum Sending {
    /// Sent with a payload of this JSON Schema.
    Typed(fn(&mut SchemaGenerator) -> Value),
    /// Sent with a payload that has no schema of its own.
    Untyped,
    /// Not sent yet.
    Never,
}

/// The events that this version sends, for `hello-ok.features.events`.
pub fn advertised() -> impl Iterator<Item = &'static str> {
    EVENTS.iter().filter(|event| !matches!(event.sending, Sending::Never)).map(|event| event.name)
}

impl EventKind {
    /// True if an operator with these scopes may get it.
    pub fn visible_to<S: AsRef<str>>(&self, scopes: &[S]) -> bool {
        self.access.is_none_or(|access| access.is_granted_by(scopes))
    }
}

const fn sent<P: JsonSchema>(name: &'static str, droppable: bool) -> EventKind {
    EventKind { name, droppable, access: None, sending: Sending::Typed(schema_in::<P>) }
}

/// Event with content of conversations: for operators who may read them (decision 46).
const fn said<P: JsonSchema>(name: &'static str) -> EventKind {
    EventKind { access: Some(Access::Read), ..sent::<P>(name, false) }
}

/// Event for operators who may decide on commands.
const fn for_approvers<P: JsonSchema>(name: &'static str) -> EventKind {
    EventKind { access: Some(Access::Approvals), ..sent::<P>(name, true) }
}

const fn for_pairing(name: &'static str) -> EventKind {
    EventKind { name, droppable: true, access: Some(Access::Pairing), sending: Sending::Untyped }
}

const fn later(name: &'static str, access: Option<Access>) -> EventKind {
    EventKind { name, droppable: true, access, sending: Sending::Never }
}

/// All events, in the order in which OpenClaw 2026.2.9 announces them (spec §7.0, §7.2). `health` may be dropped (KB-35).
pub const EVENTS: &[EventKind] = &[
    sent::<ConnectChallenge>("connect.challenge", false),
    said::<AgentEvent<'_>>("agent"),
    said::<ChatEvent>("chat"),
    sent::<PresenceEvent>("presence", true),
    sent::<Tick>("tick", true),
    later("talk.mode", None),
    sent::<Shutdown>("shutdown", false),
    sent::<HealthSnapshot>("health", true),
    EventKind { droppable: true, ..said::<HeartbeatEvent>("heartbeat") },
    later("cron", None),
    later("node.pair.requested", Some(Access::Pairing)),
    later("node.pair.resolved", Some(Access::Pairing)),
    later("node.invoke.request", None),
    for_pairing("device.pair.requested"),
    for_pairing("device.pair.resolved"),
    later("voicewake.changed", None),
    for_approvers::<ExecApprovalRequested>("exec.approval.requested"),
    for_approvers::<ExecApprovalResolved>("exec.approval.resolved"),
];

/// The row of an event.
pub fn find(name: &str) -> Option<&'static EventKind> {
    EVENTS.iter().find(|event| event.name == name)
}

/// `connect.challenge`: the first frame on every socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectChallenge {
    /// To be signed by devices; a UUID.
    pub nonce: String,
    /// Unix milliseconds.
    pub ts: i64,
}

/// `tick`: the gateway is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tick {
    /// Unix milliseconds.
    pub ts: i64,
}

/// `shutdown`: the gateway is about to close the connection.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shutdown {
    /// `gateway stopping` or `gateway restarting`.
    pub reason: String,
    /// When to come back, in milliseconds; absent when it is not restarting (KB-39).
    pub restart_expected_ms: Option<u64>,
}

/// `presence`: the whole list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PresenceEvent {
    /// Newest first.
    pub presence: Vec<PresenceEntry>,
}

/// `agent`: what a run does (spec §7.3).
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentEvent<'a> {
    /// The run.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// What happened.
    #[serde(flatten)]
    pub stream: AgentStream<'a>,
    /// The run's session; 2.9 leaves it out of the events of a compaction.
    #[schemars(with = "Option<String>")]
    pub session_key: Option<SessionKey>,
    /// Counts from 1 within the run, also events that were not sent to you.
    pub seq: u64,
    /// Unix milliseconds.
    pub ts: i64,
}

/// The streams of an `agent` event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "stream", content = "data", rename_all = "lowercase")]
pub enum AgentStream<'a> {
    /// Start and end.
    Lifecycle(Lifecycle),
    /// The answer as it grows.
    Assistant(AssistantText<'a>),
    /// Tool calls.
    Tool(ToolEvent),
    /// The context is being shortened.
    Compaction(Compaction),
}

/// `lifecycle`
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "phase", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Lifecycle {
    /// The run begins.
    Start {
        /// Unix milliseconds.
        started_at: i64,
    },
    /// The run has ended.
    End {
        /// Unix milliseconds.
        ended_at: i64,
        /// Whether it was stopped.
        aborted: Option<bool>,
    },
    /// A call of the model failed, and the same model is asked again. OpenClaw 2026.2.9 does not send it; its clients pass over
    /// phases that they do not know.
    Retry {
        /// The provider that was asked.
        provider: String,
        /// The model that was asked.
        model: String,
        /// Number of the next try, counted from 1.
        attempt: u32,
        /// Tries that are made at most.
        max_attempts: u32,
        /// Time until the next try, in milliseconds.
        delay_ms: u64,
        /// The class of the failure, such as `rate_limit` or `unavailable`.
        reason: Option<String>,
        /// The failure in one short line.
        error: String,
        /// The whole event as a sentence for people.
        text: String,
    },
    /// A call of the model failed, and another model is asked, or the same one with another credential. As with `retry`,
    /// OpenClaw 2026.2.9 does not send it.
    Fallback {
        /// The provider that was asked.
        from_provider: String,
        /// The model that was asked.
        from_model: String,
        /// The provider that is asked next.
        to_provider: String,
        /// The model that is asked next.
        to_model: String,
        /// The class of the failure, such as `rate_limit` or `unavailable`.
        reason: Option<String>,
        /// The failure in one short line.
        error: String,
        /// The whole event as a sentence for people.
        text: String,
    },
    /// The run failed.
    Error {
        /// Why.
        error: String,
        /// Unix milliseconds.
        ended_at: i64,
    },
}

/// `assistant`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantText<'a> {
    /// The current message so far.
    pub text: Cow<'a, str>,
    /// What is new.
    pub delta: Cow<'a, str>,
}

/// `tool`
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "phase", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum ToolEvent {
    /// A call begins.
    Start {
        /// The tool.
        name: String,
        /// The call.
        tool_call_id: String,
        /// Its arguments.
        args: Value,
    },
    /// A call goes on.
    Update {
        /// The tool.
        name: String,
        /// The call.
        tool_call_id: String,
        /// What there is so far, at verbose level `full`.
        partial_result: Option<Value>,
    },
    /// A call has ended.
    Result {
        /// The tool.
        name: String,
        /// The call.
        tool_call_id: String,
        /// Short label for people.
        meta: Option<String>,
        /// Whether it failed.
        is_error: bool,
        /// What it gave, at verbose level `full`.
        result: Option<Value>,
    },
}

/// `compaction`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "phase", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Compaction {
    /// It begins.
    Start {},
    /// It has ended.
    End {
        /// Whether the model is called again.
        will_retry: bool,
    },
}

/// `chat`: the reply as a chat client shows it (spec §7.4). One terminal state a run. `M` is the message: a [`ReplyText`],
/// or a whole one of the transcript where the gateway itself answered.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatEvent<M = Value> {
    /// The run.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// The run's session.
    #[schemars(with = "String")]
    pub session_key: SessionKey,
    /// Number of the agent event that caused it.
    pub seq: u64,
    /// Where the reply stands.
    pub state: ChatState,
    /// `{role:"assistant", content:[{type:"text", text}], timestamp}`; absent when there is no text.
    pub message: Option<M>,
    /// Why it failed.
    pub error_message: Option<String>,
    /// Who stopped it: `rpc`, `stop` or `timeout`.
    pub stop_reason: Option<String>,
}

/// Where a reply stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChatState {
    /// It grows; a slow client may miss these.
    Delta,
    /// It is complete.
    Final,
    /// It was stopped.
    Aborted,
    /// It failed.
    Error,
}

/// The `message` of a `chat` event while the reply is written, and of its final.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename = "assistant")]
pub struct ReplyText<'a> {
    content: [ReplyBlock<'a>; 1],
    timestamp: i64,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "text")]
struct ReplyBlock<'a> {
    text: &'a str,
}

impl<'a> ReplyText<'a> {
    /// All of the text so far, as of Unix milliseconds.
    pub fn new(text: &'a str, timestamp: i64) -> Self {
        Self { content: [ReplyBlock { text }], timestamp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{ADMIN, APPROVALS, PAIRING, READ, WRITE};

    #[test]
    fn the_list_of_events_is_the_recorded_one() {
        let golden = include_str!("../../../tests/golden/gw-connect-ok.jsonl");
        let hello: Value = serde_json::from_str(golden.lines().nth(2).unwrap()).unwrap();
        let names: Vec<&str> = EVENTS.iter().map(|event| event.name).collect();
        assert_eq!(serde_json::json!(names), hello["frame"]["payload"]["features"]["events"]);
    }

    /// Spec §16.2, nodes aside: what they get is the gateway's to decide.
    #[test]
    fn gated_events_reach_only_those_who_may_see_them() {
        let clients = [("A", ADMIN), ("P", PAIRING), ("X", APPROVALS), ("R", READ), ("W", WRITE)];
        let rows = [
            ("exec.approval.requested", "AX"),
            ("device.pair.requested", "AP"),
            ("node.pair.resolved", "AP"),
            ("agent", "ARW"),
            ("chat", "ARW"),
            ("presence", "APXRW"),
        ];
        for (event, expect) in rows {
            let kind = find(event).unwrap();
            let seen = clients.iter().filter(|(_, scope)| kind.visible_to(&[scope])).map(|(name, _)| *name);
            assert_eq!(seen.collect::<String>(), expect, "{event}");
        }
    }
}
