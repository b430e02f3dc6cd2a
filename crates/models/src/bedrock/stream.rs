//! The answer of `ConverseStream`.

use std::collections::BTreeMap;

use openclaw_protocol::message::{StopReason, Usage};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::event_stream::{EXCEPTION, EventStream};
use super::failure;
use crate::assembly::Assembly;
use crate::sse::SseEvent;
use crate::stream::{FailureKind, ModelFailure};
use crate::wire::{Decoder, Flow, Frames, garbage, glimpse, refused};

/// Ends of answers in which the model did not manage what it meant to do; another try may go well.
const FUMBLED: &[&str] = &["malformed_model_output", "malformed_tool_use"];

/// Reads an event stream, or the answer of `Converse`.
#[derive(Debug, Default)]
pub(super) struct ConverseDecoder {
    /// Blocks by the server's index.
    blocks: BTreeMap<u64, Slot>,
    /// Why the model stopped; its tokens follow.
    stop: Option<String>,
}

/// A block of the server and, once it holds anything, ours.
#[derive(Debug, Clone, Copy)]
enum Slot {
    Text(Option<usize>),
    Thinking(Option<usize>),
    Call(usize),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockEvent {
    #[serde(default)]
    content_block_index: u64,
    start: Option<Start>,
    delta: Option<Delta>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    tool_use: Option<ToolUse>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta {
    text: Option<String>,
    tool_use: Option<ToolInput>,
    reasoning_content: Option<ReasoningDelta>,
}

#[derive(Deserialize)]
struct ToolInput {
    input: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReasoningDelta {
    text: Option<String>,
    signature: Option<String>,
    redacted_content: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolUse {
    tool_use_id: Option<String>,
    name: Option<String>,
    input: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageStop {
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    output: Output,
    stop_reason: Option<String>,
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Output {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Vec<Content>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    text: Option<String>,
    tool_use: Option<ToolUse>,
    reasoning_content: Option<Reasoning>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reasoning {
    reasoning_text: Option<ReasoningText>,
    redacted_content: Option<String>,
}

#[derive(Deserialize)]
struct ReasoningText {
    text: Option<String>,
    signature: Option<String>,
}

impl Decoder for ConverseDecoder {
    fn frames(&self) -> Box<dyn Frames> {
        Box::<EventStream>::default()
    }

    fn event(&mut self, event: &SseEvent, out: &mut Assembly) -> Result<Flow, ModelFailure> {
        let name = event.name.as_deref().unwrap_or_default();
        if let Some(exception) = name.strip_prefix(EXCEPTION) {
            return Err(failure::in_stream(exception, &event.data));
        }
        match name {
            "messageStart" => out.start(),
            "contentBlockStart" => self.start(parse(&event.data)?, out),
            "contentBlockDelta" => self.delta(parse(&event.data)?, out),
            "contentBlockStop" => {
                let BlockEvent { content_block_index, .. } = parse(&event.data)?;
                if let Some(Slot::Call(block)) = self.blocks.remove(&content_block_index) {
                    out.close(block);
                }
            }
            "messageStop" => {
                let MessageStop { stop_reason } = parse(&event.data)?;
                self.stop = Some(stop_reason.unwrap_or_default());
            }
            "metadata" => {
                let Metadata { usage } = parse(&event.data)?;
                if let Some(usage) = usage {
                    take_usage(out.usage(), &usage);
                }
                if let Some(reason) = &self.stop {
                    return stop_of(reason).map(Flow::End);
                }
            }
            // Later kinds of events.
            _ => {}
        }
        Ok(Flow::More)
    }

    fn document(&mut self, document: &str, out: &mut Assembly) -> Result<StopReason, ModelFailure> {
        let answer: Document = serde_json::from_str(document)
            .map_err(|_| garbage(format_args!("JSON that is no answer: {}", glimpse(document))))?;
        out.start();
        if let Some(usage) = &answer.usage {
            take_usage(out.usage(), usage);
        }
        for content in answer.output.message.content {
            take_content(content, out);
        }
        stop_of(answer.stop_reason.as_deref().unwrap_or_default())
    }

    fn end(&self) -> Option<StopReason> {
        stop_of(self.stop.as_deref()?).ok()
    }
}

impl ConverseDecoder {
    fn start(&mut self, event: BlockEvent, out: &mut Assembly) {
        if let Some(call) = event.start.and_then(|start| start.tool_use) {
            let id = call.tool_use_id.unwrap_or_default();
            let block = out.tool_call(&id, call.name.as_deref().unwrap_or_default());
            self.blocks.insert(event.content_block_index, Slot::Call(block));
        }
    }

    fn delta(&mut self, event: BlockEvent, out: &mut Assembly) {
        let at = event.content_block_index;
        let Some(delta) = event.delta else { return };
        if let Some(text) = delta.text.filter(|text| !text.is_empty())
            && let Slot::Text(block) = self.blocks.entry(at).or_insert(Slot::Text(None))
        {
            out.text(block, &text);
        }
        if let Some(input) = delta.tool_use.and_then(|call| call.input)
            && let Some(Slot::Call(block)) = self.blocks.get(&at)
        {
            out.tool_arguments(*block, &input);
        }
        let Some(reasoning) = delta.reasoning_content else { return };
        if let Some(data) = reasoning.redacted_content.filter(|data| !data.is_empty()) {
            out.redacted_thinking(&data);
        }
        let text = reasoning.text.unwrap_or_default();
        let signature = reasoning.signature.unwrap_or_default();
        if !(text.is_empty() && signature.is_empty())
            && let Slot::Thinking(block) = self.blocks.entry(at).or_insert(Slot::Thinking(None))
        {
            out.thinking(block, &text);
            out.signature(block, &signature);
        }
    }
}

fn take_content(content: Content, out: &mut Assembly) {
    if let Some(text) = content.text {
        out.text(&mut None, &text);
    }
    if let Some(call) = content.tool_use {
        let id = call.tool_use_id.unwrap_or_default();
        let block = out.tool_call(&id, call.name.as_deref().unwrap_or_default());
        out.tool_arguments(
            block,
            &call.input.filter(|input| !input.is_null()).map(|v| v.to_string()).unwrap_or_default(),
        );
        out.close(block);
    }
    let Some(reasoning) = content.reasoning_content else { return };
    if let Some(data) = reasoning.redacted_content.filter(|data| !data.is_empty()) {
        out.redacted_thinking(&data);
    }
    if let Some(ReasoningText { text, signature }) = reasoning.reasoning_text {
        let mut block = None;
        out.thinking(&mut block, &text.unwrap_or_default());
        out.signature(&mut block, &signature.unwrap_or_default());
    }
}

fn stop_of(reason: &str) -> Result<StopReason, ModelFailure> {
    match reason {
        "end_turn" | "stop_sequence" => Ok(StopReason::Stop),
        "tool_use" => Ok(StopReason::ToolUse),
        "max_tokens" | "model_context_window_exceeded" => Ok(StopReason::Length),
        reason if FUMBLED.contains(&reason) => Err(ModelFailure::new(
            FailureKind::Transient,
            format!("the model's answer came to nothing ({reason})"),
        )),
        reason => Err(refused(reason)),
    }
}

/// What was read from and written to the cache is not among the input's.
fn take_usage(taken: &mut Usage, usage: &WireUsage) {
    taken.input = usage.input_tokens.unwrap_or(0);
    taken.output = usage.output_tokens.unwrap_or(0);
    taken.cache_read = usage.cache_read_input_tokens.unwrap_or(0);
    taken.cache_write = usage.cache_write_input_tokens.unwrap_or(0);
}

fn parse<T: DeserializeOwned>(data: &str) -> Result<T, ModelFailure> {
    serde_json::from_str(data).map_err(|_| garbage(format_args!("an event that is none: {}", glimpse(data))))
}

#[cfg(test)]
mod tests;
