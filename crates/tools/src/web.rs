//! What `web_fetch` and `web_search` share: `tools.web` with the keys found in the environment, and what lives as long as the gateway.

pub(crate) mod cache;
pub(crate) mod json_api;
pub(crate) mod places;
#[cfg(test)]
pub(crate) mod site;

use std::sync::Arc;
use std::time::Duration;

use openclaw_config::Environment;
use openclaw_config::settings::WebTools;
use openclaw_models::net::Http;
use secrecy::{ExposeSecret, SecretString};

use cache::Cache;
use places::WorkPermits;

/// Longest wait that a setting can ask for.
const MAX_TIMEOUT_SECONDS: u64 = 600;
/// Longest time that a setting can keep an answer.
const MAX_CACHE_MINUTES: f64 = 60.0 * 24.0;

/// How the web is used.
#[derive(Debug, Clone)]
pub struct WebSettings {
    /// `tools.web`.
    pub(crate) config: Arc<WebTools>,
    /// Keys of the environment.
    pub(crate) keys: Arc<Keys>,
    /// What lives as long as the gateway.
    pub(crate) shared: WebShared,
    /// Hosts that may be fetched from wherever they are. Nothing but a test fills it.
    pub(crate) allowed_hosts: Arc<[String]>,
    /// Where search providers are, if elsewhere than usual. Nothing but a test sets it.
    pub(crate) search_base: Option<Arc<str>>,
}

impl WebSettings {
    /// `tools.web`, with the environment that keys may stand in.
    pub fn new(config: &WebTools, environment: &Environment, shared: WebShared) -> Self {
        Self {
            config: Arc::new(config.clone()),
            keys: Arc::new(Keys::of(environment)),
            shared,
            allowed_hosts: Arc::default(),
            search_base: None,
        }
    }
}

/// Keys that the environment holds.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    pub(crate) brave: Option<SecretString>,
    pub(crate) perplexity: Option<SecretString>,
    pub(crate) openrouter: Option<SecretString>,
    pub(crate) xai: Option<SecretString>,
    pub(crate) firecrawl: Option<SecretString>,
}

impl Keys {
    fn of(environment: &Environment) -> Self {
        let key = |name| environment.get_nonblank(name).map(SecretString::from);
        Self {
            brave: key("BRAVE_API_KEY"),
            perplexity: key("PERPLEXITY_API_KEY"),
            openrouter: key("OPENROUTER_API_KEY"),
            xai: key("XAI_API_KEY"),
            firecrawl: key("FIRECRAWL_API_KEY"),
        }
    }
}

/// A key of the config that is not blank, or else the one of the environment.
pub(crate) fn key<'a>(
    configured: Option<&'a SecretString>,
    environment: Option<&'a SecretString>,
) -> Option<&'a str> {
    let given = |key: &'a SecretString| Some(key.expose_secret().trim()).filter(|key| !key.is_empty());
    configured.and_then(given).or_else(|| environment.and_then(given))
}

/// What lives as long as the gateway: connections, and answers that are given again. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct WebShared(Arc<WebResources>);

#[derive(Debug, Default)]
struct WebResources {
    http: Http,
    pages: Cache,
    searches: Cache,
    places: WorkPermits,
}

impl WebShared {
    /// Connections to search providers and the like.
    pub(crate) fn http(&self) -> &Http {
        &self.0.http
    }

    /// Pages that were fetched.
    pub(crate) fn pages(&self) -> &Cache {
        &self.0.pages
    }

    /// Searches that were answered.
    pub(crate) fn searches(&self) -> &Cache {
        &self.0.searches
    }

    /// Room for pages that are taken apart.
    pub(crate) fn places(&self) -> &WorkPermits {
        &self.0.places
    }
}

/// `timeoutSeconds`.
pub(crate) fn timeout(seconds: u64) -> Duration {
    Duration::from_secs(seconds.clamp(1, MAX_TIMEOUT_SECONDS))
}

/// `cacheTtlMinutes`; zero keeps nothing.
pub(crate) fn cache_ttl(minutes: f64) -> Duration {
    Duration::try_from_secs_f64(minutes.clamp(0.0, MAX_CACHE_MINUTES) * 60.0).unwrap_or_default()
}
