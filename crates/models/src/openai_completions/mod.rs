//! OpenAI Chat Completions and the servers that speak it (spec `models.md` §4.2).

mod compat;
mod request;
mod stream;

use serde_json::Value;

pub(crate) use stream::error_message;

use crate::history::IdRule;
use crate::model_spec::ModelSpec;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, Outgoing, Protocol, WireRequest};

/// The protocol.
#[derive(Debug)]
pub(crate) struct Completions;

impl Protocol for Completions {
    fn call_ids(&self, spec: &ModelSpec) -> IdRule {
        compat::Dialect::of(spec).ids
    }

    fn build(&self, call: &Outgoing<'_>) -> Result<WireRequest, ModelFailure> {
        Ok(request::build(call.spec, call.secret(), call.request)?)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::CompletionsDecoder::default())
    }

    fn error_words(&self, error: &Value, body: &str) -> String {
        error_message(error).unwrap_or_else(|| body.to_owned())
    }
}
