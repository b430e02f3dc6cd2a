//! OpenAI Responses, and the two that speak it their own way: the Codex backend and Azure (spec `models.md` §4.3, §4.4).

mod azure;
mod codex;
mod effort;
mod failure;
mod items;
mod request;
mod stream;

use serde_json::Value;

pub(crate) use azure::Azure;
pub(crate) use codex::Codex;

use crate::history::IdRule;
use crate::model_spec::ModelSpec;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, Outgoing, Protocol, WireRequest};
use failure::Backend;

/// The protocol.
#[derive(Debug)]
pub(crate) struct Responses;

impl Protocol for Responses {
    fn call_ids(&self, _spec: &ModelSpec) -> IdRule {
        IdRule::Responses
    }

    fn build(&self, call: &Outgoing<'_>) -> Result<WireRequest, ModelFailure> {
        Ok(request::build(call.spec, call.secret(), call.request)?)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::ResponsesDecoder::new(Backend::Api))
    }

    fn error_words(&self, error: &Value, body: &str) -> String {
        failure::error_words(error, body)
    }
}
