//! Seams of a conversation: everything before a seam is adapted and written in the same way
//! whatever follows it, and what follows does not depend on what is before, apart from ids of
//! calls.
//!
//! A seam is before an answer that every model is shown, where everyone sees that another than the model spoke last. So no
//! result belongs to a call beyond it, and nothing is merged across it.

use std::sync::Arc;

use openclaw_protocol::message::{AssistantMessage, Block, Message, UserContent};

use super::pairing::has_failed;

/// The last seam behind the first `after` messages.
pub(crate) fn last_seam(messages: &[Arc<Message>], after: usize) -> Option<usize> {
    (after + 1..messages.len()).rev().find(|at| is_seam(messages, *at))
}

/// Returns true if there is a seam before message number `at`.
pub(crate) fn is_seam(messages: &[Arc<Message>], at: usize) -> bool {
    let Some((before, [next, ..])) = messages.split_at_checked(at) else { return false };
    let is_result = |message: &&Arc<Message>| matches!(***message, Message::ToolResult(_));
    let last = before.iter().rev().find(|message| !is_result(message));
    matches!(&**next, Message::Assistant(answer) if is_shown(answer))
        && last.is_some_and(|last| match &**last {
            Message::User(user) => says_something(&user.content),
            // Each of its calls is followed by a result, be it one that is made up.
            Message::Assistant(answer) => !has_failed(answer) && answer.content.iter().any(is_call),
            Message::ToolResult(_) => false,
        })
}

/// Returns true if every model is shown the answer.
fn is_shown(answer: &AssistantMessage) -> bool {
    !has_failed(answer) && answer.content.iter().any(|block| is_call(block) || is_words(block))
}

fn says_something(content: &UserContent) -> bool {
    match content {
        UserContent::Text(text) => !text.trim().is_empty(),
        UserContent::Blocks(blocks) => blocks.iter().any(is_words),
    }
}

fn is_words(block: &Block) -> bool {
    matches!(block, Block::Text(text) if !text.text.trim().is_empty())
}

/// Calls that were stored without arguments are shown to nobody.
fn is_call(block: &Block) -> bool {
    matches!(block, Block::ToolCall(call) if !call.arguments.is_null())
}
