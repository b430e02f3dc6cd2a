//! Settings of this crate from `openclaw.json`, as plain values: `agents.*.model*`, `models.*` and
//! `auth.*`.

mod read;

use std::collections::BTreeMap;
use std::time::Duration;

use openclaw_config::profile::Instance;
use openclaw_config::settings::{AuthProfile, CacheTrace, ModelChoice, ModelsMode};
use openclaw_protocol::AgentId;

use crate::cache_retention::CacheRetention;
pub use crate::provider_entry::ProviderEntry;
use crate::thinking::ThinkingLevel;

/// An hour in milliseconds.
const HOUR: i64 = 60 * 60_000;

/// The model settings of the whole installation.
#[derive(Debug, Clone, Default)]
pub struct ModelSettings {
    /// Agent that is meant where none is named.
    pub default_agent: AgentId,
    /// `agents.defaults.model`
    pub default_model: ModelChoice,
    /// `agents.defaults.imageModel`
    pub image_model: ModelChoice,
    /// `agents.list[].model` by agent.
    pub agent_models: BTreeMap<AgentId, ModelChoice>,
    /// `agents.defaults.models` in the file's order. Not empty: only these may be switched to.
    pub listed: Vec<ListedModel>,
    /// `agents.defaults.contextTokens`: cap of every context window, in tokens.
    pub context_tokens: Option<u64>,
    /// `agents.defaults.thinkingDefault`
    pub thinking_default: Option<ThinkingLevel>,
    /// `models.mode`
    pub catalog_mode: ModelsMode,
    /// `models.providers` in the file's order, ids as written.
    pub providers: Vec<(String, ProviderEntry)>,
    /// `models.bedrockDiscovery`
    pub bedrock: BedrockDiscovery,
    /// `auth.order`: profile ids by provider as written.
    pub auth_order: BTreeMap<String, Vec<String>>,
    /// `auth.profiles` by profile id.
    pub auth_profiles: BTreeMap<String, AuthProfile>,
    /// `auth.cooldowns`
    pub cooldowns: CooldownRules,
    /// `diagnostics.cacheTrace`
    pub cache_trace: CacheTrace,
    /// Words with which advice addresses this instance.
    pub instance: Instance,
}

/// Entry of `agents.defaults.models`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListedModel {
    /// `provider/model` as written.
    pub key: String,
    /// A name for it. Absent takes the built-in one, empty means none.
    pub alias: Option<String>,
    /// `params.maxTokens`: output cap in tokens.
    pub max_tokens: Option<u32>,
    /// `params.temperature`
    pub temperature: Option<f64>,
    /// `params.cacheRetention`, or the older `params.cacheControlTtl` (`5m` is short, `1h` long).
    pub cache: Option<CacheRetention>,
    /// `streaming`, or `params.streaming`: whether to ask for a stream when tools are offered.
    pub streaming: Option<bool>,
}

/// `auth.cooldowns`, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CooldownRules {
    /// First cooldown after a payment failure.
    pub billing_first: i64,
    /// First cooldown after a payment failure, by provider as written.
    pub billing_first_by_provider: BTreeMap<String, i64>,
    /// Longest cooldown after payment failures.
    pub billing_longest: i64,
    /// Failures older than this are forgotten.
    pub window: i64,
}

impl Default for CooldownRules {
    fn default() -> Self {
        Self {
            billing_first: 5 * HOUR,
            billing_first_by_provider: BTreeMap::new(),
            billing_longest: 24 * HOUR,
            window: 24 * HOUR,
        }
    }
}

/// `models.bedrockDiscovery`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BedrockDiscovery {
    /// True to ask Bedrock for its models; absent: if AWS's variables name credentials.
    pub enabled: Option<bool>,
    /// Region to ask; absent: `AWS_REGION`, `AWS_DEFAULT_REGION`, the profile's, `us-east-1`.
    pub region: Option<String>,
    /// Vendors whose models are wanted, in any case of letters; empty wants all.
    pub providers: Vec<String>,
    /// Time for which an answer stays valid.
    pub refresh: Duration,
    /// Tokens assumed of a model: the list does not say.
    pub context_window: u64,
    /// Largest answer assumed of a model, in tokens.
    pub max_tokens: u64,
    /// Address in place of AWS's.
    pub address: Option<String>,
}

impl Default for BedrockDiscovery {
    /// The defaults of spec `models.md` §2.4.
    fn default() -> Self {
        Self {
            enabled: None,
            region: None,
            providers: Vec::new(),
            refresh: Duration::from_secs(3600),
            context_window: 32_000,
            max_tokens: 4096,
            address: None,
        }
    }
}
