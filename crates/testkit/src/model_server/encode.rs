//! Anthropic Messages and Chat Completions from the server's side.

use serde_json::{Value, json};

use super::script::{ModelStop, Reply, ScriptedCall, ScriptedUsage, Step};

/// Protocol to encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    AnthropicMessages,
    ChatCompletions,
}

/// Writes one streamed answer, step by step.
#[derive(Debug)]
pub(super) struct ChatEncoder {
    protocol: Protocol,
    model: String,
    usage: ScriptedUsage,
    stop: ModelStop,
    /// Number of the next block or output item.
    next: usize,
    open: Option<OpenBlock>,
    calls: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    Text,
    Thinking,
}

impl ChatEncoder {
    pub(super) fn new(protocol: Protocol, model: &str, reply: &Reply) -> Self {
        Self {
            protocol,
            model: model.to_owned(),
            usage: reply.usage,
            stop: reply.stop_reason(),
            next: 0,
            open: None,
            calls: 0,
        }
    }

    /// Text before the first step.
    pub(super) fn begin(&self) -> String {
        match self.protocol {
            Protocol::AnthropicMessages => {
                let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": self.model,
                    "content": [], "stop_reason": null, "stop_sequence": null, "usage": {
                        "input_tokens": self.usage.input, "output_tokens": 1,
                        "cache_read_input_tokens": self.usage.cache_read,
                        "cache_creation_input_tokens": self.usage.cache_write}});
                named("message_start", json!({"message": message})) + &named("ping", json!({}))
            }
            Protocol::ChatCompletions => {
                self.chunk(&json!({"role": "assistant", "content": ""}), &Value::Null)
            }
        }
    }

    /// Encodes a step that is words; the others are not the encoder's.
    pub(super) fn step(&mut self, step: &Step) -> String {
        match step {
            Step::Text(text) => self.text(text),
            Step::Thinking(text) => self.thinking(text),
            Step::Signature(signature) => self.signature(signature),
            Step::ToolCalls(calls) => self.close() + &self.tool_calls(calls),
            Step::HalfToolCall(call) => {
                let closed = self.close();
                closed + &self.tool_begin(call) + &self.tool_piece(self.calls, half(&call.arguments).0)
            }
            Step::Delay(_) | Step::Wait(_) | Step::Raw(_) | Step::Cut | Step::Hang => String::new(),
        }
    }

    /// Text after the last step.
    pub(super) fn end(&mut self) -> String {
        let closed = self.close();
        let usage = self.usage;
        closed
            + &match self.protocol {
                Protocol::AnthropicMessages => {
                    let delta = json!({"stop_reason": self.stop.anthropic(), "stop_sequence": null});
                    let delta = json!({"delta": delta, "usage": {"output_tokens": usage.output}});
                    named("message_delta", delta) + &named("message_stop", json!({}))
                }
                Protocol::ChatCompletions => {
                    let finish = self.chunk(&json!({}), &json!(self.stop.completions()));
                    let mut totals = self.envelope("chat.completion.chunk");
                    put(&mut totals, "choices", json!([]));
                    put(&mut totals, "usage", usage.completions());
                    finish + &data(&totals) + "data: [DONE]\n\n"
                }
            }
    }

    fn text(&mut self, text: &str) -> String {
        match self.protocol {
            Protocol::ChatCompletions => self.chunk(&json!({"content": text}), &Value::Null),
            Protocol::AnthropicMessages => {
                let opened = self.open_block(OpenBlock::Text, &json!({"type": "text", "text": ""}));
                opened + &self.block_delta(&json!({"type": "text_delta", "text": text}))
            }
        }
    }

    fn thinking(&mut self, text: &str) -> String {
        match self.protocol {
            Protocol::ChatCompletions => self.chunk(&json!({"reasoning_content": text}), &Value::Null),
            Protocol::AnthropicMessages => {
                let opened =
                    self.open_block(OpenBlock::Thinking, &json!({"type": "thinking", "thinking": ""}));
                opened + &self.block_delta(&json!({"type": "thinking_delta", "thinking": text}))
            }
        }
    }

    fn signature(&mut self, signature: &str) -> String {
        match self.protocol {
            Protocol::AnthropicMessages => {
                let opened =
                    self.open_block(OpenBlock::Thinking, &json!({"type": "thinking", "thinking": ""}));
                opened
                    + &self.block_delta(&json!({"type": "signature_delta", "signature": signature}))
                    + &self.close()
            }
            Protocol::ChatCompletions => String::new(),
        }
    }

    /// Arguments go out in two halves. With Chat Completions all calls are begun first and their halves interleaved, as
    /// parallel calls are; Anthropic sends one after the other.
    fn tool_calls(&mut self, calls: &[ScriptedCall]) -> String {
        let mut out = String::new();
        if self.protocol == Protocol::ChatCompletions {
            let first = self.calls;
            for call in calls {
                out += &self.tool_begin(call);
                self.calls += 1;
            }
            for part in [0, 1] {
                for (at, call) in (first..).zip(calls) {
                    let (a, b) = half(&call.arguments);
                    out += &self.tool_piece(at, if part == 0 { a } else { b });
                }
            }
            return out;
        }
        for call in calls {
            let (a, b) = half(&call.arguments);
            out += &self.tool_begin(call);
            out += &self.tool_piece(self.calls, a);
            out += &self.tool_piece(self.calls, b);
            out += &self.tool_end();
            self.calls += 1;
        }
        out
    }

    fn tool_begin(&self, call: &ScriptedCall) -> String {
        match self.protocol {
            Protocol::AnthropicMessages => {
                let block = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
                named("content_block_start", json!({"index": self.next, "content_block": block}))
            }
            Protocol::ChatCompletions => {
                let function = json!({"name": call.name, "arguments": ""});
                let delta =
                    json!({"index": self.calls, "id": call.id, "type": "function", "function": function});
                self.chunk(&json!({"tool_calls": [delta]}), &Value::Null)
            }
        }
    }

    fn tool_piece(&self, at: usize, piece: &str) -> String {
        match self.protocol {
            Protocol::AnthropicMessages => {
                self.block_delta(&json!({"type": "input_json_delta", "partial_json": piece}))
            }
            Protocol::ChatCompletions => {
                let delta = json!({"index": at, "function": {"arguments": piece}});
                self.chunk(&json!({"tool_calls": [delta]}), &Value::Null)
            }
        }
    }

    fn tool_end(&mut self) -> String {
        let at = self.next;
        self.next += 1;
        match self.protocol {
            Protocol::AnthropicMessages => named("content_block_stop", json!({"index": at})),
            Protocol::ChatCompletions => String::new(),
        }
    }

    fn open_block(&mut self, kind: OpenBlock, block: &Value) -> String {
        if self.open.as_ref() == Some(&kind) {
            return String::new();
        }
        let closed = self.close();
        self.open = Some(kind);
        closed + &named("content_block_start", json!({"index": self.next, "content_block": block}))
    }

    fn block_delta(&self, delta: &Value) -> String {
        named("content_block_delta", json!({"index": self.next, "delta": delta}))
    }

    fn close(&mut self) -> String {
        if self.open.take().is_none() {
            return String::new();
        }
        let at = self.next;
        self.next += 1;
        match self.protocol {
            Protocol::AnthropicMessages => named("content_block_stop", json!({"index": at})),
            Protocol::ChatCompletions => String::new(),
        }
    }

    fn chunk(&self, delta: &Value, finish: &Value) -> String {
        let mut chunk = self.envelope("chat.completion.chunk");
        put(&mut chunk, "choices", json!([{"index": 0, "delta": delta, "finish_reason": finish}]));
        data(&chunk)
    }

    fn envelope(&self, object: &str) -> Value {
        json!({"id": "chatcmpl-1", "object": object, "created": 1_700_000_000, "model": self.model})
    }
}

/// The whole answer as one document.
pub(super) fn document(protocol: Protocol, model: &str, reply: &Reply) -> Value {
    let encoder = ChatEncoder::new(protocol, model, reply);
    let mut text = String::new();
    let mut thinking = String::new();
    let mut calls: Vec<&ScriptedCall> = Vec::new();
    for step in &reply.steps {
        match step {
            Step::Text(piece) => text += piece,
            Step::Thinking(piece) => thinking += piece,
            Step::ToolCalls(some) => calls.extend(some),
            Step::HalfToolCall(call) => calls.push(call),
            Step::Signature(_) | Step::Delay(_) | Step::Wait(_) | Step::Raw(_) | Step::Cut | Step::Hang => {}
        }
    }
    let arguments = |call: &ScriptedCall| serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
    match protocol {
        Protocol::AnthropicMessages => {
            let thoughts = json!({"type": "thinking", "thinking": thinking, "signature": "sig"});
            let mut content = if thinking.is_empty() { vec![] } else { vec![thoughts] };
            if !text.is_empty() {
                content.push(json!({"type": "text", "text": text}));
            }
            content.extend(
                calls
                    .iter()
                    .map(|c| json!({"type": "tool_use", "id": c.id, "name": c.name, "input": arguments(c)})),
            );
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content,
                "stop_reason": encoder.stop.anthropic(), "usage": {"input_tokens": reply.usage.input,
                    "output_tokens": reply.usage.output, "cache_read_input_tokens": reply.usage.cache_read,
                    "cache_creation_input_tokens": reply.usage.cache_write}})
        }
        Protocol::ChatCompletions => {
            let call = |c: &&ScriptedCall| json!({"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}});
            let mut message = json!({"role": "assistant", "content": text});
            if !thinking.is_empty() {
                put(&mut message, "reasoning_content", json!(thinking));
            }
            if !calls.is_empty() {
                put(&mut message, "tool_calls", calls.iter().map(call).collect());
            }
            let mut completion = encoder.envelope("chat.completion");
            let choice = json!({"index": 0, "message": message, "finish_reason": encoder.stop.completions()});
            put(&mut completion, "choices", json!([choice]));
            put(&mut completion, "usage", reply.usage.completions());
            completion
        }
    }
}

impl ModelStop {
    fn anthropic(self) -> &'static str {
        match self {
            Self::End => "end_turn",
            Self::Length => "max_tokens",
            Self::Tools => "tool_use",
            Self::Refusal => "refusal",
        }
    }

    fn completions(self) -> &'static str {
        match self {
            Self::End => "stop",
            Self::Length => "length",
            Self::Tools => "tool_calls",
            Self::Refusal => "content_filter",
        }
    }
}

impl ScriptedUsage {
    fn completions(self) -> Value {
        let prompt = self.input + self.cache_read;
        json!({"prompt_tokens": prompt, "completion_tokens": self.output, "total_tokens": prompt + self.output,
            "prompt_tokens_details": {"cached_tokens": self.cache_read}})
    }
}

/// Halves, parted at a character.
pub(super) fn half(text: &str) -> (&str, &str) {
    let middle = text.char_indices().map(|(at, _)| at).nth(text.chars().count() / 2).unwrap_or(0);
    text.split_at(middle)
}

fn put(value: &mut Value, name: &str, field: Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(name.to_owned(), field);
    }
}

/// An event whose data repeats its name as `type`.
pub(super) fn named(name: &str, fields: Value) -> String {
    let mut body = json!({"type": name});
    if let (Some(body), Value::Object(fields)) = (body.as_object_mut(), fields) {
        body.extend(fields);
    }
    format!("event: {name}\ndata: {body}\n\n")
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}
