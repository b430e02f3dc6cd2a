//! The request of Anthropic Messages.

use std::borrow::Cow;

use openclaw_protocol::message::{
    AssistantMessage, Block, ImageBlock, Message, ThinkingBlock, ToolResultMessage, UserContent,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use crate::catalog::ModelSpec;
use crate::history;
use crate::net::{Headers, NetError};
use crate::request::{CacheRetention, ModelRequest, ToolSpec};
use crate::tool_id::IdRule;
use crate::wire::{WireRequest, add_headers};
use crate::{openrouter, thinking, tool_schema};

const VERSION: &str = "2023-06-01";
const BETAS: &str = "fine-grained-tool-streaming-2025-05-14,interleaved-thinking-2025-05-14";
const TOKEN_BETA: &str = "oauth-2025-04-20";
/// What a token made by `setup-token` contains.
const TOKEN_MARK: &str = "sk-ant-oat";
/// Where the one-hour cache exists.
const OWN_HOST: &str = "api.anthropic.com";
/// Models that choose their own thinking budget.
const ADAPTIVE: &[&str] = &["opus-4-6", "opus-4.6"];
/// A text the provider answers with a refusal whoever writes it, and its harmless form (spec `models.md` §3).
const REFUSAL_TRIGGER: (&str, &str) =
    ("ANTHROPIC_MAGIC_STRING_TRIGGER_REFUSAL", "ANTHROPIC MAGIC STRING TRIGGER REFUSAL (redacted)");

/// Builds the request.
pub(crate) fn build(
    spec: &ModelSpec,
    key: Option<&SecretString>,
    request: &ModelRequest,
) -> Result<WireRequest, NetError> {
    let base = spec.base_url.strip_suffix("/v1").unwrap_or(&spec.base_url);
    Ok(WireRequest {
        url: format!("{base}/v1/messages"),
        headers: headers(spec, key)?,
        body: body(spec, request).to_string().into_bytes(),
    })
}

fn headers(spec: &ModelSpec, key: Option<&SecretString>) -> Result<Headers, NetError> {
    let mut headers = Headers::default();
    headers.set("accept", "application/json")?;
    headers.set("content-type", "application/json")?;
    headers.set("anthropic-version", VERSION)?;
    match key.map(ExposeSecret::expose_secret) {
        Some(token) if token.contains(TOKEN_MARK) => {
            headers.set("authorization", &format!("Bearer {token}"))?;
            headers.set("anthropic-beta", &format!("{TOKEN_BETA},{BETAS}"))?;
        }
        Some(key) => {
            headers.set("x-api-key", key)?;
            headers.set("anthropic-beta", BETAS)?;
            if spec.auth_header {
                headers.set("authorization", &format!("Bearer {key}"))?;
            }
        }
        None => headers.set("anthropic-beta", BETAS)?,
    }
    openrouter::add_headers(&mut headers, spec)?;
    add_headers(&mut headers, &spec.headers)?;
    Ok(headers)
}

fn body(spec: &ModelSpec, request: &ModelRequest) -> Value {
    let cache = cache_marker(spec, request.cache);
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(spec.id()));
    add_limits(&mut body, spec, request);
    if !request.system.trim().is_empty() {
        let mut block = json!({"type": "text", "text": clean(spec, &request.system)});
        mark(&mut block, cache.as_ref());
        body.insert("system".to_owned(), json!([block]));
    }
    let history = history::for_model(&request.messages, spec, IdRule::Anthropic);
    let mut messages = messages(spec, &history);
    if let Some(last) = messages.last_mut().filter(|last| last.get("role") == Some(&json!("user"))) {
        let last_block = last.get_mut("content").and_then(Value::as_array_mut).and_then(|c| c.last_mut());
        if let Some(block) = last_block {
            mark(block, cache.as_ref());
        }
    }
    body.insert("messages".to_owned(), Value::Array(messages));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    Value::Object(body)
}

/// `max_tokens`, `stream`, and what depends on the thinking level.
fn add_limits(body: &mut Map<String, Value>, spec: &ModelSpec, request: &ModelRequest) {
    let mut max = spec.output_cap(request.max_tokens);
    let level =
        thinking::clamp(request.thinking, spec.reasoning, thinking::has_xhigh(spec.provider(), spec.id()));
    let mut thinking = None;
    let mut effort = None;
    if ADAPTIVE.iter().any(|part| spec.id().contains(part)) {
        effort = thinking::adaptive_effort(level);
        thinking = effort.map(|_| json!({"type": "adaptive"}));
    } else if let Some((with_budget, budget)) = thinking::budget(level, max, spec.max_tokens) {
        max = with_budget;
        thinking = Some(json!({"type": "enabled", "budget_tokens": budget}));
    }
    body.insert("max_tokens".to_owned(), json!(max));
    body.insert("stream".to_owned(), json!(true));
    match (thinking, request.temperature) {
        (Some(thinking), _) => {
            body.insert("thinking".to_owned(), thinking);
        }
        // The provider refuses a temperature while the model thinks.
        (None, Some(temperature)) => {
            body.insert("temperature".to_owned(), json!(temperature));
        }
        (None, None) => {}
    }
    if let Some(effort) = effort {
        body.insert("output_config".to_owned(), json!({"effort": effort}));
    }
}

fn cache_marker(spec: &ModelSpec, retention: CacheRetention) -> Option<Value> {
    match retention {
        CacheRetention::None => None,
        CacheRetention::Long if spec.base_url.contains(OWN_HOST) => {
            Some(json!({"type": "ephemeral", "ttl": "1h"}))
        }
        CacheRetention::Short | CacheRetention::Long => Some(json!({"type": "ephemeral"})),
    }
}

fn mark(block: &mut Value, marker: Option<&Value>) {
    if let (Some(fields), Some(marker)) = (block.as_object_mut(), marker) {
        fields.insert("cache_control".to_owned(), marker.clone());
    }
}

fn tool(tool: &ToolSpec) -> Value {
    let schema = tool_schema::normalise(&tool.parameters);
    let part = |name: &str| schema.get(name).cloned();
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": {
            "type": "object",
            "properties": part("properties").unwrap_or_else(|| json!({})),
            "required": part("required").unwrap_or_else(|| json!([])),
        },
    })
}

/// Consecutive tool results become one user message; everything else stays a message of its own.
fn messages(spec: &ModelSpec, history: &[Message]) -> Vec<Value> {
    let mut out = Vec::with_capacity(history.len());
    let mut results: Vec<Value> = Vec::new();
    for message in history {
        if let Message::ToolResult(result) = message {
            results.push(tool_result(spec, result));
            continue;
        }
        flush(&mut results, &mut out);
        match message {
            Message::User(user) => push(&mut out, "user", user_blocks(spec, &user.content)),
            Message::Assistant(answer) => push(&mut out, "assistant", answer_blocks(spec, answer)),
            Message::ToolResult(_) => {}
        }
    }
    flush(&mut results, &mut out);
    out
}

fn flush(results: &mut Vec<Value>, out: &mut Vec<Value>) {
    push(out, "user", std::mem::take(results));
}

#[expect(clippy::needless_pass_by_value, reason = "callers hand over what they made")]
fn push(out: &mut Vec<Value>, role: &str, content: Vec<Value>) {
    if !content.is_empty() {
        out.push(json!({"role": role, "content": content}));
    }
}

fn user_blocks(spec: &ModelSpec, content: &UserContent) -> Vec<Value> {
    match content {
        UserContent::Text(text) => text_block(spec, text).into_iter().collect(),
        UserContent::Blocks(blocks) => blocks.iter().filter_map(|block| plain_block(spec, block)).collect(),
    }
}

fn answer_blocks(spec: &ModelSpec, answer: &AssistantMessage) -> Vec<Value> {
    answer
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Thinking(thinking) => thinking_block(spec, thinking),
            Block::ToolCall(call) => {
                let input = if call.arguments.is_object() { call.arguments.clone() } else { json!({}) };
                Some(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}))
            }
            Block::Text(_) | Block::Image(_) | Block::Other(_) => plain_block(spec, block),
        })
        .collect()
}

fn thinking_block(spec: &ModelSpec, thinking: &ThinkingBlock) -> Option<Value> {
    match thinking.thinking_signature.as_deref().filter(|signature| !signature.is_empty()) {
        Some(data) if thinking.extra.get("redacted") == Some(&Value::Bool(true)) => {
            Some(json!({"type": "redacted_thinking", "data": data}))
        }
        Some(signature) => {
            Some(json!({"type": "thinking", "thinking": thinking.thinking, "signature": signature}))
        }
        None => text_block(spec, &thinking.thinking),
    }
}

fn tool_result(spec: &ModelSpec, result: &ToolResultMessage) -> Value {
    let has_image = spec.images && result.content.iter().any(|block| matches!(block, Block::Image(_)));
    let texts = result.content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(clean(spec, &text.text)),
        Block::Thinking(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => None,
    });
    let content = if has_image {
        let mut blocks: Vec<_> = result.content.iter().filter_map(|block| plain_block(spec, block)).collect();
        if !blocks.iter().any(|block| block.get("type") == Some(&json!("text"))) {
            blocks.insert(0, json!({"type": "text", "text": "(see attached image)"}));
        }
        Value::Array(blocks)
    } else {
        Value::String(texts.collect::<Vec<_>>().join("\n"))
    };
    json!({
        "type": "tool_result",
        "tool_use_id": result.tool_call_id,
        "content": content,
        "is_error": result.is_error,
    })
}

/// Text that is not blank, or an image for a model that sees.
fn plain_block(spec: &ModelSpec, block: &Block) -> Option<Value> {
    match block {
        Block::Text(text) => text_block(spec, &text.text),
        Block::Image(image) if spec.images => Some(image_block(image)),
        Block::Image(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
    }
}

fn text_block(spec: &ModelSpec, text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": clean(spec, text)}))
}

fn image_block(image: &ImageBlock) -> Value {
    let source = json!({"type": "base64", "media_type": image.mime_type, "data": image.data});
    json!({"type": "image", "source": source})
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
