//! The request of Chat Completions.

use openclaw_protocol::message::{
    AssistantMessage, Block, ImageBlock, Message, ToolCall, ToolResultMessage, UserContent,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use super::compat::{Dialect, ThinkingFormat};
use crate::catalog::ModelSpec;
use crate::net::{Headers, NetError};
use crate::request::{CacheRetention, ModelRequest, ThinkingLevel, ToolSpec};
use crate::result_text::{IMAGES_FOLLOW, result_text};
use crate::wire::{WireRequest, add_headers};
use crate::{copilot, history, openrouter, thinking, tool_schema};

/// Fields under which servers send reasoning and want it back.
pub(super) const REASONING_FIELDS: &[&str] = &["reasoning_content", "reasoning", "reasoning_text"];

const BRIDGE: &str = "I have processed the tool results.";

/// Builds the request.
pub(crate) fn build(
    spec: &ModelSpec,
    key: Option<&SecretString>,
    request: &ModelRequest,
) -> Result<WireRequest, NetError> {
    Ok(WireRequest {
        url: format!("{}/chat/completions", spec.base_url),
        headers: headers(spec, key, request)?,
        body: body(spec, request).to_string().into_bytes(),
    })
}

fn headers(
    spec: &ModelSpec,
    key: Option<&SecretString>,
    request: &ModelRequest,
) -> Result<Headers, NetError> {
    let mut headers = Headers::default();
    headers.set("accept", "application/json")?;
    headers.set("content-type", "application/json")?;
    if let Some(key) = key {
        headers.set("authorization", &format!("Bearer {}", key.expose_secret()))?;
    }
    openrouter::add_headers(&mut headers, spec)?;
    copilot::add_headers(&mut headers, spec, request)?;
    add_headers(&mut headers, &spec.headers)?;
    Ok(headers)
}

fn body(spec: &ModelSpec, request: &ModelRequest) -> Value {
    let dialect = Dialect::of(spec);
    let history = history::for_model(&request.messages, spec, dialect.ids);
    let stream = spec.streaming || request.tools.is_empty();
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    put("model", json!(spec.id()));
    put("stream", json!(stream));
    if stream && dialect.usage_in_streaming {
        put("stream_options", json!({"include_usage": true}));
    }
    if dialect.store {
        put("store", json!(false));
    }
    put(&dialect.max_tokens_field, json!(spec.output_cap(request.max_tokens)));
    if let Some(temperature) = request.temperature {
        put("temperature", json!(temperature));
    }
    let mut messages = messages(spec, &dialect, &request.system, &history);
    if request.cache != CacheRetention::None && is_marked(spec) {
        mark_last_text(&mut messages);
    }
    put("messages", Value::Array(messages));
    if !request.tools.is_empty() {
        put("tools", request.tools.iter().map(|t| tool(&dialect, t)).collect());
    } else if has_tool_history(&history) {
        put("tools", json!([]));
    }
    if let Some((name, value)) = reasoning(spec, &dialect, request.thinking) {
        put(name, value);
    }
    if let Some(routing) = &spec.compat.open_router_routing {
        put("provider", routing.clone());
    }
    if let Some(routing) = &spec.compat.vercel_gateway_routing {
        put("providerOptions", json!({"gateway": routing}));
    }
    Value::Object(body)
}

fn reasoning(spec: &ModelSpec, dialect: &Dialect, level: ThinkingLevel) -> Option<(&'static str, Value)> {
    if !spec.reasoning {
        return None;
    }
    let level = thinking::clamp(level, true, thinking::has_xhigh(spec.provider(), spec.id()));
    let on = level != ThinkingLevel::Off;
    match dialect.thinking_format {
        ThinkingFormat::Zai => Some(("thinking", json!({"type": if on { "enabled" } else { "disabled" }}))),
        ThinkingFormat::Qwen => Some(("enable_thinking", json!(on))),
        ThinkingFormat::OpenAi if on && dialect.reasoning_effort => {
            Some(("reasoning_effort", json!(level.as_str())))
        }
        ThinkingFormat::OpenAi => None,
    }
}

fn has_tool_history(history: &[Message]) -> bool {
    history.iter().any(|message| match message {
        Message::ToolResult(_) => true,
        Message::Assistant(answer) => answer.tool_calls().next().is_some(),
        Message::User(_) => false,
    })
}

fn tool(dialect: &Dialect, tool: &ToolSpec) -> Value {
    let parameters = tool_schema::normalise(&tool.parameters);
    let mut function = json!({"name": tool.name, "description": tool.description, "parameters": parameters});
    if let (true, Some(fields)) = (dialect.strict, function.as_object_mut()) {
        fields.insert("strict".to_owned(), json!(false));
    }
    json!({"type": "function", "function": function})
}

fn messages(spec: &ModelSpec, dialect: &Dialect, system: &str, history: &[Message]) -> Vec<Value> {
    let mut out = Vec::with_capacity(history.len() + 1);
    if !system.trim().is_empty() {
        let role = if spec.reasoning && dialect.developer_role { "developer" } else { "system" };
        out.push(json!({"role": role, "content": system}));
    }
    let mut after_results = false;
    let mut images: Vec<Value> = Vec::new();
    for message in history {
        if let Message::ToolResult(result) = message {
            out.push(tool_result(dialect, result));
            images.extend(result.content.iter().filter_map(|block| image_part(spec, block)));
            after_results = true;
            continue;
        }
        let bridge = after_results && dialect.assistant_after_tool_result;
        if !images.is_empty() {
            push_images(&mut out, std::mem::take(&mut images), bridge);
        } else if bridge && matches!(message, Message::User(_)) {
            out.push(json!({"role": "assistant", "content": BRIDGE}));
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
fn push_images(out: &mut Vec<Value>, images: Vec<Value>, bridge: bool) {
    if bridge {
        out.push(json!({"role": "assistant", "content": BRIDGE}));
    }
    let mut content = vec![json!({"type": "text", "text": IMAGES_FOLLOW})];
    content.extend(images);
    out.push(json!({"role": "user", "content": content}));
}

fn user_message(spec: &ModelSpec, content: &UserContent) -> Option<Value> {
    let parts: Vec<Value> = match content {
        UserContent::Text(text) => text_part(text).into_iter().collect(),
        UserContent::Blocks(blocks) => blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text(text) => text_part(&text.text),
                Block::Image(_) => image_part(spec, block),
                Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
            })
            .collect(),
    };
    (!parts.is_empty()).then(|| json!({"role": "user", "content": parts}))
}

fn answer_message(spec: &ModelSpec, dialect: &Dialect, answer: &AssistantMessage) -> Option<Value> {
    let mut texts: Vec<String> = Vec::new();
    let mut thoughts: Vec<&str> = Vec::new();
    let mut field = None;
    for block in &answer.content {
        match block {
            Block::Text(text) if !text.text.trim().is_empty() => texts.push(text.text.clone()),
            Block::Thinking(thinking) if !thinking.thinking.trim().is_empty() => {
                thoughts.push(&thinking.thinking);
                field = field.or(thinking.thinking_signature.as_deref());
            }
            Block::Text(_) | Block::Thinking(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => {}
        }
    }
    if dialect.thinking_as_text && !thoughts.is_empty() {
        texts.insert(0, thoughts.join("\n\n"));
    }
    let calls: Vec<&ToolCall> = answer.tool_calls().collect();
    if texts.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert("content".to_owned(), answer_content(spec, &texts));
    if let Some(field) = field.filter(|field| REASONING_FIELDS.contains(field))
        && !dialect.thinking_as_text
    {
        message.insert(field.to_owned(), json!(thoughts.join("\n")));
    }
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.iter().map(|call| tool_call(call)).collect());
        let details: Vec<Value> = calls
            .iter()
            .filter_map(|call| serde_json::from_str(call.thought_signature.as_deref()?).ok())
            .collect();
        if !details.is_empty() {
            message.insert("reasoning_details".to_owned(), Value::Array(details));
        }
    }
    Some(Value::Object(message))
}

/// OpenAI takes text as it takes a list of parts, and OpenClaw 2026.2.9 sends a list. Several of its imitators, llama.cpp's
/// server in Python among them, refuse a list from the assistant, so that it is only sent where a part may carry a mark.
fn answer_content(spec: &ModelSpec, texts: &[String]) -> Value {
    if texts.is_empty() {
        Value::Null
    } else if is_marked(spec) {
        texts.iter().map(|text| json!({"type": "text", "text": text})).collect()
    } else if spec.provider() == "github-copilot" {
        Value::String(texts.concat())
    } else {
        Value::String(texts.join("\n"))
    }
}

/// Whether parts of the conversation are marked for the cache: Claude's behind OpenRouter.
fn is_marked(spec: &ModelSpec) -> bool {
    openrouter::serves(spec) && spec.id().starts_with("anthropic/")
}

fn tool_call(call: &ToolCall) -> Value {
    let arguments = if call.arguments.is_object() { call.arguments.to_string() } else { "{}".to_owned() };
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn tool_result(dialect: &Dialect, result: &ToolResultMessage) -> Value {
    let content = result_text(result);
    let mut message = json!({"role": "tool", "tool_call_id": result.tool_call_id, "content": content});
    if let (true, Some(fields)) = (dialect.tool_result_name, message.as_object_mut()) {
        fields.insert("name".to_owned(), json!(result.tool_name));
    }
    message
}

fn text_part(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn image_part(spec: &ModelSpec, block: &Block) -> Option<Value> {
    let Block::Image(ImageBlock { data, mime_type, .. }) = block else { return None };
    let url = format!("data:{mime_type};base64,{data}");
    spec.images.then(|| json!({"type": "image_url", "image_url": {"url": url}}))
}

/// Claude behind OpenRouter caches up to a marked part: the last text of the last message of either side.
fn mark_last_text(messages: &mut [Value]) {
    let said = |message: &&mut Value| {
        matches!(message.get("role").and_then(Value::as_str), Some("user" | "assistant"))
    };
    let Some(last) = messages.iter_mut().rev().find(said) else { return };
    let parts = last.get_mut("content").and_then(Value::as_array_mut);
    let text =
        parts.and_then(|parts| parts.iter_mut().rev().find(|part| part.get("type") == Some(&json!("text"))));
    if let Some(fields) = text.and_then(Value::as_object_mut) {
        fields.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
    }
}

#[cfg(test)]
mod tests;
