//! The answer of Chat Completions.

use openclaw_protocol::message::{StopReason, Usage};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::request::REASONING_FIELDS;
use crate::assembly::Assembly;
use crate::sse::SseEvent;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, Flow, error_in_stream, garbage, glimpse, refused};

/// Reads an event stream, or a whole completion from a server that does not stream.
#[derive(Debug, Default)]
pub(crate) struct CompletionsDecoder {
    text: Option<usize>,
    thinking: Option<usize>,
    calls: Vec<OpenCall>,
    stop: Option<StopReason>,
}

/// A tool call under the server's index and id.
#[derive(Debug)]
struct OpenCall {
    index: Option<u64>,
    id: String,
    block: usize,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default, deserialize_with = "or_none")]
    choices: Vec<Choice>,
    #[serde(default, deserialize_with = "figures")]
    usage: Option<WireUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Delta>,
    message: Option<Delta>,
    finish_reason: Option<String>,
    #[serde(default, deserialize_with = "figures")]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<Content>,
    reasoning_content: Option<String>,
    // OpenRouter and vLLM send text here; others have been seen to send objects, which are no text for us.
    reasoning: Option<Value>,
    reasoning_text: Option<String>,
    #[serde(default)]
    reasoning_details: Option<Vec<Value>>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
    thinking: Option<Vec<Part>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default, deserialize_with = "count")]
    prompt_cache_hit_tokens: Option<u64>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default, deserialize_with = "count")]
    reasoning_tokens: Option<u64>,
}

/// Usage is told beside an answer: whatever it looks like, the answer is good.
fn figures<'de, D: Deserializer<'de>>(from: D) -> Result<Option<WireUsage>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

/// A number of tokens, however it is written; nothing for one that can't be.
fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let written = Value::deserialize(from)?;
    // Saturates; tokens are far below where a fraction would be lost.
    let rounded = || written.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64);
    Ok(written.as_u64().or_else(rounded))
}

/// `null` is as good as nothing.
fn or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Choice>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl Decoder for CompletionsDecoder {
    fn event(&mut self, event: &SseEvent, out: &mut Assembly) -> Result<Flow, ModelFailure> {
        match event.data.trim() {
            "[DONE]" => return self.done(out),
            "null" => return Ok(Flow::More),
            _ => {}
        }
        let chunk: Chunk = serde_json::from_str(&event.data)
            .map_err(|_| garbage(format_args!("an event that is no completion: {}", glimpse(&event.data))))?;
        self.chunk(chunk, out)?;
        Ok(Flow::More)
    }

    fn document(&mut self, document: &str, out: &mut Assembly) -> Result<StopReason, ModelFailure> {
        let chunk: Chunk = serde_json::from_str(document)
            .map_err(|_| garbage(format_args!("an answer that is no completion: {}", glimpse(document))))?;
        let answered = !chunk.choices.is_empty();
        self.chunk(chunk, out)?;
        if answered {
            Ok(self.stop.unwrap_or_default())
        } else {
            Err(garbage(format_args!("JSON that is no completion: {}", glimpse(document))))
        }
    }

    fn end(&self) -> Option<StopReason> {
        self.stop
    }
}

impl CompletionsDecoder {
    fn done(&self, out: &Assembly) -> Result<Flow, ModelFailure> {
        match self.stop {
            Some(stop) => Ok(Flow::End(stop)),
            None if out.is_empty() => Err(garbage("the end of a stream that held no answer")),
            None => Ok(Flow::End(StopReason::Stop)),
        }
    }

    fn chunk(&mut self, chunk: Chunk, out: &mut Assembly) -> Result<(), ModelFailure> {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            let message = error_message(&error).unwrap_or_else(|| error.to_string());
            return Err(error_in_stream(&error, message));
        }
        out.start();
        if let Some(usage) = &chunk.usage {
            take_usage(out.usage(), usage);
        }
        let Some(choice) = chunk.choices.into_iter().next() else { return Ok(()) };
        if let (None, Some(usage)) = (&chunk.usage, &choice.usage) {
            take_usage(out.usage(), usage);
        }
        if let Some(delta) = choice.delta.or(choice.message) {
            self.delta(delta, out);
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.stop = Some(finish(&reason)?);
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta, out: &mut Assembly) {
        self.reasoning(&delta, out);
        match delta.content {
            Some(Content::Text(text)) => self.add_text(&text, out),
            Some(Content::Parts(parts)) => parts.into_iter().for_each(|part| self.part(part, out)),
            None => {}
        }
        if let Some(refusal) = delta.refusal {
            self.add_text(&refusal, out);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(call, out);
        }
        for detail in delta.reasoning_details.into_iter().flatten() {
            let encrypted = detail.get("type").and_then(Value::as_str) == Some("reasoning.encrypted");
            if let (true, Some(id)) = (encrypted, detail.get("id").and_then(Value::as_str)) {
                out.thought_signature(id, &detail.to_string());
            }
        }
    }

    fn reasoning(&mut self, delta: &Delta, out: &mut Assembly) {
        let sent = [
            delta.reasoning_content.as_deref(),
            delta.reasoning.as_ref().and_then(Value::as_str),
            delta.reasoning_text.as_deref(),
        ];
        let found = REASONING_FIELDS
            .iter()
            .zip(sent)
            .find_map(|(field, text)| Some((field, text.filter(|t| !t.is_empty())?)));
        if let Some((field, text)) = found {
            self.add_thinking(text, out);
            out.thinking_field(self.thinking, field);
        }
    }

    fn part(&mut self, part: Part, out: &mut Assembly) {
        if let Some(text) = part.text {
            self.add_text(&text, out);
        }
        for thought in part.thinking.into_iter().flatten() {
            self.add_thinking(&thought.text.unwrap_or_default(), out);
        }
    }

    fn add_text(&mut self, text: &str, out: &mut Assembly) {
        if !text.is_empty() {
            self.thinking = None;
            out.text(&mut self.text, text);
        }
    }

    fn add_thinking(&mut self, text: &str, out: &mut Assembly) {
        if !text.is_empty() {
            self.text = None;
            out.thinking(&mut self.thinking, text);
        }
    }

    fn call(&mut self, delta: CallDelta, out: &mut Assembly) {
        (self.text, self.thinking) = (None, None);
        let id = delta.id.unwrap_or_default();
        let function = delta.function.unwrap_or(FunctionDelta { name: None, arguments: None });
        let name = function.name.unwrap_or_default();
        let block = match self.open_call(delta.index, &id, &name) {
            Some(block) => block,
            None => {
                let block = out.tool_call(&id, &name);
                self.calls.push(OpenCall { index: delta.index, id, block });
                block
            }
        };
        match function.arguments {
            Some(Value::String(text)) => out.tool_arguments(block, &text),
            Some(Value::Null) | None => {}
            // Some servers send the object itself.
            Some(value) => out.tool_arguments(block, &value.to_string()),
        }
    }

    /// The call a delta continues: the one of its index, or the last one when there is no index. A delta that brings
    /// another id and a name begins a new call even under a known index: some servers number every call 0.
    fn open_call(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let known = match index {
            Some(_) => self.calls.iter().rev().find(|call| call.index == index),
            None => self.calls.last(),
        };
        known.filter(|call| id.is_empty() || id == call.id || name.is_empty()).map(|call| call.block)
    }
}

fn take_usage(taken: &mut Usage, usage: &WireUsage) {
    let prompt = usage.prompt_tokens.unwrap_or(0);
    let completion = usage.completion_tokens.unwrap_or(0);
    let details = usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
    let cached = details.or(usage.prompt_cache_hit_tokens).unwrap_or(0).min(prompt);
    let reasoning =
        usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens).unwrap_or(0);
    // Reasoning is part of the completion, except at servers whose total only adds up with it on top.
    let sum = prompt.saturating_add(completion).saturating_add(reasoning);
    let apart = reasoning > 0 && usage.total_tokens == Some(sum);
    taken.input = prompt - cached;
    taken.cache_read = cached;
    taken.output = completion.saturating_add(if apart { reasoning } else { 0 });
}

fn finish(reason: &str) -> Result<StopReason, ModelFailure> {
    match reason {
        "stop" | "eos" | "end_turn" => Ok(StopReason::Stop),
        "length" | "max_tokens" => Ok(StopReason::Length),
        "tool_calls" | "function_call" => Ok(StopReason::ToolUse),
        "content_filter" => Err(refused(reason)),
        "error" => Err(garbage("finish reason \"error\"")),
        other => {
            tracing::warn!(reason = other, "unknown finish reason, taken as the end of the turn");
            Ok(StopReason::Stop)
        }
    }
}

/// The words in an error object, with those of the provider behind OpenRouter on a line of their own.
pub(crate) fn error_message(error: &Value) -> Option<String> {
    let message = error.as_str().or_else(|| error.get("message").and_then(Value::as_str))?;
    match error.pointer("/metadata/raw").and_then(Value::as_str) {
        Some(raw) => Some(format!("{message}\n{raw}")),
        None => Some(message.to_owned()),
    }
}

#[cfg(test)]
mod tests;
