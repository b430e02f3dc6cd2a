//! Puts an answer together from the pieces a decoder finds, and says what the listener should hear.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet, VecDeque};

use openclaw_protocol::message::{
    AssistantMessage, Block, StopReason, TextBlock, ThinkingBlock, ToolCall, Usage,
};
use serde_json::{Map, Value};

use crate::arguments::Pieces;
use crate::halves;
use crate::model_spec::ModelSpec;
use crate::parts::CALL_FIELDS;
use crate::retry::ABORTED;
use crate::stream::{FailureKind, ModelEvent, ModelFailure};
use crate::usage;

/// Largest number of bytes of text, thinking and arguments in one answer.
pub(crate) const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;
/// Largest number of content blocks of one answer.
const MAX_BLOCKS: usize = 4096;

/// An answer being received.
#[derive(Debug)]
pub(crate) struct Assembly {
    message: AssistantMessage,
    blocks: Vec<PartialBlock>,
    events: VecDeque<ModelEvent>,
    started: bool,
    size: usize,
    too_large: bool,
    /// Fraction of the list price that is charged.
    price_factor: f64,
    /// First halves of characters, by the block that has to go on with the second.
    halves: BTreeMap<usize, u32>,
    /// True if incoming text has stand-ins for halves of characters.
    has_stand_ins: bool,
}

#[derive(Debug)]
enum PartialBlock {
    Text(TextBlock),
    Thinking(ThinkingBlock),
    Tool { call: ToolCall, arguments: Pieces, closed: bool },
}

impl Assembly {
    /// An empty answer of a model, begun at `now` (Unix milliseconds).
    pub(crate) fn new(spec: &ModelSpec, now: i64) -> Self {
        let message = AssistantMessage {
            api: spec.api.as_str().to_owned(),
            provider: spec.provider().to_owned(),
            model: spec.id().to_owned(),
            timestamp: now,
            ..AssistantMessage::default()
        };
        Self {
            message,
            blocks: Vec::new(),
            events: VecDeque::new(),
            started: false,
            size: 0,
            too_large: false,
            price_factor: 1.0,
            halves: BTreeMap::new(),
            has_stand_ins: false,
        }
    }

    /// Sets if text from now on has stand-ins for halves of characters ([`halves`]).
    pub(crate) fn expect_stand_ins(&mut self, has_stand_ins: bool) {
        self.has_stand_ins = has_stand_ins;
    }

    /// The next event for the listener.
    pub(crate) fn next_event(&mut self) -> Option<ModelEvent> {
        self.events.pop_front()
    }

    /// The provider began to answer; said once.
    pub(crate) fn start(&mut self) {
        if !std::mem::replace(&mut self.started, true) {
            self.events.push_back(ModelEvent::Start);
        }
    }

    /// Returns the start of the answer in Unix milliseconds.
    pub(crate) fn begun_at(&self) -> i64 {
        self.message.timestamp
    }

    /// The provider charges this factor of the list price.
    pub(crate) fn price_factor(&mut self, factor: f64) {
        self.price_factor = factor;
    }

    /// Tokens so far.
    pub(crate) fn usage(&mut self) -> &mut Usage {
        &mut self.message.usage
    }

    /// Adds text to `block`, or to a new block when it is none. Empty text opens nothing.
    pub(crate) fn text(&mut self, block: &mut Option<usize>, delta: &str) {
        if delta.is_empty() || !self.has_room(delta) {
            return;
        }
        let at = *block.get_or_insert_with(|| self.open(PartialBlock::Text(TextBlock::default())));
        let delta = self.joined(at, delta);
        self.add(at, delta);
    }

    /// Adds reasoning to `block`, or to a new block when it is none. Empty text opens nothing.
    pub(crate) fn thinking(&mut self, block: &mut Option<usize>, delta: &str) {
        if delta.is_empty() || !self.has_room(delta) {
            return;
        }
        let at = *block.get_or_insert_with(|| self.open(PartialBlock::Thinking(ThinkingBlock::default())));
        let delta = self.joined(at, delta);
        self.add(at, delta);
    }

    /// Adds to what a block says, and tells it.
    fn add(&mut self, block: usize, delta: Cow<'_, str>) {
        if delta.is_empty() {
            return;
        }
        match self.blocks.get_mut(block) {
            Some(PartialBlock::Text(text)) => {
                text.text.push_str(&delta);
                self.events.push_back(ModelEvent::TextDelta { block, delta: delta.into_owned() });
            }
            Some(PartialBlock::Thinking(thinking)) => {
                thinking.thinking.push_str(&delta);
                self.events.push_back(ModelEvent::ThinkingDelta { block, delta: delta.into_owned() });
            }
            Some(PartialBlock::Tool { arguments, .. }) => arguments.push(&delta),
            None => {}
        }
    }

    /// A piece with the half of a character that its block waited with. A first half at its end is waited with in turn.
    fn joined<'p>(&mut self, block: usize, piece: &'p str) -> Cow<'p, str> {
        let mut held = self.halves.remove(&block);
        let joined = halves::join(&mut held, piece, self.has_stand_ins);
        self.halves.extend(held.map(|half| (block, half)));
        joined
    }

    /// Returns text that arrived in one piece, with any stand-ins resolved.
    fn whole<'p>(&self, text: &'p str) -> Cow<'p, str> {
        if self.has_stand_ins { Cow::Owned(halves::end(text)) } else { Cow::Borrowed(text) }
    }

    /// Adds to the signature of a reasoning block, opening it when only the signature comes.
    pub(crate) fn signature(&mut self, block: &mut Option<usize>, delta: &str) {
        if delta.is_empty() || !self.has_room(delta) {
            return;
        }
        let delta = self.whole(delta);
        let at = *block.get_or_insert_with(|| self.open(PartialBlock::Thinking(ThinkingBlock::default())));
        if let Some(PartialBlock::Thinking(thinking)) = self.blocks.get_mut(at) {
            thinking.thinking_signature.get_or_insert_default().push_str(&delta);
        }
    }

    /// Notes under which id the provider knows a text block; an empty id is none.
    pub(crate) fn text_signature(&mut self, block: Option<usize>, id: &str) {
        if let Some(PartialBlock::Text(text)) = block.and_then(|at| self.blocks.get_mut(at)) {
            text.text_signature = Some(id.to_owned()).filter(|id| !id.is_empty());
        }
    }

    /// Adds a reasoning block whose text the provider keeps to itself.
    pub(crate) fn redacted_thinking(&mut self, data: &str) {
        if !self.has_room(data) {
            return;
        }
        let data = self.whole(data).into_owned();
        let mut block = ThinkingBlock { thinking_signature: Some(data), ..ThinkingBlock::default() };
        block.extra.insert("redacted".to_owned(), Value::Bool(true));
        self.open(PartialBlock::Thinking(block));
    }

    /// Begins a tool call and returns its block. A call without an id, as some servers send it, is
    /// given one. A call without a name is emitted once it has one.
    pub(crate) fn tool_call(&mut self, id: &str, name: &str) -> usize {
        let id = if id.is_empty() {
            format!("call_{}_{}", self.message.timestamp, self.blocks.len())
        } else {
            self.whole(id).into_owned()
        };
        let call = ToolCall { id, ..ToolCall::default() };
        let block = self.open(PartialBlock::Tool { call, arguments: Pieces::default(), closed: false });
        self.call_name(block, name);
        block
    }

    /// Names a call whose name comes late.
    pub(crate) fn call_name(&mut self, block: usize, name: &str) {
        let name = self.whole(name).into_owned();
        if let Some(PartialBlock::Tool { call, .. }) = self.blocks.get_mut(block)
            && !name.is_empty()
        {
            if call.name.is_empty() {
                let (id, name) = (call.id.clone(), name.clone());
                self.events.push_back(ModelEvent::ToolCallStart { block, id, name });
            }
            call.name = name;
        }
    }

    /// Gives a call the id that comes late.
    pub(crate) fn call_id(&mut self, block: usize, id: &str) {
        let id = self.whole(id).into_owned();
        if let Some(PartialBlock::Tool { call, .. }) = self.blocks.get_mut(block) {
            call.id = id;
        }
    }

    /// Keeps what comes with a call besides name and arguments.
    pub(crate) fn call_fields(&mut self, block: usize, fields: Map<String, Value>) {
        if fields.is_empty() || !fields.values().all(|value| self.has_room(&value.to_string())) {
            return;
        }
        if let Some(PartialBlock::Tool { call, .. }) = self.blocks.get_mut(block) {
            let kept = call.extra.entry(CALL_FIELDS).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(kept) = kept {
                kept.extend(fields);
            }
        }
    }

    /// A call as far as it has come, and its arguments.
    pub(crate) fn call(&self, block: usize) -> Option<(&ToolCall, &str)> {
        match self.blocks.get(block)? {
            PartialBlock::Tool { call, arguments, .. } => Some((call, arguments.text())),
            PartialBlock::Text(_) | PartialBlock::Thinking(_) => None,
        }
    }

    /// Adds to the arguments of a tool call.
    pub(crate) fn tool_arguments(&mut self, block: usize, delta: &str) {
        if !self.has_room(delta) {
            return;
        }
        if let Some(PartialBlock::Tool { .. }) = self.blocks.get(block) {
            let delta = self.joined(block, delta);
            self.add(block, delta);
        }
    }

    /// Attaches the provider's opaque proof to the tool call with an id.
    pub(crate) fn thought_signature(&mut self, id: &str, signature: &str) {
        for block in &mut self.blocks {
            if let PartialBlock::Tool { call, .. } = block
                && call.id == id
            {
                call.thought_signature = Some(signature.to_owned());
            }
        }
    }

    /// Notes under which name the server sends its reasoning, to send it back the same way.
    pub(crate) fn thinking_field(&mut self, block: Option<usize>, field: &str) {
        if let Some(PartialBlock::Thinking(thinking)) = block.and_then(|at| self.blocks.get_mut(at)) {
            thinking.thinking_signature.get_or_insert_with(|| field.to_owned());
        }
    }

    /// Returns true if nothing of an answer has arrived.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The provider said that a block is whole.
    pub(crate) fn close(&mut self, block: usize) {
        if let Some(PartialBlock::Tool { closed, .. }) = self.blocks.get_mut(block) {
            *closed = true;
        }
    }

    /// Returns true if the answer exceeded its size limit; it must be failed then.
    pub(crate) fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// The regular end. `ToolUse` and `Stop` are corrected by whether there are calls: many servers mix them up.
    pub(crate) fn finish(mut self, spec: &ModelSpec, stop: StopReason) -> VecDeque<ModelEvent> {
        for block in 0..self.blocks.len() {
            self.close(block);
        }
        self.settle(spec);
        let calls = self.message.tool_calls().next().is_some();
        self.message.stop_reason = match stop {
            StopReason::Stop | StopReason::ToolUse if calls => StopReason::ToolUse,
            StopReason::ToolUse => StopReason::Stop,
            other => other,
        };
        self.start();
        self.events.push_back(ModelEvent::Done { message: self.message, failure: None });
        self.events
    }

    /// A failed end: what arrived is kept, except a tool call whose end never came.
    pub(crate) fn fail(mut self, spec: &ModelSpec, failure: ModelFailure) -> VecDeque<ModelEvent> {
        self.settle(spec);
        self.message.stop_reason = StopReason::Error;
        self.message.error_message = Some(failure.message.clone());
        self.events.push_back(ModelEvent::Done { message: self.message, failure: Some(failure) });
        self.events
    }

    /// The end of a cancelled call: as a failure, without being one.
    pub(crate) fn abort(mut self, spec: &ModelSpec) -> VecDeque<ModelEvent> {
        self.settle(spec);
        self.message.stop_reason = StopReason::Aborted;
        self.message.error_message = Some(ABORTED.to_owned());
        self.events.push_back(ModelEvent::Done { message: self.message, failure: None });
        self.events
    }

    fn settle(&mut self, spec: &ModelSpec) {
        for block in std::mem::take(&mut self.halves).into_keys() {
            self.add(block, Cow::Borrowed("\u{fffd}"));
        }
        self.message.content = std::mem::take(&mut self.blocks)
            .into_iter()
            .filter_map(|open| match open {
                PartialBlock::Text(text) => Some(Block::Text(text)),
                PartialBlock::Thinking(thinking) => Some(Block::Thinking(thinking)),
                // Neither a name nor arguments are no call.
                PartialBlock::Tool { call, arguments, closed: true }
                    if call.name.trim().is_empty() && arguments.text().trim().is_empty() =>
                {
                    None
                }
                PartialBlock::Tool { mut call, arguments, closed: true } => {
                    arguments.fill(&mut call);
                    mend_name(&mut call.name);
                    Some(Block::ToolCall(call))
                }
                PartialBlock::Tool { closed: false, .. } => None,
            })
            .collect();
        self.tell_calls_apart();
        usage::settle(&mut self.message.usage, &usage::times(spec.price, self.price_factor));
    }

    /// Gives a call whose id another one has an id of its own: results belong to ids.
    fn tell_calls_apart(&mut self) {
        if self.message.tool_calls().nth(1).is_none() {
            return;
        }
        let (mut seen, at) = (HashSet::new(), self.message.timestamp);
        for (number, block) in self.message.content.iter_mut().enumerate() {
            if let Block::ToolCall(call) = block
                && !seen.insert(call.id.clone())
            {
                call.id = format!("call_{at}_{number}_2");
            }
        }
    }

    fn open(&mut self, block: PartialBlock) -> usize {
        if self.blocks.len() >= MAX_BLOCKS {
            self.too_large = true;
        } else {
            self.blocks.push(block);
        }
        self.blocks.len().saturating_sub(1)
    }

    fn has_room(&mut self, delta: &str) -> bool {
        self.size = self.size.saturating_add(delta.len());
        self.too_large |= self.size > MAX_ANSWER_BYTES;
        !self.too_large
    }
}

/// Takes off what Kimi's models put around a tool's name, as in `functions.read:0`. No tool that is offered is called so.
fn mend_name(name: &mut String) {
    let plain = name.trim();
    let plain = plain.strip_prefix("functions.").unwrap_or(plain);
    let plain = match plain.split_once(':') {
        Some((head, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => head,
        Some(_) | None => plain,
    };
    if plain.len() < name.len() && !plain.is_empty() {
        *name = plain.to_owned();
    }
}

/// The failure of an answer over its cap.
pub(crate) fn too_large() -> ModelFailure {
    ModelFailure::new(
        FailureKind::Other,
        format!("the model's answer is larger than {} MiB", MAX_ANSWER_BYTES / 1024 / 1024),
    )
}
