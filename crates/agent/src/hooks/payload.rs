//! What handlers learn at each hook point (spec `agent-runtime.md` §8.4).

use std::sync::Arc;

use openclaw_protocol::SessionKey;
use openclaw_protocol::message::Message;
use serde::Serialize;
use serde_json::{Map, Value};

use super::point::HookPoint;

/// Where something happens. What does not apply is left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HookContext {
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Its transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The agent's workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_dir: Option<String>,
    /// The surface a message came over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_provider: Option<String>,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Its call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The chat platform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel_id: Option<String>,
    /// The account there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// The conversation there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// The gateway's port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// A payload, and the point it belongs to.
pub trait Payload: Serialize {
    /// The point.
    const POINT: HookPoint;
}

/// A payload that is told and not asked about.
pub trait Told: Payload {}

macro_rules! payload {
    (told owned $name:ident = $point:ident) => {
        impl Payload for $name {
            const POINT: HookPoint = HookPoint::$point;
        }
        impl Told for $name {}
    };
    (told $name:ident = $point:ident) => {
        payload!(asked $name = $point);
        impl Told for $name<'_> {}
    };
    (asked $name:ident = $point:ident) => {
        impl Payload for $name<'_> {
            const POINT: HookPoint = HookPoint::$point;
        }
    };
}

/// A run is about to begin.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BeforeAgentStart<'a> {
    /// What is said to the agent.
    pub prompt: &'a str,
    /// What was said before.
    pub messages: &'a [Arc<Message>],
}
payload!(asked BeforeAgentStart = BeforeAgentStart);

/// A run has ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentEnd<'a> {
    /// The conversation, the run's part at its end.
    pub messages: &'a [Arc<Message>],
    /// Whether there is an answer.
    pub success: bool,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    /// Milliseconds.
    pub duration_ms: u64,
}
payload!(told AgentEnd = AgentEnd);

/// A conversation is about to be summarised.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BeforeCompaction {
    /// How many messages it has.
    pub message_count: usize,
    /// How many tokens, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_count: Option<u64>,
}
payload!(told owned BeforeCompaction = BeforeCompaction);

/// A conversation was summarised.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AfterCompaction {
    /// How many messages it has now.
    pub message_count: usize,
    /// How many tokens, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_count: Option<u64>,
    /// How many messages the summary stands for.
    pub compacted_count: usize,
}
payload!(told owned AfterCompaction = AfterCompaction);

/// A message has come.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageReceived<'a> {
    /// Who says it.
    pub from: &'a str,
    /// What.
    pub content: &'a str,
    /// Unix milliseconds.
    pub timestamp: i64,
    /// What else is known of it: `provider`, `surface`, `messageId`, `senderName` and so on.
    pub metadata: Map<String, Value>,
}
payload!(told MessageReceived = MessageReceived);

/// A message is about to be sent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageSending<'a> {
    /// To whom.
    pub to: &'a str,
    /// What.
    pub content: &'a str,
    /// What else is known of it.
    pub metadata: &'a Map<String, Value>,
}
payload!(asked MessageSending = MessageSending);

/// A message was sent, or could not be.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageSent<'a> {
    /// To whom.
    pub to: &'a str,
    /// What.
    pub content: &'a str,
    /// Whether it was.
    pub success: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}
payload!(told MessageSent = MessageSent);

/// A tool is about to be called.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BeforeToolCall<'a> {
    /// Which.
    pub tool_name: &'a str,
    /// With what, as the handlers before have left it.
    pub params: &'a Value,
}
payload!(asked BeforeToolCall = BeforeToolCall);

/// A tool was called.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AfterToolCall<'a> {
    /// Which.
    pub tool_name: &'a str,
    /// With what.
    pub params: &'a Value,
    /// What it gave, as the model sees it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<&'a [openclaw_protocol::message::Block]>,
    /// Why it gave nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    /// Milliseconds.
    pub duration_ms: u64,
}
payload!(told AfterToolCall = AfterToolCall);

/// A tool's result is about to be written into the transcript.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultPersist<'a> {
    /// Which tool.
    pub tool_name: &'a str,
    /// Which call.
    pub tool_call_id: &'a str,
    /// The result, as the handlers before have left it.
    pub message: &'a Message,
    /// Whether the gateway wrote it in place of a tool that gave none.
    pub is_synthetic: bool,
}
payload!(asked ToolResultPersist = ToolResultPersist);

/// A conversation begins.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStart<'a> {
    /// Its id.
    pub session_id: &'a str,
    /// The one it takes the place of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<&'a str>,
}
payload!(told SessionStart = SessionStart);

/// A conversation has ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEnd<'a> {
    /// Its id.
    pub session_id: &'a str,
    /// How many messages it has.
    pub message_count: usize,
    /// Milliseconds from its first message on.
    pub duration_ms: u64,
}
payload!(told SessionEnd = SessionEnd);

/// The gateway takes messages.
#[derive(Debug, Serialize)]
pub struct GatewayStart {
    /// Where.
    pub port: u16,
}
payload!(told owned GatewayStart = GatewayStart);

/// The gateway stops.
#[derive(Debug, Serialize)]
pub struct GatewayStop<'a> {
    /// Why.
    pub reason: &'a str,
}
payload!(told GatewayStop = GatewayStop);
