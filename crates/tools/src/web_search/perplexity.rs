//! Perplexity, by itself or through OpenRouter: an answer with its sources.

use openclaw_config::settings::PerplexitySearch;
use serde_json::{Value, json};
use url::Url;

use super::parameters::Parameters;
use super::provider::SearchRequest;
use super::{fields, wrapped};
use crate::web::{Keys, key};

const DIRECT: &str = "https://api.perplexity.ai";
const OPENROUTER: &str = "https://openrouter.ai/api/v1";

/// Parameters of a query.
pub(super) struct Perplexity<'a> {
    key: &'a str,
    pub(super) base: String,
    model: &'a str,
}

impl<'a> Perplexity<'a> {
    /// `None` without a key. Whose key it is decides who is asked, unless that is configured.
    pub(super) fn of(settings: &'a PerplexitySearch, keys: &'a Keys, base: Option<&str>) -> Option<Self> {
        let configured = key(settings.api_key.as_ref(), None);
        let (key, usual) = match (configured, key(None, keys.perplexity.as_ref())) {
            (Some(key), _) if key.starts_with("pplx-") => (key, DIRECT),
            (Some(key), _) => (key, OPENROUTER),
            (None, Some(key)) => (key, DIRECT),
            (None, None) => (crate::web::key(None, keys.openrouter.as_ref())?, OPENROUTER),
        };
        let set = settings.base_url.as_deref().map(str::trim).filter(|base| !base.is_empty());
        let base = base.or(set).unwrap_or(usual).trim_end_matches('/').to_owned();
        Some(Self { key, base, model: &settings.model })
    }

    /// Perplexity does not know the prefix that OpenRouter needs.
    pub(super) fn model(&self) -> &str {
        let host = Url::parse(&self.base).ok();
        let is_direct = host.as_ref().and_then(Url::host_str) == Some("api.perplexity.ai");
        match self.model.strip_prefix("perplexity/") {
            Some(bare) if is_direct => bare,
            Some(_) | None => self.model,
        }
    }

    pub(super) fn question(&self, asked: &Parameters) -> SearchRequest {
        let headers = vec![
            ("authorization", format!("Bearer {}", self.key)),
            // By these OpenRouter tells its users apart.
            ("http-referer", "https://openclaw.ai".to_owned()),
            ("x-title", "OpenClaw Web Search".to_owned()),
        ];
        let body = json!({"model": self.model(), "messages": [{"role": "user", "content": asked.query}]});
        (format!("{}/chat/completions", self.base), headers, Some(body))
    }

    pub(super) fn result(&self, asked: &Parameters, answer: &Value, took_ms: u64) -> Value {
        let content = answer.pointer("/choices/0/message/content").and_then(Value::as_str);
        let content = content.filter(|content| !content.is_empty()).unwrap_or("No response");
        let citations = answer.get("citations").filter(|citations| citations.is_array());
        fields([
            ("query", Some(json!(asked.query))),
            ("provider", Some(json!("perplexity"))),
            ("model", Some(json!(self.model))),
            ("tookMs", Some(json!(took_ms))),
            ("content", Some(json!(wrapped(content)))),
            ("citations", Some(citations.cloned().unwrap_or_else(|| json!([])))),
        ])
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    /// Configured key, its base, key of Perplexity and of OpenRouter in the environment; who is asked for which model.
    #[test]
    fn the_key_decides_who_is_asked() {
        let secret = |key: &str| Some(SecretString::from(key)).filter(|_| !key.is_empty());
        for (configured, base, own, openrouter, expect) in [
            ("pplx-1", "", "", "", Some((DIRECT, "sonar-pro", "pplx-1"))),
            ("sk-or-1", "", "pplx-2", "", Some((OPENROUTER, "perplexity/sonar-pro", "sk-or-1"))),
            ("other", "", "", "", Some((OPENROUTER, "perplexity/sonar-pro", "other"))),
            ("", "", "any", "sk-or-2", Some((DIRECT, "sonar-pro", "any"))),
            (" ", "", "", "sk-or-2", Some((OPENROUTER, "perplexity/sonar-pro", "sk-or-2"))),
            (
                "pplx-1",
                " https://p.example/v1/ ",
                "",
                "",
                Some(("https://p.example/v1", "perplexity/sonar-pro", "pplx-1")),
            ),
            ("x", "https://api.perplexity.ai", "", "", Some((DIRECT, "sonar-pro", "x"))),
            ("", "", "", "", None),
        ] {
            let settings = PerplexitySearch {
                api_key: secret(configured),
                base_url: Some(base.to_owned()),
                ..PerplexitySearch::default()
            };
            let keys = Keys { perplexity: secret(own), openrouter: secret(openrouter), ..Keys::default() };
            let found = Perplexity::of(&settings, &keys, None);
            let found = found.as_ref().map(|found| (found.base.as_str(), found.model(), found.key));
            assert_eq!(found, expect, "{configured} {base} {own} {openrouter}");
        }
    }
}
