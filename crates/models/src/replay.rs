//! Reads a recorded answer again, as it would have been read from the wire: for tests, benchmarks and fuzzing.

use std::sync::Arc;

use crate::answer::Answer;
use crate::catalog::ModelSpec;
use crate::stream::ModelEvent;

/// The events of a body that arrives in these chunks and then ends, in answer to a call made at `now` (Unix milliseconds).
/// Nothing where the model's protocol has no client.
pub fn replay<'c>(
    spec: &ModelSpec,
    now: i64,
    chunks: impl IntoIterator<Item = &'c [u8]>,
) -> Option<Vec<ModelEvent>> {
    let mut answer = Answer::new(Arc::new(spec.clone()), spec.api.protocol()?.decoder(), now);
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
