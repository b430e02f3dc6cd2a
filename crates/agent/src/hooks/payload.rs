//! Payloads of each hook point (spec `agent-runtime.md` §8.4).

use std::sync::Arc;

use openclaw_protocol::SessionKey;
use openclaw_protocol::message::Message;
use serde::Serialize;
use serde_json::{Map, Value};

use super::point::HookPoint;

/// Context in which a hook point is reached. Fields that do not apply are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HookContext {
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Id of the session's transcript.
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
    /// Id of the tool call.
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
pub trait ToldPayload: Payload {}

macro_rules! payload {
    (told owned $name:ident = $point:ident) => {
        impl Payload for $name {
            const POINT: HookPoint = HookPoint::$point;
        }
        impl ToldPayload for $name {}
    };
    (told $name:ident = $point:ident) => {
        payload!(asked $name = $point);
        impl ToldPayload for $name<'_> {}
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
    /// Message to the agent.
    pub prompt: &'a str,
    /// Messages before it.
    pub messages: &'a [Arc<Message>],
}
payload!(asked BeforeAgentStart = BeforeAgentStart);

/// A run has ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentEnd<'a> {
    /// The conversation, the run's part at its end.
    pub messages: &'a [Arc<Message>],
    /// True if the run gave an answer.
    pub success: bool,
    /// Error, if there is no answer.
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
    /// Number of messages in the session.
    pub message_count: usize,
    /// Number of tokens, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_count: Option<u64>,
}
payload!(told owned BeforeCompaction = BeforeCompaction);

/// A conversation was summarised.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AfterCompaction {
    /// Number of messages after the compaction.
    pub message_count: usize,
    /// Number of tokens, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_count: Option<u64>,
    /// Number of messages that the summary replaces.
    pub compacted_count: usize,
}
payload!(told owned AfterCompaction = AfterCompaction);

/// A message has come.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageReceived<'a> {
    /// Sender of the message.
    pub from: &'a str,
    /// Text of the message.
    pub content: &'a str,
    /// Unix milliseconds.
    pub timestamp: i64,
    /// Further data of the message: `provider`, `surface`, `messageId`, `senderName` and so on.
    pub metadata: Map<String, Value>,
}
payload!(told MessageReceived = MessageReceived);

/// A message is about to be sent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageSending<'a> {
    /// Recipient.
    pub to: &'a str,
    /// Text of the message.
    pub content: &'a str,
    /// Further data of the message.
    pub metadata: &'a Map<String, Value>,
}
payload!(asked MessageSending = MessageSending);

/// A message was sent, or could not be.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageSent<'a> {
    /// Recipient.
    pub to: &'a str,
    /// Text of the message.
    pub content: &'a str,
    /// True if the message was sent.
    pub success: bool,
    /// Error, if the message was not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}
payload!(told MessageSent = MessageSent);

/// A tool is about to be called.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BeforeToolCall<'a> {
    /// Tool name.
    pub tool_name: &'a str,
    /// Arguments, as the previous handlers have left them.
    pub params: &'a Value,
}
payload!(asked BeforeToolCall = BeforeToolCall);

/// A tool was called.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AfterToolCall<'a> {
    /// Tool name.
    pub tool_name: &'a str,
    /// Arguments.
    pub params: &'a Value,
    /// Result of the tool, as the model sees it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<&'a [openclaw_protocol::message::Block]>,
    /// Error of the tool.
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
    /// Name of the tool.
    pub tool_name: &'a str,
    /// Id of the tool call.
    pub tool_call_id: &'a str,
    /// The result, as the handlers before have left it.
    pub message: &'a Message,
    /// True if the gateway wrote the result in place of a tool that gave none.
    pub is_synthetic: bool,
}
payload!(asked ToolResultPersist = ToolResultPersist);

/// A conversation begins.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStart<'a> {
    /// Session id.
    pub session_id: &'a str,
    /// Session that this one replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<&'a str>,
}
payload!(told SessionStart = SessionStart);

/// A conversation has ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEnd<'a> {
    /// Session id.
    pub session_id: &'a str,
    /// Number of messages in the session.
    pub message_count: usize,
    /// Milliseconds from its first message on.
    pub duration_ms: u64,
}
payload!(told SessionEnd = SessionEnd);

/// The gateway takes messages.
#[derive(Debug, Serialize)]
pub struct GatewayStart {
    /// Port of the gateway.
    pub port: u16,
}
payload!(told owned GatewayStart = GatewayStart);

/// The gateway stops.
#[derive(Debug, Serialize)]
pub struct GatewayStop<'a> {
    /// Reason code.
    pub reason: &'a str,
}
payload!(told GatewayStop = GatewayStop);
