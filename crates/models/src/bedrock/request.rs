//! The request of `ConverseStream`.

use super::messages::{is_claude, messages};
use super::{place, sign};
use crate::cache_retention::CacheRetention;
use crate::conversation::RequestConversation;
use crate::json::{Json, object};
use crate::model_spec::ModelSpec;
use crate::net::{Headers, NetError};
use crate::provider_key::ProviderKey;
use crate::request::{ModelRequest, ToolSpec};
use crate::thinking;
use crate::thinking::ThinkingLevel;
use crate::wire::{RequestHead, add_headers};

/// Claude models that choose their own thinking budget.
const ADAPTIVE: &[&str] = &["opus-4-6", "opus-4.6"];
/// Claude models that can think between their calls when asked for it.
const INTERLEAVING: &[&str] = &["claude-opus-4", "claude-sonnet-4", "claude-haiku-4"];
const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";
/// Claude models that keep prompts (spec `models.md` §4.6); of others their price tells.
const CACHING: &[&str] = &["-4-", "-4.", "claude-3-7-sonnet", "claude-3-5-haiku"];

/// Returns the address and the headers of a request, unsigned; with the bearer token if the key is
/// one.
pub(super) fn head(
    spec: &ModelSpec,
    key: Option<&ProviderKey>,
    request: &ModelRequest,
) -> Result<RequestHead, NetError> {
    let mut headers = Headers::posting("application/vnd.amazon.eventstream, application/json");
    if let Some(key) = key.filter(|key| is_bearer(key)) {
        headers.bearer(key.expose())?;
    }
    add_headers(&mut headers, &spec.headers)?;
    let method = if spec.streaming || request.tools.is_empty() { "converse-stream" } else { "converse" };
    Ok(RequestHead {
        url: format!("{}/model/{}/{method}", place::base_url(spec, key)?, sign::encode(spec.id())),
        headers,
    })
}

/// A key that signs nothing: an API key of Bedrock.
fn is_bearer(key: &ProviderKey) -> bool {
    sign::AccessKeys::of(key).is_none() && key.part("skipAuth").is_none()
}

pub(super) fn body<'a>(
    spec: &'a ModelSpec,
    request: &'a ModelRequest,
    conversation: &RequestConversation<'a>,
) -> Json<'a> {
    let point = cache_point(spec, request.cache);
    let mut messages = conversation.messages(|some, first| messages(spec, some, first));
    if let Some(last) = messages.open.last_mut().filter(|last| last.is("role", "user"))
        && let Some(Json::Array(content)) = last.get_mut("content")
    {
        content.extend(point.clone());
    }
    let mut body = object! {"messages": messages};
    if !request.system.trim().is_empty() {
        let system = std::iter::once(object! {"text": &*request.system}).chain(point);
        body.put("system", Json::from_iter(system));
    }
    add_limits(&mut body, spec, request);
    let mut tools: Vec<Json<'_>> = request.tools.iter().map(tool).collect();
    if tools.is_empty() {
        // Without any tools Bedrock refuses a conversation that has used some.
        tools = conversation.tools_used().into_iter().map(bygone_tool).collect();
    }
    if !tools.is_empty() {
        body.put("toolConfig", object! {"tools": tools});
    }
    body.put_some("additionalModelRequestFields", thinking_fields(spec, request));
    body
}

fn add_limits(body: &mut Json<'_>, spec: &ModelSpec, request: &ModelRequest) {
    let base = spec.output_cap(request.max_tokens);
    let level = spec.level(request.thinking);
    let budget = if is_adaptive(spec) { None } else { thinking::budget(level, base, spec.max_tokens) };
    let max = budget.filter(|_| is_claude(spec)).map_or(base, |(max, _)| max);
    let mut config = object! {"maxTokens": max};
    // Claude refuses a temperature while it thinks.
    let thinks = is_claude(spec) && level != ThinkingLevel::Off;
    config.put_some("temperature", request.temperature.filter(|_| !thinks));
    body.put("inferenceConfig", config);
}

/// Returns the fields that ask Claude to think; Bedrock passes them through. Other models think as
/// they do.
fn thinking_fields(spec: &ModelSpec, request: &ModelRequest) -> Option<Json<'static>> {
    if !is_claude(spec) {
        return None;
    }
    let level = spec.level(request.thinking);
    if is_adaptive(spec) {
        let effort = thinking::adaptive_effort(level)?;
        let thinking = object! {"type": "adaptive"};
        return Some(object! {"thinking": thinking, "output_config": object! {"effort": effort}});
    }
    let (_, budget) = thinking::budget(level, spec.output_cap(request.max_tokens), spec.max_tokens)?;
    let mut fields = object! {"thinking": object! {"type": "enabled", "budget_tokens": budget}};
    if has(spec, INTERLEAVING) {
        fields.put("anthropic_beta", [Json::from(INTERLEAVED)]);
    }
    Some(fields)
}

fn is_adaptive(spec: &ModelSpec) -> bool {
    has(spec, ADAPTIVE)
}

fn has(spec: &ModelSpec, parts: &[&str]) -> bool {
    parts.iter().any(|part| spec.id().contains(part))
}

/// Returns the mark that ends the cached part of a prompt.
fn cache_point(spec: &ModelSpec, retention: CacheRetention) -> Option<Json<'static>> {
    let priced = spec.price.cache_read > 0.0 || spec.price.cache_write > 0.0;
    let known = spec.id().contains("claude") && has(spec, CACHING);
    if !(priced || known) {
        return None;
    }
    match retention {
        CacheRetention::None => None,
        CacheRetention::Short => Some(object! {"cachePoint": object! {"type": "default"}}),
        CacheRetention::Long => Some(object! {"cachePoint": object! {"type": "default", "ttl": "1h"}}),
    }
}

fn tool(tool: &ToolSpec) -> Json<'_> {
    described(&tool.name, &tool.description, (&*tool.parameters.sent().whole).into())
}

/// A tool that was used and is not on offer now.
fn bygone_tool(name: &str) -> Json<'_> {
    let nothing = object! {"type": "object", "properties": object! {}};
    described(name, "Not available now: do not call it.", nothing)
}

fn described<'a>(name: &'a str, description: &'a str, schema: Json<'a>) -> Json<'a> {
    let schema = object! {"json": schema};
    object! {"toolSpec": object! {"name": name, "description": description, "inputSchema": schema}}
}

#[cfg(test)]
mod tests;
