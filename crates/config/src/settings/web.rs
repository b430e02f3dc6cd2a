//! `tools.web`: the tools `web_fetch` and `web_search`.

use serde::Deserialize;

use super::Secret;

/// Minutes an answer is kept.
const CACHE_MINUTES: f64 = 15.0;
const TIMEOUT_SECONDS: u64 = 30;

/// `tools.web`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct WebTools {
    /// Searching.
    pub search: WebSearch,
    /// Fetching pages.
    pub fetch: WebFetch,
}

/// `tools.web.search`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WebSearch {
    /// True if there is the tool `web_search`.
    pub enabled: bool,
    /// Search service to ask.
    pub provider: SearchProvider,
    /// The key for Brave.
    pub api_key: Option<Secret>,
    /// Results where a call does not say how many.
    pub max_results: u64,
    /// Seconds that are waited.
    pub timeout_seconds: u64,
    /// Minutes an answer is kept.
    pub cache_ttl_minutes: f64,
    /// Perplexity's own.
    pub perplexity: PerplexitySearch,
    /// Grok's own.
    pub grok: GrokSearch,
}

impl Default for WebSearch {
    fn default() -> Self {
        Self {
            enabled: true,
            provider: SearchProvider::Brave,
            api_key: None,
            max_results: 5,
            timeout_seconds: TIMEOUT_SECONDS,
            cache_ttl_minutes: CACHE_MINUTES,
            perplexity: PerplexitySearch::default(),
            grok: GrokSearch::default(),
        }
    }
}

/// `tools.web.search.provider`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchProvider {
    /// A list of pages.
    Brave,
    /// An answer with its sources.
    Perplexity,
    /// The same from xAI.
    Grok,
}

impl SearchProvider {
    /// The word used in the config.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Brave => "brave",
            Self::Perplexity => "perplexity",
            Self::Grok => "grok",
        }
    }
}

/// `tools.web.search.perplexity`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PerplexitySearch {
    /// A key of Perplexity or OpenRouter.
    pub api_key: Option<Secret>,
    /// Base URL; by default that of the service that issued the key.
    pub base_url: Option<String>,
    /// The model that answers.
    pub model: String,
}

impl Default for PerplexitySearch {
    fn default() -> Self {
        Self { api_key: None, base_url: None, model: "perplexity/sonar-pro".to_owned() }
    }
}

/// `tools.web.search.grok`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GrokSearch {
    /// A key of xAI.
    pub api_key: Option<Secret>,
    /// The model that answers.
    pub model: String,
    /// True if the answer says which of its words come from where.
    pub inline_citations: bool,
}

impl Default for GrokSearch {
    fn default() -> Self {
        Self { api_key: None, model: "grok-4-1-fast".to_owned(), inline_citations: false }
    }
}

/// `tools.web.fetch`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WebFetch {
    /// True if there is the tool `web_fetch`.
    pub enabled: bool,
    /// Characters where a call does not say how many; default: `max_chars_cap`.
    pub max_chars: Option<u64>,
    /// Characters that a call gets at most.
    pub max_chars_cap: u64,
    /// Seconds that are waited.
    pub timeout_seconds: u64,
    /// Minutes a page is kept.
    pub cache_ttl_minutes: f64,
    /// Redirects that are followed.
    pub max_redirects: u64,
    /// `User-Agent` of the gateway. Many sites answer nothing but browsers.
    pub user_agent: String,
    /// True if the readable part of a page is looked for.
    pub readability: bool,
    /// Service to ask when that gives nothing.
    pub firecrawl: Firecrawl,
}

impl Default for WebFetch {
    fn default() -> Self {
        Self {
            enabled: true,
            max_chars: None,
            max_chars_cap: 50_000,
            timeout_seconds: TIMEOUT_SECONDS,
            cache_ttl_minutes: CACHE_MINUTES,
            max_redirects: 3,
            user_agent:
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 \
                         Safari/537.36"
                    .to_owned(),
            readability: true,
            firecrawl: Firecrawl::default(),
        }
    }
}

/// `tools.web.fetch.firecrawl`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Firecrawl {
    /// Default: whether there is a key.
    pub enabled: Option<bool>,
    /// The key.
    pub api_key: Option<Secret>,
    /// Base URL of the service.
    pub base_url: String,
    /// True if menus and the like are left out.
    pub only_main_content: bool,
    /// Milliseconds that its own copy of a page may be old.
    pub max_age_ms: u64,
    /// Seconds that are waited; default: `tools.web.fetch.timeoutSeconds`.
    pub timeout_seconds: Option<u64>,
}

impl Default for Firecrawl {
    fn default() -> Self {
        Self {
            enabled: None,
            api_key: None,
            base_url: "https://api.firecrawl.dev".to_owned(),
            only_main_content: true,
            max_age_ms: 172_800_000,
            timeout_seconds: None,
        }
    }
}
