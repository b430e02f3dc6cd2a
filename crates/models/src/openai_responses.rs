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

use crate::conversation::RequestConversation;
use crate::history::IdRule;
use crate::json::Json;
use crate::model_spec::ModelSpec;
use crate::request::ModelRequest;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, OutgoingCall, Protocol, RequestHead};
use failure::Backend;

/// The protocol.
#[derive(Debug)]
pub(crate) struct Responses;

impl Protocol for Responses {
    fn call_ids(&self, _spec: &ModelSpec) -> IdRule {
        IdRule::Responses
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
        Box::new(stream::ResponsesDecoder::new(Backend::Api))
    }

    fn error_words(&self, error: &Value, body: &str) -> String {
        failure::error_words(error, body)
    }
}
