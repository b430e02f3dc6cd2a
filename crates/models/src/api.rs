//! The wire protocols by name (spec `models.md` §2.3). The code for each protocol is listed in
//! `protocols`.

use std::fmt;

use serde::{Deserialize, Deserializer};

/// Wire protocol of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Api {
    /// Anthropic's `POST /v1/messages`.
    AnthropicMessages,
    /// OpenAI's `POST /chat/completions`, spoken by most other servers.
    OpenAiCompletions,
    /// OpenAI's `POST /responses`.
    OpenAiResponses,
    /// Responses at the ChatGPT backend, with a login instead of a key.
    OpenAiCodexResponses,
    /// Responses at Azure.
    AzureOpenAiResponses,
    /// Google's `POST /models/<id>:streamGenerateContent`.
    GoogleGenerativeAi,
    /// Gemini at Google Cloud (Vertex AI), with a Google login instead of a key.
    GoogleVertex,
    /// Amazon Bedrock's `POST /model/<id>/converse-stream`.
    BedrockConverseStream,
    /// The offline guide: no wire at all.
    Offline,
    /// A protocol that is known by name only, or a misspelt one.
    Other(String),
}

/// Names in configuration and transcripts.
const NAMES: &[(Api, &str)] = &[
    (Api::AnthropicMessages, "anthropic-messages"),
    (Api::OpenAiCompletions, "openai-completions"),
    (Api::OpenAiResponses, "openai-responses"),
    (Api::OpenAiCodexResponses, "openai-codex-responses"),
    (Api::AzureOpenAiResponses, "azure-openai-responses"),
    (Api::GoogleGenerativeAi, "google-generative-ai"),
    (Api::GoogleVertex, "google-vertex"),
    (Api::BedrockConverseStream, "bedrock-converse-stream"),
    (Api::Offline, "offline"),
];

impl Api {
    /// The name used in configuration and transcripts.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(name) => name,
            known => NAMES.iter().find(|(api, _)| api == known).map_or("", |(_, name)| name),
        }
    }
}

impl From<&str> for Api {
    fn from(name: &str) -> Self {
        let name = name.trim();
        let known = NAMES.iter().find(|(_, known)| *known == name);
        known.map_or_else(|| Self::Other(name.to_owned()), |(api, _)| api.clone())
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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
    fn a_name_is_read_as_it_is_written() {
        for (api, name) in NAMES {
            assert_eq!((&Api::from(*name), api.as_str()), (api, *name));
        }
        assert_eq!(Api::from(" semaphore ").as_str(), "semaphore");
    }
}
