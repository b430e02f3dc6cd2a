//! Estimates the size of messages in tokens from their characters (spec `agent-runtime.md` §7.2,
//! §10.1): only the provider can count tokens, and only for what it is sent.

use std::io;
use std::sync::Arc;

use openclaw_protocol::message::{AssistantMessage, Block, Message, StopReason, UserContent};
use openclaw_protocol::text_length::{utf16_len, utf16_units};
use serde_json::Value;

use crate::context::is_summary;

/// A token is taken to be this many characters.
pub const CHARS_PER_TOKEN: usize = 4;
/// Size of an image in characters. OpenClaw 2026.2.9 counts those of people for nothing.
const IMAGE_CHARS: usize = 4_800;

/// Content that is counted besides text, thinking and arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measure {
    /// Characters an image counts for.
    pub(crate) image: usize,
    /// True if the names of called tools count.
    pub(crate) names: bool,
}

const TOKENS: Measure = Measure { image: IMAGE_CHARS, names: true };

/// Tokens of so many characters.
pub fn tokens_of(chars: usize) -> u64 {
    chars.div_ceil(CHARS_PER_TOKEN) as u64
}

/// Tokens of a message.
pub fn message_tokens(message: &Message) -> u64 {
    tokens_of(TOKENS.chars(message))
}

/// Tokens of messages.
pub fn all_tokens(messages: &[Arc<Message>]) -> u64 {
    messages.iter().map(|message| message_tokens(message)).sum()
}

/// Tokens of what a model is sent: what it counted itself at the last answer, and an estimate of
/// what was said since. If the provider has counted nothing, or a summary has replaced what it
/// counted, everything is estimated, and `fixed` is the size of everything besides the messages.
pub fn context_tokens(messages: &[Arc<Message>], fixed: u64) -> u64 {
    let summarised_at = messages.first().filter(|first| is_summary(first)).map(|first| first.timestamp());
    let counted = |message: &Arc<Message>| match &**message {
        Message::Assistant(answer) if summarised_at.is_none_or(|at| answer.timestamp > at) => counted(answer),
        Message::Assistant(_) | Message::User(_) | Message::ToolResult(_) => None,
    };
    let last = messages.iter().enumerate().rev().find_map(|(at, message)| Some((at, counted(message)?)));
    match last {
        Some((at, counted)) => counted + all_tokens(messages.get(at + 1..).unwrap_or_default()),
        None => fixed + all_tokens(messages),
    }
}

/// Returns the provider's token count for an answer and everything before it.
fn counted(answer: &AssistantMessage) -> Option<u64> {
    if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
        return None;
    }
    let usage = &answer.usage;
    let parts = usage.input + usage.output + usage.cache_read + usage.cache_write;
    Some(if usage.total_tokens > 0 { usage.total_tokens } else { parts }).filter(|total| *total > 0)
}

impl Measure {
    /// Returns the size of a message in characters.
    pub(crate) fn chars(self, message: &Message) -> usize {
        match message {
            Message::User(user) => match &user.content {
                UserContent::Text(text) => utf16_len(text),
                UserContent::Blocks(blocks) => self.blocks(blocks),
            },
            Message::Assistant(answer) => self.blocks(&answer.content),
            Message::ToolResult(result) => self.blocks(&result.content),
        }
    }

    fn blocks(self, blocks: &[Block]) -> usize {
        blocks.iter().map(|block| self.block(block)).sum()
    }

    fn block(self, block: &Block) -> usize {
        match block {
            Block::Text(text) => utf16_len(&text.text),
            Block::Thinking(thinking) => utf16_len(&thinking.thinking),
            Block::Image(_) => self.image,
            Block::ToolCall(call) => {
                let name = if self.names { utf16_len(&call.name) } else { 0 };
                name + json_chars(&call.arguments)
            }
            Block::Other(_) => 0,
        }
    }
}

/// Length of a value's compact JSON, without writing it down.
fn json_chars(value: &Value) -> usize {
    struct Units(usize);
    impl io::Write for Units {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += utf16_units(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut units = Units(0);
    // Neither can a value fail to be JSON nor this writer to take it.
    let _ = serde_json::to_writer(&mut units, value);
    units.0
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::{
        ImageBlock, ThinkingBlock, ToolCall, ToolResultMessage, Usage, UserMessage,
    };
    use serde_json::json;

    use super::*;

    fn user(text: &str, timestamp: i64) -> Arc<Message> {
        Arc::new(Message::User(UserMessage::text(text, timestamp)))
    }

    fn answer(usage: Usage, stop_reason: StopReason, timestamp: i64) -> Arc<Message> {
        let content = vec![Block::text("x".repeat(8))];
        let answer =
            AssistantMessage { content, usage, stop_reason, timestamp, ..AssistantMessage::default() };
        Arc::new(Message::Assistant(answer))
    }

    #[test]
    fn four_characters_are_a_token() {
        let call = ToolCall { name: "read".into(), arguments: json!({"p": "ä"}), ..ToolCall::default() };
        let thinking = ThinkingBlock { thinking: "hmm".into(), ..ThinkingBlock::default() };
        let content = vec![Block::text("1234"), Block::Thinking(thinking), Block::ToolCall(call)];
        let said = Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() });
        // 4 + 3 + 4 + `{"p":"ä"}`
        assert_eq!((TOKENS.chars(&said), message_tokens(&said)), (20, 5));
        let unnamed = Measure { image: 8_000, names: false };
        assert_eq!(unnamed.chars(&said), 16);
        let content = vec![Block::text("x"), Block::Image(ImageBlock::default())];
        let seen = Message::ToolResult(ToolResultMessage {
            content: content.clone(),
            ..ToolResultMessage::default()
        });
        assert_eq!((message_tokens(&seen), unnamed.chars(&seen)), (1_201, 8_001));
        let shown = UserMessage { content: UserContent::Blocks(content), ..UserMessage::default() };
        assert_eq!(message_tokens(&Message::User(shown)), 1_201);
        assert_eq!(message_tokens(&user("", 0)), 0);
    }

    #[test]
    fn the_provider_counts_what_it_was_sent_and_the_rest_is_estimated() {
        let whole = Usage { input: 60, cache_read: 30, output: 10, ..Usage::default() };
        let told = Usage { total_tokens: 500, ..whole };
        let stop = StopReason::Stop;
        let rows = [
            (vec![], 7),
            (vec![user("12345678", 1)], 9),
            (vec![user("1234", 1), answer(whole, stop, 2)], 100),
            (vec![user("1234", 1), answer(told, stop, 2), user("12345", 3)], 502),
            // A failed answer counts nothing, nor does a provider that reports nothing.
            (vec![answer(whole, stop, 2), answer(told, StopReason::Error, 3)], 102),
            (vec![answer(whole, stop, 2), answer(Usage::default(), stop, 3)], 102),
        ];
        for (messages, expect) in rows {
            assert_eq!(context_tokens(&messages, 7), expect, "{messages:?}");
        }
    }

    #[test]
    fn what_was_counted_before_a_summary_holds_no_more() {
        let usage = Usage { total_tokens: 190_000, ..Usage::default() };
        let summary =
            user("The conversation history before this point was compacted into the following summary:", 5);
        let messages = [summary, answer(usage, StopReason::Stop, 4), user("1234", 4)];
        assert_eq!(context_tokens(&messages, 7), 7 + 21 + 2 + 1);
        let later = answer(Usage { total_tokens: 50, ..usage }, StopReason::Stop, 6);
        let messages: Vec<_> = messages.into_iter().chain([later, user("1234", 7)]).collect();
        assert_eq!(context_tokens(&messages, 7), 51);
    }
}
