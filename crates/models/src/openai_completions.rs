//! OpenAI Chat Completions and the servers that speak it (spec `models.md` §4.2).

mod calls;
mod compat;
mod request;
mod stream;
mod written;

use serde_json::Value;

pub(crate) use stream::error_message;

use crate::conversation::RequestConversation;
use crate::history::IdRule;
use crate::json::Json;
use crate::model_spec::ModelSpec;
use crate::request::ModelRequest;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, OutgoingCall, Protocol, RequestHead};

/// The protocol.
#[derive(Debug)]
pub(crate) struct Completions;

impl Protocol for Completions {
    fn call_ids(&self, spec: &ModelSpec) -> IdRule {
        compat::Dialect::of(spec).ids
    }

    fn head(&self, call: &OutgoingCall<'_>) -> Result<RequestHead, ModelFailure> {
        Ok(request::head(call.spec, call.secret(), call.asked)?)
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
        Box::new(stream::CompletionsDecoder::default())
    }

    fn error_words(&self, error: &Value, body: &str) -> String {
        error_message(error).unwrap_or_else(|| body.to_owned())
    }
}
