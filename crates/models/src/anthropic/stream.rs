//! The answer of Anthropic Messages.

use std::collections::BTreeMap;

use openclaw_protocol::message::StopReason;
use serde::Deserialize;
use serde_json::Value;

use crate::assembly::Assembly;
use crate::sse::SseEvent;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, Flow, error_in_stream, garbage, glimpse, refused};

/// Reads an event stream, or a whole message from a server that does not stream.
#[derive(Debug, Default)]
pub(crate) struct AnthropicDecoder {
    /// Blocks by the server's index.
    blocks: BTreeMap<u64, Slot>,
    stop: Option<StopReason>,
}

/// A block of the server and, once it holds anything, ours.
#[derive(Debug)]
enum Slot {
    Text(Option<usize>),
    Thinking(Option<usize>),
    Tool {
        block: usize,
        any: bool,
        input: Option<Value>,
    },
    /// A block type of the future.
    Unknown,
}

#[derive(Deserialize)]
struct Frame {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    index: u64,
    message: Option<WireMessage>,
    content_block: Option<WireBlock>,
    delta: Option<Delta>,
    usage: Option<WireUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct WireMessage {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    content: Vec<WireBlock>,
    stop_reason: Option<String>,
    usage: Option<WireUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct WireBlock {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Value>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl Decoder for AnthropicDecoder {
    fn event(&mut self, event: &SseEvent, out: &mut Assembly) -> Result<Flow, ModelFailure> {
        if event.data.trim() == "[DONE]" {
            // Not of this protocol, but some gateways in between add it.
            return Ok(self.stop.map_or(Flow::More, Flow::End));
        }
        let frame: Frame = serde_json::from_str(&event.data)
            .map_err(|_| garbage(format_args!("an event that is not JSON: {}", glimpse(&event.data))))?;
        let kind = frame.kind.as_deref().or(event.name.as_deref()).unwrap_or_default();
        match kind {
            "message_start" => {
                out.start();
                take_usage(out, frame.message.and_then(|message| message.usage).as_ref());
            }
            "content_block_start" => {
                if let Some(block) = frame.content_block {
                    self.open(frame.index, block, out);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = frame.delta {
                    self.delta(frame.index, &delta, out)?;
                }
            }
            "content_block_stop" => self.close(frame.index, out),
            "message_delta" => {
                take_usage(out, frame.usage.as_ref());
                if let Some(reason) = frame.delta.and_then(|delta| delta.stop_reason) {
                    self.stop = Some(stop_reason(&reason)?);
                }
            }
            "message_stop" => return Ok(Flow::End(self.stop.unwrap_or_default())),
            "error" => return Err(stream_error(frame.error, &event.data)),
            // `ping`, and events of the future.
            _ => {}
        }
        Ok(Flow::More)
    }

    fn document(&mut self, document: &str, out: &mut Assembly) -> Result<StopReason, ModelFailure> {
        let message: WireMessage = serde_json::from_str(document)
            .map_err(|_| garbage(format_args!("an answer that is not JSON: {}", glimpse(document))))?;
        if message.kind.as_deref() == Some("error") || message.error.is_some() {
            return Err(stream_error(message.error, document));
        }
        if message.content.is_empty() && message.stop_reason.is_none() {
            return Err(garbage(format_args!("JSON that is no message: {}", glimpse(document))));
        }
        out.start();
        take_usage(out, message.usage.as_ref());
        for (index, block) in (0..).zip(message.content) {
            self.open(index, block, out);
            self.close(index, out);
        }
        stop_reason(message.stop_reason.as_deref().unwrap_or("end_turn"))
    }

    fn end(&self) -> Option<StopReason> {
        self.stop
    }
}

impl AnthropicDecoder {
    /// Opens a block; what it already holds, as in a whole message, is taken as its first delta.
    fn open(&mut self, index: u64, block: WireBlock, out: &mut Assembly) {
        let slot = match block.kind.as_str() {
            "text" => {
                let mut at = None;
                out.text(&mut at, &block.text.unwrap_or_default());
                Slot::Text(at)
            }
            "thinking" => {
                let mut at = None;
                out.thinking(&mut at, &block.thinking.unwrap_or_default());
                out.signature(&mut at, &block.signature.unwrap_or_default());
                Slot::Thinking(at)
            }
            "redacted_thinking" => {
                out.redacted_thinking(&block.data.unwrap_or_default());
                Slot::Unknown
            }
            "tool_use" => {
                let name = block.name.unwrap_or_default();
                let block_at = out.tool_call(&block.id.unwrap_or_default(), &name);
                Slot::Tool { block: block_at, any: false, input: block.input }
            }
            _ => Slot::Unknown,
        };
        self.blocks.insert(index, slot);
    }

    fn delta(&mut self, index: u64, delta: &Delta, out: &mut Assembly) -> Result<(), ModelFailure> {
        // A server that never opens its blocks means text.
        let slot = match (self.blocks.get_mut(&index), delta.kind.as_str()) {
            (Some(slot), _) => slot,
            (None, "text_delta") => self.blocks.entry(index).or_insert(Slot::Text(None)),
            (None, _) => {
                return Err(garbage(format_args!("a {} for a block that was not begun", delta.kind)));
            }
        };
        match slot {
            Slot::Text(at) => out.text(at, delta.text.as_deref().unwrap_or_default()),
            Slot::Thinking(at) => {
                out.thinking(at, delta.thinking.as_deref().unwrap_or_default());
                out.signature(at, delta.signature.as_deref().unwrap_or_default());
            }
            Slot::Tool { block, any, .. } => {
                let json = delta.partial_json.as_deref().unwrap_or_default();
                *any |= !json.is_empty();
                out.tool_arguments(*block, json);
            }
            Slot::Unknown => {}
        }
        Ok(())
    }

    fn close(&mut self, index: u64, out: &mut Assembly) {
        if let Some(Slot::Tool { block, any, input }) = self.blocks.get(&index) {
            // Some servers put the whole input where the protocol has an empty placeholder.
            if let (false, Some(input)) = (any, input) {
                out.tool_arguments(*block, &input.to_string());
            }
            out.close(*block);
        }
    }
}

fn take_usage(out: &mut Assembly, usage: Option<&WireUsage>) {
    let Some(usage) = usage else { return };
    let taken = out.usage();
    for (field, reported) in [
        (&mut taken.input, usage.input_tokens),
        (&mut taken.output, usage.output_tokens),
        (&mut taken.cache_read, usage.cache_read_input_tokens),
        (&mut taken.cache_write, usage.cache_creation_input_tokens),
    ] {
        *field = reported.unwrap_or(*field);
    }
}

fn stop_reason(reason: &str) -> Result<StopReason, ModelFailure> {
    match reason {
        "end_turn" | "pause_turn" | "stop_sequence" => Ok(StopReason::Stop),
        "max_tokens" | "model_context_window_exceeded" => Ok(StopReason::Length),
        "tool_use" => Ok(StopReason::ToolUse),
        "refusal" | "sensitive" => Err(refused(reason)),
        other => {
            tracing::warn!(reason = other, "unknown stop reason, taken as the end of the turn");
            Ok(StopReason::Stop)
        }
    }
}

fn stream_error(error: Option<Value>, raw: &str) -> ModelFailure {
    error_in_stream(&error.unwrap_or(Value::Null), raw.to_owned())
}

#[cfg(test)]
mod tests;
