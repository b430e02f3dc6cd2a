//! Providers and models as `models.providers`, `models.json` and the built-in catalog write them.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

use crate::api::Api;

/// `models.providers.<id>`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderEntry {
    /// Where its API is.
    pub base_url: Option<String>,
    /// A literal key, the name of a variable, `${NAME}` or `!command`.
    #[serde(deserialize_with = "optional_secret")]
    pub api_key: Option<SecretString>,
    /// How it authenticates.
    pub auth: Option<ProviderAuthKind>,
    /// Protocol of its models unless they say otherwise.
    pub api: Option<Api>,
    /// Headers of every request.
    #[serde(deserialize_with = "secret_values")]
    pub headers: BTreeMap<String, SecretString>,
    /// Whether the key is sent as `Authorization: Bearer` besides the protocol's own way.
    pub auth_header: Option<bool>,
    /// Its models.
    pub models: Vec<ModelEntry>,
    /// Environment variables that hold its key, first set wins; the built-in catalog only.
    pub env: Vec<String>,
    /// Like `env`, but variables that are often set for other reasons: their presence alone connects no model.
    pub ambient_env: Vec<String>,
    /// Has more models than are listed: any id is taken for one; the built-in catalog only.
    pub open: bool,
    /// What is assumed of a model that is not listed; the built-in catalog only.
    pub new_model: Option<ModelEntry>,
    /// Listed only when a credential for it is found; the built-in catalog only.
    pub implicit: bool,
}

/// `models.providers.<id>.auth`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderAuthKind {
    /// A key.
    ApiKey,
    /// The AWS credential chain.
    AwsSdk,
    /// OAuth.
    #[serde(rename = "oauth")]
    OAuth,
    /// A bearer token.
    Token,
}

/// One model of a [`ProviderEntry`].
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelEntry {
    /// Id on the wire.
    pub id: String,
    /// Name for people; absent is the id.
    pub name: Option<String>,
    /// Protocol; absent is the provider's.
    pub api: Option<Api>,
    /// Whether it reasons.
    pub reasoning: Option<bool>,
    /// `text`, `image`.
    pub input: Option<Vec<String>>,
    /// Prices.
    pub cost: Option<Price>,
    /// Tokens.
    pub context_window: Option<u64>,
    /// Largest answer in tokens.
    pub max_tokens: Option<u64>,
    /// Headers of its requests, over the provider's.
    #[serde(deserialize_with = "secret_values")]
    pub headers: BTreeMap<String, SecretString>,
    /// Where it differs from OpenAI's own server.
    pub compat: Compat,
    /// `params.streaming`
    pub params: ModelEntryParams,
}

/// `models[].params`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ModelEntryParams {
    /// Whether to ask for a stream when tools are offered.
    pub streaming: Option<bool>,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Price {
    /// Fresh prompt tokens.
    pub input: f64,
    /// Completion tokens.
    pub output: f64,
    /// Prompt tokens from the cache.
    pub cache_read: f64,
    /// Prompt tokens into the cache.
    pub cache_write: f64,
}

impl Price {
    /// The price of a tier that costs this factor of it.
    pub fn times(self, factor: f64) -> Self {
        Self {
            input: self.input * factor,
            output: self.output * factor,
            cache_read: self.cache_read * factor,
            cache_write: self.cache_write * factor,
        }
    }
}

/// What a server that speaks OpenAI's protocol does differently (spec `models.md` §4.2). Absent is detected.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Compat {
    /// Takes `store`.
    pub supports_store: Option<bool>,
    /// Takes role `developer`.
    pub supports_developer_role: Option<bool>,
    /// Takes `reasoning_effort`.
    pub supports_reasoning_effort: Option<bool>,
    /// Takes `stream_options.include_usage`.
    pub supports_usage_in_streaming: Option<bool>,
    /// `max_completion_tokens` or `max_tokens`.
    pub max_tokens_field: Option<String>,
    /// Wants `name` on tool results.
    pub requires_tool_result_name: Option<bool>,
    /// Wants an assistant message between tool results and a user message.
    pub requires_assistant_after_tool_result: Option<bool>,
    /// Wants thinking replayed as text.
    pub requires_thinking_as_text: Option<bool>,
    /// Wants tool call ids of nine alphanumerics.
    pub requires_mistral_tool_ids: Option<bool>,
    /// `openai`, `zai` or `qwen`.
    pub thinking_format: Option<String>,
    /// Takes `strict` on functions.
    pub supports_strict_mode: Option<bool>,
    /// OpenRouter's `provider` field.
    pub open_router_routing: Option<serde_json::Value>,
    /// Vercel's `providerOptions.gateway` field.
    pub vercel_gateway_routing: Option<serde_json::Value>,
}

fn optional_secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(SecretString::from))
}

fn secret_values<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, SecretString>, D::Error> {
    let plain = BTreeMap::<String, String>::deserialize(deserializer)?;
    Ok(plain.into_iter().map(|(name, value)| (name, SecretString::from(value))).collect())
}
