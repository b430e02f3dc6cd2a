//! Time for which a provider caches a prompt (spec `models.md` §6).

use serde::{Deserialize, Serialize};

/// Time for which a provider should cache the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheRetention {
    /// No caching.
    None,
    /// The provider's short default (5 minutes at Anthropic).
    #[default]
    Short,
    /// Caches for one hour at Anthropic, 24 hours at OpenAI.
    Long,
}

impl CacheRetention {
    /// Provider whose prompts are cached on request, for a time that can be chosen: the only one.
    pub const PROVIDER: &str = "anthropic";

    /// Returns the cache retention of a call: the configured one, else one hour with an API key of
    /// Anthropic, which matches the interval in which pruning leaves the history alone, else the
    /// provider's short default (spec `models.md` §6). `mode` is how the call authenticates, such
    /// as `api-key`.
    pub fn effective(configured: Option<Self>, provider: &str, mode: &str) -> Self {
        let is_long = provider == Self::PROVIDER && mode == "api-key";
        configured.unwrap_or(if is_long { Self::Long } else { Self::Short })
    }
}
