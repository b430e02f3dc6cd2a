//! Selects the messages and blocks that reach a provider, and merges neighbours of one role (spec
//! `agent-runtime.md` §9.2 steps 3, 4, 8, 10).

use std::sync::Arc;

use openclaw_protocol::message::{AssistantMessage, Block, Message, StopReason, UserContent, UserMessage};

use super::rules::{HistoryRules, Join};

/// Drops blank text of assistant messages, then messages without content.
pub(super) fn drop_blank(messages: &mut Vec<Arc<Message>>) {
    messages.retain_mut(|message| {
        drop_blocks(message, |block| matches!(block, Block::Text(text) if text.text.trim().is_empty()));
        match &**message {
            Message::Assistant(answer) => {
                !answer.content.is_empty() || answer.stop_reason == StopReason::Error
            }
            Message::User(_) | Message::ToolResult(_) => true,
        }
    });
}

/// Drops tool calls that were stored without arguments, and messages that held nothing else.
pub(super) fn drop_calls_without_arguments(messages: &mut Vec<Arc<Message>>) {
    messages.retain_mut(|message| {
        let dropped =
            drop_blocks(message, |block| matches!(block, Block::ToolCall(call) if call.arguments.is_null()));
        !dropped || !matches!(&**message, Message::Assistant(answer) if answer.content.is_empty())
    });
}

/// Drops blocks of an assistant message; tells whether there were any.
pub(super) fn drop_blocks(message: &mut Arc<Message>, is_dropped: impl Fn(&Block) -> bool) -> bool {
    let has_some = matches!(&**message, Message::Assistant(answer) if answer.content.iter().any(&is_dropped));
    if has_some && let Message::Assistant(answer) = Arc::make_mut(message) {
        answer.content.retain(|block| !is_dropped(block));
    }
    has_some
}

/// Merges consecutive messages of one role. A user message that has no answer at all, not even a failed one, thus
/// reaches the model together with the next one.
pub(super) fn merge(messages: &mut Vec<Arc<Message>>, rules: &HistoryRules<'_>) {
    messages.dedup_by(|next, last| {
        let is_merged = match (&**last, &**next) {
            (Message::User(_), Message::User(_)) => true,
            (Message::Assistant(_), Message::Assistant(_)) => rules.merge_assistants,
            _ => false,
        };
        if is_merged {
            match (Arc::make_mut(last), Arc::make_mut(next)) {
                (Message::User(last), Message::User(next)) => join_users(last, next, rules.join),
                (Message::Assistant(last), Message::Assistant(next)) => join_assistants(last, next),
                _ => {}
            }
        }
        is_merged
    });
}

/// Contents joined, the timestamp of the later.
fn join_users(last: &mut UserMessage, next: &mut UserMessage, join: Join) {
    let mut blocks = into_blocks(std::mem::take(&mut last.content));
    let mut more = into_blocks(std::mem::take(&mut next.content));
    if join == Join::BlankLine
        && let (Some(Block::Text(end)), Some(Block::Text(start))) = (blocks.last_mut(), more.first())
    {
        end.text.push_str("\n\n");
        end.text.push_str(&start.text);
        more.remove(0);
    }
    blocks.append(&mut more);
    last.content = UserContent::Blocks(blocks);
    last.timestamp = next.timestamp;
}

fn into_blocks(content: UserContent) -> Vec<Block> {
    match content {
        UserContent::Text(text) => vec![Block::text(text)],
        UserContent::Blocks(blocks) => blocks,
    }
}

/// Contents joined; usage, stop reason and error of the later.
fn join_assistants(last: &mut AssistantMessage, next: &mut AssistantMessage) {
    last.content.append(&mut next.content);
    last.usage = next.usage;
    last.stop_reason = next.stop_reason;
    last.error_message = next.error_message.take();
    last.error_text = next.error_text.take();
    last.timestamp = next.timestamp;
}
