//! Bedrock's `ConverseStream` from the server's side: AWS's binary event stream.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::encode::half;
use super::script::{ModelStop, Reply, ScriptedCall, ScriptedUsage, Step};

/// Writes one streamed answer, step by step, with all the events a real server sends.
#[derive(Debug)]
pub(super) struct BedrockEncoder {
    usage: ScriptedUsage,
    stop: ModelStop,
    /// The block under way: its index is the number of those before.
    open: Option<OpenBlockKind>,
    blocks: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlockKind {
    Text,
    Thinking,
    Call,
}

impl BedrockEncoder {
    pub(super) fn new(reply: &Reply) -> Self {
        Self { usage: reply.usage, stop: reply.stop_reason(), open: None, blocks: 0 }
    }

    /// Bytes before the first step.
    pub(super) fn begin() -> Vec<u8> {
        event("messageStart", json!({"role": "assistant"}))
    }

    /// Encodes a step that is words; the others are not the encoder's.
    pub(super) fn step(&mut self, step: &Step) -> Vec<u8> {
        match step {
            Step::Text(text) => {
                [self.turn_to(OpenBlockKind::Text), self.delta(&json!({"text": text}))].concat()
            }
            Step::Thinking(text) => [
                self.turn_to(OpenBlockKind::Thinking),
                self.delta(&json!({"reasoningContent": {"text": text}})),
            ]
            .concat(),
            Step::Signature(signature) => {
                let proof = json!({"reasoningContent": {"signature": signature}});
                [self.turn_to(OpenBlockKind::Thinking), self.delta(&proof), self.close()].concat()
            }
            Step::ToolCalls(calls) => calls.iter().flat_map(|call| self.tool_call(call)).collect(),
            Step::HalfToolCall(call) => {
                [self.tool_begin(call), self.tool_piece(half(&call.arguments).0)].concat()
            }
            Step::Delay(_) | Step::Wait(_) | Step::Raw(_) | Step::Cut | Step::Hang => Vec::new(),
        }
    }

    /// Bytes after the last step.
    pub(super) fn end(&mut self) -> Vec<u8> {
        let metadata = json!({"usage": self.tokens(), "metrics": {"latencyMs": 1}});
        [
            self.close(),
            event("messageStop", json!({"stopReason": self.stop_reason()})),
            event("metadata", metadata),
        ]
        .concat()
    }

    /// The answer of `Converse`.
    pub(super) fn document(&self, reply: &Reply) -> Value {
        let mut content = Vec::new();
        for step in &reply.steps {
            match step {
                Step::Text(text) => content.push(json!({"text": text})),
                Step::Thinking(text) => {
                    content.push(json!({"reasoningContent": {"reasoningText": {"text": text}}}))
                }
                Step::ToolCalls(calls) => content.extend(calls.iter().map(tool_use)),
                Step::Signature(_)
                | Step::HalfToolCall(_)
                | Step::Delay(_)
                | Step::Wait(_)
                | Step::Raw(_)
                | Step::Cut
                | Step::Hang => {}
            }
        }
        json!({"output": {"message": {"role": "assistant", "content": content}},
            "stopReason": self.stop_reason(), "usage": self.tokens(), "metrics": {"latencyMs": 1}})
    }

    fn turn_to(&mut self, kind: OpenBlockKind) -> Vec<u8> {
        if self.open == Some(kind) {
            return Vec::new();
        }
        let closed = self.close();
        self.open = Some(kind);
        closed
    }

    fn close(&mut self) -> Vec<u8> {
        if self.open.take().is_none() {
            return Vec::new();
        }
        let at = self.blocks;
        self.blocks += 1;
        event("contentBlockStop", json!({"contentBlockIndex": at}))
    }

    fn delta(&self, delta: &Value) -> Vec<u8> {
        event("contentBlockDelta", json!({"contentBlockIndex": self.blocks, "delta": delta}))
    }

    fn tool_call(&mut self, call: &ScriptedCall) -> Vec<u8> {
        let (a, b) = half(&call.arguments);
        [self.tool_begin(call), self.tool_piece(a), self.tool_piece(b), self.close()].concat()
    }

    fn tool_begin(&mut self, call: &ScriptedCall) -> Vec<u8> {
        let closed = self.close();
        self.open = Some(OpenBlockKind::Call);
        let start = json!({"toolUse": {"toolUseId": call.id, "name": call.name}});
        [closed, event("contentBlockStart", json!({"contentBlockIndex": self.blocks, "start": start}))]
            .concat()
    }

    fn tool_piece(&self, piece: &str) -> Vec<u8> {
        self.delta(&json!({"toolUse": {"input": piece}}))
    }

    fn tokens(&self) -> Value {
        let ScriptedUsage { input, output, cache_read, cache_write } = self.usage;
        json!({"inputTokens": input, "outputTokens": output, "totalTokens": input + output + cache_read + cache_write,
            "cacheReadInputTokens": cache_read, "cacheWriteInputTokens": cache_write})
    }

    fn stop_reason(&self) -> &'static str {
        match self.stop {
            ModelStop::End => "end_turn",
            ModelStop::Tools => "tool_use",
            ModelStop::Length => "max_tokens",
            ModelStop::Refusal => "guardrail_intervened",
        }
    }
}

fn tool_use(call: &ScriptedCall) -> Value {
    let input = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
    json!({"toolUse": {"toolUseId": call.id, "name": call.name, "input": input}})
}

/// An event, padded as Bedrock pads its events.
fn event(name: &str, mut payload: Value) -> Vec<u8> {
    if let Some(fields) = payload.as_object_mut() {
        let padding = STANDARD.encode(name);
        fields.insert("p".to_owned(), json!(padding.trim_end_matches('=')));
    }
    message(
        &[(":event-type", name), (":content-type", "application/json"), (":message-type", "event")],
        &payload.to_string(),
    )
}

/// An exception in the middle of a stream: bytes for [`Step::Raw`].
pub fn bedrock_exception(name: &str, text: &str) -> Vec<u8> {
    message(
        &[(":exception-type", name), (":message-type", "exception")],
        &json!({"message": text}).to_string(),
    )
}

/// A message of AWS's event stream with text headers.
fn message(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.extend(number(name.len()).to_be_bytes().last());
        head.extend_from_slice(name.as_bytes());
        // Text, its length in two bytes.
        head.push(7);
        head.extend(number(value.len()).to_be_bytes().iter().skip(2));
        head.extend_from_slice(value.as_bytes());
    }
    let mut out = number(head.len() + payload.len() + 16).to_be_bytes().to_vec();
    out.extend(number(head.len()).to_be_bytes());
    out.extend(crc32fast::hash(&out).to_be_bytes());
    out.extend(head);
    out.extend_from_slice(payload.as_bytes());
    out.extend(crc32fast::hash(&out).to_be_bytes());
    out
}

fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
