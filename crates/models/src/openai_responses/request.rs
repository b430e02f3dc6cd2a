//! The request of OpenAI Responses.

use secrecy::{ExposeSecret, SecretString};

use super::effort::{self, NONE};
use super::items::{fit_id, items};
use crate::cache_retention::CacheRetention;
use crate::conversation::{RequestConversation, RequestFacts};
use crate::json::{Json, object};
use crate::model_spec::ModelSpec;
use crate::net::{Headers, JSON, NetError};
use crate::request::{ModelRequest, ToolSpec};
use crate::wire::{RequestHead, add_headers};
use crate::{copilot, openrouter};

/// Host that can cache prompts for a day.
const OWN_HOST: &str = "api.openai.com";
/// Smallest output cap the server takes.
const LEAST_OUTPUT: u64 = 16;

/// Returns the address and the headers of a request.
pub(super) fn head(
    spec: &ModelSpec,
    key: Option<&SecretString>,
    asked: RequestFacts,
) -> Result<RequestHead, NetError> {
    let mut headers = Headers::posting(JSON);
    if let Some(key) = key {
        headers.bearer(key.expose_secret())?;
    }
    openrouter::add_headers(&mut headers, spec)?;
    copilot::add_headers(&mut headers, spec, asked)?;
    add_headers(&mut headers, &spec.headers)?;
    Ok(RequestHead { url: format!("{}/responses", spec.base_url), headers })
}

/// The body for the public API.
pub(super) fn body<'a>(
    spec: &'a ModelSpec,
    request: &'a ModelRequest,
    conversation: &RequestConversation<'a>,
) -> Json<'a> {
    let effort = effort::effort(spec, request.thinking).or_else(|| effort::least(spec));
    let stream = spec.streaming || request.tools.is_empty();
    let mut body = object! {"model": spec.id(), "stream": stream};
    add_cache(&mut body, spec, request);
    body.put("store", false);
    body.put("max_output_tokens", spec.output_cap(request.max_tokens).max(LEAST_OUTPUT));
    // A model that thinks refuses a temperature.
    body.put_some("temperature", request.temperature.filter(|_| !spec.reasoning || effort == Some(NONE)));
    add_reasoning(&mut body, effort);
    if spec.reasoning {
        add_include(&mut body);
    }
    let mut input = conversation.messages(|some, first| items(spec, some, first));
    if !request.system.trim().is_empty() {
        let developer = spec.reasoning && spec.compat.supports_developer_role.unwrap_or(true);
        let role = if developer { "developer" } else { "system" };
        input.head.push(object! {"role": role, "content": &*request.system});
    }
    body.put("input", input);
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|offered| tool(offered, false.into()));
        body.put("tools", Json::from_iter(tools));
    }
    body
}

/// `prompt_cache_key`, by which the requests of a session find the same cache, and how long that is kept.
pub(super) fn add_cache(body: &mut Json<'_>, spec: &ModelSpec, request: &ModelRequest) {
    if request.cache == CacheRetention::None {
        return;
    }
    if let Some(session) = request.session_id.as_deref().filter(|id| !id.is_empty()) {
        body.put("prompt_cache_key", fit_id("session_", session).into_owned());
    }
    if request.cache == CacheRetention::Long && spec.base_url.contains(OWN_HOST) {
        body.put("prompt_cache_retention", "24h");
    }
}

/// `reasoning`; without an effort the model decides.
pub(super) fn add_reasoning(body: &mut Json<'_>, effort: Option<&'static str>) {
    match effort {
        Some(NONE) => body.put("reasoning", object! {"effort": NONE}),
        Some(effort) => body.put("reasoning", object! {"effort": effort, "summary": "auto"}),
        None => {}
    }
}

/// Asks for reasoning in a form that can be given back: the server stores nothing.
pub(super) fn add_include(body: &mut Json<'_>) {
    body.put("include", ["reasoning.encrypted_content".into()]);
}

/// A tool on offer.
pub(super) fn tool<'a>(tool: &'a ToolSpec, strict: Json<'a>) -> Json<'a> {
    object! {"type": "function", "name": &*tool.name, "description": &*tool.description,
    "parameters": &*tool.parameters.sent().whole, "strict": strict}
}

#[cfg(test)]
mod tests;
