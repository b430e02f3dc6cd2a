//! Providers and models as `models.providers`, `models.json` and the built-in catalog write them.

use std::collections::BTreeMap;

use openclaw_config::settings::{ModelCost, ProviderAuth};
use secrecy::SecretString;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::api::Api;

/// `models.providers.<id>`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderEntry {
    /// Address of the API.
    pub base_url: Option<String>,
    /// A literal key, the name of a variable, `${NAME}` or `!command`.
    pub api_key: Option<SecretString>,
    /// Authentication method.
    pub auth: Option<ProviderAuth>,
    /// Protocol of its models unless they say otherwise.
    pub api: Option<Api>,
    /// Headers of every request.
    pub headers: BTreeMap<String, SecretString>,
    /// True if the key is also sent as `Authorization: Bearer`, besides the protocol's own way.
    pub auth_header: Option<bool>,
    /// Models of the provider.
    pub models: Vec<ModelEntry>,
    /// Environment variables that hold its key, first set wins; the built-in catalog only.
    pub env: Vec<String>,
    /// Variables like `env` that are often set for other reasons: their presence alone connects no
    /// model.
    pub ambient_env: Vec<String>,
    /// Has more models than are listed: any id is taken for one; the built-in catalog only.
    pub open: bool,
    /// Defaults for a model that is not listed; the built-in catalog only.
    pub new_model: Option<ModelEntry>,
    /// Listed only when a credential for it is found; the built-in catalog only.
    pub implicit: bool,
    /// Method of asking the provider's server for its models; the built-in catalog only.
    pub asks: Option<Asks>,
    /// Placeholder for the key in `models.json` if the login is an OAuth one; the built-in catalog
    /// only.
    pub placeholder: Option<String>,
    /// Changes to models that others list, by id; `models.json` only.
    pub model_overrides: BTreeMap<String, ModelOverride>,
}

/// Method of asking a server for its models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asks {
    /// Ollama: `GET /api/tags`, `POST /api/show`.
    Ollama,
    /// LM Studio: `GET /api/v0/models`.
    LmStudio,
    /// The server of llama.cpp: `GET /v1/models`, `GET /props`.
    LlamaCpp,
    /// vLLM: `GET /v1/models`.
    Vllm,
    /// Venice, a service on the internet: `GET /models`.
    Venice,
}

impl Asks {
    /// Returns true if the server is a program that people run on their own machine, without a key.
    pub fn is_local(self) -> bool {
        match self {
            Self::Ollama | Self::LmStudio | Self::LlamaCpp | Self::Vllm => true,
            Self::Venice => false,
        }
    }
}

/// Model of a [`ProviderEntry`].
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelEntry {
    /// Id on the wire.
    pub id: String,
    /// Name for people; absent is the id.
    pub name: Option<String>,
    /// Protocol; absent is the provider's.
    pub api: Option<Api>,
    /// Address of the model; absent is the provider's address.
    pub base_url: Option<String>,
    /// True if the model reasons.
    pub reasoning: Option<bool>,
    /// `text`, `image`.
    pub input: Option<Vec<String>>,
    /// Prices.
    pub cost: Option<ModelCost>,
    /// Tokens.
    #[serde(deserialize_with = "tokens")]
    pub context_window: Option<u64>,
    /// Largest answer in tokens.
    #[serde(deserialize_with = "tokens")]
    pub max_tokens: Option<u64>,
    /// Headers of its requests, over the provider's.
    pub headers: BTreeMap<String, SecretString>,
    /// Differences from OpenAI's own server.
    pub compat: Compat,
    /// True if a stream is requested when tools are offered: `streaming` of the model's `params`,
    /// whose other fields are ignored.
    #[serde(rename = "params", deserialize_with = "streaming")]
    pub streaming: Option<bool>,
    /// True if the server says that the model takes no tools, without which no agent can work;
    /// never written to a file.
    #[serde(skip)]
    pub lacks_tools: bool,
}

/// `modelOverrides.<id>`: what is said replaces what the list says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelOverride {
    /// Name for people.
    pub name: Option<String>,
    /// True if the model reasons.
    pub reasoning: Option<bool>,
    /// `text`, `image`.
    pub input: Option<Vec<String>>,
    /// Prices, each by itself.
    pub cost: PriceOverride,
    /// Tokens.
    #[serde(deserialize_with = "tokens")]
    pub context_window: Option<u64>,
    /// Largest answer in tokens.
    #[serde(deserialize_with = "tokens")]
    pub max_tokens: Option<u64>,
    /// Headers, added to those there are.
    pub headers: BTreeMap<String, SecretString>,
    /// Differences from OpenAI's own server.
    pub compat: Compat,
}

/// Prices that replace others; US dollars for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PriceOverride {
    /// Fresh prompt tokens.
    pub input: Option<f64>,
    /// Completion tokens.
    pub output: Option<f64>,
    /// Prompt tokens from the cache.
    pub cache_read: Option<f64>,
    /// Prompt tokens into the cache.
    pub cache_write: Option<f64>,
}

/// Differences of a server that speaks OpenAI's protocol (spec `models.md` §4.2). Absent is
/// detected.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Compat {
    /// Takes `store`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_store: Option<bool>,
    /// Takes role `developer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_developer_role: Option<bool>,
    /// Takes `reasoning_effort`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_reasoning_effort: Option<bool>,
    /// Takes `stream_options.include_usage`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_usage_in_streaming: Option<bool>,
    /// `max_completion_tokens` or `max_tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_field: Option<String>,
    /// Wants `name` on tool results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_tool_result_name: Option<bool>,
    /// Wants an assistant message between tool results and a user message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_assistant_after_tool_result: Option<bool>,
    /// Wants thinking replayed as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_thinking_as_text: Option<bool>,
    /// Wants tool call ids of nine alphanumerics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_mistral_tool_ids: Option<bool>,
    /// `openai`, `zai` or `qwen`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_format: Option<String>,
    /// Takes `strict` on functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_strict_mode: Option<bool>,
    /// OpenRouter's `provider` field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_router_routing: Option<Value>,
    /// Vercel's `providerOptions.gateway` field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vercel_gateway_routing: Option<Value>,
}

impl Compat {
    /// Merges two sets of differences; fields set here win over `base`.
    pub(super) fn over(&self, base: &Self) -> Self {
        // Absent fields are not written.
        let fields = [base, self].into_iter().filter_map(|compat| match serde_json::to_value(compat) {
            Ok(Value::Object(fields)) => Some(fields),
            Ok(_) | Err(_) => None,
        });
        serde_json::from_value(fields.flatten().collect()).unwrap_or_default()
    }
}

fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.and_then(whole))
}

fn streaming<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    Ok(Value::deserialize(deserializer)?.get("streaming").and_then(Value::as_bool))
}

/// A count of tokens, which the file may write as `8192.0`.
pub(crate) fn whole(number: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "finite and positive; as saturates"
    )]
    (number.is_finite() && number >= 1.0).then_some(number as u64)
}
