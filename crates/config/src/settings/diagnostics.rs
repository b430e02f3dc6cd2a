//! `diagnostics.*`, as far as it is acted on.

use serde::Deserialize;

/// `diagnostics`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Diagnostics {
    /// Trace of the requests to models, for whoever looks for the reason of a cache miss.
    pub cache_trace: CacheTrace,
}

/// `diagnostics.cacheTrace`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CacheTrace {
    /// True if the trace is written.
    pub enabled: bool,
    /// Path of the trace; absent is `<state>/logs/cache-trace.jsonl`.
    pub file_path: Option<String>,
    /// True to include the messages, not only their sums.
    pub include_messages: bool,
    /// True to include the system prompt.
    pub include_system: bool,
}

impl Default for CacheTrace {
    fn default() -> Self {
        Self { enabled: false, file_path: None, include_messages: true, include_system: true }
    }
}
