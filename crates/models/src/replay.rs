//! Request and decoder without the network between them: for tests, benchmarks and fuzzing.

use std::sync::Arc;

use bytes::Bytes;
use openclaw_protocol::message::Message;
use secrecy::SecretString;

use crate::answer::AnswerReader;
use crate::conversation::RequestConversation;
use crate::history;
use crate::model_spec::ModelSpec;
use crate::protocols::protocol;
use crate::provider_key::ProviderKey;
use crate::request::ModelRequest;
use crate::stream::{ModelEvent, ModelFailure};
use crate::wire::{OutgoingCall, RequestHead, WireRequest, write_body};
use openclaw_config::clock::now_ms;

/// The body that a call would post with this key, of messages that are fit for the model. `None` if
/// the model's protocol has no client.
///
/// # Errors
/// Same errors as the call would have before anything is sent.
pub fn posted(
    spec: &ModelSpec,
    key: &SecretString,
    request: &ModelRequest,
) -> Option<Result<Vec<u8>, ModelFailure>> {
    let protocol = protocol(&spec.api)?;
    let key = ProviderKey::from(key.clone());
    let conversation = RequestConversation::whole(&request.messages);
    let call = OutgoingCall { spec, key: Some(&key), request, asked: conversation.asked() };
    let signed = protocol.head(&call).and_then(|RequestHead { url, headers }| {
        let body = protocol.body(spec, request, &conversation).to_bytes().freeze();
        let mut wire = WireRequest { url, headers, body };
        protocol.sign(&call, &mut wire, now_ms())?;
        Ok(wire.body.into())
    });
    Some(signed)
}

/// The body that a call posts: its messages are made fit for the model, and the last request of the
/// conversation is gone on from. `None` if the model's protocol has no client.
pub fn gone_on(spec: &ModelSpec, request: &ModelRequest) -> Option<Bytes> {
    let (body, _) = write_body(protocol(&spec.api)?, spec, request);
    Some(body)
}

/// The messages of a request as the model is shown them. `None` if its protocol has no client.
pub fn shown(spec: &ModelSpec, request: &ModelRequest) -> Option<Vec<Arc<Message>>> {
    let rules = spec.history_rules(protocol(&spec.api)?.call_ids(spec));
    Some(history::prepare(request.messages.to_vec(), &rules))
}

/// The events of a body that arrives in these chunks and then ends, in answer to a call made at
/// `now` (Unix milliseconds). `None` if the model's protocol has no client.
pub fn replay<'c>(
    spec: &ModelSpec,
    now: i64,
    chunks: impl IntoIterator<Item = &'c [u8]>,
) -> Option<Vec<ModelEvent>> {
    let mut answer = AnswerReader::new(Arc::new(spec.clone()), protocol(&spec.api)?.decoder(), now);
    let mut events = Vec::new();
    for chunk in chunks {
        if !answer.has_ended() {
            answer.push(chunk);
        }
        events.extend(std::iter::from_fn(|| answer.next_event()));
    }
    answer.eof();
    events.extend(std::iter::from_fn(|| answer.next_event()));
    Some(events)
}
