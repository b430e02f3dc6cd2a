//! Grok of xAI, which searches by itself: an answer with its sources.

use openclaw_config::settings::GrokSearch;
use serde_json::{Value, json};

use super::parameters::Parameters;
use super::provider::SearchRequest;
use super::{fields, wrapped};

pub(super) const BASE: &str = "https://api.x.ai";

/// Parameters of a query.
pub(super) struct Grok<'a> {
    pub(super) key: &'a str,
    pub(super) base: &'a str,
    pub(super) settings: &'a GrokSearch,
}

impl Grok<'_> {
    pub(super) fn question(&self, asked: &Parameters) -> SearchRequest {
        let body = json!({
            "model": self.settings.model,
            "input": [{"role": "user", "content": asked.query}],
            "tools": [{"type": "web_search"}],
        });
        let headers = vec![("authorization", format!("Bearer {}", self.key))];
        (format!("{}/v1/responses", self.base), headers, Some(body))
    }

    pub(super) fn result(&self, asked: &Parameters, answer: &Value, took_ms: u64) -> Value {
        let content = content(answer);
        let content = if content.is_empty() { "No response" } else { &content };
        let inline = answer.get("inline_citations").filter(|_| self.settings.inline_citations);
        fields([
            ("query", Some(json!(asked.query))),
            ("provider", Some(json!("grok"))),
            ("model", Some(json!(self.settings.model))),
            ("tookMs", Some(json!(took_ms))),
            // OpenClaw 2026.2.9 gives these words as they are; they come from pages all the same.
            ("content", Some(json!(wrapped(content)))),
            ("citations", Some(json!(citations(answer)))),
            ("inlineCitations", inline.cloned()),
        ])
    }
}

/// The parts of the answer that are words.
fn parts(answer: &Value) -> impl Iterator<Item = &Value> {
    let output = answer.get("output").and_then(Value::as_array).into_iter().flatten();
    let parts = output.filter_map(|item| item.get("content").and_then(Value::as_array)).flatten();
    parts.filter(|part| part.get("type").and_then(Value::as_str) == Some("output_text"))
}

fn content(answer: &Value) -> String {
    let joined =
        parts(answer).filter_map(|part| part.get("text").and_then(Value::as_str)).collect::<String>();
    let whole = answer.get("output_text").and_then(Value::as_str).filter(|text| !text.is_empty());
    whole.map_or(joined, str::to_owned)
}

/// The addresses that the answer names, each once.
fn citations(answer: &Value) -> Vec<&str> {
    let listed = answer.get("citations").and_then(Value::as_array).into_iter().flatten();
    let notes = parts(answer).filter_map(|part| part.get("annotations").and_then(Value::as_array)).flatten();
    let mut addresses = Vec::new();
    for address in listed.filter_map(Value::as_str).chain(notes.filter_map(|note| note.get("url")?.as_str()))
    {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}
