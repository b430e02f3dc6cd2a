//! Google's Generative Language API: `streamGenerateContent` (spec `models.md` §4.5), there and at Vertex.

pub(crate) mod adc;
mod contents;
mod failure;
mod request;
mod stream;
mod thinking;
mod vertex;

use serde_json::Value;

pub(crate) use failure::refusal;

use crate::conversation::RequestConversation;
use crate::history::IdRule;
use crate::json::Json;
use crate::model_spec::ModelSpec;
use crate::request::ModelRequest;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, ErrorAnswer, OutgoingCall, Protocol, RequestHead};

/// The protocol.
#[derive(Debug)]
pub(crate) struct Google;

impl Protocol for Google {
    fn call_ids(&self, _spec: &ModelSpec) -> IdRule {
        IdRule::Strict
    }

    fn head(&self, call: &OutgoingCall<'_>) -> Result<RequestHead, ModelFailure> {
        Ok(request::head(call.spec, call.secret(), call.request)?)
    }

    fn body<'a>(
        &self,
        spec: &'a ModelSpec,
        request: &'a ModelRequest,
        conversation: &RequestConversation<'a>,
    ) -> Json<'a> {
        request::body(spec, request, conversation)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<stream::GoogleDecoder>::default()
    }

    fn error_words(&self, error: &Value, body: &str) -> String {
        failure::error_words(error, body)
    }

    fn refusal(&self, answer: &ErrorAnswer<'_>) -> Option<ModelFailure> {
        failure::refusal(answer)
    }
}

/// Gemini at Google Cloud (Vertex AI).
#[derive(Debug)]
pub(crate) struct Vertex;

impl Protocol for Vertex {
    fn call_ids(&self, _spec: &ModelSpec) -> IdRule {
        IdRule::Strict
    }

    fn head(&self, call: &OutgoingCall<'_>) -> Result<RequestHead, ModelFailure> {
        Ok(vertex::head(call.spec, call.key, call.request)?)
    }

    fn body<'a>(
        &self,
        spec: &'a ModelSpec,
        request: &'a ModelRequest,
        conversation: &RequestConversation<'a>,
    ) -> Json<'a> {
        Google.body(spec, request, conversation)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Google.decoder()
    }

    fn error_words(&self, error: &Value, body: &str) -> String {
        Google.error_words(error, body)
    }

    fn refusal(&self, answer: &ErrorAnswer<'_>) -> Option<ModelFailure> {
        Google.refusal(answer)
    }

    /// Returns false: the address follows from project and location.
    fn needs_address(&self) -> bool {
        false
    }
}
