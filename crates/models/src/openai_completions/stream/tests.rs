use serde_json::json;

use super::*;
use crate::answer::tests::{check_stream, failure_of, message_of};
use crate::model_spec::ModelSpec;
use crate::stream::{FailureKind, ModelEvent};

fn spec() -> ModelSpec {
    ModelSpec::sample("local", "llama", "openai-completions")
}

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn sse(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).chain(["data: [DONE]\n\n".to_owned()]).collect()
}

fn content(events: &[ModelEvent]) -> Value {
    serde_json::to_value(message_of(events).content).unwrap()
}

#[test]
fn text_and_usage_arrive() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 120, "completion_tokens": 5, "total_tokens": 125,
        "prompt_tokens_details": {"cached_tokens": 20}}});
    let chunks = [
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"content": "Hel"})),
        delta(json!({"content": "lö", "reasoning": null, "tool_calls": null})),
        finish("stop"),
        usage,
    ];
    let found = check_stream(&spec(), &sse(&chunks));
    let text: Vec<_> = found
        .iter()
        .filter_map(|event| match event {
            ModelEvent::TextDelta { block: 0, delta } => Some(delta.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text, ["Hel", "lö"]);
    let message = message_of(&found);
    let u = message.usage;
    assert_eq!((u.input, u.output, u.cache_read, u.total_tokens), (100, 5, 20, 125));
    assert_eq!((message.stop_reason, message.timestamp), (StopReason::Stop, 7));
}

/// Usage stands beside the answer, which is good whatever its figures are.
#[test]
fn odd_figures_spoil_no_answer() {
    let rows = [
        (json!({"prompt_tokens": 5.0, "completion_tokens": 2}), (5, 2)),
        (json!({"prompt_tokens": 5.5, "completion_tokens": 2}), (5, 2)),
        (json!({"prompt_tokens": -5, "completion_tokens": 2}), (0, 2)),
        (json!({"prompt_tokens": "5", "completion_tokens": 2, "total_tokens": "x"}), (0, 2)),
        (json!([]), (0, 0)),
        (json!("none"), (0, 0)),
    ];
    for (usage, expect) in rows {
        let last = json!({"choices": null, "usage": usage});
        let chunks = [delta(json!({"content": "hello"})), Value::Null, finish("stop"), last];
        let found = check_stream(&spec(), &sse(&chunks));
        let message = message_of(&found);
        assert_eq!((message.text(), message.stop_reason), ("hello".to_owned(), StopReason::Stop), "{usage}");
        assert_eq!((message.usage.input, message.usage.output), expect, "{usage}");
    }
}

#[test]
fn parallel_calls_are_told_apart_by_index_even_when_they_interleave() {
    let piece = |index: u64, text: &str| {
        delta(json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]}))
    };
    let begin = |index: u64, id: &str| {
        delta(
            json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": "read", "arguments": ""}}]}),
        )
    };
    let chunks = [
        begin(0, "a"),
        begin(1, "b"),
        piece(0, "{\"path\""),
        piece(1, "{\"path\""),
        piece(0, ":\"1\"}"),
        piece(1, ":\"2\"}"),
        finish("tool_calls"),
    ];
    let found = check_stream(&spec(), &sse(&chunks));
    assert_eq!(
        content(&found),
        json!([{"type": "toolCall", "id": "a", "name": "read", "arguments": {"path": "1"}},
            {"type": "toolCall", "id": "b", "name": "read", "arguments": {"path": "2"}}])
    );
    assert_eq!(message_of(&found).stop_reason, StopReason::ToolUse);
}

#[test]
fn calls_of_careless_servers_are_understood() {
    let calls =
        |calls: Value| check_stream(&spec(), &sse(&[delta(json!({"tool_calls": calls})), finish("stop")]));
    // No index, no id, arguments as an object, and a finish reason that denies the call.
    let found = calls(json!([{"function": {"name": "x", "arguments": {"a": 1}}}]));
    assert_eq!(
        content(&found),
        json!([{"type": "toolCall", "id": "call_7_0", "name": "x", "arguments": {"a": 1}}])
    );
    assert_eq!(message_of(&found).stop_reason, StopReason::ToolUse);
    // Every call numbered 0.
    let found = calls(json!([{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"}},
        {"index": 0, "id": "b", "function": {"name": "y", "arguments": "{}"}}]));
    let names: Vec<_> = message_of(&found).tool_calls().map(|call| call.name.clone()).collect();
    assert_eq!(names, ["x", "y"]);
    // Told apart by id alone, the id repeated in every piece.
    let chunks = [
        delta(json!({"tool_calls": [{"id": "a", "function": {"name": "x", "arguments": "{\"k\""}}]})),
        delta(json!({"tool_calls": [{"id": "a", "function": {"arguments": ":1}"}}]})),
        delta(json!({"tool_calls": [{"id": "b", "function": {"name": "x"}}]})),
        finish("function_call"),
    ];
    let found = check_stream(&spec(), &sse(&chunks));
    let arguments: Vec<_> = message_of(&found).tool_calls().map(|call| call.arguments.clone()).collect();
    assert_eq!(arguments, [json!({"k": 1}), json!({})]);
}

#[test]
fn arguments_that_never_become_json_are_kept_aside() {
    let chunks = [
        delta(
            json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "exec", "arguments": "{\"command\":\"rm -rf /x"}}]}),
        ),
        finish("length"),
    ];
    let message = message_of(&check_stream(&spec(), &sse(&chunks)));
    let call = message.tool_calls().next().unwrap();
    assert_eq!(call.arguments, json!({}));
    assert_eq!(crate::invalid_arguments(call), Some("{\"command\":\"rm -rf /x"));
    assert_eq!(message.stop_reason, StopReason::Length);
}

#[test]
fn reasoning_is_found_under_each_of_its_names() {
    for field in REASONING_FIELDS {
        let chunks = [
            delta(json!({*field: "h"})),
            delta(json!({*field: "m", "content": null})),
            delta(json!({"content": "so"})),
            delta(json!({*field: "wait"})),
            finish("stop"),
        ];
        assert_eq!(
            content(&check_stream(&spec(), &sse(&chunks))),
            json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": field}, {"type": "text", "text": "so"},
                {"type": "thinking", "thinking": "wait", "thinkingSignature": field}])
        );
    }
    let parts = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "so"}]);
    let found = check_stream(&spec(), &sse(&[delta(json!({"content": parts})), finish("stop")]));
    assert_eq!(
        content(&found),
        json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "so"}])
    );
}

#[test]
fn encrypted_reasoning_is_kept_with_its_call() {
    let detail = json!({"type": "reasoning.encrypted", "id": "a", "data": "blob"});
    let chunks = [
        delta(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"}}],
            "reasoning_details": [detail, {"type": "reasoning.text"}]})),
        finish("tool_calls"),
    ];
    let message = message_of(&check_stream(&spec(), &sse(&chunks)));
    assert_eq!(message.tool_calls().next().unwrap().thought_signature, Some(detail.to_string()));
}

#[test]
fn reasoning_tokens_are_counted_once() {
    let tokens = |total: Value| {
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": total,
            "completion_tokens_details": {"reasoning_tokens": 3}, "prompt_cache_hit_tokens": 4});
        let chunks = [delta(json!({"content": "x"})), finish("stop"), json!({"choices": [], "usage": usage})];
        let usage = message_of(&check_stream(&spec(), &sse(&chunks))).usage;
        (usage.input, usage.cache_read, usage.output)
    };
    assert_eq!(tokens(json!(15)), (6, 4, 5), "the total shows that they are included");
    assert_eq!(tokens(json!(18)), (6, 4, 8), "the total shows that they come on top");
    assert_eq!(tokens(Value::Null), (6, 4, 5));
}

#[test]
fn every_finish_reason_has_its_meaning() {
    let rows = [
        ("stop", StopReason::Stop),
        ("length", StopReason::Length),
        ("tool_calls", StopReason::Stop),
        ("novel", StopReason::Stop),
        ("content_filter", StopReason::Error),
    ];
    for (reason, expect) in rows {
        let chunks = [delta(json!({"content": "x"})), finish(reason)];
        assert_eq!(message_of(&check_stream(&spec(), &sse(&chunks))).stop_reason, expect, "{reason}");
    }
}

#[test]
fn ends_without_done_or_reason_are_told_from_hang_ups() {
    let said = delta(json!({"content": "x"}));
    let no_done = format!("data: {said}\n\ndata: {}\n\n", finish("stop"));
    assert_eq!(message_of(&check_stream(&spec(), &no_done)).stop_reason, StopReason::Stop);
    let no_blank_line = format!("data: {said}\n\ndata: [DONE]");
    assert_eq!(message_of(&check_stream(&spec(), &no_blank_line)).stop_reason, StopReason::Stop);
    let cut = format!("data: {said}\n\ndata: {{\"choices\":[{{\"del");
    let found = check_stream(&spec(), &cut);
    assert_eq!((message_of(&found).text().as_str(), failure_of(&found).kind), ("x", FailureKind::Transient));
    assert!(failure_of(&check_stream(&spec(), "data: [DONE]\n\n")).message.contains("held no answer"));
}

#[test]
fn errors_in_the_stream_are_classified() {
    let error = json!({"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": "slow down"}}});
    let failure = failure_of(&check_stream(&spec(), &sse(&[delta(json!({"content": "x"})), error])));
    assert_eq!(failure.kind, FailureKind::RateLimit);
    assert_eq!((failure.status, failure.message.as_str()), (Some(429), "Provider returned error\nslow down"));
    let text = failure_of(&check_stream(&spec(), "data: {\"error\":\"boom\"}\n\n"));
    assert_eq!((text.kind, text.message.as_str()), (FailureKind::Other, "boom"));
}

#[test]
fn a_whole_completion_is_read_like_a_stream_of_one() {
    let call = json!({"id": "a", "type": "function", "function": {"name": "x", "arguments": "{\"k\":1}"}});
    let document = json!({"choices": [{"message": {"role": "assistant", "content": "hi", "reasoning_content": "hm",
        "tool_calls": [call]}, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 3, "completion_tokens": 4}});
    let found = check_stream(&spec(), &document.to_string());
    assert_eq!(
        content(&found),
        json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": "reasoning_content"}, {"type": "text", "text": "hi"},
            {"type": "toolCall", "id": "a", "name": "x", "arguments": {"k": 1}}])
    );
    let message = message_of(&found);
    assert_eq!((message.stop_reason, message.usage.total_tokens), (StopReason::ToolUse, 7));
    let error =
        failure_of(&check_stream(&spec(), r#"{"error":{"message":"model not found","type":"not_found"}}"#));
    assert_eq!(error.message, "model not found");
}
