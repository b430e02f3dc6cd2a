use openclaw_config::settings::ModelCost;
use openclaw_protocol::message::Block;
use serde_json::json;

use crate::answer::tests::{check_stream, failure_of, message_of};
use crate::model_spec::ModelSpec;

use super::*;

fn spec() -> ModelSpec {
    let mut spec = ModelSpec::sample("anthropic", "claude-opus-4-6", "anthropic-messages");
    spec.price = ModelCost { input: 5.0, output: 25.0, cache_read: 0.5, cache_write: 6.25 };
    spec
}

fn sse(events: &[Value]) -> String {
    events.iter().map(|e| format!("event: {}\ndata: {e}\n\n", e["type"].as_str().unwrap())).collect()
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"usage": {"input_tokens": 100, "cache_creation_input_tokens": 7,
        "cache_read_input_tokens": 11, "output_tokens": 1}}})
}

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn open(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn end(reason: &str) -> [Value; 2] {
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    [
        json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9, "input_tokens": null}}),
        json!({"type": "message_stop"}),
    ]
}

/// The example of `models.md` §4.1.
#[test]
fn text_and_usage_arrive_as_the_spec_shows() {
    let mut events = vec![
        start(),
        json!({"type": "ping"}),
        open(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": "Hel"})),
        delta(0, json!({"type": "text_delta", "text": "lo"})),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "later_event"}),
    ];
    events.extend(end("end_turn"));
    let found = check_stream(&spec(), &sse(&events));
    assert_eq!(found.len(), 4);
    let message = message_of(&found);
    assert_eq!(message.text(), "Hello");
    assert_eq!(message.stop_reason, StopReason::Stop);
    let usage = message.usage;
    assert_eq!(
        (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.total_tokens),
        (100, 9, 11, 7, 127)
    );
    assert!((usage.cost.total - 0.000_774_25).abs() < 1e-12);
}

#[test]
fn reasoning_signatures_and_tool_calls_are_put_together() {
    let mut events = vec![
        start(),
        open(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "h"})),
        delta(0, json!({"type": "thinking_delta", "thinking": "m"})),
        delta(0, json!({"type": "signature_delta", "signature": "si"})),
        delta(0, json!({"type": "signature_delta", "signature": "g"})),
        open(1, json!({"type": "redacted_thinking", "data": "blob"})),
        open(2, json!({"type": "text", "text": ""})),
        open(3, json!({"type": "tool_use", "id": "t1", "name": "read", "input": {}})),
        delta(3, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "{\"pa"})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "th\":\"ä\"}"})),
        json!({"type": "content_block_stop", "index": 3}),
        open(4, json!({"type": "tool_use", "id": "t2", "name": "now", "input": {}})),
        json!({"type": "content_block_stop", "index": 4}),
        open(5, json!({"type": "server_novelty"})),
        delta(5, json!({"type": "novel_delta"})),
    ];
    events.extend(end("tool_use"));
    let message = message_of(&check_stream(&spec(), &sse(&events)));
    let content: Vec<Value> =
        message.content.iter().map(|block| serde_json::to_value(block).unwrap()).collect();
    assert_eq!(
        Value::Array(content),
        json!([
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
            {"type": "thinking", "thinking": "", "thinkingSignature": "blob", "redacted": true},
            {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "ä"}},
            {"type": "toolCall", "id": "t2", "name": "now", "arguments": {}}])
    );
    assert_eq!(message.stop_reason, StopReason::ToolUse);
}

#[test]
fn every_stop_reason_has_its_meaning() {
    let rows = [
        ("end_turn", StopReason::Stop),
        ("pause_turn", StopReason::Stop),
        ("stop_sequence", StopReason::Stop),
        ("max_tokens", StopReason::Length),
        ("tool_use", StopReason::Stop),
        ("novel", StopReason::Stop),
        ("refusal", StopReason::Error),
        ("sensitive", StopReason::Error),
    ];
    for (reason, expect) in rows {
        let mut events = vec![start(), open(0, json!({"type": "text", "text": "x"}))];
        events.extend(end(reason));
        assert_eq!(message_of(&check_stream(&spec(), &sse(&events))).stop_reason, expect, "{reason}");
    }
}

#[test]
fn an_error_in_the_stream_keeps_what_was_said() {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let events = [start(), open(0, json!({"type": "text", "text": "half"})), error.clone()];
    let found = check_stream(&spec(), &sse(&events));
    let failure = failure_of(&found);
    assert_eq!((failure.kind, failure.message), (crate::FailureKind::Transient, error.to_string()));
    let message = message_of(&found);
    assert_eq!((message.text().as_str(), message.usage.input), ("half", 100));
}

#[test]
fn a_hang_up_in_half_a_tool_call_drops_the_call() {
    let events = [
        start(),
        open(0, json!({"type": "text", "text": "let me"})),
        open(1, json!({"type": "tool_use", "id": "t", "name": "exec", "input": {}})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{\"command\":\"rm -rf /tmp/"})),
    ];
    let found = check_stream(&spec(), &sse(&events));
    assert_eq!(message_of(&found).content, [Block::text("let me")]);
    assert!(failure_of(&found).message.contains("hung up"));
}

#[test]
fn a_whole_message_is_read_like_a_stream_of_one() {
    let document = json!({"type": "message", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "hi"},
            {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "x"}}],
        "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 4}});
    let message = message_of(&check_stream(&spec(), &document.to_string()));
    assert_eq!(
        (message.text().as_str(), message.stop_reason, message.usage.total_tokens),
        ("hi", StopReason::ToolUse, 7)
    );
    assert_eq!(message.tool_calls().next().unwrap().arguments, json!({"path": "x"}));
    let error = json!({"type": "error", "error": {"type": "authentication_error", "message": "no"}});
    assert_eq!(failure_of(&check_stream(&spec(), &error.to_string())).kind, crate::FailureKind::Auth);
}

/// Each is what some server or gateway sends.
#[test]
fn careless_blocks_lose_no_words() {
    let text = |index: Value, text: &str| json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}});
    let thinking = open(0, json!({"type": "thinking", "thinking": ""}));
    let thought = delta(0, json!({"type": "thinking_delta", "thinking": "hm"}));
    let rows = [
        ("thoughts and text in one block", vec![thinking, thought, text(json!(0), "DONE-OK")]),
        ("no index", vec![open(0, json!({"type": "text", "text": ""})), text(Value::Null, "DONE-OK")]),
        ("the index as text", vec![open(0, json!({"type": "text"})), text(json!("0"), "DONE-OK")]),
        (
            "a block that does not say what it is",
            vec![open(0, json!({"type": 7})), text(json!(0), "DONE-OK")],
        ),
        ("no beginning of the block", vec![text(json!(3), "DONE-OK")]),
    ];
    for (what, said) in rows {
        let events = [vec![start()], said, end("end_turn").to_vec()].concat();
        let message = message_of(&check_stream(&spec(), &sse(&events)));
        assert_eq!((message.text().as_str(), message.stop_reason), ("DONE-OK", StopReason::Stop), "{what}");
    }
    let ping = format!(
        "event: ping\ndata:\n\n{}",
        sse(&[start(), text(json!(0), "DONE-OK"), end("end_turn")[1].clone()])
    );
    assert_eq!(message_of(&check_stream(&spec(), &ping)).text(), "DONE-OK");
}

#[test]
fn an_input_that_is_no_object_is_an_empty_one_or_is_read() {
    let rows = [
        (json!(""), json!({})),
        (json!("{\"a\":1}"), json!({"a": 1})),
        (json!({"a": 1}), json!({"a": 1})),
        (Value::Null, json!({})),
    ];
    for (input, expect) in rows {
        let block = open(0, json!({"type": "tool_use", "id": "t", "name": "now", "input": input}));
        let events = [vec![start(), block], end("tool_use").to_vec()].concat();
        let message = message_of(&check_stream(&spec(), &sse(&events)));
        let call = message.tool_calls().next().unwrap();
        assert_eq!((&call.arguments, crate::invalid_arguments(call)), (&expect, None), "{input}");
    }
}
