//! Answers of other models as this one is shown them (spec `models.md` §3.1), and ids of calls as it takes them.

use openclaw_protocol::message::{AssistantMessage, Block, Message};

use super::call_ids::IdMap;
use super::rules::Rules;

/// Translates every answer, and renames calls and their results alike.
pub(super) fn translate(messages: &mut [Message], rules: &Rules<'_>) {
    let mut ids = IdMap::new(rules.ids);
    // Ids must differ from each other only where some are made up.
    let keeps_ids = rules.ids.keeps_own()
        && messages.iter().all(|message| match message {
            Message::Assistant(answer) => is_own(answer, rules),
            Message::User(_) | Message::ToolResult(_) => true,
        });
    for message in messages {
        match message {
            Message::User(_) => {}
            Message::Assistant(answer) if keeps_ids => answer.content.retain(is_kept),
            Message::Assistant(answer) if is_own(answer, rules) => {
                answer.content.retain(is_kept);
                answer.content.iter_mut().for_each(|block| {
                    if let Block::ToolCall(call) = block {
                        ids.own_call(&mut call.id);
                    }
                });
            }
            Message::Assistant(answer) => {
                let content = std::mem::take(&mut answer.content);
                answer.content =
                    content.into_iter().filter_map(|block| translate_block(block, &mut ids)).collect();
            }
            Message::ToolResult(result) => ids.result(&mut result.tool_call_id),
        }
    }
}

fn is_own(answer: &AssistantMessage, rules: &Rules<'_>) -> bool {
    rules.model == (answer.provider.as_str(), answer.api.as_str(), answer.model.as_str())
}

/// Whether the model that wrote a block gets it back: all but empty thoughts without proof, and what nobody knows.
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
fn translate_block(block: Block, ids: &mut IdMap) -> Option<Block> {
    match block {
        Block::Thinking(thinking) if thinking.thinking.trim().is_empty() => None,
        Block::Thinking(thinking) => Some(Block::text(thinking.thinking)),
        Block::Text(text) => Some(Block::text(text.text)),
        Block::ToolCall(mut call) => {
            ids.call(&mut call.id);
            call.thought_signature = None;
            Some(Block::ToolCall(call))
        }
        Block::Image(_) => Some(block),
        Block::Other(_) => None,
    }
}

#[cfg(test)]
mod tests;
