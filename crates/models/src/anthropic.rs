//! Anthropic Messages (spec `models.md` §4.1).

mod request;
mod stream;

use serde_json::Value;

use crate::conversation::RequestConversation;
use crate::history::IdRule;
use crate::json::Json;
use crate::model_spec::ModelSpec;
use crate::request::ModelRequest;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, OutgoingCall, Protocol, RequestHead};

/// The protocol.
#[derive(Debug)]
pub(crate) struct Anthropic;

impl Protocol for Anthropic {
    fn call_ids(&self, _spec: &ModelSpec) -> IdRule {
        IdRule::Anthropic
    }

    fn head(&self, call: &OutgoingCall<'_>) -> Result<RequestHead, ModelFailure> {
        Ok(request::head(call.spec, call.secret())?)
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
        Box::new(stream::AnthropicDecoder::default())
    }

    /// All of it: clients look for the type and the request id.
    fn error_words(&self, _error: &Value, body: &str) -> String {
        body.to_owned()
    }
}
