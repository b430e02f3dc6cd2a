//! Amazon Bedrock: `ConverseStream` (spec `models.md` §4.6), signed or with a bearer token.

pub(crate) mod credentials;
pub(crate) mod discovery;
mod event_stream;
mod failure;
mod messages;
mod place;
mod profile;
mod request;
mod sign;
mod stream;

use serde_json::Value;

use crate::conversation::RequestConversation;
use crate::history::IdRule;
use crate::json::Json;
use crate::model_spec::ModelSpec;
use crate::provider_key::ProviderKey;
use crate::request::ModelRequest;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, ErrorAnswer, OutgoingCall, Protocol, RequestHead, WireRequest};

/// Provider id.
pub(crate) const PROVIDER: &str = "amazon-bedrock";

/// The protocol.
#[derive(Debug)]
pub(crate) struct Bedrock;

impl Protocol for Bedrock {
    fn call_ids(&self, _spec: &ModelSpec) -> IdRule {
        IdRule::Anthropic
    }

    fn head(&self, call: &OutgoingCall<'_>) -> Result<RequestHead, ModelFailure> {
        Ok(request::head(call.spec, call.key, call.request)?)
    }

    fn body<'a>(
        &self,
        spec: &'a ModelSpec,
        request: &'a ModelRequest,
        conversation: &RequestConversation<'a>,
    ) -> Json<'a> {
        request::body(spec, request, conversation)
    }

    fn sign(&self, call: &OutgoingCall<'_>, request: &mut WireRequest, now: i64) -> Result<(), ModelFailure> {
        let Some(keys) = call.key.and_then(sign::AccessKeys::of) else { return Ok(()) };
        let region = place::region(call.spec, call.key);
        Ok(sign::sign(&keys, &region, "POST", request, now)?)
    }

    fn is_signed(&self, key: &ProviderKey) -> bool {
        sign::AccessKeys::of(key).is_some()
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<stream::ConverseDecoder>::default()
    }

    fn error_words(&self, error: &Value, body: &str) -> String {
        failure::error_words(error, body)
    }

    fn refusal(&self, answer: &ErrorAnswer<'_>) -> Option<ModelFailure> {
        failure::refusal(answer)
    }

    /// Returns false: the address follows from the region.
    fn needs_address(&self) -> bool {
        false
    }
}

#[cfg(test)]
pub(crate) use event_stream::tests;
