#![expect(clippy::needless_pass_by_value, reason = "JSON written in place reads better")]

use openclaw_config::settings::ModelCost;
use serde_json::json;

use super::*;
use crate::answer::tests::{check_stream, failure_of, message_of};
use crate::arguments::invalid_arguments;
use crate::model_spec::ModelSpec;
use crate::stream::{FailureKind, ModelEvent};

fn spec() -> ModelSpec {
    let price = ModelCost { input: 1.0, output: 2.0, cache_read: 0.1, cache_write: 0.0 };
    ModelSpec { price, ..ModelSpec::sample("openai", "gpt-5.2", "openai-responses") }
}

fn codex() -> ModelSpec {
    ModelSpec::sample("openai-codex", "gpt-5.3-codex", "openai-codex-responses")
}

/// An event as the server writes it: its name twice.
fn event(kind: &str, fields: Value) -> String {
    let mut body = json!({ "type": kind });
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    format!("event: {kind}\ndata: {body}\n\n")
}

fn added(at: u64, item: Value) -> String {
    event("response.output_item.added", json!({"output_index": at, "item": item}))
}

fn done(at: u64, item: Value) -> String {
    event("response.output_item.done", json!({"output_index": at, "item": item}))
}

fn text(at: u64, delta: &str) -> String {
    event(
        "response.output_text.delta",
        json!({"output_index": at, "item_id": "m", "content_index": 0, "delta": delta}),
    )
}

fn over(response: Value) -> String {
    event("response.completed", json!({ "response": response }))
}

fn created() -> String {
    event("response.created", json!({"response": {"id": "resp_1", "status": "in_progress", "output": []}}))
}

fn call_item(at: u64, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{at}"), "call_id": format!("call_{at}"), "name": "read",
        "arguments": arguments})
}

fn arguments(at: u64, delta: &str) -> String {
    event("response.function_call_arguments.delta", json!({"output_index": at, "delta": delta}))
}

fn content(events: &[ModelEvent]) -> Value {
    serde_json::to_value(message_of(events).content).unwrap()
}

fn thoughts(events: &[ModelEvent]) -> String {
    let delta = |event: &ModelEvent| match event {
        ModelEvent::ThinkingDelta { delta, .. } => Some(delta.clone()),
        _ => None,
    };
    events.iter().filter_map(delta).collect()
}

#[test]
fn a_whole_turn_arrives_with_everything_needed_to_give_it_back() {
    // Written as the server wrote it: spaces, order and all.
    let reasoning = r#"{"id":"rs_1", "type":"reasoning","encrypted_content":"gAA+/=","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]}"#;
    let part = |n: u64| {
        event("response.reasoning_summary_part.added", json!({"output_index": 0, "summary_index": n}))
    };
    let thought = |delta: &str| {
        event("response.reasoning_summary_text.delta", json!({"output_index": 0, "delta": delta}))
    };
    let body = [
        created(),
        added(0, json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        part(0),
        thought("a"),
        event("response.reasoning_summary_part.done", json!({"output_index": 0})),
        part(1),
        thought("b"),
        format!("event: response.output_item.done\ndata: {{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{reasoning}}}\n\n"),
        added(1, json!({"type": "message", "id": "msg_1", "content": []})),
        event("response.content_part.added", json!({"output_index": 1, "part": {"type": "output_text", "text": ""}})),
        text(1, "Hel"),
        text(1, "lö 🦞"),
        event("response.output_text.done", json!({"output_index": 1, "text": "Hellö 🦞"})),
        done(1, json!({"type": "message", "id": "msg_1b", "content": [{"type": "output_text", "text": "Hellö 🦞"}]})),
        added(2, call_item(2, "")),
        added(3, call_item(3, "")),
        arguments(2, "{\"path\""),
        arguments(3, "{\"path\":\"2\"}"),
        arguments(2, ":\"1\"}"),
        event("response.function_call_arguments.done", json!({"output_index": 2, "arguments": "{\"path\":\"1\"}"})),
        done(2, call_item(2, "{\"path\":\"1\"}")),
        done(3, call_item(3, "{\"path\":\"2\"}")),
        over(json!({"status": "completed", "output": [{"type": "message"}], "usage": {"input_tokens": 120,
            "output_tokens": 5, "total_tokens": 125, "input_tokens_details": {"cached_tokens": 20}}})),
    ]
    .concat();
    let found = check_stream(&spec(), &body);
    assert_eq!(thoughts(&found), "a\n\nb");
    assert_eq!(
        content(&found),
        json!([{"type": "thinking", "thinking": "a\n\nb", "thinkingSignature": reasoning},
            {"type": "text", "text": "Hellö 🦞", "textSignature": "msg_1b"},
            {"type": "toolCall", "id": "call_2|fc_2", "name": "read", "arguments": {"path": "1"}},
            {"type": "toolCall", "id": "call_3|fc_3", "name": "read", "arguments": {"path": "2"}}])
    );
    let message = message_of(&found);
    let u = message.usage;
    assert_eq!((u.input, u.output, u.cache_read, u.total_tokens), (100, 5, 20, 125));
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    assert!(matches!(found[0], ModelEvent::Start));
}

#[test]
fn reasoning_without_a_summary_is_kept_for_its_proof() {
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAA"});
    let body = [
        added(0, json!({"type": "reasoning", "id": "rs_1"})),
        done(0, item.clone()),
        text(1, "hi"),
        over(json!({})),
    ];
    let found = check_stream(&spec(), &body.concat());
    assert_eq!(
        content(&found),
        json!([{"type": "thinking", "thinking": "", "thinkingSignature": item.to_string()}, {"type": "text", "text": "hi"}])
    );
}

#[test]
fn careless_servers_are_understood() {
    let plain = |data: Value| format!("data: {data}\n\n");
    // No event names, no indexes, no beginnings, arguments as an object, a mark that is not of this protocol.
    let body = [
        plain(json!({"type": "response.reasoning_text.delta", "delta": "hm"})),
        plain(json!({"type": "response.output_item.added", "item": {"type": "message"}})),
        plain(json!({"type": "response.output_text.delta", "delta": "hi"})),
        "data: [DONE]\n\n".to_owned(),
        plain(
            json!({"type": "response.output_item.done", "output_index": 1, "item": {"type": "function_call",
            "call_id": "c", "name": "x", "arguments": {"a": 1}}}),
        ),
        plain(json!({"type": "response.completed", "response": {"usage": null}})),
    ];
    let found = check_stream(&spec(), &body.concat());
    assert_eq!(
        content(&found),
        json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"},
            {"type": "toolCall", "id": "c", "name": "x", "arguments": {"a": 1}}])
    );
    // Names alone, without types; kinds of items and events nobody knows.
    let body = [
        added(0, json!({"type": "web_search_call", "id": "ws_1"})),
        event("response.web_search_call.searching", json!({"output_index": 0, "delta": {"odd": 1}})),
        "event: response.output_text.delta\ndata: {\"output_index\":1,\"delta\":\"hi\"}\n\n".to_owned(),
        event("response.novel.delta", json!({"output_index": 0, "delta": 7})),
        over(json!({"status": "completed"})),
    ];
    assert_eq!(content(&check_stream(&spec(), &body.concat())), json!([{"type": "text", "text": "hi"}]));
}

#[test]
fn what_was_not_streamed_is_taken_from_what_is_done() {
    let message =
        json!({"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "hi"}]});
    let item = json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]});
    let expect = json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": item.to_string()},
        {"type": "text", "text": "hi", "textSignature": "msg_1"},
        {"type": "toolCall", "id": "call_2|fc_2", "name": "read", "arguments": {"path": "x"}}]);
    let output = json!([item, message, call_item(2, "{\"path\":\"x\"}")]);
    let items: String =
        (0..).zip(output.as_array().unwrap()).map(|(at, item)| done(at, item.clone())).collect();
    let twice = format!("{items}{items}{}", over(json!({"output": output})));
    assert_eq!(content(&check_stream(&spec(), &twice)), expect, "each item once");
    assert_eq!(content(&check_stream(&spec(), &over(json!({"output": output})))), expect, "the end alone");
    let document = json!({"object": "response", "status": "completed", "output": output, "error": null,
        "usage": {"input_tokens": 3, "output_tokens": 4}});
    let found = check_stream(&spec(), &document.to_string());
    assert_eq!((content(&found), message_of(&found).usage.total_tokens), (expect, 7));
}

#[test]
fn a_refusal_is_what_the_model_says() {
    let body = [
        added(0, json!({"type": "message", "id": "m"})),
        event("response.refusal.delta", json!({"output_index": 0, "delta": "I can"})),
        event("response.refusal.delta", json!({"output_index": 0, "delta": "not."})),
        done(
            0,
            json!({"type": "message", "id": "m", "content": [{"type": "refusal", "refusal": "I cannot."}]}),
        ),
        over(json!({"status": "completed"})),
    ];
    let message = message_of(&check_stream(&spec(), &body.concat()));
    assert_eq!((message.text().as_str(), message.stop_reason), ("I cannot.", StopReason::Stop));
    let unstreamed = done(0, json!({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}));
    let message = message_of(&check_stream(&spec(), &(unstreamed + &over(json!({})))));
    assert_eq!(message.text(), "No.");
}

#[test]
fn every_end_has_its_stop_reason() {
    let end = |kind: &str, response: Value| text(0, "hi") + &event(kind, json!({ "response": response }));
    let stops = [
        (end("response.completed", json!({})), StopReason::Stop),
        (end("response.done", json!({"status": "completed"})), StopReason::Stop),
        (end("response.done", json!({"status": "incomplete"})), StopReason::Length),
        (
            end("response.incomplete", json!({"incomplete_details": {"reason": "max_output_tokens"}})),
            StopReason::Length,
        ),
        (end("response.completed", json!({"status": "incomplete"})), StopReason::Length),
    ];
    for (body, expect) in stops {
        let message = message_of(&check_stream(&spec(), &body));
        assert_eq!((message.text().as_str(), message.stop_reason), ("hi", expect), "{body}");
    }
    let error =
        |code: &str, message: &str| json!({"status": "failed", "error": {"code": code, "message": message}});
    let failures = [
        (
            end("response.failed", error("server_error", "The server had an error.")),
            FailureKind::Transient,
            "server_error: The server had an error.",
        ),
        (
            end("response.failed", error("rate_limit_exceeded", "slow")),
            FailureKind::RateLimit,
            "rate_limit_exceeded: slow",
        ),
        (
            end(
                "response.failed",
                error("context_length_exceeded", "Your input exceeds the context window of this model."),
            ),
            FailureKind::ContextOverflow,
            "context_length_exceeded: Your input exceeds the context window of this model.",
        ),
        (
            end("response.cancelled", json!({})),
            FailureKind::Other,
            "the model server ended the response as cancelled and did not say why",
        ),
        (
            end("response.incomplete", json!({"incomplete_details": {"reason": "content_filter"}})),
            FailureKind::Other,
            "the model's provider refused to answer this request (content_filter)",
        ),
        (
            text(0, "hi")
                + &event("error", json!({"code": "server_error", "message": "boom", "param": null})),
            FailureKind::Transient,
            "Error Code server_error: boom",
        ),
        (
            text(0, "hi")
                + &event(
                    "error",
                    json!({"error": {"type": "insufficient_quota", "message": "insufficient balance"}}),
                ),
            FailureKind::Billing,
            "insufficient balance",
        ),
        (
            text(0, "hi"),
            FailureKind::Transient,
            "connection error: the model server hung up before its answer was complete",
        ),
        (
            text(0, "hi") + "data: {\"type\":\"response.output_text.delta\",\"delta\":\n\n",
            FailureKind::Transient,
            "the model server sent garbage: an event that is not JSON: {\"type\":\"response.output_text.delta\",\"delta\":",
        ),
    ];
    for (body, kind, words) in failures {
        let found = check_stream(&spec(), &body);
        let failure = failure_of(&found);
        assert_eq!((failure.kind, failure.message.as_str()), (kind, words), "{body}");
        assert_eq!(message_of(&found).text(), "hi", "what was said is kept");
    }
}

#[test]
fn the_codex_backend_says_when_the_plan_is_used_up() {
    // `check_stream` takes 7 ms after 1970 for now.
    let error = json!({"code": "usage_limit_reached", "message": "x", "plan_type": "Plus", "resets_at": 600});
    let limit = "You have hit your ChatGPT usage limit (plus plan). Try again in ~10 min.";
    for body in [
        event("error", error.clone()),
        event("response.failed", json!({"response": {"status": "failed", "error": error}})),
    ] {
        let failure = failure_of(&check_stream(&codex(), &body));
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::RateLimit, limit));
        assert!(!failure_of(&check_stream(&spec(), &body)).message.contains("ChatGPT"), "only there");
    }
}

#[test]
fn arguments_that_never_become_json_are_kept_aside() {
    let half = "{\"command\":\"rm -rf /tmp/";
    for end in [
        done(0, call_item(0, half)) + &over(json!({})),
        event("response.incomplete", json!({"response": {"status": "incomplete"}})),
    ] {
        let message = message_of(&check_stream(
            &spec(),
            &[added(0, call_item(0, "")), arguments(0, half), end].concat(),
        ));
        let call = message.tool_calls().next().unwrap();
        assert_eq!((&call.arguments, invalid_arguments(call)), (&json!({}), Some(half)));
    }
    let cut = check_stream(&spec(), &(added(0, call_item(0, "")) + &arguments(0, half)));
    assert!(message_of(&cut).content.is_empty(), "a call whose end never came is not made");
}

#[test]
fn a_tier_has_its_price() {
    for (tier, expect) in [("flex", 1.0), ("priority", 4.0), ("default", 2.0)] {
        let usage = json!({"input_tokens": 0, "output_tokens": 1_000_000});
        let body = text(0, "hi") + &over(json!({"service_tier": tier, "usage": usage}));
        let cost = message_of(&check_stream(&spec(), &body)).usage.cost;
        assert!((cost.total - expect).abs() < 1e-9, "{tier}: {cost:?}");
    }
}

#[test]
fn documents_that_are_no_answer_are_told_apart() {
    let error = json!({"error": {"code": "invalid_prompt", "message": "no"}});
    assert_eq!(failure_of(&check_stream(&spec(), &error.to_string())).message, "invalid_prompt: no");
    let failed =
        json!({"status": "failed", "output": [], "error": {"code": "server_error", "message": "boom"}});
    assert_eq!(failure_of(&check_stream(&spec(), &failed.to_string())).kind, FailureKind::Transient);
}
