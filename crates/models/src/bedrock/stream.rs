//! The answer of `ConverseStream`.

use std::collections::BTreeMap;

use openclaw_protocol::message::{StopReason, Usage};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::event_stream::{EXCEPTION, EventStream};
use super::failure;
use crate::assembly::Assembly;
use crate::lenient;
use crate::sse::SseEvent;
use crate::stream::{FailureKind, ModelFailure};
use crate::wire::{Decoder, Flow, Frames, garbage, glimpse, refused};

/// Ends of answers in which the model did not manage what it meant to do; another try may go well.
const FUMBLED: &[&str] = &["malformed_model_output", "malformed_tool_use"];

/// Stop reason of a model that is done.
const END: &str = "end_turn";

/// Reads an event stream, or the answer of `Converse`.
#[derive(Debug, Default)]
pub(super) struct ConverseDecoder {
    /// Blocks by the server's index.
    blocks: BTreeMap<u64, BedrockBlock>,
    /// The block of the last event: one without an index means this one.
    last: u64,
    /// Stop reason of the model; its token counts follow.
    stop: Option<String>,
}

/// A block of the server and, once it holds anything, ours.
#[derive(Debug, Clone, Copy)]
enum BedrockBlock {
    Text(Option<usize>),
    Thinking(Option<usize>),
    Call(usize),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockEvent {
    #[serde(default, deserialize_with = "lenient::count")]
    content_block_index: Option<u64>,
    #[serde(default, deserialize_with = "lenient::object")]
    start: Option<Start>,
    #[serde(default, deserialize_with = "lenient::object")]
    delta: Option<BedrockDelta>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    #[serde(default, deserialize_with = "lenient::object")]
    tool_use: Option<ToolUse>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BedrockDelta {
    #[serde(default, deserialize_with = "lenient::text")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient::object")]
    tool_use: Option<ToolInput>,
    #[serde(default, deserialize_with = "lenient::object")]
    reasoning_content: Option<ReasoningDelta>,
}

#[derive(Deserialize)]
struct ToolInput {
    #[serde(default, deserialize_with = "lenient::json_text")]
    input: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReasoningDelta {
    #[serde(default, deserialize_with = "lenient::text")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    signature: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    redacted_content: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolUse {
    #[serde(default, deserialize_with = "lenient::id")]
    tool_use_id: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    name: Option<String>,
    #[serde(default, deserialize_with = "lenient::json_text")]
    input: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageStop {
    #[serde(default, deserialize_with = "lenient::text")]
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default, deserialize_with = "lenient::object")]
    usage: Option<BedrockUsage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BedrockUsage {
    #[serde(default, deserialize_with = "lenient::count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    cache_write_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConverseDocument {
    #[serde(default, deserialize_with = "lenient::object")]
    output: Option<Output>,
    #[serde(default, deserialize_with = "lenient::text")]
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient::object")]
    usage: Option<BedrockUsage>,
}

#[derive(Deserialize)]
struct Output {
    #[serde(default, deserialize_with = "lenient::object")]
    message: Option<ConverseMessage>,
}

#[derive(Deserialize)]
struct ConverseMessage {
    #[serde(default, deserialize_with = "lenient::objects")]
    content: Vec<ConverseContent>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConverseContent {
    #[serde(default, deserialize_with = "lenient::text")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient::object")]
    tool_use: Option<ToolUse>,
    #[serde(default, deserialize_with = "lenient::object")]
    reasoning_content: Option<Reasoning>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reasoning {
    #[serde(default, deserialize_with = "lenient::object")]
    reasoning_text: Option<ReasoningText>,
    #[serde(default, deserialize_with = "lenient::text")]
    redacted_content: Option<String>,
}

#[derive(Deserialize)]
struct ReasoningText {
    #[serde(default, deserialize_with = "lenient::text")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
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
                let ended: BlockEvent = parse(&event.data)?;
                let at = self.block(&ended);
                if let Some(BedrockBlock::Call(block)) = self.blocks.remove(&at) {
                    out.close(block);
                }
            }
            "messageStop" => {
                let MessageStop { stop_reason } = parse(&event.data)?;
                self.stop = Some(stop_reason.unwrap_or_else(|| END.to_owned()));
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
        let none = "JSON that is no answer";
        let answer: ConverseDocument = lenient::frame(document, none)?;
        let message = answer.output.and_then(|output| output.message);
        let message = message.ok_or_else(|| garbage(format_args!("{none}: {}", glimpse(document))))?;
        out.start();
        if let Some(usage) = &answer.usage {
            take_usage(out.usage(), usage);
        }
        for content in message.content {
            take_content(content, out);
        }
        stop_of(answer.stop_reason.as_deref().unwrap_or(END))
    }

    fn end(&self) -> Option<StopReason> {
        stop_of(self.stop.as_deref()?).ok()
    }
}

impl ConverseDecoder {
    /// The number of the block an event is about.
    fn block(&mut self, event: &BlockEvent) -> u64 {
        self.last = event.content_block_index.unwrap_or(self.last);
        self.last
    }

    fn start(&mut self, event: BlockEvent, out: &mut Assembly) {
        let at = self.block(&event);
        if let Some(call) = event.start.and_then(|start| start.tool_use) {
            let id = call.tool_use_id.unwrap_or_default();
            let block = out.tool_call(&id, call.name.as_deref().unwrap_or_default());
            self.blocks.insert(at, BedrockBlock::Call(block));
        }
    }

    fn delta(&mut self, event: BlockEvent, out: &mut Assembly) {
        let at = self.block(&event);
        let Some(delta) = event.delta else { return };
        if let Some(text) = delta.text.filter(|text| !text.is_empty())
            && let BedrockBlock::Text(block) = self.slot(at, BedrockBlock::Text(None))
        {
            out.text(block, &text);
        }
        if let Some(input) = delta.tool_use.and_then(|call| call.input)
            && let Some(BedrockBlock::Call(block)) = self.blocks.get(&at)
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
            && let BedrockBlock::Thinking(block) = self.slot(at, BedrockBlock::Thinking(None))
        {
            out.thinking(block, &text);
            out.signature(block, &signature);
        }
    }

    /// The slot of a block, another one in its place where it holds words of another kind.
    fn slot(&mut self, at: u64, begun: BedrockBlock) -> &mut BedrockBlock {
        let slot = self.blocks.entry(at).or_insert(begun);
        if std::mem::discriminant(slot) != std::mem::discriminant(&begun) {
            *slot = begun;
        }
        slot
    }
}

fn take_content(content: ConverseContent, out: &mut Assembly) {
    if let Some(text) = content.text {
        out.text(&mut None, &text);
    }
    if let Some(call) = content.tool_use {
        let id = call.tool_use_id.unwrap_or_default();
        let block = out.tool_call(&id, call.name.as_deref().unwrap_or_default());
        out.tool_arguments(block, &call.input.unwrap_or_default());
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
        END | "stop_sequence" => Ok(StopReason::Stop),
        "tool_use" => Ok(StopReason::ToolUse),
        "max_tokens" | "model_context_window_exceeded" => Ok(StopReason::Length),
        reason if FUMBLED.contains(&reason) => Err(ModelFailure::new(
            FailureKind::Transient,
            format!("the model's answer came to nothing ({reason})"),
        )),
        reason => Err(refused(reason)),
    }
}

/// Records the usage. Tokens read from and written to the cache are not included in the input
/// tokens.
fn take_usage(taken: &mut Usage, usage: &BedrockUsage) {
    taken.input = usage.input_tokens.unwrap_or(0);
    taken.output = usage.output_tokens.unwrap_or(0);
    taken.cache_read = usage.cache_read_input_tokens.unwrap_or(0);
    taken.cache_write = usage.cache_write_input_tokens.unwrap_or(0);
}

fn parse<T: DeserializeOwned>(data: &str) -> Result<T, ModelFailure> {
    lenient::frame(data, "an event that is none")
}

#[cfg(test)]
mod tests;
