//! Makes a conversation fit for one model, whoever spoke in it before: pure, and the only place
//! that does so (spec `agent-runtime.md` §9.2, `models.md` §3.1). Every client of a protocol calls
//! it once for each call, and a request is built from what comes out. The transcript is never
//! changed here.

mod call_ids;
mod failed;
mod images;
mod names;
mod pairing;
mod roles;
mod rules;
mod seam;
mod translate;

use std::sync::Arc;

use openclaw_protocol::message::Message;
use openclaw_protocol::message::cap::STORED;

pub(crate) use call_ids::IdMap;
pub use call_ids::IdRule;
pub use pairing::{result_for, unanswered};
pub use rules::{HistoryRules, Join};
pub(crate) use seam::{is_seam, last_seam};

/// The messages as the model behind `rules` should see them: every call directly followed by its result, failed answers
/// left out or replaced by a note that the request is closed, foreign reasoning turned to text, neighbours of one role merged, names and ids of calls in the form the provider takes, no
/// result longer than ours may be, images called what they are. Only messages that change are copied.
pub fn prepare(messages: Vec<Arc<Message>>, rules: &HistoryRules<'_>) -> Vec<Arc<Message>> {
    prepare_part(messages, rules, &mut rules.id_map())
}

/// [`prepare`] for a part of a conversation that begins at its start or at a [seam](last_seam); `ids` knows the calls before it.
pub(crate) fn prepare_part(
    mut messages: Vec<Arc<Message>>,
    rules: &HistoryRules<'_>,
    ids: &mut IdMap<'_>,
) -> Vec<Arc<Message>> {
    cap_results(&mut messages);
    images::mend(&mut messages);
    names::mend(&mut messages);
    if rules.drop_blank {
        roles::drop_blank(&mut messages);
    }
    roles::drop_calls_without_arguments(&mut messages);
    let mut messages = pairing::repair(messages);
    failed::close(&mut messages);
    translate::translate(&mut messages, rules, ids);
    roles::merge(&mut messages, rules);
    messages
}

/// Results of our own tools were cut when they were stored; those of other programs that write transcripts may not be.
fn cap_results(messages: &mut [Arc<Message>]) {
    for message in messages {
        let is_long = matches!(&**message, Message::ToolResult(result) if !STORED.fits(result));
        if is_long && let Message::ToolResult(result) = Arc::make_mut(message) {
            STORED.apply(result);
        }
    }
}

#[cfg(test)]
mod tests;
