//! Anthropic Messages (spec `models.md` §4.1).

mod request;
mod stream;

use serde_json::Value;

use crate::history::IdRule;
use crate::model_spec::ModelSpec;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, Outgoing, Protocol, WireRequest};

/// The protocol.
#[derive(Debug)]
pub(crate) struct Anthropic;

impl Protocol for Anthropic {
    fn call_ids(&self, _spec: &ModelSpec) -> IdRule {
        IdRule::Anthropic
    }

    fn build(&self, call: &Outgoing<'_>) -> Result<WireRequest, ModelFailure> {
        Ok(request::build(call.spec, call.secret(), call.request)?)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::AnthropicDecoder::default())
    }

    /// All of it: clients look for the type and the request id.
    fn error_words(&self, _error: &Value, body: &str) -> String {
        body.to_owned()
    }
}
