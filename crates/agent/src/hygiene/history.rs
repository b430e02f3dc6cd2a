//! How much history a direct chat sends (spec `agent-runtime.md` §9.5).

use std::num::NonZeroU32;

use openclaw_protocol::message::Message;

/// How a compaction summary begins when it is shown to the model (spec `sessions.md` §4.5).
pub const SUMMARY_START: &str =
    "The conversation history before this point was compacted into the following summary:";

/// Keeps the last `limit` user turns whole. A compaction summary at the start is kept and not counted.
pub fn keep_last_turns(mut messages: Vec<Message>, limit: NonZeroU32) -> Vec<Message> {
    let summary = usize::from(messages.first().is_some_and(is_summary));
    let limit = limit.get() as usize;
    let turns: Vec<usize> = messages
        .iter()
        .enumerate()
        .skip(summary)
        .filter_map(|(at, message)| matches!(message, Message::User(_)).then_some(at))
        .collect();
    let Some(start) = turns.len().checked_sub(limit).and_then(|at| turns.get(at)) else { return messages };
    messages.drain(summary..*start);
    messages
}

fn is_summary(message: &Message) -> bool {
    matches!(message, Message::User(user) if user.content.to_text().starts_with(SUMMARY_START))
}
