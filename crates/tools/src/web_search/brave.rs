//! Brave Search: a list of pages.

use serde_json::{Value, json};
use url::Url;
use url::form_urlencoded::Serializer;

use super::parameters::Parameters;
use super::provider::SearchRequest;
use super::{fields, wrapped};

pub(super) const BASE: &str = "https://api.search.brave.com";

/// Parameters of a query.
pub(super) struct Brave<'a> {
    pub(super) key: &'a str,
    pub(super) base: &'a str,
}

impl Brave<'_> {
    pub(super) fn question(&self, asked: &Parameters) -> SearchRequest {
        let mut query = Serializer::new(String::new());
        query.append_pair("q", &asked.query).append_pair("count", &asked.count.to_string());
        for (name, value) in [
            ("country", &asked.country),
            ("search_lang", &asked.search_lang),
            ("ui_lang", &asked.ui_lang),
            ("freshness", &asked.freshness),
        ] {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        let url = format!("{}/res/v1/web/search?{}", self.base, query.finish());
        (url, vec![("x-subscription-token", self.key.to_owned())], None)
    }
}

pub(super) fn result(asked: &Parameters, answer: &Value, took_ms: u64) -> Value {
    let found = answer.pointer("/web/results").and_then(Value::as_array).into_iter().flatten();
    let results: Vec<Value> = found.take(asked.count).map(page).collect();
    fields([
        ("query", Some(json!(asked.query))),
        ("provider", Some(json!("brave"))),
        ("count", Some(json!(results.len()))),
        ("tookMs", Some(json!(took_ms))),
        ("results", Some(Value::Array(results))),
    ])
}

/// Addresses are not marked: they are to be fetched.
fn page(found: &Value) -> Value {
    let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default();
    let published = Some(text("age")).filter(|age| !age.is_empty());
    let site = Url::parse(text("url")).ok().and_then(|url| url.host_str().map(str::to_owned));
    fields([
        ("title", Some(json!(wrapped(text("title"))))),
        ("url", Some(json!(text("url")))),
        ("description", Some(json!(wrapped(text("description"))))),
        ("published", published.map(|age| json!(age))),
        ("siteName", site.map(Value::from)),
    ])
}
