//! Which messages and blocks reach a provider, and how neighbours of one role are merged
//! (spec `agent-runtime.md` §9.2 steps 3, 4, 8, 10).

use openclaw_protocol::message::{AssistantMessage, Block, Message, StopReason, UserContent, UserMessage};

/// How the contents of consecutive user messages become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// As blocks, one after the other.
    Blocks,
    /// As text with a blank line between, for servers that take one text only.
    BlankLine,
}

/// Drops blank text of assistant messages, thought signatures no provider takes back, then messages without content.
pub fn drop_blank(messages: &mut Vec<Message>) {
    for message in messages.iter_mut() {
        if let Message::Assistant(assistant) = message {
            assistant
                .content
                .retain(|block| !matches!(block, Block::Text(text) if text.text.trim().is_empty()));
            assistant.content.iter_mut().for_each(drop_foreign_signature);
        }
    }
    messages.retain(|message| match message {
        Message::Assistant(assistant) => {
            !assistant.content.is_empty() || assistant.stop_reason == StopReason::Error
        }
        Message::User(_) | Message::ToolResult(_) => true,
    });
}

/// `thought_signature` values that begin with `msg_` are another API's message ids.
fn drop_foreign_signature(block: &mut Block) {
    let extra = match block {
        Block::Text(text) => &mut text.extra,
        Block::Thinking(thinking) => &mut thinking.extra,
        Block::ToolCall(call) => &mut call.extra,
        Block::Image(image) => &mut image.extra,
        Block::Other(_) => return,
    };
    let foreign = extra
        .get("thought_signature")
        .and_then(|value| value.as_str())
        .is_some_and(|id| id.starts_with("msg_"));
    if foreign {
        extra.shift_remove("thought_signature");
    }
}

/// Drops tool calls that were stored without arguments, and messages that held nothing else.
pub fn drop_calls_without_arguments(messages: &mut Vec<Message>) {
    messages.retain_mut(|message| {
        let Message::Assistant(assistant) = message else { return true };
        let before = assistant.content.len();
        assistant.content.retain(|block| !matches!(block, Block::ToolCall(call) if call.arguments.is_null()));
        before == assistant.content.len() || !assistant.content.is_empty()
    });
}

/// Leaves out answers that failed or were aborted: no provider is shown them (spec `models.md` §3.1).
pub fn without_failed_answers(messages: Vec<Message>) -> Vec<Message> {
    let failed = |message: &Message| matches!(message, Message::Assistant(a) if matches!(a.stop_reason, StopReason::Error | StopReason::Aborted));
    messages.into_iter().filter(|message| !failed(message)).collect()
}

/// Merges consecutive user messages: contents joined, the timestamp of the later. A message whose answer never came
/// thus reaches the model together with the next one.
pub fn merge_users(messages: Vec<Message>, join: Join) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        match (out.last_mut(), message) {
            (Some(Message::User(last)), Message::User(next)) => join_users(last, next, join),
            (_, message) => out.push(message),
        }
    }
    out
}

fn join_users(last: &mut UserMessage, next: UserMessage, join: Join) {
    let mut blocks = into_blocks(std::mem::take(&mut last.content));
    let mut more = into_blocks(next.content);
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

/// Merges consecutive assistant messages: contents joined; usage, stop reason and error of the later.
pub fn merge_assistants(messages: Vec<Message>) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        match (out.last_mut(), message) {
            (Some(Message::Assistant(last)), Message::Assistant(next)) => join_assistants(last, next),
            (_, message) => out.push(message),
        }
    }
    out
}

fn join_assistants(last: &mut AssistantMessage, next: AssistantMessage) {
    last.content.extend(next.content);
    last.usage = next.usage;
    last.stop_reason = next.stop_reason;
    last.error_message = next.error_message;
    last.error_text = next.error_text;
    last.timestamp = next.timestamp;
}
