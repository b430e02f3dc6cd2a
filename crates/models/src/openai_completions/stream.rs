//! The answer of Chat Completions.

use openclaw_protocol::message::{StopReason, Usage};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::calls::{CallDelta, Calls, FunctionDelta};
use super::request::REASONING_FIELDS;
use super::written::{HeldText, WrittenCall, WrittenText};
use crate::assembly::Assembly;
use crate::lenient;
use crate::sse::SseEvent;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, Flow, error_in_stream, garbage, glimpse, refused};

/// Reads an event stream, or a whole completion from a server that does not stream.
#[derive(Debug, Default)]
pub(crate) struct CompletionsDecoder {
    text: Option<usize>,
    thinking: Option<usize>,
    calls: Calls,
    written: WrittenText,
    stop: Option<StopReason>,
}

#[derive(Deserialize)]
struct CompletionChunk {
    /// Choice; only one is requested.
    #[serde(default, rename = "choices", deserialize_with = "lenient::first")]
    choice: Option<Choice>,
    #[serde(default, deserialize_with = "lenient::object")]
    usage: Option<CompletionUsage>,
    #[serde(default, deserialize_with = "lenient::error")]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default, deserialize_with = "lenient::object")]
    delta: Option<CompletionDelta>,
    #[serde(default, deserialize_with = "lenient::object")]
    message: Option<CompletionDelta>,
    #[serde(default, deserialize_with = "lenient::text")]
    finish_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient::object")]
    usage: Option<CompletionUsage>,
}

#[derive(Deserialize)]
struct CompletionDelta {
    #[serde(default)]
    content: DeltaContent,
    #[serde(default, deserialize_with = "lenient::text")]
    reasoning_content: Option<String>,
    // OpenRouter and vLLM send text here; others have been seen to send objects, which are no text for us.
    #[serde(default, deserialize_with = "lenient::text")]
    reasoning: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    reasoning_text: Option<String>,
    #[serde(default, deserialize_with = "lenient::objects")]
    reasoning_details: Vec<Value>,
    #[serde(default, deserialize_with = "lenient::objects")]
    tool_calls: Vec<CallDelta>,
    /// Old form of a call, from before an answer could have several.
    #[serde(default, deserialize_with = "lenient::object")]
    function_call: Option<FunctionDelta>,
    #[serde(default, deserialize_with = "lenient::text")]
    refusal: Option<String>,
}

#[derive(Default)]
enum DeltaContent {
    #[default]
    Nothing,
    Text(String),
    Parts(Vec<DeltaPart>),
}

impl<'de> Deserialize<'de> for DeltaContent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = lenient::raw(from)?;
        Ok(match raw.get().as_bytes().first() {
            Some(b'"') => lenient::read(raw).map_or(Self::Nothing, Self::Text),
            Some(b'[') => Self::Parts(lenient::objects_in(raw)),
            _ => lenient::object_in(raw).map_or(Self::Nothing, |part| Self::Parts(vec![part])),
        })
    }
}

#[derive(Deserialize)]
struct DeltaPart {
    #[serde(default, deserialize_with = "lenient::text")]
    text: Option<String>,
    #[serde(default)]
    thinking: DeltaContent,
}

#[derive(Deserialize)]
struct CompletionUsage {
    #[serde(default, deserialize_with = "lenient::count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    total_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::object")]
    prompt_tokens_details: Option<PromptDetails>,
    /// DeepSeek's.
    #[serde(default, deserialize_with = "lenient::count")]
    prompt_cache_hit_tokens: Option<u64>,
    /// Moonshot's.
    #[serde(default, deserialize_with = "lenient::count")]
    cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::object")]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default, deserialize_with = "lenient::count")]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default, deserialize_with = "lenient::count")]
    reasoning_tokens: Option<u64>,
}

impl Decoder for CompletionsDecoder {
    fn event(&mut self, event: &SseEvent, out: &mut Assembly) -> Result<Flow, ModelFailure> {
        if event.data.trim() == "[DONE]" {
            return self.done(out);
        }
        self.chunk(lenient::frame(&event.data, "an event that is no completion")?, out)?;
        Ok(Flow::More)
    }

    fn document(&mut self, document: &str, out: &mut Assembly) -> Result<StopReason, ModelFailure> {
        let mut chunk: CompletionChunk = lenient::frame(document, "an answer that is no completion")?;
        let answered = chunk.choice.is_some();
        if let Some(choice) = &mut chunk.choice {
            choice.delta = choice.message.take().or(choice.delta.take());
        }
        self.chunk(chunk, out)?;
        self.release(out);
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
    fn done(&mut self, out: &mut Assembly) -> Result<Flow, ModelFailure> {
        self.release(out);
        match self.stop {
            Some(stop) => Ok(Flow::End(stop)),
            None if out.is_empty() => Err(garbage("the end of a stream that held no answer")),
            None => Ok(Flow::End(StopReason::Stop)),
        }
    }

    fn chunk(&mut self, chunk: CompletionChunk, out: &mut Assembly) -> Result<(), ModelFailure> {
        if let Some(error) = chunk.error {
            let message = error_message(&error).unwrap_or_else(|| error.to_string());
            return Err(error_in_stream(&error, message));
        }
        out.start();
        if let Some(usage) = &chunk.usage {
            take_usage(out.usage(), usage);
        }
        let Some(choice) = chunk.choice else { return Ok(()) };
        if let (None, Some(usage)) = (&chunk.usage, &choice.usage) {
            take_usage(out.usage(), usage);
        }
        if let Some(delta) = choice.delta.or(choice.message) {
            self.delta(delta, out);
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.release(out);
            self.stop = Some(finish(&reason)?);
        }
        Ok(())
    }

    /// Releases the text that was held back: it is calls, or text after all. If the server sent calls too, calls in the text repeat those
    /// and are dropped.
    fn release(&mut self, out: &mut Assembly) {
        match self.written.end() {
            Some(HeldText::Calls(calls)) if self.calls.is_empty() => {
                for WrittenCall { name, arguments } in calls {
                    let block = out.tool_call("", &name);
                    out.tool_arguments(block, &arguments);
                }
            }
            Some(HeldText::Text(text)) => out.text(&mut self.text, &text),
            Some(HeldText::Calls(_)) | None => {}
        }
    }

    fn delta(&mut self, delta: CompletionDelta, out: &mut Assembly) {
        self.reasoning(&delta, out);
        match delta.content {
            DeltaContent::Text(text) => self.add_text(&text, out),
            DeltaContent::Parts(parts) => parts.into_iter().for_each(|part| self.part(part, out)),
            DeltaContent::Nothing => {}
        }
        if let Some(refusal) = delta.refusal {
            self.add_text(&refusal, out);
        }
        for call in delta.tool_calls.into_iter().chain(delta.function_call.map(CallDelta::from)) {
            (self.text, self.thinking) = (None, None);
            self.calls.take(call, out);
        }
        for detail in delta.reasoning_details {
            let encrypted = detail.get("type").and_then(Value::as_str) == Some("reasoning.encrypted");
            if let (true, Some(id)) = (encrypted, detail.get("id").and_then(Value::as_str)) {
                out.thought_signature(id, &detail.to_string());
            }
        }
    }

    fn reasoning(&mut self, delta: &CompletionDelta, out: &mut Assembly) {
        let sent =
            [delta.reasoning_content.as_deref(), delta.reasoning.as_deref(), delta.reasoning_text.as_deref()];
        let found = REASONING_FIELDS
            .iter()
            .zip(sent)
            .find_map(|(field, text)| Some((field, text.filter(|t| !t.is_empty())?)));
        if let Some((field, text)) = found {
            self.add_thinking(text, out);
            out.thinking_field(self.thinking, field);
        }
    }

    fn part(&mut self, part: DeltaPart, out: &mut Assembly) {
        if let Some(text) = part.text {
            self.add_text(&text, out);
        }
        match part.thinking {
            DeltaContent::Text(thought) => self.add_thinking(&thought, out),
            DeltaContent::Parts(thoughts) => thoughts
                .into_iter()
                .filter_map(|thought| thought.text)
                .for_each(|thought| self.add_thinking(&thought, out)),
            DeltaContent::Nothing => {}
        }
    }

    fn add_text(&mut self, text: &str, out: &mut Assembly) {
        if !text.is_empty() {
            self.thinking = None;
            out.text(&mut self.text, &self.written.push(text));
        }
    }

    fn add_thinking(&mut self, text: &str, out: &mut Assembly) {
        if !text.is_empty() {
            self.text = None;
            out.thinking(&mut self.thinking, text);
        }
    }
}

fn take_usage(taken: &mut Usage, usage: &CompletionUsage) {
    if usage.prompt_tokens.or(usage.completion_tokens).is_none() {
        return;
    }
    let prompt = usage.prompt_tokens.unwrap_or(0);
    let completion = usage.completion_tokens.unwrap_or(0);
    let details = usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
    let cached = details.max(usage.prompt_cache_hit_tokens).max(usage.cached_tokens).unwrap_or(0).min(prompt);
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
