//! The request of Anthropic Messages.

use std::borrow::Cow;
use std::sync::Arc;

use openclaw_protocol::message::{
    AssistantMessage, Block, ImageBlock, Message, ThinkingBlock, ToolResultMessage, UserContent,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::cache_retention::CacheRetention;
use crate::conversation::RequestConversation;
use crate::json::{Json, object};
use crate::model_spec::ModelSpec;
use crate::net::{Headers, JSON, NetError};
use crate::parts::{BOOTSTRAP, arguments, result_images, user_parts};
use crate::request::{ModelRequest, ToolSpec};
use crate::result_text::texts_for;
use crate::wire::{RequestHead, add_headers};
use crate::{openrouter, thinking};

const VERSION: &str = "2023-06-01";
const BETAS: &str = "fine-grained-tool-streaming-2025-05-14,interleaved-thinking-2025-05-14";
const TOKEN_BETA: &str = "oauth-2025-04-20";
/// Substring of tokens made by `setup-token`.
const TOKEN_MARK: &str = "sk-ant-oat";
/// Host that supports the one-hour cache.
const OWN_HOST: &str = "api.anthropic.com";
/// Models that choose their own thinking budget.
const ADAPTIVE: &[&str] = &["opus-4-6", "opus-4.6"];
/// A text the provider answers with a refusal whoever writes it, and its harmless form (spec `models.md` §3).
const REFUSAL_TRIGGER: (&str, &str) =
    ("ANTHROPIC_MAGIC_STRING_TRIGGER_REFUSAL", "ANTHROPIC MAGIC STRING TRIGGER REFUSAL (redacted)");

/// Returns the address and the headers of a request.
pub(super) fn head(spec: &ModelSpec, key: Option<&SecretString>) -> Result<RequestHead, NetError> {
    let base = spec.base_url.strip_suffix("/v1").unwrap_or(&spec.base_url);
    Ok(RequestHead { url: format!("{base}/v1/messages"), headers: headers(spec, key)? })
}

fn headers(spec: &ModelSpec, key: Option<&SecretString>) -> Result<Headers, NetError> {
    let mut headers = Headers::posting(JSON);
    headers.set("anthropic-version", VERSION)?;
    match key.map(ExposeSecret::expose_secret) {
        Some(token) if token.contains(TOKEN_MARK) => {
            headers.bearer(token)?;
            headers.set("anthropic-beta", &format!("{TOKEN_BETA},{BETAS}"))?;
        }
        Some(key) => {
            headers.set("x-api-key", key)?;
            headers.set("anthropic-beta", BETAS)?;
            if spec.auth_header {
                headers.bearer(key)?;
            }
        }
        None => headers.set("anthropic-beta", BETAS)?,
    }
    openrouter::add_headers(&mut headers, spec)?;
    add_headers(&mut headers, &spec.headers)?;
    Ok(headers)
}

pub(super) fn body<'a>(
    spec: &'a ModelSpec,
    request: &'a ModelRequest,
    conversation: &RequestConversation<'a>,
) -> Json<'a> {
    let cache = cache_marker(spec, request.cache);
    let mut body = object! {"model": spec.id()};
    add_limits(&mut body, spec, request, goes_on_unthought(conversation.open));
    if !request.system.trim().is_empty() {
        let mut block = object! {"type": "text", "text": clean(spec, &request.system)};
        mark(&mut block, cache.as_ref());
        body.put("system", [block]);
    }
    let mut messages = conversation.messages(|some, first| messages(spec, some, first));
    if let Some(last) = messages.open.last_mut().filter(|last| last.is("role", "user"))
        && let Some(Json::Array(content)) = last.get_mut("content")
        && let Some(block) = content.last_mut()
    {
        mark(block, cache.as_ref());
    }
    body.put("messages", messages);
    if !request.tools.is_empty() {
        body.put("tools", request.tools.iter().map(tool).collect::<Json<'_>>());
    }
    body
}

/// True if the answer goes on behind results of calls that were made without a thought of this model's, as after a fallback from another
/// one. Models with a budget for thoughts refuse to have them in the middle of such a turn.
fn goes_on_unthought(open: &[Arc<Message>]) -> bool {
    let is_result = |message: &&Arc<Message>| matches!(***message, Message::ToolResult(_));
    let last = open.iter().rev().find(|message| !is_result(message)).map(Arc::as_ref);
    let is_thought =
        |block: &Block| matches!(block, Block::Thinking(thought) if thought.thinking_signature.is_some());
    matches!(last, Some(Message::Assistant(answer)) if !answer.content.first().is_some_and(is_thought))
}

/// `max_tokens`, `stream`, and what depends on the thinking level.
fn add_limits(body: &mut Json<'_>, spec: &ModelSpec, request: &ModelRequest, is_unthought: bool) {
    let mut max = spec.output_cap(request.max_tokens);
    let level = spec.level(request.thinking);
    let mut thinking = None;
    let mut effort = None;
    if ADAPTIVE.iter().any(|part| spec.id().contains(part)) {
        effort = thinking::adaptive_effort(level);
        thinking = effort.map(|_| object! {"type": "adaptive"});
    } else if let Some((with_budget, budget)) = thinking::budget(level, max, spec.max_tokens)
        && !is_unthought
    {
        max = with_budget;
        thinking = Some(object! {"type": "enabled", "budget_tokens": budget});
    }
    body.put("max_tokens", max);
    body.put("stream", true);
    match (thinking, request.temperature) {
        (Some(thinking), _) => body.put("thinking", thinking),
        // The provider refuses a temperature while the model thinks.
        (None, Some(temperature)) => body.put("temperature", temperature),
        (None, None) => {}
    }
    body.put_some("output_config", effort.map(|effort| object! {"effort": effort}));
}

fn cache_marker(spec: &ModelSpec, retention: CacheRetention) -> Option<Json<'static>> {
    match retention {
        CacheRetention::None => None,
        CacheRetention::Long if spec.base_url.contains(OWN_HOST) => {
            Some(object! {"type": "ephemeral", "ttl": "1h"})
        }
        CacheRetention::Short | CacheRetention::Long => Some(object! {"type": "ephemeral"}),
    }
}

fn mark(block: &mut Json<'_>, marker: Option<&Json<'static>>) {
    block.put_some("cache_control", marker.cloned());
}

fn tool(tool: &ToolSpec) -> Json<'_> {
    let schema = tool.parameters.sent();
    object! {
        "name": &*tool.name,
        "description": &*tool.description,
        "input_schema": object! {
            "type": "object",
            "properties": &*schema.properties,
            "required": &*schema.required,
        },
    }
}

/// Consecutive tool results become one user message; everything else stays a message of its own.
fn messages<'a>(spec: &ModelSpec, history: &'a [Arc<Message>], first: usize) -> Vec<Json<'a>> {
    let mut out = Vec::with_capacity(history.len() + 1);
    let mut results: Vec<Json<'a>> = Vec::new();
    for message in history.iter().map(Arc::as_ref) {
        if let Message::ToolResult(result) = message {
            results.push(tool_result(spec, result));
            continue;
        }
        flush(&mut results, &mut out);
        if first == 0 && out.is_empty() && matches!(message, Message::Assistant(_)) {
            push(&mut out, "user", vec![object! {"type": "text", "text": BOOTSTRAP}]);
        }
        match message {
            Message::User(user) => push(&mut out, "user", user_blocks(spec, &user.content)),
            Message::Assistant(answer) => push(&mut out, "assistant", answer_blocks(spec, answer)),
            Message::ToolResult(_) => {}
        }
    }
    flush(&mut results, &mut out);
    out
}

fn flush<'a>(results: &mut Vec<Json<'a>>, out: &mut Vec<Json<'a>>) {
    push(out, "user", std::mem::take(results));
}

fn push<'a>(out: &mut Vec<Json<'a>>, role: &'static str, content: Vec<Json<'a>>) {
    if !content.is_empty() {
        out.push(object! {"role": role, "content": content});
    }
}

fn user_blocks<'a>(spec: &ModelSpec, content: &'a UserContent) -> Vec<Json<'a>> {
    user_parts(content, |text| text_block(spec, text), |image| spec.images.then(|| image_block(image)))
}

fn answer_blocks<'a>(spec: &ModelSpec, answer: &'a AssistantMessage) -> Vec<Json<'a>> {
    answer
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Thinking(thinking) => thinking_block(spec, thinking),
            Block::ToolCall(call) => Some(
                object! {"type": "tool_use", "id": &call.id, "name": &call.name, "input": arguments(call)},
            ),
            Block::Text(text) => text_block(spec, &text.text),
            Block::Image(_) | Block::Other(_) => None,
        })
        .collect()
}

fn thinking_block<'a>(spec: &ModelSpec, thinking: &'a ThinkingBlock) -> Option<Json<'a>> {
    match thinking.thinking_signature.as_deref().filter(|signature| !signature.is_empty()) {
        Some(data) if thinking.extra.get("redacted") == Some(&Value::Bool(true)) => {
            Some(object! {"type": "redacted_thinking", "data": data})
        }
        Some(signature) => {
            Some(object! {"type": "thinking", "thinking": &thinking.thinking, "signature": signature})
        }
        None => text_block(spec, &thinking.thinking),
    }
}

fn tool_result<'a>(spec: &ModelSpec, result: &'a ToolResultMessage) -> Json<'a> {
    let has_image = spec.images && result_images(result).next().is_some();
    let content = if has_image {
        let mut blocks: Vec<_> = result.content.iter().filter_map(|block| plain_block(spec, block)).collect();
        if !blocks.iter().any(|block| block.is("type", "text")) {
            blocks.insert(0, object! {"type": "text", "text": "(see attached image)"});
        }
        Json::Array(blocks)
    } else {
        match texts_for(spec, result) {
            Cow::Borrowed(text) => clean(spec, text).into(),
            Cow::Owned(text) => clean(spec, &text).into_owned().into(),
        }
    };
    object! {
        "type": "tool_result",
        "tool_use_id": &result.tool_call_id,
        "content": content,
        "is_error": result.is_error,
    }
}

/// Text that is not blank, or an image for a model that sees.
fn plain_block<'a>(spec: &ModelSpec, block: &'a Block) -> Option<Json<'a>> {
    match block {
        Block::Text(text) => text_block(spec, &text.text),
        Block::Image(image) if spec.images => Some(image_block(image)),
        Block::Image(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
    }
}

fn text_block<'a>(spec: &ModelSpec, text: &'a str) -> Option<Json<'a>> {
    (!text.trim().is_empty()).then(|| object! {"type": "text", "text": clean(spec, text)})
}

fn image_block(image: &ImageBlock) -> Json<'_> {
    let source = object! {"type": "base64", "media_type": &image.mime_type, "data": &image.data};
    object! {"type": "image", "source": source}
}

fn clean<'a>(spec: &ModelSpec, text: &'a str) -> Cow<'a, str> {
    let (trigger, harmless) = REFUSAL_TRIGGER;
    if spec.provider() == "anthropic" && text.contains(trigger) {
        Cow::Owned(text.replace(trigger, harmless))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests;
