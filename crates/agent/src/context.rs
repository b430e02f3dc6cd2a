//! How much of a branch a model is sent. What each provider needs of it is done by [`openclaw_models::history`].

use std::num::NonZeroU32;
use std::sync::Arc;

use openclaw_protocol::message::Message;

/// How a compaction summary begins when it is shown to the model (spec `sessions.md` §4.5).
const SUMMARY_START: &str =
    "The conversation history before this point was compacted into the following summary:";

/// The last `limit` user turns of a branch, whole (spec `agent-runtime.md` §9.5). A compaction summary at the start is kept and not
/// counted.
pub(crate) fn bounded(
    messages: &Arc<Vec<Arc<Message>>>,
    limit: Option<NonZeroU32>,
) -> Arc<Vec<Arc<Message>>> {
    let Some(limit) = limit else { return Arc::clone(messages) };
    let summary = usize::from(messages.first().is_some_and(|first| is_summary(first)));
    let limit = limit.get() as usize;
    let turns = messages.iter().enumerate().skip(summary).rev();
    let mut starts = turns.filter_map(|(at, message)| matches!(**message, Message::User(_)).then_some(at));
    let Some(start) = starts.nth(limit - 1) else { return Arc::clone(messages) };
    let (summary, turns) = (messages.iter().take(summary), messages.iter().skip(start));
    Arc::new(summary.chain(turns).cloned().collect())
}

pub(crate) fn is_summary(message: &Message) -> bool {
    matches!(message, Message::User(user) if user.content.to_text().starts_with(SUMMARY_START))
}

#[cfg(test)]
mod tests;
