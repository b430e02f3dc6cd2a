//! The request of Chat Completions.

use std::borrow::Cow;
use std::sync::Arc;

use openclaw_protocol::message::{
    AssistantMessage, Block, ImageBlock, Message, ToolCall, ToolResultMessage, UserContent,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::compat::{Dialect, ThinkingFormat};
use crate::cache_retention::CacheRetention;
use crate::conversation::{RequestConversation, RequestFacts};
use crate::json::{Json, object};
use crate::model_spec::ModelSpec;
use crate::net::{Headers, JSON, NetError};
use crate::parts::{CALL_FIELDS, arguments, result_images, user_parts};
use crate::request::{ModelRequest, ToolSpec};
use crate::result_text::{IMAGES_FOLLOW, result_text};
use crate::thinking::ThinkingLevel;
use crate::wire::{RequestHead, add_headers};
use crate::{copilot, openrouter};

/// Fields under which servers send reasoning and want it back.
pub(super) const REASONING_FIELDS: &[&str] = &["reasoning_content", "reasoning", "reasoning_text"];

const BRIDGE: &str = "I have processed the tool results.";

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
    Ok(RequestHead { url: format!("{}/chat/completions", spec.base_url), headers })
}

pub(super) fn body<'a>(
    spec: &'a ModelSpec,
    request: &'a ModelRequest,
    conversation: &RequestConversation<'a>,
) -> Json<'a> {
    let dialect = Dialect::of(spec);
    let stream = spec.streaming || request.tools.is_empty();
    let mut body = object! {"model": spec.id(), "stream": stream};
    if stream && dialect.usage_in_streaming {
        body.put("stream_options", object! {"include_usage": true});
    }
    if dialect.store {
        body.put("store", false);
    }
    body.put(dialect.max_tokens_field, spec.output_cap(request.max_tokens));
    body.put_some("temperature", request.temperature);
    let mut messages = conversation.messages(|some, _| messages(spec, &dialect, some));
    if !request.system.trim().is_empty() {
        let role = if spec.reasoning && dialect.developer_role { "developer" } else { "system" };
        messages.head.push(object! {"role": role, "content": &*request.system});
    }
    if request.cache != CacheRetention::None && is_marked(spec) {
        mark_last_text(&mut messages.open);
    }
    body.put("messages", messages);
    if !request.tools.is_empty() {
        body.put("tools", request.tools.iter().map(|t| tool(&dialect, t)).collect::<Json<'_>>());
    } else if !conversation.tools_used().is_empty() {
        body.put("tools", []);
    }
    if let Some((name, value)) = reasoning(spec, &dialect, request.thinking) {
        body.put(name, value);
    }
    body.put_some("provider", spec.compat.open_router_routing.as_ref());
    let gateway = spec.compat.vercel_gateway_routing.as_ref();
    body.put_some("providerOptions", gateway.map(|routing| object! {"gateway": routing}));
    body
}

fn reasoning(
    spec: &ModelSpec,
    dialect: &Dialect<'_>,
    level: ThinkingLevel,
) -> Option<(&'static str, Json<'static>)> {
    if !spec.reasoning {
        return None;
    }
    let level = spec.level(level);
    let on = level != ThinkingLevel::Off;
    match dialect.thinking_format {
        ThinkingFormat::Zai => Some(("thinking", object! {"type": if on { "enabled" } else { "disabled" }})),
        ThinkingFormat::Qwen => Some(("enable_thinking", on.into())),
        ThinkingFormat::OpenAi if on && dialect.reasoning_effort => {
            Some(("reasoning_effort", level.as_str().into()))
        }
        ThinkingFormat::OpenAi => None,
    }
}

fn tool<'a>(dialect: &Dialect<'_>, tool: &'a ToolSpec) -> Json<'a> {
    let parameters = &*tool.parameters.sent().whole;
    let mut function =
        object! {"name": &*tool.name, "description": &*tool.description, "parameters": parameters};
    if dialect.strict {
        function.put("strict", false);
    }
    object! {"type": "function", "function": function}
}

fn messages<'a>(spec: &ModelSpec, dialect: &Dialect<'_>, history: &'a [Arc<Message>]) -> Vec<Json<'a>> {
    let mut out = Vec::with_capacity(history.len());
    let mut after_results = false;
    let mut images: Vec<Json<'a>> = Vec::new();
    for message in history.iter().map(Arc::as_ref) {
        if let Message::ToolResult(result) = message {
            out.push(tool_result(spec, dialect, result));
            images.extend(result_images(result).filter_map(|image| image_part(spec, image)));
            after_results = true;
            continue;
        }
        let bridge = after_results && dialect.assistant_after_tool_result;
        if !images.is_empty() {
            push_images(&mut out, std::mem::take(&mut images), bridge);
        } else if bridge && matches!(message, Message::User(_)) {
            out.push(object! {"role": "assistant", "content": BRIDGE});
        }
        after_results = false;
        match message {
            Message::User(user) => out.extend(user_message(spec, &user.content)),
            Message::Assistant(answer) => out.extend(answer_message(spec, dialect, answer)),
            Message::ToolResult(_) => {}
        }
    }
    if !images.is_empty() {
        push_images(&mut out, images, dialect.assistant_after_tool_result);
    }
    out
}

/// Results can't hold images here: they follow in a user message.
fn push_images<'a>(out: &mut Vec<Json<'a>>, images: Vec<Json<'a>>, bridge: bool) {
    if bridge {
        out.push(object! {"role": "assistant", "content": BRIDGE});
    }
    let mut content = vec![object! {"type": "text", "text": IMAGES_FOLLOW}];
    content.extend(images);
    out.push(object! {"role": "user", "content": content});
}

fn user_message<'a>(spec: &ModelSpec, content: &'a UserContent) -> Option<Json<'a>> {
    let parts = user_parts(content, text_part, |image| image_part(spec, image));
    (!parts.is_empty()).then(|| object! {"role": "user", "content": parts})
}

fn answer_message<'a>(
    spec: &ModelSpec,
    dialect: &Dialect<'_>,
    answer: &'a AssistantMessage,
) -> Option<Json<'a>> {
    let mut texts: Vec<Cow<'a, str>> = Vec::new();
    let mut thoughts: Vec<&str> = Vec::new();
    let mut field = None;
    for block in &answer.content {
        match block {
            Block::Text(text) if !text.text.trim().is_empty() => texts.push(text.text.as_str().into()),
            Block::Thinking(thinking) if !thinking.thinking.trim().is_empty() => {
                thoughts.push(&thinking.thinking);
                field = field.or(thinking.thinking_signature.as_deref());
            }
            Block::Text(_) | Block::Thinking(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => {}
        }
    }
    if dialect.thinking_as_text && !thoughts.is_empty() {
        texts.insert(0, thoughts.join("\n\n").into());
    }
    let calls: Vec<&ToolCall> = answer.tool_calls().collect();
    if texts.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = object! {"role": "assistant", "content": answer_content(spec, texts)};
    if let Some(field) = field.filter(|field| REASONING_FIELDS.contains(field))
        && !dialect.thinking_as_text
    {
        message.put(field, thoughts.join("\n"));
    }
    if !calls.is_empty() {
        message.put("tool_calls", calls.iter().map(|call| tool_call(call)).collect::<Json<'_>>());
        let detail = |call: &&ToolCall| serde_json::from_str(call.thought_signature.as_deref()?).ok();
        let details: Vec<Value> = calls.iter().filter_map(detail).collect();
        if !details.is_empty() {
            message.put("reasoning_details", Value::Array(details));
        }
    }
    Some(message)
}

/// OpenAI takes text as it takes a list of parts, and OpenClaw 2026.2.9 sends a list. Several of its imitators, llama.cpp's
/// server in Python among them, refuse a list from the assistant, so that it is only sent where a part may carry a mark.
fn answer_content<'a>(spec: &ModelSpec, mut texts: Vec<Cow<'a, str>>) -> Json<'a> {
    if is_marked(spec) && !texts.is_empty() {
        return texts.into_iter().map(|text| object! {"type": "text", "text": text}).collect();
    }
    match texts.len() {
        0 => Value::Null.into(),
        1 => texts.swap_remove(0).into(),
        _ if spec.provider() == "github-copilot" => texts.concat().into(),
        _ => texts.join("\n").into(),
    }
}

/// Returns true if parts of the conversation are marked for the cache: for Claude behind
/// OpenRouter.
fn is_marked(spec: &ModelSpec) -> bool {
    openrouter::serves(spec) && spec.id().starts_with("anthropic/")
}

fn tool_call(call: &ToolCall) -> Json<'_> {
    let arguments = arguments(call).to_string();
    let function = object! {"name": &call.name, "arguments": arguments};
    let mut sent = object! {"id": &call.id, "type": "function", "function": function};
    // Fields that the server sent with the call, such as the signature of Gemini's thoughts.
    if let Some(Value::Object(fields)) = call.extra.get(CALL_FIELDS) {
        fields.iter().for_each(|(name, value)| sent.put(name, value));
    }
    sent
}

fn tool_result<'a>(spec: &ModelSpec, dialect: &Dialect<'_>, result: &'a ToolResultMessage) -> Json<'a> {
    let content = result_text(spec, result);
    let mut message = object! {"role": "tool", "tool_call_id": &result.tool_call_id, "content": content};
    if dialect.tool_result_name {
        message.put("name", &result.tool_name);
    }
    message
}

fn text_part(text: &str) -> Option<Json<'_>> {
    (!text.trim().is_empty()).then(|| object! {"type": "text", "text": text})
}

fn image_part(spec: &ModelSpec, image: &ImageBlock) -> Option<Json<'static>> {
    let ImageBlock { data, mime_type, .. } = image;
    let url = format!("data:{mime_type};base64,{data}");
    spec.images.then(|| object! {"type": "image_url", "image_url": object! {"url": url}})
}

/// Claude behind OpenRouter caches up to a marked part: the last text of the last message of either side.
fn mark_last_text(messages: &mut [Json<'_>]) {
    let said = |message: &&mut Json<'_>| message.is("role", "user") || message.is("role", "assistant");
    let Some(last) = messages.iter_mut().rev().find(said) else { return };
    let Some(Json::Array(parts)) = last.get_mut("content") else { return };
    if let Some(text) = parts.iter_mut().rev().find(|part| part.is("type", "text")) {
        text.put("cache_control", object! {"type": "ephemeral"});
    }
}

#[cfg(test)]
mod tests;
