//! The answer of `streamGenerateContent`.

use std::collections::HashSet;

use openclaw_protocol::message::{StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::failure;
use crate::assembly::Assembly;
use crate::lenient;
use crate::sse::SseEvent;
use crate::stream::{FailureKind, ModelFailure};
use crate::wire::{Decoder, Flow, garbage, glimpse, refused};

/// Ends of answers in which the model did not manage what it meant to do; another try may go well.
const FUMBLED: &[&str] = &["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"];

/// Reads an event stream, or a whole answer, or a list of them, from a server that does not stream.
#[derive(Debug, Default)]
pub(super) struct GoogleDecoder {
    open: Option<GeminiBlock>,
    /// Ids of calls so far.
    ids: HashSet<String>,
    calls: usize,
    /// The model has ended its answer; what follows can only be its tokens.
    stop: Option<StopReason>,
}

/// The block under way.
#[derive(Debug, Default)]
struct GeminiBlock {
    thinking: bool,
    block: Option<usize>,
    /// The latest proof that came with it.
    signature: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiChunk {
    /// Candidate; only one is requested.
    #[serde(default, rename = "candidates", deserialize_with = "lenient::first")]
    candidate: Option<GeminiCandidate>,
    #[serde(default, deserialize_with = "lenient::object")]
    usage_metadata: Option<GeminiUsage>,
    #[serde(default, deserialize_with = "lenient::object")]
    prompt_feedback: Option<Feedback>,
    #[serde(default, deserialize_with = "lenient::error")]
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCandidate {
    #[serde(default, deserialize_with = "lenient::object")]
    content: Option<GeminiContent>,
    #[serde(default, deserialize_with = "lenient::text")]
    finish_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct GeminiContent {
    #[serde(default, deserialize_with = "lenient::objects")]
    parts: Vec<GeminiPart>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPart {
    #[serde(default, deserialize_with = "lenient::text")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient::flag")]
    thought: Option<bool>,
    #[serde(default, deserialize_with = "lenient::text")]
    thought_signature: Option<String>,
    /// Signature in the spelling of some gateways.
    #[serde(default, rename = "thought_signature", deserialize_with = "lenient::text")]
    plain_signature: Option<String>,
    #[serde(default, deserialize_with = "lenient::object")]
    function_call: Option<FunctionCall>,
}

#[derive(Deserialize)]
struct FunctionCall {
    #[serde(default, deserialize_with = "lenient::id")]
    id: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    name: Option<String>,
    #[serde(default, deserialize_with = "lenient::json_text")]
    args: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    #[serde(default, deserialize_with = "lenient::text")]
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiUsage {
    #[serde(default, deserialize_with = "lenient::count")]
    prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    candidates_token_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    thoughts_token_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    cached_content_token_count: Option<u64>,
}

impl Decoder for GoogleDecoder {
    fn event(&mut self, event: &SseEvent, out: &mut Assembly) -> Result<Flow, ModelFailure> {
        if event.data.trim() == "[DONE]" {
            // Not of this protocol, but some gateways in between add it.
            return Ok(self.stop.map_or(Flow::More, Flow::End));
        }
        let chunk: GeminiChunk = lenient::frame(&event.data, "an event that is not JSON")?;
        let with_usage = chunk.usage_metadata.is_some();
        self.take(chunk, out)?;
        // Tokens that are told apart come last.
        Ok(self.stop.filter(|_| with_usage).map_or(Flow::More, Flow::End))
    }

    fn document(&mut self, document: &str, out: &mut Assembly) -> Result<StopReason, ModelFailure> {
        let none = || garbage(format_args!("JSON that is no answer: {}", glimpse(document)));
        let chunks: Vec<GeminiChunk> = if document.trim_start().starts_with('[') {
            serde_json::from_str(document).map_err(|_| none())?
        } else {
            vec![serde_json::from_str(document).map_err(|_| none())?]
        };
        for chunk in chunks {
            self.take(chunk, out)?;
        }
        self.stop.ok_or_else(none)
    }

    fn end(&self) -> Option<StopReason> {
        self.stop
    }
}

impl GoogleDecoder {
    fn take(&mut self, chunk: GeminiChunk, out: &mut Assembly) -> Result<(), ModelFailure> {
        if let Some(error) = chunk.error {
            return Err(failure::in_stream(&error));
        }
        if let Some(usage) = &chunk.usage_metadata {
            take_usage(out.usage(), usage);
        }
        if let Some(reason) = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            return Err(refused(&reason));
        }
        let Some(candidate) = chunk.candidate else { return Ok(()) };
        out.start();
        for part in candidate.content.into_iter().flat_map(|content| content.parts) {
            self.part(part, out);
        }
        if let Some(reason) = candidate.finish_reason {
            self.stop = Some(stop_of(&reason, candidate.finish_message.as_deref())?);
        }
        if self.stop.is_some() {
            self.close(out);
        }
        Ok(())
    }

    fn part(&mut self, part: GeminiPart, out: &mut Assembly) {
        let signature = part.thought_signature.or(part.plain_signature).unwrap_or_default();
        if let Some(call) = part.function_call.filter(|call| call.name.is_some()) {
            self.close(out);
            self.call(call, &signature, out);
        }
        let Some(text) = part.text else { return };
        let thinking = part.thought.unwrap_or(false);
        if self.open.as_ref().is_some_and(|open| open.thinking != thinking) {
            self.close(out);
        }
        let open = self.open.get_or_insert_with(|| GeminiBlock { thinking, ..GeminiBlock::default() });
        if thinking {
            out.thinking(&mut open.block, &text);
        } else {
            out.text(&mut open.block, &text);
        }
        if !signature.is_empty() {
            open.signature = signature;
        }
    }

    fn call(&mut self, call: FunctionCall, signature: &str, out: &mut Assembly) {
        self.calls += 1;
        let name = call.name.unwrap_or_default();
        let made = || format!("{name}_{}_{}", out.begun_at(), self.calls);
        let id = call.id.filter(|id| !id.is_empty() && !self.ids.contains(id)).unwrap_or_else(made);
        let block = out.tool_call(&id, &name);
        out.tool_arguments(block, &call.args.unwrap_or_default());
        out.close(block);
        if !signature.is_empty() {
            out.thought_signature(&id, signature);
        }
        self.ids.insert(id);
    }

    fn close(&mut self, out: &mut Assembly) {
        let Some(mut open) = self.open.take() else { return };
        if open.block.is_none() {
            // Nothing came that the proof could stand beside.
            return;
        }
        if open.thinking {
            out.signature(&mut open.block, &open.signature);
        } else {
            out.text_signature(open.block, &open.signature);
        }
    }
}

fn stop_of(reason: &str, message: Option<&str>) -> Result<StopReason, ModelFailure> {
    match reason {
        "STOP" => Ok(StopReason::Stop),
        "MAX_TOKENS" => Ok(StopReason::Length),
        reason if FUMBLED.contains(&reason) => Err(ModelFailure::new(
            FailureKind::Transient,
            format!("the model's tool call came to nothing ({})", with(reason, message)),
        )),
        reason => Err(refused(&with(reason, message))),
    }
}

fn with(reason: &str, message: Option<&str>) -> String {
    match message.map(glimpse).filter(|message| !message.is_empty()) {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    }
}

/// The prompt's tokens hold those from the cache; what was thought is not among the answer's.
fn take_usage(taken: &mut Usage, usage: &GeminiUsage) {
    let prompt = usage.prompt_token_count.unwrap_or(0);
    let cached = usage.cached_content_token_count.unwrap_or(0).min(prompt);
    taken.input = prompt - cached;
    taken.cache_read = cached;
    taken.output =
        usage.candidates_token_count.unwrap_or(0).saturating_add(usage.thoughts_token_count.unwrap_or(0));
}

#[cfg(test)]
mod tests;
