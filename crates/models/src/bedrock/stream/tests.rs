#![expect(clippy::needless_pass_by_value, reason = "JSON written in place reads better")]

use openclaw_config::settings::ModelCost;
use serde_json::json;

use serde_json::Value;

use super::*;
use crate::answer::tests::{check_bytes, failure_of, message_of};
use crate::bedrock::event_stream::tests::{event_of, message_of as raw};
use crate::model_spec::ModelSpec;
use crate::stream::ModelEvent;

fn spec() -> ModelSpec {
    let price = ModelCost { input: 1.0, output: 2.0, cache_read: 0.1, cache_write: 1.25 };
    ModelSpec {
        price,
        ..ModelSpec::sample("amazon-bedrock", "anthropic.claude-x", "bedrock-converse-stream")
    }
}

/// An event with the padding Bedrock adds to hide lengths.
fn event(name: &str, mut fields: Value) -> Vec<u8> {
    fields.as_object_mut().unwrap().insert("p".to_owned(), json!("abcdefg"));
    event_of(name, &fields.to_string())
}

fn delta(at: u64, delta: Value) -> Vec<u8> {
    event("contentBlockDelta", json!({"contentBlockIndex": at, "delta": delta}))
}

fn close(at: u64) -> Vec<u8> {
    event("contentBlockStop", json!({"contentBlockIndex": at}))
}

fn call(at: u64, id: &str) -> Vec<u8> {
    let start = json!({"toolUse": {"toolUseId": id, "name": "read"}});
    event("contentBlockStart", json!({"contentBlockIndex": at, "start": start}))
}

fn stop(reason: &str) -> Vec<u8> {
    event("messageStop", json!({"stopReason": reason}))
}

fn metadata() -> Vec<u8> {
    event(
        "metadata",
        json!({"metrics": {"latencyMs": 5}, "usage": {"inputTokens": 100, "outputTokens": 5, "totalTokens": 132,
        "cacheReadInputTokens": 20, "cacheWriteInputTokens": 7}}),
    )
}

fn begin() -> Vec<u8> {
    event("messageStart", json!({"role": "assistant"}))
}

fn content(events: &[ModelEvent]) -> Value {
    serde_json::to_value(message_of(events).content).unwrap()
}

fn check(parts: &[Vec<u8>]) -> Vec<ModelEvent> {
    check_bytes(&spec(), &parts.concat())
}

#[test]
fn a_whole_turn_arrives_with_everything_needed_to_give_it_back() {
    let found = check(&[
        begin(),
        delta(0, json!({"reasoningContent": {"text": "which"}})),
        delta(0, json!({"reasoningContent": {"text": "?"}})),
        delta(0, json!({"reasoningContent": {"signature": "sig"}})),
        close(0),
        delta(1, json!({"reasoningContent": {"redactedContent": "b3BhcXVl"}})),
        close(1),
        delta(2, json!({"text": "Hel"})),
        delta(2, json!({"text": "lö 🦞"})),
        close(2),
        call(3, "tooluse_1"),
        delta(3, json!({"toolUse": {"input": "{\"path\""}})),
        call(4, "tooluse_2"),
        delta(4, json!({"toolUse": {"input": "{\"path\":\"2\"}"}})),
        delta(3, json!({"toolUse": {"input": ":\"1\"}"}})),
        close(3),
        close(4),
        stop("tool_use"),
        metadata(),
    ]);
    assert_eq!(
        content(&found),
        json!([{"type": "thinking", "thinking": "which?", "thinkingSignature": "sig"},
            {"type": "thinking", "thinking": "", "thinkingSignature": "b3BhcXVl", "redacted": true},
            {"type": "text", "text": "Hellö 🦞"},
            {"type": "toolCall", "id": "tooluse_1", "name": "read", "arguments": {"path": "1"}},
            {"type": "toolCall", "id": "tooluse_2", "name": "read", "arguments": {"path": "2"}}])
    );
    let message = message_of(&found);
    let u = message.usage;
    assert_eq!((u.input, u.output, u.cache_read, u.cache_write, u.total_tokens), (100, 5, 20, 7, 132));
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    assert!(matches!(found[0], ModelEvent::Start));
}

#[test]
fn every_end_has_its_meaning() {
    use FailureKind::{Other, Transient};
    let end = |reason: &str| {
        check(&[begin(), delta(0, json!({"text": "half"})), close(0), stop(reason), metadata()])
    };
    let ends = [
        ("end_turn", StopReason::Stop),
        ("stop_sequence", StopReason::Stop),
        // No call is there.
        ("tool_use", StopReason::Stop),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
    ];
    for (reason, expect) in ends {
        assert_eq!(message_of(&end(reason)).stop_reason, expect, "{reason}");
    }
    let rows = [
        ("guardrail_intervened", Other),
        ("content_filtered", Other),
        ("malformed_tool_use", Transient),
        ("something_new", Other),
    ];
    for (reason, kind) in rows {
        let found = end(reason);
        assert_eq!((failure_of(&found).kind, message_of(&found).usage.output), (kind, 5), "{reason}");
        assert!(failure_of(&found).message.contains(reason), "{reason}");
    }
    let untold = check(&[begin(), delta(0, json!({"text": "all"})), stop("end_turn")]);
    assert_eq!((message_of(&untold).stop_reason, message_of(&untold).usage.input), (StopReason::Stop, 0));
}

#[test]
fn an_exception_in_the_stream_ends_the_answer() {
    let throttled = raw(
        &[(":message-type", "exception"), (":exception-type", "throttlingException")],
        "{\"message\":\"Too many tokens, please wait\"}",
    );
    let found = check(&[begin(), delta(0, json!({"text": "half"})), throttled]);
    let failure = failure_of(&found);
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (FailureKind::RateLimit, "Throttling error: Too many tokens, please wait")
    );
    assert_eq!(message_of(&found).text(), "half");
}

#[test]
fn a_stream_that_stops_before_its_end_is_a_failure() {
    let whole = [
        begin(),
        delta(0, json!({"text": "half"})),
        call(1, "a"),
        delta(1, json!({"toolUse": {"input": "{}"}})),
    ];
    let cut = whole.concat();
    for end in [cut.len(), cut.len() - 1] {
        let found = check_bytes(&spec(), &cut[..end]);
        assert!(failure_of(&found).message.contains("hung up"));
        assert_eq!(
            (message_of(&found).text().as_str(), message_of(&found).tool_calls().count()),
            ("half", 0)
        );
    }
}

#[test]
fn a_document_is_heard_all_the_same() {
    let document = json!({"output": {"message": {"role": "assistant", "content": [
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
            {"reasoningContent": {"redactedContent": "cmVk"}},
            {"text": "a"}, {"toolUse": {"toolUseId": "t", "name": "x", "input": {"n": 1}}}]}},
        "stopReason": "tool_use", "usage": {"inputTokens": 3, "outputTokens": 1}});
    let found = check_bytes(&spec(), document.to_string().as_bytes());
    assert_eq!(
        content(&found),
        json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": "s"},
            {"type": "thinking", "thinking": "", "thinkingSignature": "cmVk", "redacted": true},
            {"type": "text", "text": "a"}, {"type": "toolCall", "id": "t", "name": "x", "arguments": {"n": 1}}])
    );
    assert_eq!((message_of(&found).usage.input, message_of(&found).stop_reason), (3, StopReason::ToolUse));
}

#[test]
fn events_that_are_none_are_named_and_unknown_ones_passed_over() {
    let found = check(&[
        begin(),
        event("somethingNew", json!({})),
        delta(0, json!({"image": {}})),
        stop("end_turn"),
        metadata(),
    ]);
    assert_eq!(content(&found), json!([]));
    for name in ["contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"] {
        let failure = failure_of(&check(&[event_of(name, "nonsense")]));
        assert!(failure.kind == FailureKind::Transient && failure.message.contains("nonsense"), "{name}");
    }
}
