//! How messages and outcomes are stored: JSON in columns of the inbox. Fields may be added; none changes its meaning.

use openclaw_protocol::message::Block;
use openclaw_protocol::{AgentId, RunId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::{AgentMessage, ChatMessage, Occasion, RunOutcome};

/// What was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(crate) enum Payload {
    /// A `chat.send`.
    Chat(ChatPayload),
    /// An `agent` request.
    Agent(AgentPayload),
}

impl Payload {
    /// The `kind` column.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Chat(_) => "chat",
            Self::Agent(_) => "agent",
        }
    }

    /// The text as it came.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Chat(chat) => &chat.text,
            Self::Agent(agent) => &agent.text,
        }
    }

    /// Images that came with the text.
    pub(crate) fn images(&self) -> &[Block] {
        match self {
            Self::Chat(chat) => &chat.images,
            Self::Agent(agent) => &agent.images,
        }
    }

    /// About how many bytes it has.
    pub(crate) fn weight(&self) -> usize {
        let (words, patch) = match self {
            Self::Chat(chat) => ([&chat.thinking, &chat.sender, &chat.parent_session_key, &None], None),
            Self::Agent(agent) => {
                let words = [&agent.thinking, &agent.session_id, &agent.lane, &agent.extra_system_prompt];
                (words, Some(&agent.entry_patch))
            }
        };
        let words: usize = words.into_iter().flatten().map(String::len).sum();
        let patch = patch.into_iter().flat_map(Map::values).filter_map(Value::as_str).map(str::len);
        let images = self.images().iter().map(image_bytes);
        self.text().len() + words + patch.chain(images).sum::<usize>()
    }

    /// Whether somebody says it, rather than the gateway by itself: that the session is used.
    pub(crate) fn is_interaction(&self) -> bool {
        match self {
            Self::Chat(_) => true,
            Self::Agent(agent) => match agent.occasion {
                Occasion::Request | Occasion::Command => true,
                Occasion::Heartbeat | Occasion::Isolated => false,
            },
        }
    }

    /// Requested thinking level, as sent.
    pub(crate) fn thinking(&self) -> Option<&str> {
        match self {
            Self::Chat(chat) => chat.thinking.as_deref(),
            Self::Agent(agent) => agent.thinking.as_deref(),
        }
    }
}

fn image_bytes(block: &Block) -> usize {
    match block {
        Block::Image(image) => image.data.len(),
        // Attachments are images.
        Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => 0,
    }
}

/// The stored form of [`ChatMessage`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ChatPayload {
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) images: Vec<Block>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sender: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_session_key: Option<String>,
}

/// The stored form of [`AgentMessage`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AgentPayload {
    pub(crate) agent_id: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<String>,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) images: Vec<Block>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lane: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) extra_system_prompt: Option<String>,
    pub(crate) occasion: Occasion,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) entry_patch: Map<String, Value>,
}

/// Parts a message into its run id, its session key and what is stored.
impl From<ChatMessage> for (RunId, String, Payload) {
    fn from(message: ChatMessage) -> Self {
        let payload = ChatPayload {
            text: message.text,
            images: message.images,
            thinking: message.thinking,
            timeout_ms: message.timeout_ms,
            sender: message.sender,
            parent_session_key: message.parent_session_key,
        };
        (message.run_id, message.session_key, Payload::Chat(payload))
    }
}

impl From<AgentMessage> for (RunId, String, Payload) {
    fn from(message: AgentMessage) -> Self {
        let payload = AgentPayload {
            agent_id: Some(message.agent_id),
            session_id: message.session_id,
            text: message.text,
            images: message.images,
            thinking: message.thinking,
            timeout_seconds: message.timeout_seconds,
            lane: message.lane,
            extra_system_prompt: message.extra_system_prompt,
            occasion: message.occasion,
            entry_patch: message.entry_patch,
        };
        (message.run_id, message.session_key, Payload::Agent(payload))
    }
}

/// The `outcome` column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "camelCase")]
pub(crate) enum StoredOutcome {
    Ok {
        result: Value,
    },
    Error {
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
    Aborted {
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
}

impl StoredOutcome {
    /// What is kept of an outcome: all but the prompt report, which is ten times the rest and of no use to a repeated key.
    pub(crate) fn of(outcome: RunOutcome) -> Self {
        match outcome {
            RunOutcome::Ok { result } => Self::Ok { result: without_report(result) },
            RunOutcome::Error { message, result } => {
                Self::Error { message, result: result.map(without_report) }
            }
            RunOutcome::Aborted { reason, result } => {
                Self::Aborted { reason, result: result.map(without_report) }
            }
        }
    }
}

impl From<StoredOutcome> for RunOutcome {
    fn from(outcome: StoredOutcome) -> Self {
        match outcome {
            StoredOutcome::Ok { result } => Self::Ok { result },
            StoredOutcome::Error { message, result } => Self::Error { message, result },
            StoredOutcome::Aborted { reason, result } => Self::Aborted { reason, result },
        }
    }
}

fn without_report(mut result: Value) -> Value {
    if let Some(meta) = result.get_mut("meta").and_then(Value::as_object_mut) {
        meta.shift_remove("systemPromptReport");
    }
    result
}
