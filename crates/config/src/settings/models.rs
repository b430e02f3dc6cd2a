//! `models.*`: providers beyond the built-in ones.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::Secret;

/// `models`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Models {
    /// Merging with the built-in catalog, or replacing it.
    pub mode: ModelsMode,
    /// Providers by id, in the file's order.
    pub providers: IndexMap<String, Provider>,
    /// Listing what an AWS account has in Bedrock.
    pub bedrock_discovery: BedrockDiscovery,
}

/// `models.bedrockDiscovery`. Absent values are filled in where they are used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BedrockDiscovery {
    /// True to ask; absent: when AWS's variables name credentials.
    pub enabled: Option<bool>,
    /// AWS region; absent: that of the environment.
    pub region: Option<String>,
    /// Vendors whose models are wanted; empty wants all.
    pub provider_filter: Vec<String>,
    /// Seconds for which an answer stays good; absent: 3,600.
    pub refresh_interval: Option<u64>,
    /// Context window assumed of a model, in tokens; absent: 32,000.
    pub default_context_window: Option<u64>,
    /// Longest answer assumed of a model, in tokens; absent: 4,096.
    pub default_max_tokens: Option<u64>,
}

/// `models.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelsMode {
    /// Added to the built-in catalog.
    #[default]
    Merge,
    /// Instead of the built-in catalog.
    Replace,
}

/// `models.providers.<id>`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    /// Base URL, without the protocol's own path.
    pub base_url: String,
    /// Key, or the name of the environment variable that holds it.
    pub api_key: Option<Secret>,
    /// Kind of credential.
    pub auth: Option<ProviderAuth>,
    /// Wire protocol of its models.
    pub api: Option<ModelApi>,
    /// Added to every request; values may be secrets.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    /// Send the key as `Authorization: Bearer`.
    pub auth_header: Option<bool>,
    /// Models of the provider.
    #[serde(default)]
    pub models: Vec<CustomModel>,
}

/// `models.providers.*.auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderAuth {
    /// A key.
    ApiKey,
    /// The AWS credential chain.
    AwsSdk,
    /// OAuth.
    Oauth,
    /// A bearer token.
    Token,
}

/// A wire protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelApi {
    /// OpenAI Chat Completions and the many servers that speak it.
    OpenaiCompletions,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    AnthropicMessages,
    /// Google Generative AI.
    GoogleGenerativeAi,
    /// GitHub Copilot.
    GithubCopilot,
    /// Amazon Bedrock Converse.
    BedrockConverseStream,
}

impl ModelApi {
    /// The word used in config files and transcripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiCompletions => "openai-completions",
            Self::OpenaiResponses => "openai-responses",
            Self::AnthropicMessages => "anthropic-messages",
            Self::GoogleGenerativeAi => "google-generative-ai",
            Self::GithubCopilot => "github-copilot",
            Self::BedrockConverseStream => "bedrock-converse-stream",
        }
    }
}

/// `models.providers.*.models[]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomModel {
    /// Id at the provider.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Protocol, when it differs from the provider's.
    pub api: Option<ModelApi>,
    /// True if it thinks.
    #[serde(default)]
    pub reasoning: bool,
    /// `text`, `image`.
    #[serde(default)]
    pub input: Vec<String>,
    /// Prices in dollars per million tokens.
    #[serde(default)]
    pub cost: ModelCost,
    /// Context window in tokens; filled with 200,000.
    pub context_window: Option<f64>,
    /// Longest answer in tokens; filled with the smaller of 8,192 and the window.
    pub max_tokens: Option<f64>,
    /// Added to requests for this model.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    /// Deviations of the server from the protocol.
    #[serde(default)]
    pub compat: ModelCompat,
}

/// Prices in dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ModelCost {
    /// Prompt.
    pub input: f64,
    /// Answer.
    pub output: f64,
    /// Prompt from the cache.
    pub cache_read: f64,
    /// Prompt into the cache.
    pub cache_write: f64,
}

/// `compat`: what a server can't do. Absent means that the provider's defaults hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ModelCompat {
    /// Field `store`.
    pub supports_store: Option<bool>,
    /// Role `developer`.
    pub supports_developer_role: Option<bool>,
    /// Field `reasoning_effort`.
    pub supports_reasoning_effort: Option<bool>,
    /// `max_tokens` or `max_completion_tokens`.
    pub max_tokens_field: Option<String>,
}
