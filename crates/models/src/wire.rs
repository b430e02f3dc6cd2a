//! What every wire protocol provides: a request to post and a decoder for the answer. Both are pure.

use openclaw_protocol::message::StopReason;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::assembly::Assembly;
use crate::failure;
use crate::net::Headers;
use crate::sse::SseEvent;
use crate::stream::{FailureKind, ModelFailure};

/// A request ready to be posted.
#[derive(Debug)]
pub(crate) struct WireRequest {
    pub(crate) url: String,
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
}

/// Turns what a server sends into the pieces of an answer.
pub(crate) trait Decoder: Send {
    /// One event of a stream.
    fn event(&mut self, event: &SseEvent, out: &mut Assembly) -> Result<Flow, ModelFailure>;

    /// A whole answer, from a server that did not stream.
    fn document(&mut self, document: &str, out: &mut Assembly) -> Result<StopReason, ModelFailure>;

    /// The stream ended without saying so: the stop reason if the answer was whole nevertheless.
    fn end(&self) -> Option<StopReason>;
}

/// Whether a stream goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    End(StopReason),
}

/// Something that is not what the protocol says. The server, or something between us and it, is broken or not what the
/// configuration takes it for.
pub(crate) fn garbage(what: impl std::fmt::Display) -> ModelFailure {
    ModelFailure {
        kind: FailureKind::Transient,
        status: None,
        retry_after: None,
        message: format!("the model server sent garbage: {what}"),
    }
}

/// A stop reason that says the provider will not answer.
pub(crate) fn refused(reason: &str) -> ModelFailure {
    ModelFailure {
        kind: FailureKind::Other,
        status: None,
        retry_after: None,
        message: format!("the model's provider refused to answer this request ({reason})"),
    }
}

/// An error that arrived inside a stream, under status 200.
pub(crate) fn error_in_stream(error: &Value, message: String) -> ModelFailure {
    let kind = error.get("type").or_else(|| error.get("code")).and_then(Value::as_str);
    let status = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let class = failure::classify_answer(status.unwrap_or(0), kind, &message);
    ModelFailure { kind: class, status, retry_after: None, message }
}

/// The first words of something unexpected, for an error text.
pub(crate) fn glimpse(text: &str) -> String {
    const SHOWN: usize = 120;
    let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut cut: String = flat.chars().take(SHOWN).collect();
    if cut.len() < flat.len() {
        cut.push('…');
    }
    cut
}

/// Values of a header set by the owner win over ours, whatever their case.
pub(crate) fn add_headers(
    headers: &mut Headers,
    own: &std::collections::BTreeMap<String, SecretString>,
) -> Result<(), crate::net::NetError> {
    own.iter().try_for_each(|(name, value)| headers.set(name, value.expose_secret()))
}
