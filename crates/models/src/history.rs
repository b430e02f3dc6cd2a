//! Makes a conversation fit for one model, whoever spoke in it before: pure, and the only place that does so
//! (spec `agent-runtime.md` §9.2, `models.md` §3.1). Every client of a protocol calls it once for each call, and a request is
//! built from what comes out. Nothing here changes the transcript.

mod call_ids;
mod pairing;
mod roles;
mod rules;
mod translate;

use std::sync::Arc;

use openclaw_protocol::message::Message;

pub use call_ids::IdRule;
pub use pairing::{result_for, unanswered};
pub use rules::{Join, Rules};

/// The messages as the model behind `rules` should see them: every call directly followed by its result, failed answers
/// left out, foreign reasoning turned to text, neighbours of one role merged, ids of calls in the form the provider takes. Only
/// messages that change are copied.
pub fn prepare(mut messages: Vec<Arc<Message>>, rules: &Rules<'_>) -> Vec<Arc<Message>> {
    if rules.drop_blank {
        roles::drop_blank(&mut messages);
    }
    roles::drop_calls_without_arguments(&mut messages);
    let mut messages = pairing::repair(messages);
    messages
        .retain(|message| !matches!(&**message, Message::Assistant(answer) if pairing::has_failed(answer)));
    translate::translate(&mut messages, rules);
    roles::merge(&mut messages, rules);
    messages
}

#[cfg(test)]
mod tests;
