//! Interface of wire protocols: build a request to post and decode the answer. All of it is pure.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use openclaw_protocol::message::StopReason;
use openclaw_protocol::printable::excerpt;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::assembly::Assembly;
use crate::conversation::{RequestConversation, RequestFacts};
use crate::failure;
use crate::history::IdRule;
use crate::json::Json;
use crate::model_spec::ModelSpec;
use crate::net::{Headers, NetError};
use crate::provider_key::ProviderKey;
use crate::request::ModelRequest;
use crate::retry;
use crate::sse::{SseEvent, SseParser};
use crate::stream::{FailureKind, ModelFailure};

/// Wire protocol of a model. [`crate::protocols`] assigns a protocol to each model.
pub(crate) trait Protocol: std::fmt::Debug + Sync {
    /// Returns the form of tool call ids that a model accepts.
    fn call_ids(&self, spec: &ModelSpec) -> IdRule;

    /// Returns the address and the headers of a request.
    fn head(&self, call: &OutgoingCall<'_>) -> Result<RequestHead, ModelFailure>;

    /// Returns the body of a request. The written form of a message depends only on the model and,
    /// where that can't be avoided, on its position; [open](RequestConversation::open) messages are the
    /// exception.
    fn body<'a>(
        &self,
        spec: &'a ModelSpec,
        request: &'a ModelRequest,
        conversation: &RequestConversation<'a>,
    ) -> Json<'a>;

    /// Signs a built request, for providers that want its bytes signed rather than a key sent. `now` is in Unix
    /// milliseconds.
    fn sign(
        &self,
        _call: &OutgoingCall<'_>,
        _request: &mut WireRequest,
        _now: i64,
    ) -> Result<(), ModelFailure> {
        Ok(())
    }

    /// Returns true if [`Protocol::sign`] signs with this key, so that the time matters.
    fn is_signed(&self, _key: &ProviderKey) -> bool {
        false
    }

    /// A decoder for one answer.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// Returns the text of an error answer for people: `error` is the error object in it, or all of
    /// it.
    fn error_words(&self, error: &Value, body: &str) -> String;

    /// The failure an error answer stands for, where this protocol knows better than its status and its words.
    fn refusal(&self, _answer: &ErrorAnswer<'_>) -> Option<ModelFailure> {
        None
    }

    /// Returns true if the owner must write a `baseUrl` where the catalog has none.
    fn needs_address(&self) -> bool {
        true
    }

    /// The wait before a failed request is sent again for the first time.
    fn first_wait(&self) -> Duration {
        retry::FIRST_WAIT
    }
}

/// Writes the body of a request over that of the last one in its conversation. Returns it, with
/// further facts about the request.
pub(crate) fn write_body(
    protocol: &dyn Protocol,
    spec: &ModelSpec,
    request: &ModelRequest,
) -> (Bytes, RequestFacts) {
    let ModelRequest { kept, messages, .. } = request;
    kept.write(spec, protocol.call_ids(spec), messages, |conversation, body| {
        body.write(&protocol.body(spec, request, conversation))
    })
}

/// Call about to be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutgoingCall<'a> {
    pub(crate) spec: &'a ModelSpec,
    pub(crate) key: Option<&'a ProviderKey>,
    pub(crate) request: &'a ModelRequest,
    pub(crate) asked: RequestFacts,
}

impl<'a> OutgoingCall<'a> {
    /// The key of providers that want nothing but a key.
    pub(crate) fn secret(&self) -> Option<&'a SecretString> {
        self.key.map(ProviderKey::secret)
    }
}

/// Address and headers of a request.
#[derive(Debug)]
pub(crate) struct RequestHead {
    pub(crate) url: String,
    pub(crate) headers: Headers,
}

/// A request ready to be posted.
#[derive(Debug)]
pub(crate) struct WireRequest {
    pub(crate) url: String,
    pub(crate) headers: Headers,
    pub(crate) body: Bytes,
}

/// An answer with an error status.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorAnswer<'a> {
    pub(crate) status: u16,
    /// The error object, or the whole document; absent when the body is not JSON.
    pub(crate) error: Option<&'a Value>,
    pub(crate) body: &'a str,
    /// Unix milliseconds.
    pub(crate) now: i64,
}

/// Turns what a server sends into the pieces of an answer.
pub(crate) trait Decoder: Send {
    /// Returns the parser that splits a stream into events: server-sent events unless the protocol
    /// has a format of its own.
    fn frames(&self) -> Box<dyn Frames> {
        Box::<SseParser>::default()
    }

    /// Takes an event of a stream.
    fn event(&mut self, event: &SseEvent, out: &mut Assembly) -> Result<Flow, ModelFailure>;

    /// A whole answer, from a server that did not stream.
    fn document(&mut self, document: &str, out: &mut Assembly) -> Result<StopReason, ModelFailure>;

    /// The stream ended without saying so: the stop reason if the answer was whole nevertheless.
    fn end(&self) -> Option<StopReason>;
}

/// Bytes in any cut in, whole events out, in bounded memory.
pub(crate) trait Frames: Send {
    /// Takes the next bytes and appends the events they complete, also those before a fault.
    fn push(&mut self, bytes: &[u8], out: &mut VecDeque<SseEvent>) -> Result<(), ModelFailure>;

    /// Ends the stream; an event that lacks only its end mark is handed out too.
    fn finish(self: Box<Self>) -> Result<Option<SseEvent>, ModelFailure>;
}

impl Frames for SseParser {
    fn push(&mut self, bytes: &[u8], out: &mut VecDeque<SseEvent>) -> Result<(), ModelFailure> {
        Self::push(self, bytes, out).map_err(garbage)
    }

    fn finish(self: Box<Self>) -> Result<Option<SseEvent>, ModelFailure> {
        Self::finish(*self).map_err(garbage)
    }
}

impl From<NetError> for ModelFailure {
    fn from(error: NetError) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

/// Tells the reader to continue or to end the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    End(StopReason),
}

/// Returns the failure for data that violates the protocol. The server, or something between us and
/// it, is broken or not what the configuration takes it for.
pub(crate) fn garbage(what: impl std::fmt::Display) -> ModelFailure {
    ModelFailure::new(FailureKind::Transient, format!("the model server sent garbage: {what}"))
}

/// A stop reason that says the provider will not answer.
pub(crate) fn refused(reason: &str) -> ModelFailure {
    ModelFailure::new(
        FailureKind::Other,
        format!("the model's provider refused to answer this request ({reason})"),
    )
}

/// An error that arrived inside a stream, under status 200.
pub(crate) fn error_in_stream(error: &Value, message: String) -> ModelFailure {
    let kind = error.get("type").or_else(|| error.get("code")).and_then(Value::as_str);
    let status = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let class = failure::classify_answer(status.unwrap_or(0), kind, &message);
    ModelFailure { kind: class, status, retry_after: None, message }
}

/// Formats the name and the text of an error, as far as either is present.
pub(crate) fn named_words(name: Option<&str>, words: Option<&str>) -> Option<String> {
    match (name, words) {
        (Some(name), Some(words)) => Some(format!("{name}: {words}")),
        (known, None) | (None, known) => known.map(str::to_owned),
    }
}

/// The first words of something unexpected, for an error text.
pub(crate) fn glimpse(text: &str) -> String {
    const SHOWN: usize = 120;
    excerpt(&text.split_whitespace().collect::<Vec<_>>().join(" "), SHOWN).into_owned()
}

/// Values of a header set by the owner win over ours, whatever their case.
pub(crate) fn add_headers(
    headers: &mut Headers,
    own: &std::collections::BTreeMap<String, SecretString>,
) -> Result<(), crate::net::NetError> {
    own.iter().try_for_each(|(name, value)| headers.set(name, value.expose_secret()))
}
