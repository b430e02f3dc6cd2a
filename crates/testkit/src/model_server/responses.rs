//! The Responses protocol from the server's side.

use serde_json::{Value, json};

use super::encode::{half, named};
use super::script::{ModelStop, Reply, ScriptedCall, ScriptedUsage, Step};

/// Writes one streamed answer, step by step, with all the events a real server sends.
#[derive(Debug)]
pub(super) struct ResponsesEncoder {
    model: String,
    usage: ScriptedUsage,
    stop: ModelStop,
    open: Option<OpenItem>,
    /// Items that are complete.
    items: Vec<Value>,
}

/// The item under way.
#[derive(Debug)]
enum OpenItem {
    Text(String),
    Reasoning(String),
}

impl ResponsesEncoder {
    pub(super) fn new(model: &str, reply: &Reply) -> Self {
        Self {
            model: model.to_owned(),
            usage: reply.usage,
            stop: reply.stop_reason(),
            open: None,
            items: Vec::new(),
        }
    }

    /// Text before the first step.
    pub(super) fn begin(&self) -> String {
        let response = json!({"id": "resp_1", "object": "response", "status": "in_progress", "model": self.model,
            "output": [], "usage": null, "error": null, "incomplete_details": null});
        named("response.created", json!({"response": response}))
            + &named("response.in_progress", json!({"response": response}))
    }

    /// Encodes a step that is words; the others are not the encoder's.
    pub(super) fn step(&mut self, step: &Step) -> String {
        match step {
            Step::Text(text) => self.text(text),
            Step::Thinking(text) => self.thinking(text),
            Step::Signature(signature) => self.signature(signature),
            Step::ToolCalls(calls) => self.close() + &self.tool_calls(calls),
            Step::HalfToolCall(call) => {
                self.close() + &self.tool_begin(call) + &self.tool_piece(call, half(&call.arguments).0)
            }
            Step::Delay(_) | Step::Wait(_) | Step::Raw(_) | Step::Cut | Step::Hang => String::new(),
        }
    }

    /// Text after the last step.
    pub(super) fn end(&mut self) -> String {
        let closed = self.close();
        let name = format!("response.{}", self.status());
        closed + &named(&name, json!({"response": self.response()}))
    }

    /// The whole answer as one document.
    pub(super) fn document(mut self, reply: &Reply) -> Value {
        for step in &reply.steps {
            self.step(step);
            if let Step::HalfToolCall(call) = step {
                self.items.push(function_item(call, &call.arguments, "incomplete"));
            }
        }
        self.close();
        self.response()
    }

    /// Number of the item under way, or of the next one.
    fn at(&self) -> usize {
        self.items.len()
    }

    fn text(&mut self, text: &str) -> String {
        let mut out = String::new();
        if !matches!(self.open, Some(OpenItem::Text(_))) {
            out += &self.close();
            let at = self.at();
            let item = json!({"type": "message", "id": format!("msg_{at}"), "role": "assistant",
                "status": "in_progress", "content": []});
            out += &named("response.output_item.added", json!({"output_index": at, "item": item}));
            out += &self.part("response.content_part.added", "");
            self.open = Some(OpenItem::Text(String::new()));
        }
        if let Some(OpenItem::Text(said)) = &mut self.open {
            said.push_str(text);
        }
        let at = self.at();
        let delta =
            json!({"item_id": format!("msg_{at}"), "output_index": at, "content_index": 0, "delta": text});
        out + &named("response.output_text.delta", delta)
    }

    fn part(&self, event: &str, text: &str) -> String {
        let at = self.at();
        let part = json!({"type": "output_text", "text": text, "annotations": []});
        named(
            event,
            json!({"item_id": format!("msg_{at}"), "output_index": at, "content_index": 0, "part": part}),
        )
    }

    fn thinking(&mut self, text: &str) -> String {
        let mut out = String::new();
        if !matches!(self.open, Some(OpenItem::Reasoning(_))) {
            out += &self.close();
            let at = self.at();
            let item = json!({"type": "reasoning", "id": format!("rs_{at}"), "summary": []});
            out += &named("response.output_item.added", json!({"output_index": at, "item": item}));
            out += &self.summary("response.reasoning_summary_part.added", "part", summary_part(""));
            self.open = Some(OpenItem::Reasoning(String::new()));
        }
        if let Some(OpenItem::Reasoning(said)) = &mut self.open {
            said.push_str(text);
        }
        out + &self.summary("response.reasoning_summary_text.delta", "delta", json!(text))
    }

    fn summary(&self, event: &str, field: &str, value: Value) -> String {
        let at = self.at();
        let mut fields = json!({"item_id": format!("rs_{at}"), "output_index": at, "summary_index": 0});
        if let Some(fields) = fields.as_object_mut() {
            fields.insert(field.to_owned(), value);
        }
        named(event, fields)
    }

    /// The proof of reasoning is its encrypted content.
    fn signature(&mut self, signature: &str) -> String {
        if !matches!(self.open, Some(OpenItem::Reasoning(_))) {
            let opened = self.thinking("");
            return opened + &self.end_reasoning(Some(signature));
        }
        self.end_reasoning(Some(signature))
    }

    fn tool_calls(&mut self, calls: &[ScriptedCall]) -> String {
        let mut out = String::new();
        for call in calls {
            let (a, b) = half(&call.arguments);
            out += &self.tool_begin(call);
            out += &self.tool_piece(call, a);
            out += &self.tool_piece(call, b);
            let at = self.at();
            let item = function_item(call, &call.arguments, "completed");
            let done = json!({"output_index": at, "item_id": item_id(call), "arguments": call.arguments});
            out += &named("response.function_call_arguments.done", done);
            out += &self.item_done(item);
        }
        out
    }

    fn tool_begin(&self, call: &ScriptedCall) -> String {
        let item = function_item(call, "", "in_progress");
        named("response.output_item.added", json!({"output_index": self.at(), "item": item}))
    }

    fn tool_piece(&self, call: &ScriptedCall, piece: &str) -> String {
        named(
            "response.function_call_arguments.delta",
            json!({"output_index": self.at(), "item_id": item_id(call), "delta": piece}),
        )
    }

    fn close(&mut self) -> String {
        match &self.open {
            None => String::new(),
            Some(OpenItem::Reasoning(_)) => self.end_reasoning(None),
            Some(OpenItem::Text(said)) => {
                let said = said.clone();
                let at = self.at();
                let done = json!({"item_id": format!("msg_{at}"), "output_index": at, "content_index": 0, "text": said});
                let item = json!({"type": "message", "id": format!("msg_{at}"), "role": "assistant",
                    "status": "completed", "content": [{"type": "output_text", "text": said, "annotations": []}]});
                named("response.output_text.done", done)
                    + &self.part("response.content_part.done", &said)
                    + &self.item_done(item)
            }
        }
    }

    fn end_reasoning(&mut self, encrypted: Option<&str>) -> String {
        let Some(OpenItem::Reasoning(said)) = &self.open else { return String::new() };
        let said = said.clone();
        let mut item = json!({"type": "reasoning", "id": format!("rs_{}", self.at()), "summary": []});
        if let Some(fields) = item.as_object_mut() {
            if !said.is_empty() {
                fields.insert("summary".to_owned(), json!([summary_part(&said)]));
            }
            if let Some(encrypted) = encrypted {
                fields.insert("encrypted_content".to_owned(), json!(encrypted));
            }
        }
        self.summary("response.reasoning_summary_text.done", "text", json!(said))
            + &self.summary("response.reasoning_summary_part.done", "part", summary_part(&said))
            + &self.item_done(item)
    }

    fn item_done(&mut self, item: Value) -> String {
        let done = named("response.output_item.done", json!({"output_index": self.at(), "item": item}));
        self.items.push(item);
        self.open = None;
        done
    }

    fn status(&self) -> &'static str {
        match self.stop {
            ModelStop::End | ModelStop::Tools => "completed",
            ModelStop::Length | ModelStop::Refusal => "incomplete",
        }
    }

    fn response(&self) -> Value {
        let reason = match self.stop {
            ModelStop::End | ModelStop::Tools => Value::Null,
            ModelStop::Length => json!({"reason": "max_output_tokens"}),
            ModelStop::Refusal => json!({"reason": "content_filter"}),
        };
        let prompt = self.usage.input + self.usage.cache_read;
        json!({"id": "resp_1", "object": "response", "status": self.status(), "model": self.model,
            "output": self.items, "error": null, "incomplete_details": reason,
            "usage": {"input_tokens": prompt, "output_tokens": self.usage.output,
                "total_tokens": prompt + self.usage.output,
                "input_tokens_details": {"cached_tokens": self.usage.cache_read},
                "output_tokens_details": {"reasoning_tokens": 0}}})
    }
}

fn summary_part(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}

fn function_item(call: &ScriptedCall, arguments: &str, status: &str) -> Value {
    json!({"type": "function_call", "id": item_id(call), "call_id": call.id, "name": call.name,
        "arguments": arguments, "status": status})
}

fn item_id(call: &ScriptedCall) -> String {
    format!("fc_{}", call.id)
}
