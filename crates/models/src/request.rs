//! What a run asks of a model, in our own terms.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use openclaw_protocol::message::Message;
use serde::{Deserialize, Serialize};

use crate::kept_request::KeptRequest;
use crate::tool_schema::ToolSchema;

/// One model call.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// The system prompt, whole.
    pub system: Arc<str>,
    /// The context, oldest first, as the transcript has it: a [`Model`](crate::Model) makes it fit for itself (see
    /// [`history`](crate::history)).
    pub messages: Arc<Vec<Arc<Message>>>,
    /// Tools in the order they are offered.
    pub tools: Arc<[ToolSpec]>,
    /// Requested thinking level; clamped to what the model can do.
    pub thinking: ThinkingLevel,
    /// Output cap in tokens; absent takes `min(model.maxTokens, 32000)`.
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Prompt caching.
    pub cache: CacheRetention,
    /// Our session id: cache key and session header where a provider has one.
    pub session_id: Option<String>,
    /// What was asked before in the same conversation.
    pub kept: KeptRequest,
}

/// A tool as offered to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Name, exact.
    pub name: Cow<'static, str>,
    /// What it does, for the model.
    pub description: Cow<'static, str>,
    /// JSON Schema of the arguments: an object schema.
    pub parameters: ToolSchema,
}

/// How long a provider should keep the prompt cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheRetention {
    /// No caching.
    None,
    /// The provider's short default (5 minutes at Anthropic).
    #[default]
    Short,
    /// One hour at Anthropic, 24 hours at OpenAI.
    Long,
}

impl CacheRetention {
    /// The one provider whose prompts are cached on request, for a time that can be chosen.
    pub const PROVIDER: &str = "anthropic";

    /// What a call asks for: what the configuration says of the model, else an hour with an API key of Anthropic, which is
    /// as long as pruning leaves the history alone, else the provider's short default (spec `models.md` §6). `mode` is how
    /// the call authenticates, such as `api-key`.
    pub fn effective(configured: Option<Self>, provider: &str, mode: &str) -> Self {
        let is_long = provider == Self::PROVIDER && mode == "api-key";
        configured.unwrap_or(if is_long { Self::Long } else { Self::Short })
    }
}

/// Thinking levels in rising order (spec `models.md` §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// No reasoning.
    #[default]
    Off,
    /// Least.
    Minimal,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// Most; few models have it.
    XHigh,
}

impl ThinkingLevel {
    /// The canonical name, as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
        }
    }
}

impl fmt::Display for ThinkingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Text that names no thinking level.
#[derive(Debug, Clone, thiserror::Error)]
#[error("invalid thinking level \"{0}\"")]
pub struct UnknownThinkingLevel(String);

impl FromStr for ThinkingLevel {
    type Err = UnknownThinkingLevel;

    /// Accepts every synonym a person may type (spec `models.md` §5).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim().to_lowercase().as_str() {
            "off" => Ok(Self::Off),
            "min" | "minimal" | "think" => Ok(Self::Minimal),
            "on" | "enable" | "enabled" | "low" | "thinkhard" | "think-hard" | "think_hard" => Ok(Self::Low),
            "mid" | "med" | "medium" | "thinkharder" | "think-harder" | "harder" => Ok(Self::Medium),
            "high" | "ultra" | "ultrathink" | "thinkhardest" | "highest" | "max" => Ok(Self::High),
            "xhigh" | "x-high" | "x_high" | "extra high" | "extra-high" | "extrahigh" => Ok(Self::XHigh),
            _ => Err(UnknownThinkingLevel(text.to_owned())),
        }
    }
}
