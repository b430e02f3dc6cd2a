//! The request of `ConverseStream`.

use serde_json::{Map, Value, json};

use super::messages::{is_claude, messages, tools_used};
use super::{place, sign};
use crate::catalog::ModelSpec;
use crate::history;
use crate::net::{Headers, NetError};
use crate::provider_key::ProviderKey;
use crate::request::{CacheRetention, ModelRequest, ThinkingLevel, ToolSpec};
use crate::tool_id::IdRule;
use crate::wire::{WireRequest, add_headers};
use crate::{thinking, tool_schema};

/// Claude models that choose their own thinking budget.
const ADAPTIVE: &[&str] = &["opus-4-6", "opus-4.6"];
/// Claude models that can think between their calls when asked for it.
const INTERLEAVING: &[&str] = &["claude-opus-4", "claude-sonnet-4", "claude-haiku-4"];
const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";
/// Claude models that keep prompts (spec `models.md` §4.6); of others their price tells.
const CACHING: &[&str] = &["-4-", "-4.", "claude-3-7-sonnet", "claude-3-5-haiku"];

/// Builds the request, unsigned; with the bearer token of a key that is one.
pub(super) fn build(
    spec: &ModelSpec,
    key: Option<&ProviderKey>,
    request: &ModelRequest,
) -> Result<WireRequest, NetError> {
    let mut headers = Headers::default();
    headers.set("accept", "application/vnd.amazon.eventstream, application/json")?;
    headers.set("content-type", "application/json")?;
    if let Some(key) = key.filter(|key| is_bearer(key)) {
        headers.set("authorization", &format!("Bearer {}", key.expose()))?;
    }
    add_headers(&mut headers, &spec.headers)?;
    let method = if spec.streaming || request.tools.is_empty() { "converse-stream" } else { "converse" };
    Ok(WireRequest {
        url: format!("{}/model/{}/{method}", place::base_url(spec, key), sign::encode(spec.id())),
        headers,
        body: body(spec, request).to_string().into_bytes(),
    })
}

/// A key that signs nothing: an API key of Bedrock.
fn is_bearer(key: &ProviderKey) -> bool {
    sign::AccessKeys::of(key).is_none() && key.part("skipAuth").is_none()
}

fn body(spec: &ModelSpec, request: &ModelRequest) -> Value {
    let point = cache_point(spec, request.cache);
    let history = history::for_model(&request.messages, spec, IdRule::Anthropic);
    let mut messages = messages(spec, &history);
    if let Some(last) = messages.last_mut().filter(|last| last.get("role") == Some(&json!("user")))
        && let Some(content) = last.get_mut("content").and_then(Value::as_array_mut)
    {
        content.extend(point.clone());
    }
    let mut body = Map::new();
    body.insert("messages".to_owned(), Value::Array(messages));
    if !request.system.trim().is_empty() {
        let system: Vec<Value> = std::iter::once(json!({"text": request.system})).chain(point).collect();
        body.insert("system".to_owned(), Value::Array(system));
    }
    add_limits(&mut body, spec, request);
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    if tools.is_empty() {
        // Without any tools Bedrock refuses a conversation that has used some.
        tools = tools_used(&history).into_iter().map(bygone_tool).collect();
    }
    if !tools.is_empty() {
        body.insert("toolConfig".to_owned(), json!({"tools": tools}));
    }
    if let Some(fields) = thinking_fields(spec, request) {
        body.insert("additionalModelRequestFields".to_owned(), fields);
    }
    Value::Object(body)
}

fn add_limits(body: &mut Map<String, Value>, spec: &ModelSpec, request: &ModelRequest) {
    let base = spec.output_cap(request.max_tokens);
    let level = level(spec, request);
    let budget = if is_adaptive(spec) { None } else { thinking::budget(level, base, spec.max_tokens) };
    let max = budget.filter(|_| is_claude(spec)).map_or(base, |(max, _)| max);
    let mut config = json!({"maxTokens": max});
    // Claude refuses a temperature while it thinks.
    let thinks = is_claude(spec) && level != ThinkingLevel::Off;
    if let (Some(config), Some(temperature)) =
        (config.as_object_mut(), request.temperature.filter(|_| !thinks))
    {
        config.insert("temperature".to_owned(), json!(temperature));
    }
    body.insert("inferenceConfig".to_owned(), config);
}

/// What asks Claude to think; Bedrock passes it through. Other models think as they do.
fn thinking_fields(spec: &ModelSpec, request: &ModelRequest) -> Option<Value> {
    if !is_claude(spec) {
        return None;
    }
    let level = level(spec, request);
    if is_adaptive(spec) {
        let effort = thinking::adaptive_effort(level)?;
        return Some(json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}));
    }
    let (_, budget) = thinking::budget(level, spec.output_cap(request.max_tokens), spec.max_tokens)?;
    let mut fields = json!({"thinking": {"type": "enabled", "budget_tokens": budget}});
    if let Some(fields) = fields.as_object_mut().filter(|_| has(spec, INTERLEAVING)) {
        fields.insert("anthropic_beta".to_owned(), json!([INTERLEAVED]));
    }
    Some(fields)
}

fn level(spec: &ModelSpec, request: &ModelRequest) -> ThinkingLevel {
    thinking::clamp(request.thinking, spec.reasoning, thinking::has_xhigh(spec.provider(), spec.id()))
}

fn is_adaptive(spec: &ModelSpec) -> bool {
    has(spec, ADAPTIVE)
}

fn has(spec: &ModelSpec, parts: &[&str]) -> bool {
    parts.iter().any(|part| spec.id().contains(part))
}

/// What ends the part of a prompt that is kept.
fn cache_point(spec: &ModelSpec, retention: CacheRetention) -> Option<Value> {
    let priced = spec.price.cache_read > 0.0 || spec.price.cache_write > 0.0;
    let known = spec.id().contains("claude") && has(spec, CACHING);
    if !(priced || known) {
        return None;
    }
    match retention {
        CacheRetention::None => None,
        CacheRetention::Short => Some(json!({"cachePoint": {"type": "default"}})),
        CacheRetention::Long => Some(json!({"cachePoint": {"type": "default", "ttl": "1h"}})),
    }
}

fn tool(tool: &ToolSpec) -> Value {
    json!({"toolSpec": {"name": tool.name, "description": tool.description,
        "inputSchema": {"json": tool_schema::normalise(&tool.parameters)}}})
}

/// A tool that was used and is not on offer now.
fn bygone_tool(name: &str) -> Value {
    let nothing = json!({"type": "object", "properties": {}});
    json!({"toolSpec": {"name": name, "description": "Not available now: do not call it.",
        "inputSchema": {"json": nothing}}})
}

#[cfg(test)]
mod tests;
