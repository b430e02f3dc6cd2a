//! Makes a conversation ready for one model, whoever spoke in it before (spec `models.md` §3.1).

use openclaw_protocol::message::{
    AssistantMessage, Block, Message, StopReason, TextBlock, ThinkingBlock, ToolCall, ToolResultMessage,
};

use crate::catalog::ModelSpec;
use crate::tool_id::{IdMap, IdRule};

/// Text of the result that stands in for one that never came.
const NO_RESULT: &str = "No result provided";

/// The messages as `spec`'s model should see them: failed answers left out, foreign reasoning turned to text, tool call
/// ids rewritten, every call answered.
pub(crate) fn for_model(messages: &[Message], spec: &ModelSpec, rule: IdRule) -> Vec<Message> {
    answer_every_call(translate(messages, spec, rule))
}

fn translate(messages: &[Message], spec: &ModelSpec, rule: IdRule) -> Vec<Message> {
    let mut ids = IdMap::new(rule);
    let mut out = Vec::with_capacity(messages.len());
    for message in messages {
        match message {
            Message::User(user) => out.push(Message::User(user.clone())),
            // Half an answer would be continued as if it had been meant.
            Message::Assistant(answer)
                if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) => {}
            Message::Assistant(answer) => {
                out.push(Message::Assistant(translate_answer(answer, spec, &mut ids)))
            }
            Message::ToolResult(result) => {
                let mut result = result.clone();
                result.tool_call_id = ids.result(&result.tool_call_id);
                out.push(Message::ToolResult(result));
            }
        }
    }
    out
}

fn translate_answer(answer: &AssistantMessage, spec: &ModelSpec, ids: &mut IdMap) -> AssistantMessage {
    let own =
        answer.provider == spec.provider() && answer.api == spec.api.as_str() && answer.model == spec.id();
    let content = answer
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Thinking(thinking) => translate_thinking(thinking, own),
            Block::Text(text) if !own => Some(Block::text(text.text.clone())),
            Block::ToolCall(call) if !own => Some(Block::ToolCall(ToolCall {
                id: ids.call(&call.id),
                thought_signature: None,
                ..call.clone()
            })),
            Block::ToolCall(call) => {
                ids.own_call(&call.id);
                Some(block.clone())
            }
            Block::Text(_) | Block::Image(_) => Some(block.clone()),
            Block::Other(_) => None,
        })
        .collect();
    AssistantMessage { content, ..answer.clone() }
}

fn translate_thinking(thinking: &ThinkingBlock, own: bool) -> Option<Block> {
    let signed = thinking.thinking_signature.as_deref().is_some_and(|signature| !signature.is_empty());
    let empty = thinking.thinking.trim().is_empty();
    if own && signed {
        Some(Block::Thinking(thinking.clone()))
    } else if empty {
        None
    } else if own {
        Some(Block::Thinking(thinking.clone()))
    } else {
        Some(Block::Text(TextBlock { text: thinking.thinking.clone(), ..TextBlock::default() }))
    }
}

/// Gives calls without a result one, before the next user or assistant message. Calls at the very end wait for theirs.
/// Results without a call, as after an answer that was left out, are left out too: every provider refuses them.
fn answer_every_call(messages: Vec<Message>) -> Vec<Message> {
    let mut out = Vec::with_capacity(messages.len());
    let mut open: Vec<(ToolCall, i64)> = Vec::new();
    for message in messages {
        match &message {
            Message::ToolResult(result) => {
                let Some(at) = open.iter().position(|(call, _)| call.id == result.tool_call_id) else {
                    continue;
                };
                open.remove(at);
            }
            Message::User(_) | Message::Assistant(_) => {
                let unanswered = open.drain(..).map(|(call, timestamp)| no_result(call, timestamp));
                out.extend(unanswered.map(Message::ToolResult));
            }
        }
        if let Message::Assistant(answer) = &message {
            open.extend(answer.tool_calls().map(|call| (call.clone(), answer.timestamp)));
        }
        out.push(message);
    }
    out
}

fn no_result(call: ToolCall, timestamp: i64) -> ToolResultMessage {
    ToolResultMessage {
        tool_call_id: call.id,
        tool_name: call.name,
        content: vec![Block::text(NO_RESULT)],
        is_error: true,
        timestamp,
        ..ToolResultMessage::default()
    }
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::UserMessage;
    use serde_json::json;

    use super::*;

    fn answer(model: &str, stop: StopReason, content: serde_json::Value) -> Message {
        Message::Assistant(AssistantMessage {
            content: serde_json::from_value(content).unwrap(),
            api: "anthropic-messages".to_owned(),
            provider: "anthropic".to_owned(),
            model: model.to_owned(),
            stop_reason: stop,
            timestamp: 5,
            ..AssistantMessage::default()
        })
    }

    fn content(message: &Message) -> serde_json::Value {
        match message {
            Message::User(m) => json!({"user": m.content}),
            Message::Assistant(m) => json!({"assistant": m.content}),
            Message::ToolResult(m) => {
                json!({"result": m.tool_call_id, "error": m.is_error, "content": m.content})
            }
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
    fn check(messages: &[Message], expect: serde_json::Value) {
        let spec = ModelSpec::sample("anthropic", "claude", "anthropic-messages");
        let found: Vec<_> = for_model(messages, &spec, IdRule::Anthropic).iter().map(content).collect();
        assert_eq!(serde_json::Value::Array(found), expect);
    }

    #[test]
    fn own_reasoning_is_kept_and_foreign_reasoning_becomes_text() {
        let blocks = json!([
            {"type":"thinking","thinking":"","thinkingSignature":"sig"},
            {"type":"thinking","thinking":"  "},
            {"type":"thinking","thinking":"hm"},
            {"type":"text","text":"hi","textSignature":"t"},
            {"type":"toolCall","id":"a|b","name":"x","arguments":{},"thoughtSignature":"s"},
        ]);
        check(
            &[answer("claude", StopReason::ToolUse, blocks.clone())],
            json!([{"assistant":[
                {"type":"thinking","thinking":"","thinkingSignature":"sig"},
                {"type":"thinking","thinking":"hm"},
                {"type":"text","text":"hi","textSignature":"t"},
                {"type":"toolCall","id":"a|b","name":"x","arguments":{},"thoughtSignature":"s"}]}]),
        );
        check(
            &[answer("other", StopReason::ToolUse, blocks)],
            json!([{"assistant":[
                {"type":"text","text":"hm"},
                {"type":"text","text":"hi"},
                {"type":"toolCall","id":"a_b","name":"x","arguments":{}}]}]),
        );
    }

    #[test]
    fn results_follow_the_new_id_of_their_call() {
        let call = json!([{"type":"toolCall","id":"a|b","name":"x","arguments":{}}]);
        let result = Message::ToolResult(ToolResultMessage {
            tool_call_id: "a|b".to_owned(),
            content: vec![Block::text("ok")],
            ..ToolResultMessage::default()
        });
        check(
            &[answer("other", StopReason::ToolUse, call), result],
            json!([
                {"assistant":[{"type":"toolCall","id":"a_b","name":"x","arguments":{}}]},
                {"result":"a_b","error":false,"content":[{"type":"text","text":"ok"}]}]),
        );
    }

    #[test]
    fn failed_answers_are_left_out_and_open_calls_are_answered() {
        let call = json!([{"type":"toolCall","id":"a","name":"x","arguments":{}}]);
        let user = Message::User(UserMessage::text("go on", 6));
        let orphan =
            Message::ToolResult(ToolResultMessage { tool_call_id: "a".to_owned(), ..Default::default() });
        check(
            &[
                answer("claude", StopReason::Error, json!([{"type":"text","text":"half"}])),
                answer("claude", StopReason::Aborted, call.clone()),
                orphan,
                answer("claude", StopReason::ToolUse, call.clone()),
                user,
                answer("claude", StopReason::ToolUse, call.clone()),
            ],
            json!([
                {"assistant": call},
                {"result":"a","error":true,"content":[{"type":"text","text":"No result provided"}]},
                {"user":[{"type":"text","text":"go on"}]},
                {"assistant": call}]),
        );
    }
}
