use openclaw_protocol::message::{MISSING_RESULT, StopReason, ToolResultMessage, UserMessage};
use serde_json::{Value, json};

use super::*;
use crate::history::{IdRule, prepare};

fn answer(model: &str, stop: StopReason, content: Value) -> Message {
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

fn content(message: &Message) -> Value {
    match message {
        Message::User(m) => json!({"user": m.content}),
        Message::Assistant(m) => json!({"assistant": m.content}),
        Message::ToolResult(m) => {
            json!({"result": m.tool_call_id, "error": m.is_error, "content": m.content})
        }
    }
}

fn prepared(messages: &[Message], rules: &HistoryRules<'_>) -> Value {
    prepare(messages.iter().cloned().map(Into::into).collect(), rules)
        .iter()
        .map(|message| content(message))
        .collect()
}

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn check(messages: &[Message], expect: Value) {
    let rules = HistoryRules::of("anthropic", "anthropic-messages", "claude", IdRule::Anthropic);
    assert_eq!(prepared(messages, &rules), expect);
}

/// The result of a call that has none.
fn missing(id: &str) -> Value {
    json!({"result": id, "error": true, "content": [{"type": "text", "text": MISSING_RESULT}]})
}

#[test]
fn own_reasoning_is_kept_and_foreign_reasoning_becomes_text() {
    let blocks = json!([
        {"type":"thinking","thinking":"","thinkingSignature":"sig"},
        {"type":"thinking","thinking":"  "},
        {"type":"thinking","thinking":"hm"},
        {"type":"text","text":"hi","textSignature":"t"},
        {"type":"toolCall","id":"a-b","name":"x","arguments":{},"thoughtSignature":"s"},
    ]);
    check(
        &[answer("claude", StopReason::ToolUse, blocks.clone())],
        json!([{"assistant":[
            {"type":"thinking","thinking":"","thinkingSignature":"sig"},
            {"type":"thinking","thinking":"hm"},
            {"type":"text","text":"hi","textSignature":"t"},
            {"type":"toolCall","id":"a-b","name":"x","arguments":{},"thoughtSignature":"s"}]}, missing("a-b")]),
    );
    check(
        &[answer("other", StopReason::ToolUse, blocks)],
        json!([{"assistant":[
            {"type":"text","text":"hm"},
            {"type":"text","text":"hi"},
            {"type":"toolCall","id":"a-b","name":"x","arguments":{}}]}, missing("a-b")]),
    );
}

/// The id has a form that no server of this protocol makes, or is missing.
#[test]
fn an_own_id_that_the_provider_refuses_is_rewritten_with_its_result() {
    let call = |id: &str| {
        answer("claude", StopReason::ToolUse, json!([{"type":"toolCall","id":id,"name":"x","arguments":{}}]))
    };
    let called = |id: &str| json!({"assistant":[{"type":"toolCall","id":id,"name":"x","arguments":{}}]});
    check(&[call("a|b")], json!([called("a_b"), missing("a_b")]));
    check(&[call(""), call("")], json!([called("call"), missing("call"), called("cal2"), missing("cal2")]));
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
            missing("a"),
            {"user":[{"type":"text","text":"go on"}]},
            {"assistant": call},
            missing("a")]),
    );
}

/// The author of an answer is checked before neighbours are merged.
#[test]
fn a_merged_answer_keeps_the_proofs_that_are_the_models_own() {
    let by = |model: &str, text: &str| {
        let Message::Assistant(mut said) =
            answer(model, StopReason::Stop, json!([{"type":"text","text":text,"textSignature":"QUJD"}]))
        else {
            unreachable!()
        };
        (said.provider, said.api) = ("google".to_owned(), "google-generative-ai".to_owned());
        Message::Assistant(said)
    };
    let rules = HistoryRules::of("google", "google-generative-ai", "gemini", IdRule::Strict);
    assert_eq!(
        prepared(&[by("other", "a"), by("gemini", "b"), by("other", "c")], &rules),
        json!([{"assistant":[
            {"type":"text","text":"a"},
            {"type":"text","text":"b","textSignature":"QUJD"},
            {"type":"text","text":"c"}]}])
    );
}
