//! The body of an answer as a pure machine: bytes in, [`ModelEvent`]s out, whatever the body turns out to be.

use std::collections::VecDeque;

use openclaw_protocol::mend::has_lone_surrogate;
use openclaw_protocol::message::StopReason;
use serde::de::IgnoredAny;

use crate::assembly::{Assembly, too_large};
use crate::failure::WEB_PAGE;
use crate::halves::{self, Mended};
use crate::model_spec::ModelSpec;
use crate::sse::{SseEvent, lossy};
use crate::stream::{FailureKind, ModelEvent, ModelFailure};
use crate::wire::{Decoder, Flow, Frames, garbage, glimpse};

/// Largest answer of a server that does not stream.
const MAX_DOCUMENT: usize = 32 * 1024 * 1024;

/// Receives one answer.
pub(crate) struct AnswerReader {
    spec: std::sync::Arc<ModelSpec>,
    decoder: Box<dyn Decoder>,
    body: BodyKind,
    /// Gone once the answer has ended.
    assembly: Option<Assembly>,
    ended: VecDeque<ModelEvent>,
    /// Whole events so far.
    events: u64,
}

/// Type of a body, detected by its first character, because servers often send a wrong content
/// type.
enum BodyKind {
    Unknown,
    Events(Box<dyn Frames>),
    Document(Vec<u8>),
    WebPage(Vec<u8>),
}

impl BodyKind {
    /// Detects the type of a body by its first byte that is not blank.
    fn starting_with(first: Option<u8>, decoder: &dyn Decoder) -> Self {
        match first {
            Some(b'{' | b'[') => Self::Document(Vec::new()),
            Some(b'<') => Self::WebPage(Vec::new()),
            _ => Self::Events(decoder.frames()),
        }
    }
}

impl AnswerReader {
    /// An answer begun at `now` (Unix milliseconds).
    pub(crate) fn new(spec: std::sync::Arc<ModelSpec>, decoder: Box<dyn Decoder>, now: i64) -> Self {
        let assembly = Some(Assembly::new(&spec, now));
        Self { spec, decoder, body: BodyKind::Unknown, assembly, ended: VecDeque::new(), events: 0 }
    }

    /// The next event. After the end: what is left, then nothing.
    pub(crate) fn next_event(&mut self) -> Option<ModelEvent> {
        match &mut self.assembly {
            Some(assembly) => assembly.next_event(),
            None => self.ended.pop_front(),
        }
    }

    /// Returns true if the last event was emitted.
    pub(crate) fn has_ended(&self) -> bool {
        self.assembly.is_none()
    }

    /// Takes the next bytes of the body. Returns true if the bytes are a sign of life: they
    /// completed an event or at least a line.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        let had = self.events;
        self.take(bytes);
        // Before a document some servers send empty lines while they think.
        let is_line = matches!(self.body, BodyKind::Events(_) | BodyKind::Unknown) && bytes.contains(&b'\n');
        is_line || self.events > had
    }

    fn take(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if matches!(self.body, BodyKind::Unknown) {
            // A byte order mark counts as blank here; inside an event stream its parser knows it.
            let blank = |b: &u8| b.is_ascii_whitespace() || matches!(b, 0xef | 0xbb | 0xbf);
            let Some(at) = bytes.iter().position(|b| !blank(b)) else { return };
            bytes = bytes.get(at..).unwrap_or_default();
            self.body = BodyKind::starting_with(bytes.first().copied(), self.decoder.as_ref());
        }
        let taken = match &mut self.body {
            BodyKind::Unknown => Ok(()),
            BodyKind::Events(_) => self.push_events(bytes),
            BodyKind::WebPage(page) => {
                let room = 4096_usize.saturating_sub(page.len());
                page.extend(bytes.iter().take(room));
                Ok(())
            }
            BodyKind::Document(document) if document.len() + bytes.len() > MAX_DOCUMENT => Err(too_large()),
            BodyKind::Document(document) => {
                document.extend_from_slice(bytes);
                Ok(())
            }
        };
        if let Err(failure) = taken {
            self.fail(failure);
        }
    }

    /// The body is over.
    pub(crate) fn eof(&mut self) {
        match self.conclude() {
            Ok(stop) => self.finish(stop),
            Err(failure) => self.fail(failure),
        }
    }

    /// The call failed.
    pub(crate) fn fail(&mut self, failure: ModelFailure) {
        if let Some(assembly) = self.assembly.take() {
            self.ended = assembly.fail(&self.spec, failure);
        }
    }

    /// The call was cancelled.
    pub(crate) fn abort(&mut self) {
        if let Some(assembly) = self.assembly.take() {
            self.ended = assembly.abort(&self.spec);
        }
    }

    fn finish(&mut self, stop: StopReason) {
        if let Some(assembly) = self.assembly.take() {
            self.ended = assembly.finish(&self.spec, stop);
        }
    }

    fn push_events(&mut self, bytes: &[u8]) -> Result<(), ModelFailure> {
        let BodyKind::Events(parser) = &mut self.body else { return Ok(()) };
        let mut events = VecDeque::new();
        let parsed = parser.push(bytes, &mut events);
        for event in events {
            self.events += 1;
            if let Flow::End(stop) = self.decode(&event)? {
                self.finish(stop);
                return Ok(());
            }
        }
        parsed
    }

    fn decode(&mut self, event: &SseEvent) -> Result<Flow, ModelFailure> {
        let Some(events) = glued(&event.data) else { return self.decode_one(event) };
        for data in events {
            let event = SseEvent { name: event.name.clone(), data: data.to_owned() };
            if let end @ Flow::End(_) = self.decode_one(&event)? {
                return Ok(end);
            }
        }
        Ok(Flow::More)
    }

    fn decode_one(&mut self, event: &SseEvent) -> Result<Flow, ModelFailure> {
        let Some(assembly) = &mut self.assembly else { return Ok(Flow::More) };
        let decoder = &mut self.decoder;
        let flow = match has_lone_surrogate(&event.data) {
            true => with_halves(&event.data, assembly, |data, assembly| {
                decoder.event(&SseEvent { name: event.name.clone(), data }, assembly)
            })?,
            false => decoder.event(event, assembly)?,
        };
        if assembly.is_too_large() { Err(too_large()) } else { Ok(flow) }
    }

    /// Interprets the end of the body.
    fn conclude(&mut self) -> Result<StopReason, ModelFailure> {
        match std::mem::replace(&mut self.body, BodyKind::Unknown) {
            BodyKind::Unknown => Err(garbage("an empty answer")),
            BodyKind::WebPage(page) => Err(web_page(&page)),
            BodyKind::Document(bytes) => {
                let document = lossy(bytes);
                let Some(assembly) = &mut self.assembly else { return Ok(StopReason::Stop) };
                let decoder = &mut self.decoder;
                let stop = match has_lone_surrogate(&document) {
                    true => with_halves(&document, assembly, |document, assembly| {
                        decoder.document(&document, assembly)
                    })?,
                    false => decoder.document(&document, assembly)?,
                };
                if assembly.is_too_large() { Err(too_large()) } else { Ok(stop) }
            }
            BodyKind::Events(parser) => {
                // The last event may lack its blank line, or be cut: then it is the cut that is reported.
                if let Ok(Some(event)) = parser.finish()
                    && let Ok(Flow::End(stop)) = self.decode(&event)
                {
                    return Ok(stop);
                }
                self.decoder.end().ok_or_else(hung_up)
            }
        }
    }
}

/// The events of a server that puts no blank lines between them; nothing where the data is one event.
fn glued(data: &str) -> Option<Vec<&str>> {
    let is_whole = |json: &str| serde_json::from_str::<IgnoredAny>(json).is_ok();
    if !data.contains('\n') || is_whole(data) {
        return None;
    }
    let events: Vec<&str> = data.lines().filter(|line| !line.trim().is_empty()).collect();
    events.iter().all(|event| is_whole(event) || *event == "[DONE]").then_some(events)
}

/// Reads JSON with halves of characters. Servers that cut texts by UTF-16 units send them; they must not cost the whole answer, and the
/// other half comes with what the block says next.
fn with_halves<T>(
    json: &str,
    assembly: &mut Assembly,
    read: impl FnOnce(String, &mut Assembly) -> Result<T, ModelFailure>,
) -> Result<T, ModelFailure> {
    let Mended { json, has_stand_ins } = halves::mended(json);
    assembly.expect_stand_ins(has_stand_ins);
    let found = read(json, assembly);
    assembly.expect_stand_ins(false);
    found.map_err(|failure| ModelFailure { message: halves::end(&failure.message), ..failure })
}

fn hung_up() -> ModelFailure {
    ModelFailure::new(
        FailureKind::Transient,
        "connection error: the model server hung up before its answer was complete",
    )
}

/// Failure of a page where an answer should be: there is no model at this address, so another one may be asked.
fn web_page(page: &[u8]) -> ModelFailure {
    ModelFailure::new(
        FailureKind::Gone,
        format!("{}; check the provider's baseUrl", describe_page(&String::from_utf8_lossy(page))),
    )
}

/// Returns the title of a web page, or the beginning of its text.
pub(crate) fn describe_page(page: &str) -> String {
    let lower = page.to_lowercase();
    let title = lower
        .find("<title")
        .and_then(|at| page.get(at..))
        .and_then(|rest| rest.split_once('>'))
        .and_then(|(_, rest)| rest.split_once('<'))
        .map(|(title, _)| glimpse(title))
        .filter(|title| !title.is_empty());
    let title = title.map(|title| format!(" titled \"{title}\"")).unwrap_or_default();
    format!("{WEB_PAGE}{title} instead of a model's answer")
}

#[cfg(test)]
pub(crate) mod tests;
