use openclaw_protocol::message::ToolCall;
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
        (json!({"prompt_tokens": "5", "completion_tokens": 2, "total_tokens": "x"}), (5, 2)),
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

/// Moonshot counts cached tokens beside the others, not among their details.
#[test]
fn cached_tokens_are_counted_wherever_they_are_told() {
    let rows = [
        json!({"cached_tokens": 800}),
        json!({"prompt_cache_hit_tokens": 800}),
        json!({"prompt_tokens_details": {"cached_tokens": 800}}),
        json!({"cached_tokens": 800, "prompt_tokens_details": {"cached_tokens": 0}}),
    ];
    for mut usage in rows {
        (usage["prompt_tokens"], usage["completion_tokens"]) = (json!(1000), json!(5));
        let chunks = [delta(json!({"content": "x"})), finish("stop"), json!({"choices": [], "usage": usage})];
        let counted = message_of(&check_stream(&spec(), &sse(&chunks))).usage;
        assert_eq!((counted.input, counted.cache_read), (200, 800), "{usage}");
    }
}

/// Calls as `id name arguments`, of the pieces in which they came. `*` stands for an id that we made.
#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn calls_of(pieces: Value) -> Vec<String> {
    let chunks: Vec<Value> = pieces
        .as_array()
        .unwrap()
        .iter()
        .map(|piece| delta(json!({"tool_calls": piece})))
        .chain([finish("tool_calls")])
        .collect();
    let message = message_of(&check_stream(&spec(), &sse(&chunks)));
    let id = |id: &str| if id.starts_with("call_7_") { "*".to_owned() } else { id.to_owned() };
    let row = |call: &ToolCall| format!("{} {} {}", id(&call.id), call.name, call.arguments);
    message.tool_calls().map(row).collect()
}

/// Each row is what some server sends.
#[test]
fn pieces_of_calls_are_put_together_as_they_are_meant() {
    let read = "{\"path\":\"a\"}";
    let other = "{\"path\":\"b\"}";
    let one = &["c1 read {\"path\":\"a\"}"][..];
    let made = &["* read {\"path\":\"a\"}"][..];
    let two = &["* read {\"path\":\"a\"}", "* read {\"path\":\"b\"}"][..];
    let f = |name: Value, arguments: &str| json!({"name": name, "arguments": arguments});
    let rows: Vec<(&str, Value, &[&str])> = vec![
        (
            "the name comes later",
            json!([[{"index": 0, "id": "c1", "function": {"arguments": ""}}],
            [{"index": 0, "function": {"name": "read"}}], [{"index": 0, "function": {"arguments": read}}]]),
            one,
        ),
        (
            "empty, then named",
            json!([[{"index": 0, "id": "c1", "function": f(json!(""), "")}],
            [{"index": 0, "id": "", "function": f(json!("read"), "")}],
            [{"index": 0, "id": "", "function": f(json!(""), read)}]]),
            one,
        ),
        (
            "null, then named under the same id",
            json!([[{"index": 0, "id": "c1", "function": {"name": null, "arguments": null}}],
            [{"index": 0, "id": "c1", "function": f(json!("read"), read)}]]),
            one,
        ),
        (
            "arguments first",
            json!([[{"index": 0, "function": {"arguments": "{\"pa"}}],
            [{"index": 0, "id": "c1", "function": f(json!("read"), "th\":")}],
            [{"index": 0, "function": {"arguments": "\"a\"}"}}]]),
            one,
        ),
        (
            "the id second, the name again",
            json!([[{"index": 0, "function": f(json!("read"), "")}],
            [{"index": 0, "id": "c1", "function": f(json!("read"), read)}]]),
            one,
        ),
        (
            "neither index nor id",
            json!([[{"function": f(json!("read"), read)}, {"function": f(json!("read"), other)}]]),
            two,
        ),
        (
            "neither index nor id, no arguments",
            json!([[{"function": f(json!("x"), "")}, {"function": f(json!("y"), "")}]]),
            &["* x {}", "* y {}"],
        ),
        (
            "the name in parts",
            json!([[{"index": 0, "id": "c1", "function": f(json!("re"), "")}],
            [{"index": 0, "function": f(json!("ad"), read)}]]),
            one,
        ),
        (
            "the name with each piece",
            json!([[{"index": 0, "id": "c1", "function": f(json!("read"), "{\"path\"")}],
            [{"index": 0, "id": "c1", "function": f(json!("read"), ":\"a\"}")}]]),
            one,
        ),
        (
            "the name with each piece, no index, no id",
            json!([[{"function": f(json!("read"), "{\"path\"")}],
            [{"function": f(json!("read"), ":\"a\"}")}]]),
            made,
        ),
        (
            "all of it so far with each piece",
            json!([[{"index": 0, "id": "c1", "function": f(json!("read"), "{\"pa")}],
            [{"index": 0, "id": "c1", "function": f(json!("read"), read)}]]),
            one,
        ),
        (
            "all of it twice",
            json!([[{"index": 0, "id": "c1", "function": f(json!("read"), read)}],
            [{"index": 0, "id": "c1", "function": f(json!("read"), read)}]]),
            one,
        ),
        (
            "an empty object, then the arguments",
            json!([[{"index": 0, "id": "c1", "function": f(json!("read"), "{}")}],
            [{"index": 0, "function": {"arguments": read}}]]),
            one,
        ),
        (
            "every call numbered 0",
            json!([[{"index": 0, "id": "c1", "function": f(json!("read"), read)},
            {"index": 0, "id": "c2", "function": f(json!("read"), other)}]]),
            &["c1 read {\"path\":\"a\"}", "c2 read {\"path\":\"b\"}"],
        ),
        (
            "every call numbered 0, without ids",
            json!([[{"index": 0, "function": f(json!("read"), read)},
            {"index": 0, "function": f(json!("read"), other)}]]),
            two,
        ),
        (
            "the index as text, the id a number",
            json!([[{"index": "0", "id": 4, "function": f(json!("read"), "{\"path\"")}],
            [{"index": "0", "function": {"arguments": ":\"a\"}"}}]]),
            &["4 read {\"path\":\"a\"}"],
        ),
        (
            "one id for two calls",
            json!([[{"index": 0, "id": "c1", "function": f(json!("read"), read)}],
            [{"index": 1, "id": "c1", "function": f(json!("read"), other)}]]),
            &["c1 read {\"path\":\"a\"}", "* read {\"path\":\"b\"}"],
        ),
        (
            "Kimi's prefix",
            json!([[{"index": 0, "id": "functions.read:0", "function": f(json!("functions.read"), read)}]]),
            &["functions.read:0 read {\"path\":\"a\"}"],
        ),
        (
            "fenced arguments",
            json!([[{"index": 0, "id": "c1", "function": f(json!("read"), &format!("```json\n{read}\n```"))}]]),
            one,
        ),
        ("nothing at all", json!([[{}], [{"index": 3}], [{"id": "c9"}], {}, 7]), &[]),
    ];
    for (what, pieces, expect) in rows {
        assert_eq!(calls_of(pieces), expect, "{what}");
    }
}

#[test]
fn the_call_of_old_servers_is_one() {
    let chunks = [
        delta(json!({"content": null, "function_call": {"name": "read", "arguments": "{\"path\""}})),
        delta(json!({"function_call": {"arguments": ":\"a\"}"}})),
        finish("function_call"),
    ];
    assert_eq!(
        content(&check_stream(&spec(), &sse(&chunks))),
        json!([{"type": "toolCall", "id": "call_7_0", "name": "read", "arguments": {"path": "a"}}])
    );
}

#[test]
fn a_call_that_a_model_writes_as_text_is_one_and_nobody_reads_it() {
    let call = "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>";
    let made = |id: &str| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "a"}});
    let pieces: Vec<Value> = call
        .as_bytes()
        .chunks(3)
        .map(|piece| delta(json!({"content": std::str::from_utf8(piece).unwrap()})))
        .collect();
    let said = [vec![delta(json!({"content": "I look.\n"}))], pieces, vec![finish("stop")]].concat();
    let found = check_stream(&spec(), &sse(&said));
    assert_eq!(content(&found), json!([{"type": "text", "text": "I look.\n"}, made("call_7_1")]));
    assert_eq!(message_of(&found).stop_reason, StopReason::ToolUse);
    let whole = json!({"choices": [{"message": {"content": call}, "finish_reason": "stop"}]});
    assert_eq!(content(&check_stream(&spec(), &whole.to_string())), json!([made("call_7_0")]));
    // Beside a call of the server it is that once more.
    let twice = [
        delta(
            json!({"content": call, "tool_calls": [{"id": "c1", "function": {"name": "read", "arguments": "{}"}}]}),
        ),
        finish("tool_calls"),
    ];
    let ids: Vec<String> =
        message_of(&check_stream(&spec(), &sse(&twice))).tool_calls().map(|call| call.id.clone()).collect();
    assert_eq!(ids, ["c1"]);
}

/// The signature of Gemini's thoughts, and whatever else a server wants back with a call.
#[test]
fn what_comes_with_a_call_is_kept_with_it() {
    let extra = json!({"google": {"thought_signature": "c2ln", "later": 1}});
    let chunks = [
        delta(json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "extra_content": extra,
            "function": {"name": "read", "arguments": "{}"}}]})),
        delta(json!({"tool_calls": [{"index": 0, "provider_specific_fields": {"a": 1}, "nothing": null}]})),
        finish("tool_calls"),
    ];
    let fields = json!({"extra_content": extra, "provider_specific_fields": {"a": 1}});
    assert_eq!(
        content(&check_stream(&spec(), &sse(&chunks))),
        json!([{"type": "toolCall", "id": "c1", "name": "read", "arguments": {}, "providerFields": fields}])
    );
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
