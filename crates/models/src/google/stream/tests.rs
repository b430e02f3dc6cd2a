#![expect(clippy::needless_pass_by_value, reason = "JSON written in place reads better")]

use openclaw_config::settings::ModelCost;
use serde_json::json;

use super::*;
use crate::answer::tests::{check_stream, failure_of, message_of};
use crate::model_spec::ModelSpec;
use crate::replay::replay;
use crate::stream::ModelEvent;

fn spec() -> ModelSpec {
    let price = ModelCost { input: 1.0, output: 2.0, cache_read: 0.1, cache_write: 0.0 };
    ModelSpec { price, ..ModelSpec::sample("google", "gemini-3-pro-preview", "google-generative-ai") }
}

fn data(chunk: Value) -> String {
    format!("data: {chunk}\r\n\r\n")
}

fn parts(parts: Value) -> String {
    data(json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
        "usageMetadata": {"promptTokenCount": 120, "totalTokenCount": 120}, "modelVersion": "m"}))
}

fn finish(reason: &str) -> String {
    data(
        json!({"candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": reason}],
        "usageMetadata": {"promptTokenCount": 120, "candidatesTokenCount": 5, "thoughtsTokenCount": 3,
            "cachedContentTokenCount": 20, "totalTokenCount": 128}}),
    )
}

fn content(events: &[ModelEvent]) -> Value {
    serde_json::to_value(message_of(events).content).unwrap()
}

#[test]
fn a_whole_turn_arrives_with_everything_needed_to_give_it_back() {
    let body = [
        parts(json!([{"text": "**Which", "thought": true}])),
        parts(json!([{"text": "** file?", "thought": true, "thoughtSignature": "VEhJTks="}])),
        parts(json!([{"text": "Hel"}])),
        parts(json!([{"text": "lö 🦞", "thoughtSignature": "VEVYVA=="}])),
        parts(
            json!([{"functionCall": {"name": "read", "args": {"path": "1"}}, "thoughtSignature": "Q0FMTA=="},
            {"functionCall": {"name": "read", "args": {"path": "2"}, "id": "given"}},
            {"functionCall": {"name": "read", "args": {}, "id": "given"}},
            {"functionCall": {"name": "list"}}]),
        ),
        finish("STOP"),
    ];
    let found = check_stream(&spec(), &body.concat());
    assert_eq!(
        content(&found),
        json!([{"type": "thinking", "thinking": "**Which** file?", "thinkingSignature": "VEhJTks="},
            {"type": "text", "text": "Hellö 🦞", "textSignature": "VEVYVA=="},
            {"type": "toolCall", "id": "read_7_1", "name": "read", "arguments": {"path": "1"}, "thoughtSignature": "Q0FMTA=="},
            {"type": "toolCall", "id": "given", "name": "read", "arguments": {"path": "2"}},
            {"type": "toolCall", "id": "read_7_3", "name": "read", "arguments": {}},
            {"type": "toolCall", "id": "list_7_4", "name": "list", "arguments": {}}])
    );
    let message = message_of(&found);
    let u = message.usage;
    assert_eq!((u.input, u.output, u.cache_read, u.total_tokens), (100, 8, 20, 128));
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    assert!(matches!(found[0], ModelEvent::Start));
}

#[test]
fn a_proof_that_comes_alone_belongs_to_the_text_before_it() {
    let proof =
        data(json!({"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": "QUJD"}]},
        "finishReason": "STOP"}]}));
    let found = check_stream(&spec(), &[parts(json!([{"text": "hi"}])), proof.clone()].concat());
    assert_eq!(content(&found), json!([{"type": "text", "text": "hi", "textSignature": "QUJD"}]));
    let found = check_stream(&spec(), &[parts(json!([{"text": "hm", "thought": true}])), proof].concat());
    assert_eq!(
        content(&found),
        json!([{"type": "thinking", "thinking": "hm"}]),
        "it is no proof of a thought"
    );
}

#[test]
fn tokens_told_after_the_end_count() {
    let body = [
        data(json!({"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]})),
        data(json!({"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 1}})),
    ];
    let found = check_stream(&spec(), &body.concat());
    assert_eq!((message_of(&found).usage.input, message_of(&found).text().as_str()), (9, "hi"));
    for last in ["", "data: [DONE]\n\n"] {
        let found = check_stream(&spec(), &(body[0].clone() + last));
        assert_eq!((message_of(&found).stop_reason, message_of(&found).usage.input), (StopReason::Stop, 0));
    }
}

#[test]
fn every_end_has_its_meaning() {
    use FailureKind::{Other, Transient};
    let end =
        |reason: &str| check_stream(&spec(), &[parts(json!([{"text": "half"}])), finish(reason)].concat());
    assert_eq!(message_of(&end("STOP")).stop_reason, StopReason::Stop);
    assert_eq!(message_of(&end("MAX_TOKENS")).stop_reason, StopReason::Length);
    let rows = [
        ("SAFETY", Other),
        ("RECITATION", Other),
        ("OTHER", Other),
        ("MALFORMED_FUNCTION_CALL", Transient),
        ("SOMETHING_NEW", Other),
    ];
    for (reason, kind) in rows {
        let found = end(reason);
        assert_eq!(failure_of(&found).kind, kind, "{reason}");
        assert!(failure_of(&found).message.contains(reason), "{reason}");
        assert_eq!(
            (message_of(&found).text().as_str(), message_of(&found).usage.output),
            ("half", 8),
            "{reason}"
        );
    }
    let blocked = data(
        json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 4}}),
    );
    let found = check_stream(&spec(), &blocked);
    assert!(failure_of(&found).message.contains("refused to answer this request (PROHIBITED_CONTENT)"));
}

#[test]
fn an_error_inside_the_stream_is_told_by_its_name() {
    let error = |status: &str, code: u64| {
        let error = data(json!({"error": {"code": code, "message": "m", "status": status}}));
        failure_of(&check_stream(&spec(), &[parts(json!([{"text": "half"}])), error].concat()))
    };
    let busy = error("UNAVAILABLE", 503);
    assert_eq!((busy.kind, busy.message.as_str()), (FailureKind::Transient, "503 UNAVAILABLE: m"));
    assert_eq!(error("RESOURCE_EXHAUSTED", 429).kind, FailureKind::RateLimit);
}

#[test]
fn a_stream_that_stops_before_its_end_is_a_failure() {
    let found = check_stream(&spec(), &parts(json!([{"text": "half"}])));
    let failure = failure_of(&found);
    assert_eq!(failure.kind, FailureKind::Transient);
    assert!(failure.message.contains("hung up"), "{}", failure.message);
    assert_eq!(message_of(&found).text(), "half");
}

#[test]
fn a_document_or_a_list_of_them_is_heard_all_the_same() {
    let one = json!({"candidates": [{"content": {"parts": [{"text": "a"}, {"functionCall": {"name": "x", "args": {"n": 1}}}]},
        "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1}});
    let expect = json!([{"type": "text", "text": "a"},
        {"type": "toolCall", "id": "x_7_1", "name": "x", "arguments": {"n": 1}}]);
    for document in [one.to_string(), json!([one]).to_string()] {
        let found = check_stream(&spec(), &document);
        assert_eq!((content(&found), message_of(&found).usage.input), (expect.clone(), 3));
    }
    for none in ["[]", "[1]", "{\"candidates\": 1}", "{\"candidates\": []}"] {
        assert_eq!(failure_of(&check_stream(&spec(), none)).kind, FailureKind::Transient, "{none}");
    }
}

#[test]
fn calls_whose_arguments_are_no_object_are_not_run() {
    for args in [json!([1]), json!("x"), json!(7)] {
        let body =
            [parts(json!([{"functionCall": {"name": "exec", "args": args}}])), finish("STOP")].concat();
        let message = message_of(&replay(&spec(), 7, [body.as_bytes()]).unwrap());
        let call = message.tool_calls().next().unwrap();
        assert!(crate::arguments::invalid_arguments(call).is_some(), "{args}");
    }
}
