//! Selects the search provider and its key.

use std::time::Duration;

use openclaw_config::settings::SearchProvider;
use serde_json::Value;

use super::parameters::Parameters;
use super::{NotAsked, brave, grok, perplexity};
use crate::web::json_api::JsonCall;
use crate::web::{WebSettings, key};

/// The configured provider, with what it needs.
pub(super) enum SearchBackend<'a> {
    Brave(brave::Brave<'a>),
    Perplexity(perplexity::Perplexity<'a>),
    Grok(grok::Grok<'a>),
}

impl<'a> SearchBackend<'a> {
    /// Returns the configured provider, unless its key is missing.
    pub(super) fn of(web: &'a WebSettings) -> Result<Self, NotAsked> {
        let settings = &web.config.search;
        let base = web.search_base.as_deref();
        match settings.provider {
            SearchProvider::Brave => {
                let key = key(settings.api_key.as_ref(), web.keys.brave.as_ref())
                    .ok_or_else(|| missing("missing_brave_api_key", "BRAVE_API_KEY", "apiKey"))?;
                Ok(Self::Brave(brave::Brave { key, base: base.unwrap_or(brave::BASE) }))
            }
            SearchProvider::Perplexity => perplexity::Perplexity::of(&settings.perplexity, &web.keys, base)
                .map(Self::Perplexity)
                .ok_or_else(|| {
                    let variables = "PERPLEXITY_API_KEY or OPENROUTER_API_KEY";
                    missing("missing_perplexity_api_key", variables, "perplexity.apiKey")
                }),
            SearchProvider::Grok => {
                let key = key(settings.grok.api_key.as_ref(), web.keys.xai.as_ref())
                    .ok_or_else(|| missing("missing_xai_api_key", "XAI_API_KEY", "grok.apiKey"))?;
                let settings = &settings.grok;
                Ok(Self::Grok(grok::Grok { key, base: base.unwrap_or(grok::BASE), settings }))
            }
        }
    }

    /// Returns the name in front of `API error`.
    pub(super) fn api_name(&self) -> &'static str {
        match self {
            Self::Brave(_) => "Brave Search",
            Self::Perplexity(_) => "Perplexity",
            Self::Grok(_) => "xAI",
        }
    }

    /// Returns the cache key: everything on which an answer depends.
    pub(super) fn cache_key(&self, asked: &Parameters) -> String {
        let own = match self {
            Self::Brave(_) => {
                let Parameters { count, country, search_lang, ui_lang, freshness, .. } = asked;
                format!("brave\n{count}\n{country:?}\n{search_lang:?}\n{ui_lang:?}\n{freshness:?}")
            }
            Self::Perplexity(perplexity) => {
                format!("perplexity\n{}\n{}", perplexity.base, perplexity.model())
            }
            Self::Grok(grok) => {
                format!("grok\n{}\n{}", grok.settings.model, grok.settings.inline_citations)
            }
        };
        format!("{own}\n{}", asked.query).to_lowercase()
    }

    /// The question.
    pub(super) fn call(&self, asked: &Parameters, timeout: Duration) -> JsonCall {
        let (url, headers, body) = match self {
            Self::Brave(brave) => brave.question(asked),
            Self::Perplexity(perplexity) => perplexity.question(asked),
            Self::Grok(grok) => grok.question(asked),
        };
        JsonCall { url, headers, body, timeout }
    }

    /// The result that the model gets, which took so many milliseconds.
    pub(super) fn result(&self, asked: &Parameters, answer: &Value, took_ms: u64) -> Value {
        match self {
            Self::Brave(_) => brave::result(asked, answer, took_ms),
            Self::Perplexity(perplexity) => perplexity.result(asked, answer, took_ms),
            Self::Grok(grok) => grok.result(asked, answer, took_ms),
        }
    }
}

/// Address, headers and body of a question.
pub(super) type SearchRequest = (String, Vec<(&'static str, String)>, Option<Value>);

fn missing(error: &'static str, variables: &str, setting: &str) -> NotAsked {
    let message = format!(
        "web_search has no key for its provider. Whoever runs the gateway can set {variables} in its environment, or \
         tools.web.search.{setting} in its configuration."
    );
    NotAsked { error, message }
}
