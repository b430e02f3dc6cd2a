//! Tool results that are too long to be kept whole (spec `agent-runtime.md` §9.4). Pure.

use std::sync::Arc;

use openclaw_protocol::message::cap::STORED;
use openclaw_protocol::message::{Block, Message, ToolResultMessage};
use openclaw_protocol::text_length::utf16_len;

use crate::tokens::{CHARS_PER_TOKEN, message_tokens, tokens_of};

/// No result is made shorter than this to make room.
const LEAST: usize = 4_000;

/// The most characters that one result may have beside a model's window: three tenths of it.
pub(super) fn limit(window: u64) -> usize {
    let tokens = usize::try_from(window.saturating_mul(3) / 10).unwrap_or(usize::MAX);
    tokens.saturating_mul(CHARS_PER_TOKEN).min(STORED.max)
}

/// Returns the length limit for results with which these messages take at most `room` tokens, or as
/// few as possible; `None` when none of the results is too long. `window` is the model's.
pub(super) fn cap(messages: &[Arc<Message>], window: u64, room: u64) -> Option<usize> {
    let mut others = 0;
    let mut results = Vec::new();
    for message in messages {
        match &**message {
            Message::ToolResult(result) => results.push(text_chars(result)),
            Message::User(_) | Message::Assistant(_) => others += message_tokens(message),
        }
    }
    let longest = results.iter().copied().max()?;
    let taken = |cap: usize| others + results.iter().map(|chars| tokens_of((*chars).min(cap))).sum::<u64>();
    let mut cap = limit(window).max(LEAST);
    while taken(cap) > room && cap > LEAST {
        cap = (cap / 2).max(LEAST);
    }
    (longest > cap).then_some(cap)
}

fn text_chars(result: &ToolResultMessage) -> usize {
    let chars = |block: &Block| match block {
        Block::Text(text) => utf16_len(&text.text),
        Block::Thinking(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => 0,
    };
    result.content.iter().map(chars).sum()
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::UserMessage;

    use super::*;

    fn result(chars: usize) -> Arc<Message> {
        let content = vec![Block::text("r".repeat(chars))];
        Arc::new(Message::ToolResult(ToolResultMessage { content, ..ToolResultMessage::default() }))
    }

    /// The vectors of spec `agent-runtime.md` §9.4.
    #[test]
    fn a_result_may_take_three_tenths_of_the_window() {
        for (window, expect) in [(8_000, 9_600), (128_000, 153_600), (200_000, 240_000), (1_000_000, 400_000)]
        {
            assert_eq!(limit(window), expect, "{window}");
        }
    }

    #[test]
    fn results_are_cut_until_there_is_room() {
        let user = |chars: usize| Arc::new(Message::User(UserMessage::text("u".repeat(chars), 0)));
        let rows = [
            (vec![result(9_600)], 8_000, None),
            (vec![result(9_601)], 8_000, Some(9_600)),
            (vec![user(100_000)], 8_000, None),
            // 4 results of 2,000 tokens each, with room for 4,000.
            (vec![result(8_000), result(8_000), result(8_000), result(8_000)], 4_000, Some(4_000)),
            // There is no room whatever is cut.
            (vec![user(100_000), result(8_000)], 4_000, Some(LEAST)),
            (vec![user(100_000), result(4_000)], 4_000, None),
            (vec![], 0, None),
        ];
        for (messages, room, expect) in rows {
            assert_eq!(cap(&messages, 8_000, room), expect, "{} messages, {room}", messages.len());
        }
    }
}
