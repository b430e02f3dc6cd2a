//! The answer of OpenAI Responses.

use std::borrow::Cow;
use std::collections::BTreeMap;

use openclaw_protocol::message::{StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure::{Backend, failed, reported};
use crate::assembly::Assembly;
use crate::sse::SseEvent;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, Flow, garbage, glimpse, refused};

/// What a service tier costs, as a factor of the list price (spec `models.md` §4.3).
const TIERS: &[(&str, f64)] = &[("flex", 0.5), ("priority", 2.0)];

/// Reads an event stream, or a whole response from a server that does not stream.
#[derive(Debug)]
pub(super) struct ResponsesDecoder {
    backend: Backend,
    /// Output items by the server's index.
    items: BTreeMap<u64, Item>,
    /// The item begun last: servers that give no index mean this one.
    last: u64,
}

/// An output item of the server and, once it holds anything, our block.
#[derive(Debug, Clone, Copy)]
enum Item {
    Text(Option<usize>),
    Reasoning {
        block: Option<usize>,
        /// A further part of the summary began.
        new_part: bool,
    },
    Call {
        block: usize,
        /// Arguments have come.
        any: bool,
    },
    /// Over, or of a kind we have no use for.
    Done,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    output_index: Option<u64>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireItem {
    #[serde(rename = "type", default)]
    kind: String,
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<Value>,
    summary: Option<Vec<Part>>,
    content: Option<Vec<Part>>,
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Response<'a> {
    status: Option<Cow<'a, str>>,
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
    usage: Option<WireUsage>,
    error: Option<Value>,
    incomplete_details: Option<Incomplete>,
    service_tier: Option<String>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
}

impl ResponsesDecoder {
    /// A decoder for one answer.
    pub(super) fn new(backend: Backend) -> Self {
        Self { backend, items: BTreeMap::new(), last: 0 }
    }
}

impl Decoder for ResponsesDecoder {
    fn event(&mut self, event: &SseEvent, out: &mut Assembly) -> Result<Flow, ModelFailure> {
        if event.data.trim() == "[DONE]" {
            // Not of this protocol, but some gateways in between add it.
            return Ok(Flow::More);
        }
        let frame: Frame<'_> = serde_json::from_str(&event.data)
            .map_err(|_| garbage(format_args!("an event that is not JSON: {}", glimpse(&event.data))))?;
        let kind = frame.kind.as_deref().or(event.name.as_deref()).unwrap_or_default();
        let at = frame.output_index.unwrap_or(self.last);
        match kind {
            "response.output_item.added" => self.added(at, frame.item, out)?,
            "response.output_item.done" => self.done(at, frame.item, out)?,
            "response.output_text.delta" | "response.refusal.delta" => self.text(at, frame.delta, out),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.reasoning(at, frame.delta, out);
            }
            "response.reasoning_summary_part.added" => self.new_part(at),
            "response.function_call_arguments.delta" => self.arguments(at, frame.delta, out),
            "response.function_call_arguments.done" => self.whole_arguments(at, frame.arguments, out),
            "response.completed"
            | "response.done"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                let name = kind.trim_start_matches("response.");
                return self.over(name, frame.response, out).map(Flow::End);
            }
            "error" => return Err(reported(self.backend, &event.data, out.begun_at())),
            // Their content comes in another event too, or is of no use here.
            _ => {}
        }
        if kind.starts_with("response.") {
            out.start();
        }
        Ok(Flow::More)
    }

    fn document(&mut self, document: &str, out: &mut Assembly) -> Result<StopReason, ModelFailure> {
        let response: Response<'_> = serde_json::from_str(document)
            .map_err(|_| garbage(format_args!("an answer that is no response: {}", glimpse(document))))?;
        if response.output.is_none() && response.error.as_ref().is_none_or(Value::is_null) {
            return Err(garbage(format_args!("JSON that is no response: {}", glimpse(document))));
        }
        self.conclude("completed", response, out)
    }

    fn end(&self) -> Option<StopReason> {
        None
    }
}

impl ResponsesDecoder {
    fn added(&mut self, at: u64, item: Option<&RawValue>, out: &mut Assembly) -> Result<(), ModelFailure> {
        let Some(item) = parse_item(item)? else { return Ok(()) };
        self.last = at;
        self.items.insert(at, open(&item, out));
        Ok(())
    }

    /// The slot of an item whose beginning may have been left out.
    fn slot(&mut self, at: u64, begun: Item) -> &mut Item {
        self.last = at;
        self.items.entry(at).or_insert(begun)
    }

    fn text(&mut self, at: u64, delta: Option<&RawValue>, out: &mut Assembly) {
        if let Item::Text(block) = self.slot(at, Item::Text(None)) {
            out.text(block, &string(delta));
        }
    }

    fn reasoning(&mut self, at: u64, delta: Option<&RawValue>, out: &mut Assembly) {
        let begun = Item::Reasoning { block: None, new_part: false };
        if let Item::Reasoning { block, new_part } = self.slot(at, begun) {
            let delta = string(delta);
            if std::mem::take(new_part) && block.is_some() {
                out.thinking(block, "\n\n");
            }
            out.thinking(block, &delta);
        }
    }

    fn new_part(&mut self, at: u64) {
        if let Item::Reasoning { new_part, .. } =
            self.slot(at, Item::Reasoning { block: None, new_part: false })
        {
            *new_part = true;
        }
    }

    /// Arguments of a call that was not begun come again when it is done.
    fn arguments(&mut self, at: u64, delta: Option<&RawValue>, out: &mut Assembly) {
        if let Some(Item::Call { block, any }) = self.items.get_mut(&at) {
            let delta = string(delta);
            *any |= !delta.is_empty();
            out.tool_arguments(*block, &delta);
        }
    }

    fn whole_arguments(&mut self, at: u64, arguments: Option<&RawValue>, out: &mut Assembly) {
        if let Some(Item::Call { block, any }) = self.items.get_mut(&at)
            && !std::mem::replace(any, true)
        {
            out.tool_arguments(*block, &string(arguments));
        }
    }

    /// An item is whole. What was not streamed of it is taken from here.
    fn done(&mut self, at: u64, raw: Option<&RawValue>, out: &mut Assembly) -> Result<(), ModelFailure> {
        let Some(item) = parse_item(raw)? else { return Ok(()) };
        self.last = at;
        let slot = match self.items.insert(at, Item::Done) {
            Some(Item::Done) => return Ok(()),
            Some(slot) => slot,
            None => open(&item, out),
        };
        match slot {
            Item::Text(mut block) => {
                if block.is_none() {
                    out.text(&mut block, &item.words());
                }
                out.text_signature(block, item.id.as_deref().unwrap_or_default());
            }
            Item::Reasoning { mut block, .. } => {
                if block.is_none() {
                    out.thinking(&mut block, &item.thoughts());
                }
                // To the byte: the server checks what it is given back.
                out.signature(&mut block, raw.map_or("", RawValue::get));
            }
            Item::Call { block, any } => {
                if !any {
                    out.tool_arguments(block, &item.arguments());
                }
                out.close(block);
            }
            Item::Done => {}
        }
        Ok(())
    }

    fn over(
        &mut self,
        name: &str,
        response: Option<&RawValue>,
        out: &mut Assembly,
    ) -> Result<StopReason, ModelFailure> {
        let text = response.map_or("{}", RawValue::get);
        let response: Response<'_> = serde_json::from_str(text)
            .map_err(|_| garbage(format_args!("an end of an answer that is none: {}", glimpse(text))))?;
        self.conclude(name, response, out)
    }

    /// `end` is how the answer ended unless the response says so itself.
    fn conclude(
        &mut self,
        end: &str,
        response: Response<'_>,
        out: &mut Assembly,
    ) -> Result<StopReason, ModelFailure> {
        if let Some(usage) = &response.usage {
            take_usage(out.usage(), usage);
        }
        let tier = response.service_tier.as_deref();
        if let Some((_, factor)) = TIERS.iter().find(|(name, _)| Some(*name) == tier) {
            out.price_factor(*factor);
        }
        let status = response.status.as_deref().unwrap_or(end);
        if matches!(status, "failed" | "cancelled") || matches!(end, "failed" | "cancelled") {
            let error = response.error.unwrap_or(Value::Null);
            return Err(failed(self.backend, &error, status, out.begun_at()));
        }
        if let Some(error) = response.error.filter(|error| !error.is_null()) {
            return Err(failed(self.backend, &error, status, out.begun_at()));
        }
        out.start();
        if out.is_empty() {
            // A server that streams nothing but the end.
            for (at, item) in (0..).zip(response.output.into_iter().flatten()) {
                self.done(at, Some(item), out)?;
            }
        }
        match (status, response.incomplete_details.and_then(|details| details.reason).as_deref()) {
            ("incomplete", Some("content_filter")) => Err(refused("content_filter")),
            ("incomplete", _) => Ok(StopReason::Length),
            _ => Ok(StopReason::Stop),
        }
    }
}

/// Begins our block for an item, where it begins with the item itself.
fn open(item: &WireItem, out: &mut Assembly) -> Item {
    match item.kind.as_str() {
        "message" => Item::Text(None),
        "reasoning" => Item::Reasoning { block: None, new_part: false },
        "function_call" => {
            let id = call_id(item);
            let block = out.tool_call(&id, item.name.as_deref().unwrap_or_default());
            Item::Call { block, any: false }
        }
        _ => Item::Done,
    }
}

/// `call|item`: the server wants both back.
fn call_id(item: &WireItem) -> String {
    let call = item.call_id.as_deref().unwrap_or_default();
    match item.id.as_deref().filter(|id| !id.is_empty()) {
        Some(id) if call.is_empty() => id.to_owned(),
        Some(id) => format!("{call}|{id}"),
        None => call.to_owned(),
    }
}

impl WireItem {
    fn words(&self) -> String {
        let parts = self.content.iter().flatten();
        parts.filter_map(|part| part.text.as_deref().or(part.refusal.as_deref())).collect()
    }

    fn thoughts(&self) -> String {
        let texts = |parts: &Option<Vec<Part>>| {
            let texts: Vec<&str> = parts.iter().flatten().filter_map(|part| part.text.as_deref()).collect();
            texts.join("\n\n")
        };
        let summary = texts(&self.summary);
        if summary.is_empty() { texts(&self.content) } else { summary }
    }

    fn arguments(&self) -> String {
        match &self.arguments {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            // Some servers send the object itself.
            Some(value) => value.to_string(),
        }
    }
}

fn parse_item(raw: Option<&RawValue>) -> Result<Option<WireItem>, ModelFailure> {
    let Some(raw) = raw else { return Ok(None) };
    serde_json::from_str(raw.get())
        .map(Some)
        .map_err(|_| garbage(format_args!("an output item that is none: {}", glimpse(raw.get()))))
}

/// A string; anything else is none.
fn string(raw: Option<&RawValue>) -> String {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

fn take_usage(taken: &mut Usage, usage: &WireUsage) {
    let input = usage.input_tokens.unwrap_or(0);
    let details = usage.input_tokens_details.as_ref().and_then(|details| details.cached_tokens);
    let cached = details.unwrap_or(0).min(input);
    taken.input = input - cached;
    taken.cache_read = cached;
    taken.output = usage.output_tokens.unwrap_or(0);
}

#[cfg(test)]
mod tests;
