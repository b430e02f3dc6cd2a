//! The answer of OpenAI Responses.

use std::borrow::Cow;
use std::collections::BTreeMap;

use openclaw_protocol::message::{StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure::{Backend, failed, reported};
use crate::assembly::Assembly;
use crate::lenient;
use crate::sse::SseEvent;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, Flow, garbage, glimpse, refused};

/// Price factors of service tiers, relative to the list price (spec `models.md` §4.3).
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
struct ResponsesFrame<'a> {
    #[serde(rename = "type", default, borrow, deserialize_with = "lenient::borrowed")]
    kind: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "lenient::count")]
    output_index: Option<u64>,
    #[serde(default, deserialize_with = "lenient::text")]
    delta: Option<String>,
    #[serde(default, deserialize_with = "lenient::json_text")]
    arguments: Option<String>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct WireItem {
    #[serde(rename = "type", default, deserialize_with = "lenient::text")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "lenient::id")]
    id: Option<String>,
    #[serde(default, deserialize_with = "lenient::id")]
    call_id: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    name: Option<String>,
    #[serde(default, deserialize_with = "lenient::json_text")]
    arguments: Option<String>,
    #[serde(default, deserialize_with = "lenient::objects")]
    summary: Vec<ResponsesPart>,
    #[serde(default, deserialize_with = "lenient::objects")]
    content: Vec<ResponsesPart>,
}

#[derive(Deserialize)]
struct ResponsesPart {
    #[serde(default, deserialize_with = "lenient::text")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct WireResponse<'a> {
    #[serde(default, deserialize_with = "lenient::text")]
    status: Option<String>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient::object")]
    usage: Option<ResponsesUsage>,
    #[serde(default, deserialize_with = "lenient::error")]
    error: Option<Value>,
    #[serde(default, deserialize_with = "lenient::object")]
    incomplete_details: Option<Incomplete>,
    #[serde(default, deserialize_with = "lenient::text")]
    service_tier: Option<String>,
}

impl<'a> WireResponse<'a> {
    /// The items; nothing where there is no list of them.
    fn items(&self) -> Option<Vec<&'a RawValue>> {
        self.output.and_then(lenient::read)
    }
}

#[derive(Deserialize)]
struct Incomplete {
    #[serde(default, deserialize_with = "lenient::text")]
    reason: Option<String>,
}

#[derive(Deserialize)]
struct ResponsesUsage {
    #[serde(default, deserialize_with = "lenient::count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::object")]
    input_tokens_details: Option<InputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    #[serde(default, deserialize_with = "lenient::count")]
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
        let frame: ResponsesFrame<'_> = lenient::frame(&event.data, "an event that is not JSON")?;
        let kind = frame.kind.as_deref().or(event.name.as_deref()).unwrap_or_default();
        let at = frame.output_index.unwrap_or(self.last);
        let delta = frame.delta.unwrap_or_default();
        match kind {
            "response.output_item.added" => self.added(at, frame.item, out),
            "response.output_item.done" => self.done(at, frame.item, out),
            "response.output_text.delta" | "response.refusal.delta" => self.text(at, &delta, out),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.reasoning(at, &delta, out);
            }
            "response.reasoning_summary_part.added" => self.new_part(at),
            "response.function_call_arguments.delta" => self.arguments(at, &delta, out),
            "response.function_call_arguments.done" => {
                self.whole_arguments(at, &frame.arguments.unwrap_or_default(), out);
            }
            "response.completed"
            | "response.done"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                let name = kind.trim_start_matches("response.");
                return self.over(name, frame.response, out).map(Flow::End);
            }
            "error" => return Err(reported(self.backend, &event.data, out.begun_at())),
            // The content of these also comes in another event, or is of no use here.
            _ => {}
        }
        if kind.starts_with("response.") {
            out.start();
        }
        Ok(Flow::More)
    }

    fn document(&mut self, document: &str, out: &mut Assembly) -> Result<StopReason, ModelFailure> {
        let response: WireResponse<'_> = lenient::frame(document, "an answer that is no response")?;
        if response.items().is_none() && response.error.is_none() {
            return Err(garbage(format_args!("JSON that is no response: {}", glimpse(document))));
        }
        self.conclude("completed", response, out)
    }

    fn end(&self) -> Option<StopReason> {
        None
    }
}

impl ResponsesDecoder {
    fn added(&mut self, at: u64, item: Option<&RawValue>, out: &mut Assembly) {
        let Some(item) = item.and_then(lenient::object_in::<WireItem>) else { return };
        self.last = at;
        // An item without a type is the result of another one.
        if item.kind.is_some() {
            self.items.insert(at, open(&item, out));
        }
    }

    /// The slot of an item whose beginning may have been left out.
    fn slot(&mut self, at: u64, begun: Item) -> &mut Item {
        self.last = at;
        self.items.entry(at).or_insert(begun)
    }

    fn text(&mut self, at: u64, delta: &str, out: &mut Assembly) {
        if let Item::Text(block) = self.slot(at, Item::Text(None)) {
            out.text(block, delta);
        }
    }

    fn reasoning(&mut self, at: u64, delta: &str, out: &mut Assembly) {
        let begun = Item::Reasoning { block: None, new_part: false };
        if let Item::Reasoning { block, new_part } = self.slot(at, begun) {
            if std::mem::take(new_part) && block.is_some() {
                out.thinking(block, "\n\n");
            }
            out.thinking(block, delta);
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
    fn arguments(&mut self, at: u64, delta: &str, out: &mut Assembly) {
        if let Some(Item::Call { block, any }) = self.items.get_mut(&at) {
            *any |= !delta.is_empty();
            out.tool_arguments(*block, delta);
        }
    }

    fn whole_arguments(&mut self, at: u64, arguments: &str, out: &mut Assembly) {
        if let Some(Item::Call { block, any }) = self.items.get_mut(&at)
            && !std::mem::replace(any, true)
        {
            out.tool_arguments(*block, arguments);
        }
    }

    /// An item is whole. Parts of it that were not streamed are taken from here.
    fn done(&mut self, at: u64, raw: Option<&RawValue>, out: &mut Assembly) {
        let Some(item) = raw.and_then(lenient::object_in::<WireItem>) else { return };
        self.last = at;
        let slot = match self.items.insert(at, Item::Done) {
            Some(Item::Done) => return,
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
                    out.tool_arguments(block, &item.arguments.unwrap_or_default());
                }
                out.close(block);
            }
            Item::Done => {}
        }
    }

    fn over(
        &mut self,
        name: &str,
        response: Option<&RawValue>,
        out: &mut Assembly,
    ) -> Result<StopReason, ModelFailure> {
        let text = response.map_or("{}", RawValue::get);
        let response: WireResponse<'_> = lenient::frame(text, "an end of an answer that is none")?;
        self.conclude(name, response, out)
    }

    /// `end` is how the answer ended unless the response says so itself.
    fn conclude(
        &mut self,
        end: &str,
        response: WireResponse<'_>,
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
            let error = response.error.unwrap_or_default();
            return Err(failed(self.backend, &error, status, out.begun_at()));
        }
        let items = response.items();
        if let Some(error) = response.error {
            return Err(failed(self.backend, &error, status, out.begun_at()));
        }
        out.start();
        if out.is_empty() {
            // A server that streams nothing but the end.
            for (at, item) in (0..).zip(items.into_iter().flatten()) {
                self.done(at, Some(item), out);
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
    match item.kind.as_deref().unwrap_or_default() {
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
        self.content.iter().filter_map(|part| part.text.as_deref().or(part.refusal.as_deref())).collect()
    }

    fn thoughts(&self) -> String {
        let texts = |parts: &[ResponsesPart]| {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.text.as_deref()).collect();
            texts.join("\n\n")
        };
        let summary = texts(&self.summary);
        if summary.is_empty() { texts(&self.content) } else { summary }
    }
}

fn take_usage(taken: &mut Usage, usage: &ResponsesUsage) {
    let input = usage.input_tokens.unwrap_or(0);
    let details = usage.input_tokens_details.as_ref().and_then(|details| details.cached_tokens);
    let cached = details.unwrap_or(0).min(input);
    taken.input = input - cached;
    taken.cache_read = cached;
    taken.output = usage.output_tokens.unwrap_or(0);
}

#[cfg(test)]
mod tests;
