//! Answers of other models as this one is shown them (spec `models.md` §3.1), and ids of calls as it takes them.

use std::sync::Arc;

use openclaw_protocol::message::{AssistantMessage, Block, Message};

use super::call_ids::IdMap;
use super::roles::drop_blocks;
use super::rules::HistoryRules;
use crate::parts::CALL_FIELDS;

/// Translates every answer, and renames calls and their results alike.
pub(super) fn translate(messages: &mut [Arc<Message>], rules: &HistoryRules<'_>, ids: &mut IdMap<'_>) {
    for message in messages {
        match &**message {
            Message::User(_) => {}
            Message::Assistant(answer) if is_own(answer, rules) => {
                if rules.ids.keeps_own() && answer.tool_calls().all(|call| rules.ids.takes(&call.id)) {
                    answer.tool_calls().for_each(|call| ids.keep(&call.id));
                } else {
                    rename_calls(message, |id| ids.call(id));
                }
                drop_blocks(message, |block| !is_kept(block));
            }
            Message::Assistant(_) => {
                if let Message::Assistant(answer) = Arc::make_mut(message) {
                    let content = std::mem::take(&mut answer.content);
                    answer.content =
                        content.into_iter().filter_map(|block| translate_block(block, ids)).collect();
                }
            }
            Message::ToolResult(result) => {
                let renamed = ids.result(&result.tool_call_id).map(str::to_owned);
                if let Some(renamed) = renamed
                    && let Message::ToolResult(result) = Arc::make_mut(message)
                {
                    result.tool_call_id = renamed;
                }
            }
        }
    }
}

/// Renames the calls of an answer.
fn rename_calls(message: &mut Arc<Message>, mut rename: impl FnMut(&mut String)) {
    let has_calls = matches!(&**message, Message::Assistant(answer) if answer.tool_calls().next().is_some());
    if has_calls && let Message::Assistant(answer) = Arc::make_mut(message) {
        for block in &mut answer.content {
            if let Block::ToolCall(call) = block {
                rename(&mut call.id);
            }
        }
    }
}

fn is_own(answer: &AssistantMessage, rules: &HistoryRules<'_>) -> bool {
    rules.model == (answer.provider.as_str(), answer.api.as_str(), answer.model.as_str())
}

/// Returns true if the model that wrote a block gets it back: all blocks but empty thoughts without
/// signature, and unknown ones.
fn is_kept(block: &Block) -> bool {
    match block {
        Block::Thinking(thinking) => {
            let signature = thinking.thinking_signature.as_deref();
            signature.is_some_and(|signature| !signature.is_empty()) || !thinking.thinking.trim().is_empty()
        }
        Block::Text(_) | Block::ToolCall(_) | Block::Image(_) => true,
        Block::Other(_) => false,
    }
}

/// A block as another model is shown it.
fn translate_block(block: Block, ids: &mut IdMap<'_>) -> Option<Block> {
    match block {
        Block::Thinking(thinking) if thinking.thinking.trim().is_empty() => None,
        Block::Thinking(thinking) => Some(Block::text(thinking.thinking)),
        Block::Text(text) => Some(Block::text(text.text)),
        Block::ToolCall(mut call) => {
            ids.call(&mut call.id);
            call.thought_signature = None;
            call.extra.shift_remove(CALL_FIELDS);
            Some(Block::ToolCall(call))
        }
        Block::Image(_) => Some(block),
        Block::Other(_) => None,
    }
}

#[cfg(test)]
mod tests;
