//! Google's `streamGenerateContent` from the server's side.

use serde_json::{Value, json};

use super::encode::half;
use super::script::{ModelStop, Reply, ScriptedCall, ScriptedUsage, Step};

/// Writes one streamed answer, step by step.
#[derive(Debug)]
pub(super) struct GoogleEncoder {
    model: String,
    usage: ScriptedUsage,
    stop: ModelStop,
    /// A proof that has not been sent: it goes out with the next part that is no thought.
    proof: Option<String>,
}

impl GoogleEncoder {
    pub(super) fn new(model: &str, reply: &Reply) -> Self {
        Self { model: model.to_owned(), usage: reply.usage, stop: reply.stop_reason(), proof: None }
    }

    /// Text before the first step: only its tokens.
    pub(super) fn begin(&self) -> String {
        data(&self.chunk(&[], None))
    }

    /// Encodes a step that is words; the others are not the encoder's.
    pub(super) fn step(&mut self, step: &Step) -> String {
        match step {
            Step::HalfToolCall(call) => {
                // A call is one part of one event, so that half a call is half an event.
                let event = data(&self.chunk(&[function_part(call)], None));
                half(&event).0.to_owned()
            }
            step => {
                let parts = self.parts(step);
                if parts.is_empty() { String::new() } else { data(&self.chunk(&parts, None)) }
            }
        }
    }

    /// Text after the last step.
    pub(super) fn end(&mut self) -> String {
        let last = self.sign(json!({"text": ""}));
        data(&self.chunk(&[last], Some(finish_reason(self.stop))))
    }

    /// The whole answer as one document.
    pub(super) fn document(mut self, reply: &Reply) -> Value {
        let mut parts = Vec::new();
        for step in &reply.steps {
            parts.extend(self.parts(step));
        }
        self.chunk(&parts, Some(finish_reason(self.stop)))
    }

    fn parts(&mut self, step: &Step) -> Vec<Value> {
        match step {
            Step::Text(text) => vec![self.sign(json!({"text": text}))],
            Step::Thinking(text) => vec![json!({"text": text, "thought": true})],
            Step::Signature(signature) => {
                self.proof = Some(signature.clone());
                Vec::new()
            }
            // Of calls side by side the first carries the proof.
            Step::ToolCalls(calls) => calls.iter().map(|call| self.sign(function_part(call))).collect(),
            Step::HalfToolCall(_)
            | Step::Delay(_)
            | Step::Wait(_)
            | Step::Raw(_)
            | Step::Cut
            | Step::Hang => Vec::new(),
        }
    }

    fn sign(&mut self, mut part: Value) -> Value {
        if let (Some(fields), Some(proof)) = (part.as_object_mut(), self.proof.take()) {
            fields.insert("thoughtSignature".to_owned(), json!(proof));
        }
        part
    }

    fn chunk(&self, parts: &[Value], finish: Option<&str>) -> Value {
        let prompt = self.usage.input + self.usage.cache_read;
        let mut usage = json!({"promptTokenCount": prompt, "totalTokenCount": prompt});
        let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
        if let (Some(finish), Some(candidate), Some(usage)) =
            (finish, candidate.as_object_mut(), usage.as_object_mut())
        {
            candidate.insert("finishReason".to_owned(), json!(finish));
            usage.insert("candidatesTokenCount".to_owned(), json!(self.usage.output));
            usage.insert("cachedContentTokenCount".to_owned(), json!(self.usage.cache_read));
            usage.insert("totalTokenCount".to_owned(), json!(prompt + self.usage.output));
        }
        json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": self.model, "responseId": "r1"})
    }
}

/// Google sends no ids, and arguments as an object; those that are none are sent as text.
fn function_part(call: &ScriptedCall) -> Value {
    let args = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
    json!({"functionCall": {"name": call.name, "args": args}})
}

fn finish_reason(stop: ModelStop) -> &'static str {
    match stop {
        ModelStop::End | ModelStop::Tools => "STOP",
        ModelStop::Length => "MAX_TOKENS",
        ModelStop::Refusal => "SAFETY",
    }
}

fn data(value: &Value) -> String {
    format!("data: {value}\r\n\r\n")
}
