//! The request of OpenAI Responses.

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use super::effort::{self, NONE};
use super::items::{fit_id, items};
use crate::catalog::ModelSpec;
use crate::net::{Headers, NetError};
use crate::request::{CacheRetention, ModelRequest, ToolSpec};
use crate::tool_id::IdRule;
use crate::wire::{WireRequest, add_headers};
use crate::{copilot, history, openrouter, tool_schema};

/// Where prompts can be kept for a day.
const OWN_HOST: &str = "api.openai.com";
/// Smallest output cap the server takes.
const LEAST_OUTPUT: u64 = 16;

/// Builds the request.
pub(super) fn build(
    spec: &ModelSpec,
    key: Option<&SecretString>,
    request: &ModelRequest,
) -> Result<WireRequest, NetError> {
    let mut headers = plain_headers()?;
    if let Some(key) = key {
        headers.set("authorization", &format!("Bearer {}", key.expose_secret()))?;
    }
    openrouter::add_headers(&mut headers, spec)?;
    copilot::add_headers(&mut headers, spec, request)?;
    add_headers(&mut headers, &spec.headers)?;
    Ok(WireRequest {
        url: format!("{}/responses", spec.base_url),
        headers,
        body: body(spec, request).to_string().into_bytes(),
    })
}

/// The headers of every request.
pub(super) fn plain_headers() -> Result<Headers, NetError> {
    let mut headers = Headers::default();
    headers.set("accept", "application/json")?;
    headers.set("content-type", "application/json")?;
    Ok(headers)
}

/// The body for the public API.
pub(super) fn body(spec: &ModelSpec, request: &ModelRequest) -> Value {
    let effort = effort::effort(spec, request.thinking).or_else(|| effort::least(spec));
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(spec.id()));
    body.insert("stream".to_owned(), json!(spec.streaming || request.tools.is_empty()));
    add_cache(&mut body, spec, request);
    body.insert("store".to_owned(), json!(false));
    let cap = spec.output_cap(request.max_tokens).max(LEAST_OUTPUT);
    body.insert("max_output_tokens".to_owned(), json!(cap));
    // A model that thinks refuses a temperature.
    if let Some(temperature) = request.temperature.filter(|_| !spec.reasoning || effort == Some(NONE)) {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    add_reasoning(&mut body, effort);
    if spec.reasoning {
        add_include(&mut body);
    }
    let mut input = Vec::new();
    if !request.system.trim().is_empty() {
        let developer = spec.reasoning && spec.compat.supports_developer_role.unwrap_or(true);
        let role = if developer { "developer" } else { "system" };
        input.push(json!({"role": role, "content": request.system}));
    }
    input.extend(history_items(spec, request));
    body.insert("input".to_owned(), Value::Array(input));
    if !request.tools.is_empty() {
        let strict = json!(false);
        body.insert("tools".to_owned(), request.tools.iter().map(|t| tool(t, &strict)).collect());
    }
    Value::Object(body)
}

/// The conversation without the system prompt.
pub(super) fn history_items(spec: &ModelSpec, request: &ModelRequest) -> Vec<Value> {
    items(spec, &history::for_model(&request.messages, spec, IdRule::Responses))
}

/// `prompt_cache_key`, by which the requests of a session find the same cache, and how long that is kept.
pub(super) fn add_cache(body: &mut Map<String, Value>, spec: &ModelSpec, request: &ModelRequest) {
    if request.cache == CacheRetention::None {
        return;
    }
    if let Some(session) = request.session_id.as_deref().filter(|id| !id.is_empty()) {
        body.insert("prompt_cache_key".to_owned(), json!(fit_id("session_", session)));
    }
    if request.cache == CacheRetention::Long && spec.base_url.contains(OWN_HOST) {
        body.insert("prompt_cache_retention".to_owned(), json!("24h"));
    }
}

/// `reasoning`; without an effort the model decides.
pub(super) fn add_reasoning(body: &mut Map<String, Value>, effort: Option<&str>) {
    match effort {
        Some(NONE) => body.insert("reasoning".to_owned(), json!({"effort": NONE})),
        Some(effort) => body.insert("reasoning".to_owned(), json!({"effort": effort, "summary": "auto"})),
        None => None,
    };
}

/// Asks for reasoning in a form that can be given back: the server stores nothing.
pub(super) fn add_include(body: &mut Map<String, Value>) {
    body.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
}

/// A tool on offer.
pub(super) fn tool(tool: &ToolSpec, strict: &Value) -> Value {
    json!({"type": "function", "name": tool.name, "description": tool.description,
        "parameters": tool_schema::normalise(&tool.parameters), "strict": strict})
}

#[cfg(test)]
mod tests;
