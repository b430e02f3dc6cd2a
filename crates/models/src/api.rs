//! The wire protocols by name (spec `models.md` §2.3).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How a model is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Api {
    /// Anthropic's `POST /v1/messages`.
    AnthropicMessages,
    /// OpenAI's `POST /chat/completions`, spoken by most other servers.
    OpenAiCompletions,
    /// The offline guide: no wire at all.
    Offline,
    /// A protocol that is known by name only, or a misspelt one.
    Other(String),
}

impl Api {
    /// The name used in configuration and transcripts.
    pub fn as_str(&self) -> &str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenAiCompletions => "openai-completions",
            Self::Offline => "offline",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for Api {
    fn from(name: &str) -> Self {
        match name.trim() {
            "anthropic-messages" => Self::AnthropicMessages,
            "openai-completions" => Self::OpenAiCompletions,
            "offline" => Self::Offline,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Api {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Api {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from(String::deserialize(deserializer)?.as_str()))
    }
}
