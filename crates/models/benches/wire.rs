//! Measures the cost of a call in this process, without the network: reading a token (at most 5 µs)
//! and building a request (at most 200 µs).
//!
//! `cargo bench -p openclaw-models --bench wire`

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a benchmark that can't run stops"
)]

use std::sync::Arc;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use openclaw_models::catalog::{Catalog, ModelSpec};
use openclaw_models::replay::{gone_on, posted, replay};
use openclaw_models::{ModelRef, ModelRequest, ModelSettings, ThinkingLevel, ToolSpec};
use openclaw_protocol::message::{AssistantMessage, Block, Message, ToolResultMessage, UserMessage};
use serde_json::{Value, json};

/// Tokens of one answer.
const TOKENS: usize = 5_000;

/// A model of each protocol.
const MODELS: [(&str, &str); 6] = [
    ("anthropic", "claude-sonnet-4-5"),
    ("openrouter", "any"),
    ("openai", "gpt-5.2"),
    ("openai-codex", "gpt-5.3-codex"),
    ("google", "gemini-3-pro-preview"),
    ("amazon-bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
];

fn main() {
    divan::main();
}

fn spec((provider, id): (&str, &str)) -> ModelSpec {
    Catalog::new(&ModelSettings::default()).lookup(&ModelRef::new(provider, id)).unwrap()
}

/// Returns an answer, one event per chunk.
fn answer(api: &str) -> Vec<Vec<u8>> {
    let sse = |event: Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n").into_bytes(),
        None => format!("data: {event}\n\n").into_bytes(),
    };
    let deltas =
        |make: &dyn Fn(String) -> Vec<u8>| (0..TOKENS).map(|n| make(format!(" word{n}"))).collect::<Vec<_>>();
    let (before, each, after): (Vec<_>, Vec<_>, Vec<_>) = match api {
        "anthropic-messages" => (
            vec![
                sse(json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 9}}})),
                sse(
                    json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                ),
            ],
            deltas(&|text| {
                sse(
                    json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
                )
            }),
            vec![
                sse(json!({"type": "content_block_stop", "index": 0})),
                sse(
                    json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
                ),
                sse(json!({"type": "message_stop"})),
            ],
        ),
        "openai-completions" => {
            let chunk = |choice: Value| {
                sse(json!({"id": "chatcmpl-0123456789", "object": "chat.completion.chunk",
                "created": 1_770_000_000, "model": "any", "system_fingerprint": "fp_1", "choices": [choice]}))
            };
            (
                vec![],
                deltas(&|text| {
                    chunk(
                        json!({"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": null}),
                    )
                }),
                vec![
                    chunk(json!({"index": 0, "delta": {}, "finish_reason": "stop"})),
                    b"data: [DONE]\n\n".to_vec(),
                ],
            )
        }
        "openai-responses" | "openai-codex-responses" => (
            vec![sse(
                json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "msg_1"}}),
            )],
            deltas(&|text| {
                sse(
                    json!({"type": "response.output_text.delta", "sequence_number": 7, "item_id": "msg_0123456789",
                "output_index": 0, "content_index": 0, "delta": text, "logprobs": [], "obfuscation": "xxxxxxxx"}),
                )
            }),
            vec![sse(json!({"type": "response.completed", "response": {"status": "completed"}}))],
        ),
        "google-generative-ai" => {
            let chunk = |parts: Value, finish: Value| {
                sse(json!({"candidates": [{"content": {"parts": parts, "role": "model"},
                "index": 0, "finishReason": finish}], "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 1,
                "totalTokenCount": 10}, "modelVersion": "gemini", "responseId": "r"}))
            };
            (
                vec![],
                deltas(&|text| chunk(json!([{"text": text}]), Value::Null)),
                vec![chunk(json!([]), json!("STOP"))],
            )
        }
        _ => (
            vec![aws("messageStart", &json!({"role": "assistant"}))],
            deltas(&|text| {
                aws(
                    "contentBlockDelta",
                    &json!({"contentBlockIndex": 0, "delta": {"text": text}, "p": "abcdefgh"}),
                )
            }),
            vec![
                aws("contentBlockStop", &json!({"contentBlockIndex": 0})),
                aws("messageStop", &json!({"stopReason": "end_turn"})),
                aws("metadata", &json!({"usage": {"inputTokens": 9, "outputTokens": 9}})),
            ],
        ),
    };
    [before, each, after].concat()
}

/// A message of AWS's event stream.
fn aws(name: &str, payload: &Value) -> Vec<u8> {
    let payload = payload.to_string();
    let mut headers = Vec::new();
    for (key, value) in
        [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")]
    {
        headers.push(u8::try_from(key.len()).unwrap());
        headers.extend(key.as_bytes());
        headers.push(7);
        headers.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        headers.extend(value.as_bytes());
    }
    let total = u32::try_from(headers.len() + payload.len() + 16).unwrap();
    let mut out = [total, u32::try_from(headers.len()).unwrap()].map(u32::to_be_bytes).concat();
    out.extend(crc32fast::hash(&out).to_be_bytes());
    out.extend(headers);
    out.extend(payload.as_bytes());
    out.extend(crc32fast::hash(&out).to_be_bytes());
    out
}

/// Tokens as they are read from the wire: the figure to look at is items a second.
#[divan::bench(args = MODELS.map(|(provider, _)| provider))]
fn read_tokens(bencher: Bencher<'_, '_>, provider: &str) {
    let model = spec(*MODELS.iter().find(|(of, _)| *of == provider).unwrap());
    let chunks = answer(model.api.as_str());
    let events = replay(&model, 0, chunks.iter().map(Vec::as_slice)).unwrap();
    assert!(events.len() > TOKENS, "{provider}: the answer is read as meant: {:?}", events.last());
    bencher
        .counter(ItemsCount::new(TOKENS))
        .bench(|| replay(black_box(&model), 0, chunks.iter().map(Vec::as_slice)));
}

/// A request as a busy session makes it: 24,000 characters of system prompt, 22 tools, 60 messages.
#[divan::bench(args = MODELS.map(|(provider, _)| provider))]
fn build_request(bencher: Bencher<'_, '_>, provider: &str) {
    let model = spec(*MODELS.iter().find(|(of, _)| *of == provider).unwrap());
    let request = busy_request(&model);
    let key =
        "e30.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOiB7ImNoYXRncHRfYWNjb3VudF9pZCI6ICJhY2NfMSJ9fQ.c2ln";
    let key = key.to_owned().into();
    let size = posted(&model, &key, &request).unwrap().unwrap().len();
    bencher.counter(BytesCount::new(size)).bench(|| posted(black_box(&model), &key, &request));
}

/// The next request of a conversation with so many messages before: these must not show.
#[divan::bench(args = [0, 200, 2_000])]
fn next_request(bencher: Bencher<'_, '_>, before: usize) {
    let model = spec(MODELS[0]);
    let mut request = busy_request(&model);
    request.messages = Arc::new(request.messages.iter().cycle().take(before + 3).cloned().collect());
    bencher.bench_local(|| gone_on(black_box(&model), &request));
}

fn busy_request(model: &ModelSpec) -> ModelRequest {
    let property = |n: usize| json!({"type": "string", "description": format!("What argument {n} of this tool is good for, in some words"), "minLength": 1});
    let tools = (0..22).map(|n| {
        let properties: serde_json::Map<_, _> = (0..8).map(|p| (format!("argument{p}"), property(p))).collect();
        ToolSpec {
            name: format!("tool_{n}").into(),
            description: "Does what a tool does. ".repeat(12).into(),
            parameters: json!({"type": "object", "additionalProperties": false, "required": ["argument0"], "properties": properties}).into(),
        }
    });
    let turn = |n: usize| {
        let text = "Some words that were said and are said again with every turn of the talk. ".repeat(4);
        let id = format!("call_{n}");
        let answer = AssistantMessage {
            content: serde_json::from_value(json!([
                {"type": "text", "text": text},
                {"type": "toolCall", "id": id, "name": "tool_1", "arguments": {"argument0": text, "argument1": n}}]))
            .unwrap(),
            api: model.api.as_str().to_owned(),
            provider: model.provider().to_owned(),
            model: model.id().to_owned(),
            ..AssistantMessage::default()
        };
        [
            Message::User(UserMessage::text(&text, 1)),
            Message::Assistant(answer),
            Message::ToolResult(ToolResultMessage {
                tool_call_id: id,
                tool_name: "tool_1".to_owned(),
                content: vec![Block::text(text)],
                ..ToolResultMessage::default()
            }),
        ]
    };
    ModelRequest {
        system: "You are a helper, and these are the rules. ".repeat(560).into(),
        messages: (0..20).flat_map(turn).map(Into::into).collect::<Vec<_>>().into(),
        tools: tools.collect(),
        thinking: ThinkingLevel::Low,
        session_id: Some("s".to_owned()),
        ..ModelRequest::default()
    }
}
