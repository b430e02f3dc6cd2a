//! How much of a branch a model is sent. What each provider needs of it is done by [`openclaw_models::history`].

use std::num::NonZeroU32;
use std::sync::Arc;

use openclaw_protocol::message::Message;
use openclaw_protocol::message::cap::STORED;

/// How a compaction summary begins when it is shown to the model (spec `sessions.md` §4.5).
const SUMMARY_START: &str =
    "The conversation history before this point was compacted into the following summary:";

/// The last `limit` turns of a branch, no tool result longer than ours may be.
pub(crate) fn bounded(mut messages: Vec<Arc<Message>>, limit: Option<NonZeroU32>) -> Vec<Arc<Message>> {
    if let Some(limit) = limit {
        keep_last_turns(&mut messages, limit);
    }
    cap_tool_results(&mut messages);
    messages
}

/// Keeps the last `limit` user turns whole (spec `agent-runtime.md` §9.5). A compaction summary at the start is kept and not
/// counted.
fn keep_last_turns(messages: &mut Vec<Arc<Message>>, limit: NonZeroU32) {
    let summary = usize::from(messages.first().is_some_and(|first| is_summary(first)));
    let limit = limit.get() as usize;
    let turns = messages.iter().enumerate().skip(summary).rev();
    let mut starts = turns.filter_map(|(at, message)| matches!(**message, Message::User(_)).then_some(at));
    if let Some(start) = starts.nth(limit - 1) {
        drop(starts);
        messages.drain(summary..start);
    }
}

fn is_summary(message: &Message) -> bool {
    matches!(message, Message::User(user) if user.content.to_text().starts_with(SUMMARY_START))
}

/// Results of our own tools were cut when they were stored; those of other programs that write transcripts may not be.
fn cap_tool_results(messages: &mut [Arc<Message>]) {
    for message in messages {
        let is_long = matches!(&**message, Message::ToolResult(result) if !STORED.fits(result));
        if is_long && let Message::ToolResult(result) = Arc::make_mut(message) {
            STORED.apply(result);
        }
    }
}

#[cfg(test)]
mod tests;
