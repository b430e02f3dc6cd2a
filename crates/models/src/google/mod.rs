//! Google's Generative Language API: `streamGenerateContent` (spec `models.md` §4.5), there and at Vertex.

pub(crate) mod adc;
mod contents;
mod failure;
mod request;
mod stream;
mod thinking;
mod vertex;

use serde_json::Value;

use crate::history::IdRule;
use crate::model_spec::ModelSpec;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, ErrorAnswer, Outgoing, Protocol, WireRequest};

/// The protocol.
#[derive(Debug)]
pub(crate) struct Google;

impl Protocol for Google {
    fn call_ids(&self, _spec: &ModelSpec) -> IdRule {
        IdRule::Strict
    }

    fn build(&self, call: &Outgoing<'_>) -> Result<WireRequest, ModelFailure> {
        Ok(request::build(call.spec, call.secret(), call.request)?)
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

/// The same at Google's cloud.
#[derive(Debug)]
pub(crate) struct Vertex;

impl Protocol for Vertex {
    fn call_ids(&self, _spec: &ModelSpec) -> IdRule {
        IdRule::Strict
    }

    fn build(&self, call: &Outgoing<'_>) -> Result<WireRequest, ModelFailure> {
        Ok(vertex::build(call.spec, call.key, call.request)?)
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

    /// It follows from project and place.
    fn needs_address(&self) -> bool {
        false
    }
}
