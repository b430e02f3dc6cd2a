//! The wire protocols by name (spec `models.md` §2.3), and the one table that says which code speaks which.
//!
//! A new protocol is a variant of [`Api`], a row of `ROWS` and a module that implements `wire::Protocol`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::anthropic::Anthropic;
use crate::bedrock::Bedrock;
use crate::google::{Google, Vertex};
use crate::openai_completions::Completions;
use crate::openai_responses::{Azure, Codex, Responses};
use crate::wire::Protocol;

/// How a model is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Api {
    /// Anthropic's `POST /v1/messages`.
    AnthropicMessages,
    /// OpenAI's `POST /chat/completions`, spoken by most other servers.
    OpenAiCompletions,
    /// OpenAI's `POST /responses`.
    OpenAiResponses,
    /// The same at the backend of ChatGPT, with a login instead of a key.
    OpenAiCodexResponses,
    /// The same at Azure.
    AzureOpenAiResponses,
    /// Google's `POST /models/<id>:streamGenerateContent`.
    GoogleGenerativeAi,
    /// The same at Google's cloud, with a login of it instead of a key.
    GoogleVertex,
    /// Amazon Bedrock's `POST /model/<id>/converse-stream`.
    BedrockConverseStream,
    /// The offline guide: no wire at all.
    Offline,
    /// A protocol that is known by name only, or a misspelt one.
    Other(String),
}

struct Row {
    api: Api,
    /// As configuration and transcripts write it.
    name: &'static str,
    /// Absent where nothing goes over a wire.
    protocol: Option<&'static dyn Protocol>,
}

static ROWS: &[Row] = &[
    Row { api: Api::AnthropicMessages, name: "anthropic-messages", protocol: Some(&Anthropic) },
    Row { api: Api::OpenAiCompletions, name: "openai-completions", protocol: Some(&Completions) },
    Row { api: Api::OpenAiResponses, name: "openai-responses", protocol: Some(&Responses) },
    Row { api: Api::OpenAiCodexResponses, name: "openai-codex-responses", protocol: Some(&Codex) },
    Row { api: Api::AzureOpenAiResponses, name: "azure-openai-responses", protocol: Some(&Azure) },
    Row { api: Api::GoogleGenerativeAi, name: "google-generative-ai", protocol: Some(&Google) },
    Row { api: Api::GoogleVertex, name: "google-vertex", protocol: Some(&Vertex) },
    Row { api: Api::BedrockConverseStream, name: "bedrock-converse-stream", protocol: Some(&Bedrock) },
    Row { api: Api::Offline, name: "offline", protocol: None },
];

impl Api {
    /// The name used in configuration and transcripts.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(name) => name,
            known => known.row().map_or("", |row| row.name),
        }
    }

    /// Whether there is a client for it.
    pub fn is_spoken(&self) -> bool {
        self.protocol().is_some()
    }

    /// Whether a provider that speaks it must have a `baseUrl`.
    pub fn needs_address(&self) -> bool {
        self.protocol().is_some_and(Protocol::needs_address)
    }

    /// The code that speaks it.
    pub(crate) fn protocol(&self) -> Option<&'static dyn Protocol> {
        self.row()?.protocol
    }

    fn row(&self) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.api == *self)
    }
}

impl From<&str> for Api {
    fn from(name: &str) -> Self {
        let name = name.trim();
        let known = ROWS.iter().find(|row| row.name == name);
        known.map_or_else(|| Self::Other(name.to_owned()), |row| row.api.clone())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_its_row_and_its_name() {
        for row in ROWS {
            assert_eq!(Api::from(row.name), row.api);
            assert_eq!(row.api.as_str(), row.name);
            assert_eq!(row.api.is_spoken(), row.api != Api::Offline, "{}", row.name);
        }
        let unknown = Api::from(" semaphore ");
        assert_eq!((unknown.as_str(), unknown.is_spoken()), ("semaphore", false));
    }
}
