//! The answer of Anthropic Messages.

use std::collections::BTreeMap;

use openclaw_protocol::message::StopReason;
use serde::Deserialize;
use serde_json::Value;

use crate::assembly::Assembly;
use crate::lenient;
use crate::sse::SseEvent;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, Flow, error_in_stream, garbage, glimpse, refused};

/// Reads an event stream, or a whole message from a server that does not stream.
#[derive(Debug, Default)]
pub(crate) struct AnthropicDecoder {
    /// Blocks by the server's index.
    blocks: BTreeMap<u64, AnthropicBlock>,
    /// The block of the last frame: servers that give no index mean this one.
    last: u64,
    stop: Option<StopReason>,
}

/// A block of the server and, once it holds anything, ours.
#[derive(Debug)]
enum AnthropicBlock {
    Text(Option<usize>),
    Thinking(Option<usize>),
    Tool {
        block: usize,
        any: bool,
        input: String,
    },
    /// A block type of the future.
    Unknown,
}

impl AnthropicBlock {
    /// The block is whole.
    fn close(&mut self, out: &mut Assembly) {
        if let Self::Tool { block, any, input } = self {
            // Some servers put the whole input where the protocol has an empty placeholder.
            if !std::mem::replace(any, true) {
                out.tool_arguments(*block, input);
            }
            out.close(*block);
        }
    }
}

#[derive(Deserialize)]
struct AnthropicFrame {
    #[serde(rename = "type", default, deserialize_with = "lenient::text")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "lenient::count")]
    index: Option<u64>,
    #[serde(default, deserialize_with = "lenient::object")]
    message: Option<WireMessage>,
    #[serde(default, deserialize_with = "lenient::object")]
    content_block: Option<WireBlock>,
    #[serde(default, deserialize_with = "lenient::object")]
    delta: Option<AnthropicDelta>,
    #[serde(default, deserialize_with = "lenient::object")]
    usage: Option<AnthropicUsage>,
    #[serde(default, deserialize_with = "lenient::error")]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct WireMessage {
    #[serde(rename = "type", default, deserialize_with = "lenient::text")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "lenient::objects")]
    content: Vec<WireBlock>,
    #[serde(default, deserialize_with = "lenient::text")]
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient::object")]
    usage: Option<AnthropicUsage>,
    #[serde(default, deserialize_with = "lenient::error")]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct WireBlock {
    #[serde(rename = "type", default, deserialize_with = "lenient::text")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    thinking: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    signature: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    data: Option<String>,
    #[serde(default, deserialize_with = "lenient::id")]
    id: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    name: Option<String>,
    #[serde(default, deserialize_with = "lenient::json_text")]
    input: Option<String>,
}

/// A delta. Its kind is told by the fields that are present, not by its `type`.
#[derive(Deserialize)]
struct AnthropicDelta {
    #[serde(default, deserialize_with = "lenient::text")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    thinking: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    signature: Option<String>,
    #[serde(default, deserialize_with = "lenient::json_text")]
    partial_json: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct AnthropicUsage {
    #[serde(default, deserialize_with = "lenient::count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    cache_creation_input_tokens: Option<u64>,
}

impl Decoder for AnthropicDecoder {
    fn event(&mut self, event: &SseEvent, out: &mut Assembly) -> Result<Flow, ModelFailure> {
        if event.data.trim() == "[DONE]" {
            // Not of this protocol, but some gateways in between add it.
            return Ok(self.stop.map_or(Flow::More, Flow::End));
        }
        let frame: AnthropicFrame = lenient::frame(&event.data, "an event that is not JSON")?;
        self.last = frame.index.unwrap_or(self.last);
        let kind = frame.kind.as_deref().or(event.name.as_deref()).unwrap_or_default();
        match kind {
            "message_start" => {
                out.start();
                take_usage(out, frame.message.and_then(|message| message.usage).as_ref());
            }
            "content_block_start" => {
                if let Some(block) = frame.content_block {
                    self.open(self.last, block, out);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = frame.delta {
                    self.delta(self.last, &delta, out)?;
                }
            }
            "content_block_stop" => self.close(self.last, out),
            "message_delta" => {
                take_usage(out, frame.usage.as_ref());
                if let Some(reason) = frame.delta.and_then(|delta| delta.stop_reason) {
                    self.stop = Some(stop_reason(&reason)?);
                }
            }
            "message_stop" => {
                self.blocks.values_mut().for_each(|slot| slot.close(out));
                return Ok(Flow::End(self.stop.unwrap_or_default()));
            }
            "error" => return Err(stream_error(frame.error, &event.data)),
            // `ping`, and events of the future.
            _ => {}
        }
        Ok(Flow::More)
    }

    fn document(&mut self, document: &str, out: &mut Assembly) -> Result<StopReason, ModelFailure> {
        let message: WireMessage = lenient::frame(document, "an answer that is not JSON")?;
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
        let slot = match block.kind.as_deref().unwrap_or_default() {
            "text" => {
                let mut at = None;
                out.text(&mut at, &block.text.unwrap_or_default());
                AnthropicBlock::Text(at)
            }
            "thinking" => {
                let mut at = None;
                out.thinking(&mut at, &block.thinking.unwrap_or_default());
                out.signature(&mut at, &block.signature.unwrap_or_default());
                AnthropicBlock::Thinking(at)
            }
            "redacted_thinking" => {
                out.redacted_thinking(&block.data.unwrap_or_default());
                AnthropicBlock::Unknown
            }
            "tool_use" => {
                let name = block.name.unwrap_or_default();
                let block_at = out.tool_call(&block.id.unwrap_or_default(), &name);
                AnthropicBlock::Tool { block: block_at, any: false, input: block.input.unwrap_or_default() }
            }
            _ => AnthropicBlock::Unknown,
        };
        self.blocks.insert(index, slot);
    }

    /// Adds what a delta says to its block. Servers that never open their blocks, or send thoughts and text as one block, mean another
    /// block where another kind of words begins.
    fn delta(&mut self, index: u64, delta: &AnthropicDelta, out: &mut Assembly) -> Result<(), ModelFailure> {
        let [text, thinking, signature, json] =
            [&delta.text, &delta.thinking, &delta.signature, &delta.partial_json]
                .map(|said| said.as_deref().unwrap_or_default());
        // The block's type takes precedence over other fields beside it.
        let (text, thinking, signature, json) = match self.blocks.get(&index) {
            Some(AnthropicBlock::Text(_)) if !text.is_empty() => (text, "", "", ""),
            Some(AnthropicBlock::Thinking(_)) if !(thinking.is_empty() && signature.is_empty()) => {
                ("", thinking, signature, "")
            }
            Some(AnthropicBlock::Tool { .. }) if !json.is_empty() => ("", "", "", json),
            Some(_) | None => (text, thinking, signature, json),
        };
        if !(thinking.is_empty() && signature.is_empty())
            && let AnthropicBlock::Thinking(at) = self.slot(index, AnthropicBlock::Thinking(None))
        {
            out.thinking(at, thinking);
            out.signature(at, signature);
        }
        if !text.is_empty()
            && let AnthropicBlock::Text(at) = self.slot(index, AnthropicBlock::Text(None))
        {
            out.text(at, text);
        }
        match self.blocks.get_mut(&index) {
            _ if json.is_empty() => {}
            Some(AnthropicBlock::Tool { block, any, .. }) => {
                *any = true;
                out.tool_arguments(*block, json);
            }
            Some(AnthropicBlock::Text(_) | AnthropicBlock::Thinking(_) | AnthropicBlock::Unknown) => {}
            None => return Err(garbage("arguments of a tool call that was not begun")),
        }
        Ok(())
    }

    /// The slot of a block, another one in its place where it holds words of another kind.
    fn slot(&mut self, index: u64, begun: AnthropicBlock) -> &mut AnthropicBlock {
        let slot = self.blocks.entry(index).or_insert(AnthropicBlock::Unknown);
        if std::mem::discriminant(slot) != std::mem::discriminant(&begun) {
            *slot = begun;
        }
        slot
    }

    fn close(&mut self, index: u64, out: &mut Assembly) {
        if let Some(slot) = self.blocks.get_mut(&index) {
            slot.close(out);
        }
    }
}

fn take_usage(out: &mut Assembly, usage: Option<&AnthropicUsage>) {
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
