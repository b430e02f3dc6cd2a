//! The answer of `streamGenerateContent`.

use std::collections::HashSet;

use openclaw_protocol::message::{StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::failure;
use crate::assembly::Assembly;
use crate::sse::SseEvent;
use crate::stream::{FailureKind, ModelFailure};
use crate::wire::{Decoder, Flow, garbage, glimpse, refused};

/// Ends of answers in which the model did not manage what it meant to do; another try may go well.
const FUMBLED: &[&str] = &["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"];

/// Reads an event stream, or a whole answer, or a list of them, from a server that does not stream.
#[derive(Debug, Default)]
pub(super) struct GoogleDecoder {
    open: Option<Open>,
    /// Ids of calls so far.
    ids: HashSet<String>,
    calls: usize,
    /// The model has ended its answer; what follows can only be its tokens.
    stop: Option<StopReason>,
}

/// The block under way.
#[derive(Debug, Default)]
struct Open {
    thinking: bool,
    block: Option<usize>,
    /// The latest proof that came with it.
    signature: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    candidates: Option<Vec<Candidate>>,
    usage_metadata: Option<WireUsage>,
    prompt_feedback: Option<Feedback>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    text: Option<String>,
    thought: Option<bool>,
    #[serde(alias = "thought_signature")]
    thought_signature: Option<String>,
    function_call: Option<FunctionCall>,
}

#[derive(Deserialize)]
struct FunctionCall {
    id: Option<String>,
    name: Option<String>,
    args: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireUsage {
    prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
}

impl Decoder for GoogleDecoder {
    fn event(&mut self, event: &SseEvent, out: &mut Assembly) -> Result<Flow, ModelFailure> {
        if event.data.trim() == "[DONE]" {
            // Not of this protocol, but some gateways in between add it.
            return Ok(self.stop.map_or(Flow::More, Flow::End));
        }
        let chunk: Chunk = serde_json::from_str(&event.data)
            .map_err(|_| garbage(format_args!("an event that is not JSON: {}", glimpse(&event.data))))?;
        let with_usage = chunk.usage_metadata.is_some();
        self.take(chunk, out)?;
        // Tokens that are told apart come last.
        Ok(self.stop.filter(|_| with_usage).map_or(Flow::More, Flow::End))
    }

    fn document(&mut self, document: &str, out: &mut Assembly) -> Result<StopReason, ModelFailure> {
        let none = || garbage(format_args!("JSON that is no answer: {}", glimpse(document)));
        let chunks: Vec<Chunk> = if document.trim_start().starts_with('[') {
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
    fn take(&mut self, chunk: Chunk, out: &mut Assembly) -> Result<(), ModelFailure> {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(failure::in_stream(&error));
        }
        if let Some(usage) = &chunk.usage_metadata {
            take_usage(out.usage(), usage);
        }
        if let Some(reason) = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            return Err(refused(&reason));
        }
        // Only one is asked for.
        let Some(candidate) = chunk.candidates.and_then(|all| all.into_iter().next()) else { return Ok(()) };
        out.start();
        for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
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

    fn part(&mut self, part: Part, out: &mut Assembly) {
        let signature = part.thought_signature.unwrap_or_default();
        if let Some(call) = part.function_call {
            self.close(out);
            self.call(call, &signature, out);
            return;
        }
        let Some(text) = part.text else { return };
        let thinking = part.thought.unwrap_or(false);
        if self.open.as_ref().is_some_and(|open| open.thinking != thinking) {
            self.close(out);
        }
        let open = self.open.get_or_insert_with(|| Open { thinking, ..Open::default() });
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
        if let Some(args) = call.args.filter(|args| !args.is_null()) {
            out.tool_arguments(block, &args.to_string());
        }
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
fn take_usage(taken: &mut Usage, usage: &WireUsage) {
    let prompt = usage.prompt_token_count.unwrap_or(0);
    let cached = usage.cached_content_token_count.unwrap_or(0).min(prompt);
    taken.input = prompt - cached;
    taken.cache_read = cached;
    taken.output =
        usage.candidates_token_count.unwrap_or(0).saturating_add(usage.thoughts_token_count.unwrap_or(0));
}

#[cfg(test)]
mod tests;
