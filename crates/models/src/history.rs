//! Makes a conversation ready for one model, whoever spoke in it before (spec `models.md` §3.1).

use std::borrow::Cow;

use openclaw_protocol::message::{
    AssistantMessage, Block, Message, StopReason, TextBlock, ThinkingBlock, ToolCall, ToolResultMessage,
};

use crate::catalog::ModelSpec;
use crate::tool_id::{IdMap, IdRule};

/// Text of the result that stands in for one that never came.
const NO_RESULT: &str = "No result provided";

/// The messages as `spec`'s model should see them: failed answers left out, foreign reasoning turned to text, tool call
/// ids rewritten, every call answered.
pub(crate) fn for_model<'a>(
    messages: &'a [Message],
    spec: &ModelSpec,
    rule: IdRule,
) -> Vec<Cow<'a, Message>> {
    answer_every_call(translate(messages, spec, rule))
}

fn translate<'a>(messages: &'a [Message], spec: &ModelSpec, rule: IdRule) -> Vec<Cow<'a, Message>> {
    let mut ids = IdMap::new(rule);
    let mut out = Vec::with_capacity(messages.len());
    for message in messages {
        match message {
            Message::User(_) => out.push(Cow::Borrowed(message)),
            // Half an answer would be continued as if it had been meant.
            Message::Assistant(answer)
                if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) => {}
            Message::Assistant(answer) if is_own(answer, spec) => {
                answer.tool_calls().for_each(|call| ids.own_call(&call.id));
                out.push(match answer.content.iter().all(is_kept) {
                    true => Cow::Borrowed(message),
                    false => {
                        let content = answer.content.iter().filter(|block| is_kept(block)).cloned().collect();
                        Cow::Owned(Message::Assistant(AssistantMessage { content, ..answer.clone() }))
                    }
                });
            }
            Message::Assistant(answer) => {
                let content = answer.content.iter().filter_map(|block| translate_block(block, &mut ids));
                let content = content.collect();
                out.push(Cow::Owned(Message::Assistant(AssistantMessage { content, ..answer.clone() })));
            }
            Message::ToolResult(result) => out.push(match ids.result(&result.tool_call_id) {
                None => Cow::Borrowed(message),
                Some(id) => {
                    let result = ToolResultMessage { tool_call_id: id.to_owned(), ..result.clone() };
                    Cow::Owned(Message::ToolResult(result))
                }
            }),
        }
    }
    out
}

fn is_own(answer: &AssistantMessage, spec: &ModelSpec) -> bool {
    answer.provider == spec.provider() && answer.api == spec.api.as_str() && answer.model == spec.id()
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
fn translate_block<'a>(block: &'a Block, ids: &mut IdMap<'a>) -> Option<Block> {
    match block {
        Block::Thinking(thinking) if thinking.thinking.trim().is_empty() => None,
        Block::Thinking(ThinkingBlock { thinking: text, .. }) | Block::Text(TextBlock { text, .. }) => {
            Some(Block::text(text.clone()))
        }
        Block::ToolCall(call) => Some(Block::ToolCall(ToolCall {
            id: ids.call(&call.id),
            thought_signature: None,
            ..call.clone()
        })),
        Block::Image(_) => Some(block.clone()),
        Block::Other(_) => None,
    }
}

/// Gives calls without a result one, before the next user or assistant message. Calls at the very end wait for theirs.
/// Results without a call, as after an answer that was left out, are left out too: every provider refuses them.
fn answer_every_call(messages: Vec<Cow<'_, Message>>) -> Vec<Cow<'_, Message>> {
    let mut out = Vec::with_capacity(messages.len());
    let mut open: Vec<ToolResultMessage> = Vec::new();
    for message in messages {
        match &*message {
            Message::ToolResult(result) => {
                let Some(at) = open.iter().position(|missing| missing.tool_call_id == result.tool_call_id)
                else {
                    continue;
                };
                open.remove(at);
            }
            Message::User(_) | Message::Assistant(_) => {
                out.extend(open.drain(..).map(|missing| Cow::Owned(Message::ToolResult(missing))));
            }
        }
        if let Message::Assistant(answer) = &*message {
            open.extend(answer.tool_calls().map(|call| no_result(call, answer.timestamp)));
        }
        out.push(message);
    }
    out
}

fn no_result(call: &ToolCall, timestamp: i64) -> ToolResultMessage {
    ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
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
        let found: Vec<_> =
            for_model(messages, &spec, IdRule::Anthropic).iter().map(|message| content(message)).collect();
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

    /// Spec `models.md` §3.1.
    #[test]
    fn only_the_same_provider_api_and_model_gets_its_thoughts_back() {
        let rows = [
            ("anthropic", "anthropic-messages", "claude", "thinking"),
            ("anthropic", "openai-completions", "claude", "text"),
            ("openrouter", "anthropic-messages", "claude", "text"),
            ("anthropic", "anthropic-messages", "other", "text"),
        ];
        for (provider, api, model, kind) in rows {
            let said = Message::Assistant(AssistantMessage {
                content: serde_json::from_value(json!([{"type":"thinking","thinking":"hm"}])).unwrap(),
                api: api.to_owned(),
                provider: provider.to_owned(),
                model: model.to_owned(),
                ..AssistantMessage::default()
            });
            check(&[said], json!([{"assistant":[{"type":kind, kind:"hm"}]}]));
        }
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
