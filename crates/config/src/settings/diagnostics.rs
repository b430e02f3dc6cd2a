//! `diagnostics.*`, as far as it is acted on.

use serde::Deserialize;

/// `diagnostics`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Diagnostics {
    /// What models are asked, for whoever looks for the reason of a cache miss.
    pub cache_trace: CacheTrace,
}

/// `diagnostics.cacheTrace`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CacheTrace {
    /// Whether it is written.
    pub enabled: bool,
    /// Where; absent is `<state>/logs/cache-trace.jsonl`.
    pub file_path: Option<String>,
    /// With the messages, not only what they add up to.
    pub include_messages: bool,
    /// With the system prompt.
    pub include_system: bool,
}

impl Default for CacheTrace {
    fn default() -> Self {
        Self { enabled: false, file_path: None, include_messages: true, include_system: true }
    }
}
