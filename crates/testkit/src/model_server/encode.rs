//! The wire protocols from the server's side.

use serde_json::{Value, json};

use super::script::{Reply, ScriptedCall, ScriptedUsage, Step, Stop};

/// A protocol the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    AnthropicMessages,
    ChatCompletions,
    Responses,
}

/// Writes one streamed answer, step by step.
#[derive(Debug)]
pub(super) struct Encoder {
    protocol: Protocol,
    model: String,
    usage: ScriptedUsage,
    stop: Stop,
    /// Number of the next block or output item.
    next: usize,
    open: Option<OpenBlock>,
    /// Items of the Responses protocol that are complete.
    items: Vec<Value>,
    calls: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum OpenBlock {
    Text(String),
    Thinking,
}

impl Encoder {
    pub(super) fn new(protocol: Protocol, model: &str, reply: &Reply) -> Self {
        Self {
            protocol,
            model: model.to_owned(),
            usage: reply.usage,
            stop: reply.stop_reason(),
            next: 0,
            open: None,
            items: Vec::new(),
            calls: 0,
        }
    }

    /// What comes before the first step.
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
            Protocol::Responses => named(
                "response.created",
                json!({"response": {"id": "resp_1", "status": "in_progress", "output": []}}),
            ),
        }
    }

    /// One step that is words; the others are not the encoder's.
    pub(super) fn step(&mut self, step: &Step) -> String {
        match step {
            Step::Text(text) => self.text(text),
            Step::Thinking(text) => self.thinking(text),
            Step::Signature(signature) => self.signature(signature),
            Step::ToolCalls(calls) => self.close() + &self.tool_calls(calls),
            Step::HalfToolCall(call) => {
                let closed = self.close();
                closed + &self.tool_begin(call) + &self.tool_piece(self.calls, call, half(&call.arguments).0)
            }
            Step::Delay(_) | Step::Wait(_) | Step::Raw(_) | Step::Cut | Step::Hang => String::new(),
        }
    }

    /// What comes after the last step.
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
                Protocol::Responses => named("response.completed", json!({"response": self.response()})),
            }
    }

    fn text(&mut self, text: &str) -> String {
        match self.protocol {
            Protocol::ChatCompletions => self.chunk(&json!({"content": text}), &Value::Null),
            Protocol::AnthropicMessages => {
                let opened =
                    self.open_block(OpenBlock::Text(String::new()), &json!({"type": "text", "text": ""}));
                opened + &self.block_delta(&json!({"type": "text_delta", "text": text}))
            }
            Protocol::Responses => {
                let mut opened = String::new();
                if !matches!(self.open, Some(OpenBlock::Text(_))) {
                    opened = self.close();
                    let item = json!({"type": "message", "id": format!("msg_{}", self.next), "role": "assistant",
                        "status": "in_progress", "content": []});
                    let part = json!({"type": "output_text", "text": "", "annotations": []});
                    opened += &named(
                        "response.output_item.added",
                        json!({"output_index": self.next, "item": item}),
                    );
                    opened += &named(
                        "response.content_part.added",
                        json!({"output_index": self.next, "content_index": 0, "part": part}),
                    );
                    self.open = Some(OpenBlock::Text(String::new()));
                }
                if let Some(OpenBlock::Text(said)) = &mut self.open {
                    said.push_str(text);
                }
                let delta = json!({"output_index": self.next, "content_index": 0, "delta": text});
                opened + &named("response.output_text.delta", delta)
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
            Protocol::Responses => {
                let closed = self.close();
                let part = json!({"type": "summary_text", "text": text});
                let item = json!({"type": "reasoning", "id": format!("rs_{}", self.next), "summary": [part]});
                let at = self.next;
                self.next += 1;
                self.items.push(item.clone());
                closed
                    + &named(
                        "response.output_item.added",
                        json!({"output_index": at, "item": {"type": "reasoning", "id": format!("rs_{at}"), "summary": []}}),
                    )
                    + &named(
                        "response.reasoning_summary_part.added",
                        json!({"output_index": at, "summary_index": 0, "part": {"type": "summary_text", "text": ""}}),
                    )
                    + &named(
                        "response.reasoning_summary_text.delta",
                        json!({"output_index": at, "summary_index": 0, "delta": text}),
                    )
                    + &named(
                        "response.reasoning_summary_part.done",
                        json!({"output_index": at, "summary_index": 0, "part": part}),
                    )
                    + &named("response.output_item.done", json!({"output_index": at, "item": item}))
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
            Protocol::ChatCompletions | Protocol::Responses => String::new(),
        }
    }

    /// Arguments go out in two halves. With Chat Completions all calls are begun first and their halves interleaved, as
    /// parallel calls are; the other protocols send one after the other.
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
                    out += &self.tool_piece(at, call, if part == 0 { a } else { b });
                }
            }
            return out;
        }
        for call in calls {
            let (a, b) = half(&call.arguments);
            out += &self.tool_begin(call);
            out += &self.tool_piece(self.calls, call, a);
            out += &self.tool_piece(self.calls, call, b);
            out += &self.tool_end(call);
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
            Protocol::Responses => {
                let item = function_item(call, "", "in_progress");
                named("response.output_item.added", json!({"output_index": self.next, "item": item}))
            }
        }
    }

    fn tool_piece(&self, at: usize, call: &ScriptedCall, piece: &str) -> String {
        match self.protocol {
            Protocol::AnthropicMessages => {
                self.block_delta(&json!({"type": "input_json_delta", "partial_json": piece}))
            }
            Protocol::ChatCompletions => {
                let delta = json!({"index": at, "function": {"arguments": piece}});
                self.chunk(&json!({"tool_calls": [delta]}), &Value::Null)
            }
            Protocol::Responses => named(
                "response.function_call_arguments.delta",
                json!({"output_index": self.next, "item_id": item_id(call), "delta": piece}),
            ),
        }
    }

    fn tool_end(&mut self, call: &ScriptedCall) -> String {
        let at = self.next;
        self.next += 1;
        match self.protocol {
            Protocol::AnthropicMessages => named("content_block_stop", json!({"index": at})),
            Protocol::ChatCompletions => String::new(),
            Protocol::Responses => {
                let item = function_item(call, &call.arguments, "completed");
                self.items.push(item.clone());
                let done = json!({"output_index": at, "item_id": item_id(call), "arguments": call.arguments});
                named("response.function_call_arguments.done", done)
                    + &named("response.output_item.done", json!({"output_index": at, "item": item}))
            }
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
        let Some(open) = self.open.take() else { return String::new() };
        let at = self.next;
        self.next += 1;
        match (self.protocol, open) {
            (Protocol::AnthropicMessages, _) => named("content_block_stop", json!({"index": at})),
            (Protocol::Responses, OpenBlock::Text(said)) => {
                let item = message_item(at, &said);
                self.items.push(item.clone());
                named("response.output_item.done", json!({"output_index": at, "item": item}))
            }
            (Protocol::Responses | Protocol::ChatCompletions, _) => String::new(),
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

    fn response(&self) -> Value {
        let status = if self.stop == Stop::Length { "incomplete" } else { "completed" };
        let prompt = self.usage.input + self.usage.cache_read;
        json!({"id": "resp_1", "object": "response", "status": status, "model": self.model, "output": self.items,
            "usage": {"input_tokens": prompt, "output_tokens": self.usage.output,
                "total_tokens": prompt + self.usage.output,
                "input_tokens_details": {"cached_tokens": self.usage.cache_read}}})
    }
}

/// The whole answer as one document.
pub(super) fn document(protocol: Protocol, model: &str, reply: &Reply) -> Value {
    let encoder = Encoder::new(protocol, model, reply);
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
        Protocol::Responses => {
            let mut encoder = encoder;
            encoder.items.push(message_item(0, &text));
            encoder.items.extend(calls.iter().map(|call| function_item(call, &call.arguments, "completed")));
            encoder.response()
        }
    }
}

impl Stop {
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

fn message_item(at: usize, text: &str) -> Value {
    json!({"type": "message", "id": format!("msg_{at}"), "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn function_item(call: &ScriptedCall, arguments: &str, status: &str) -> Value {
    json!({"type": "function_call", "id": item_id(call), "call_id": call.id, "name": call.name,
        "arguments": arguments, "status": status})
}

fn item_id(call: &ScriptedCall) -> String {
    format!("fc_{}", call.id)
}

/// Halves, parted at a character.
fn half(text: &str) -> (&str, &str) {
    let middle = text.char_indices().map(|(at, _)| at).nth(text.chars().count() / 2).unwrap_or(0);
    text.split_at(middle)
}

fn put(value: &mut Value, name: &str, field: Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(name.to_owned(), field);
    }
}

/// An event whose data repeats its name as `type`.
fn named(name: &str, fields: Value) -> String {
    let mut body = json!({"type": name});
    if let (Some(body), Value::Object(fields)) = (body.as_object_mut(), fields) {
        body.extend(fields);
    }
    format!("event: {name}\ndata: {body}\n\n")
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}
