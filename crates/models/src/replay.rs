//! Both halves of a call without the wire between them: for tests, benchmarks and fuzzing.

use std::sync::Arc;

use secrecy::SecretString;

use crate::answer::Answer;
use crate::model_spec::ModelSpec;
use crate::protocols::protocol;
use crate::provider_key::ProviderKey;
use crate::request::ModelRequest;
use crate::stream::{ModelEvent, ModelFailure};
use crate::wire::Outgoing;
use openclaw_config::clock::now_ms;

/// The body that a call would post with this key. Nothing where the model's protocol has no client.
///
/// # Errors
/// As the call would fail before anything is sent.
pub fn posted(
    spec: &ModelSpec,
    key: &SecretString,
    request: &ModelRequest,
) -> Option<Result<Vec<u8>, ModelFailure>> {
    let protocol = protocol(&spec.api)?;
    let key = ProviderKey::from(key.clone());
    let call = Outgoing { spec, key: Some(&key), request };
    let mut wire = match protocol.build(&call) {
        Ok(wire) => wire,
        Err(failure) => return Some(Err(failure)),
    };
    Some(protocol.sign(&call, &mut wire, now_ms()).map(|()| wire.body))
}

/// The events of a body that arrives in these chunks and then ends, in answer to a call made at `now` (Unix milliseconds).
/// Nothing where the model's protocol has no client.
pub fn replay<'c>(
    spec: &ModelSpec,
    now: i64,
    chunks: impl IntoIterator<Item = &'c [u8]>,
) -> Option<Vec<ModelEvent>> {
    let mut answer = Answer::new(Arc::new(spec.clone()), protocol(&spec.api)?.decoder(), now);
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
