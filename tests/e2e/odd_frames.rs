//! Frames of model servers in which a field that nobody needs, or a count, has an odd type: no answer is
//! lost for it, and nothing is asked twice (decision 63).

use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::turn;

/// Answer that every one of them gives.
const SAID: &str = "DONE-OK";

/// A stream of events, each with its name if it has one.
fn events(frames: &[Value]) -> String {
    let frame = |frame: &Value| {
        let name = frame["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {frame}\n\n")
    };
    frames.iter().map(frame).collect()
}

/// Chat Completions with these chunks.
fn chunks(chunks: &[Value]) -> String {
    format!("{}data: [DONE]\n\n", events(chunks))
}

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn chunk(delta: Value) -> Value {
    json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn last() -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
}

/// Chat Completions whose only delta has one more field.
#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn beside(name: &str, odd: Value) -> String {
    chunks(&[chunk(json!({"role": "assistant", "content": SAID, name: odd})), last()])
}

/// Chat Completions that count like this.
fn counting(usage: &Value) -> String {
    chunks(&[
        chunk(json!({"content": SAID})),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}),
    ])
}

/// Anthropic's events around these, which count like this.
fn messages(usage: &Value, said: &[Value]) -> String {
    let start = json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "m", "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage}});
    let end = [
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    events(&[&[start][..], said, &end].concat())
}

/// A block of text under this index, in Anthropic's events.
#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn block(kind: &Value, index: Value) -> Vec<Value> {
    vec![
        json!({"type": "content_block_start", "index": index, "content_block": kind}),
        json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": SAID}}),
        json!({"type": "content_block_stop", "index": index}),
    ]
}

/// Google's answer of one part, which counts like this.
#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn part(more: Value, usage: Value) -> String {
    let mut part = json!({"text": SAID});
    crate::support::config::merge(&mut part, more);
    let frame = json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": usage});
    format!("data: {frame}\n\n")
}

/// OpenAI's Responses that count like this.
fn responses(usage: &Value) -> String {
    events(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "msg_1"}}),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": SAID}),
        json!({"type": "response.output_item.done", "output_index": 0,
            "item": {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": SAID}]}}),
        json!({"type": "response.completed", "response": {"status": "completed", "usage": usage}}),
    ])
}

/// OpenAI's Responses with more or other fields in their item, and in the events about it.
#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn item(in_item: Value, in_events: Value) -> String {
    let with = |mut whole: Value, more: &Value| {
        crate::support::config::merge(&mut whole, more.clone());
        whole
    };
    let added = with(json!({"type": "message", "id": "msg_1"}), &in_item);
    let content = json!([{"type": "output_text", "text": SAID}]);
    let done = with(json!({"type": "message", "id": "msg_1", "content": content}), &in_item);
    let frames = [
        json!({"type": "response.output_item.added", "output_index": 0, "item": added}),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": SAID}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": done}),
        json!({"type": "response.completed", "response": {"status": "completed"}}),
    ];
    events(&frames.map(|frame| with(frame, &in_events)))
}

/// Asks a provider of this protocol, each time in a session of its own, and returns the usage of each
/// answer as the history has it. Each answer has to come whole and at the first try.
async fn asked(api: &str, bodies: Vec<(String, String)>) -> Vec<Value> {
    let replies = bodies.iter().map(|(_, body)| Reply::plain(200, "text/event-stream", body.clone()));
    let server = ModelServer::queue(replies.collect::<Vec<_>>()).await;
    let base_url = match api {
        "anthropic-messages" => server.url(),
        "google-generative-ai" => format!("{}/v1beta", server.url()),
        _ => server.v1(),
    };
    let provider =
        json!({"baseUrl": base_url, "api": api, "apiKey": "key", "models": [{"id": "m", "name": "M"}]});
    let config = json!({"agents": {"defaults": {"model": {"primary": "odd/m"}}}, "models": {"providers": {"odd": provider}}});
    let gateway = gateway().config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let mut counted = Vec::new();
    for (at, (what, body)) in bodies.iter().enumerate() {
        let key = format!("odd-{at}");
        assert_eq!(turn(&mut client, &key, "hello", &key).await, SAID, "{what}: {body}");
        assert_eq!(server.requests().len(), at + 1, "{what}: {body}");
        let history = client.request("chat.history", json!({"sessionKey": key})).await.unwrap();
        counted.push(history["messages"].as_array().unwrap().last().unwrap()["usage"].clone());
    }
    counted
}

fn named(rows: impl IntoIterator<Item = (&'static str, String)>) -> Vec<(String, String)> {
    rows.into_iter().map(|(what, body)| (what.to_owned(), body)).collect()
}

#[tokio::test]
async fn a_field_that_nobody_needs_loses_no_answer_whatever_its_type() {
    let ends_with = |number: Value| {
        let odd = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": number}]});
        chunks(&[chunk(json!({"content": SAID})), odd, last()])
    };
    let rows = [
        ("thoughts are an object", beside("reasoning_content", json!({"text": "hm"}))),
        ("thoughts are a list", beside("reasoning_content", json!([]))),
        ("thoughts are a number", beside("reasoning_text", json!(0))),
        ("details of thoughts are an object", beside("reasoning_details", json!({"type": "x"}))),
        ("a refusal is an object", beside("refusal", json!({}))),
        ("calls are an object", beside("tool_calls", json!({}))),
        ("the reason of the end is a number", ends_with(json!(0))),
        (
            "the choices of a later chunk are an object",
            chunks(&[chunk(json!({"content": SAID})), json!({"id": "x", "choices": {}}), last()]),
        ),
        ("a line without data", format!("data:\n\n{}", chunks(&[chunk(json!({"content": SAID})), last()]))),
        (
            "no blank line between events",
            format!("data: {}\ndata: [DONE]", json!({"choices": [{"delta": {"content": SAID}}]})),
        ),
    ];
    asked("openai-completions", named(rows)).await;

    let (usage, text) =
        (json!({"input_tokens": 10, "output_tokens": 5}), json!({"type": "text", "text": ""}));
    let whole = messages(&usage, &block(&text, json!(0)));
    let thinking = json!({"type": "thinking", "thinking": ""});
    let rows = [
        ("no index", messages(&usage, &block(&text, Value::Null))),
        ("the index as text", messages(&usage, &block(&text, json!("0")))),
        ("a ping without data", format!("event: ping\ndata: \n\n{whole}")),
        ("no content at the start", whole.replace("\"content\":[]", "\"content\":null")),
        ("thoughts and words in one block", messages(&usage, &block(&thinking, json!(0)))),
    ];
    asked("anthropic-messages", named(rows)).await;

    let rows =
        [("a thought that is a word", part(json!({"thought": "false"}), json!({"promptTokenCount": 10})))];
    asked("google-generative-ai", named(rows)).await;

    let rows = [
        ("an item with odd fields", item(json!({"status": 7, "phase": [], "role": {}}), json!({}))),
        ("an item whose id is a number", item(json!({"id": 7}), json!({}))),
        ("the index of an item as text", item(json!({}), json!({"output_index": "0"}))),
        (
            "events with odd fields",
            item(json!({}), json!({"sequence_number": {}, "logprobs": "x", "obfuscation": 5, "item_id": []})),
        ),
    ];
    asked("openai-responses", named(rows)).await;
}

/// A call whose input is an empty text has none.
#[tokio::test]
async fn an_input_that_is_a_text_is_read_as_one_and_the_tool_runs() {
    let usage = json!({"input_tokens": 10, "output_tokens": 5});
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "agents_list", "input": ""});
    let stop = |body: String| body.replace("end_turn", "tool_use");
    let called = stop(messages(
        &usage,
        &[
            json!({"type": "content_block_start", "index": 0, "content_block": call}),
            json!({"type": "content_block_stop", "index": 0}),
        ],
    ));
    let said = messages(&usage, &block(&json!({"type": "text", "text": ""}), json!(0)));
    let bodies = [called, said].map(|body| Reply::plain(200, "text/event-stream", body));
    let server = ModelServer::queue(bodies).await;
    let provider = json!({"baseUrl": server.url(), "api": "anthropic-messages", "apiKey": "key",
        "models": [{"id": "m", "name": "M"}]});
    let config = json!({"agents": {"defaults": {"model": {"primary": "odd/m"}}}, "models": {"providers": {"odd": provider}}});
    let gateway = gateway().config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "who is there?", "r1").await, SAID);
    let result = server.requests().pop().unwrap().body["messages"].to_string();
    assert!(result.contains("requester") && !result.contains("is_error\":true"), "{result}");
}

/// Counts as the history has them: `input`, `output` and `cacheRead`.
#[tokio::test]
async fn counts_are_read_as_they_are_meant_and_no_answer_is_lost_for_them() {
    let kept =
        |usage: &Value| ["input", "output", "cacheRead"].map(|name| usage[name].as_u64().unwrap_or_default());
    let rows = [
        (json!({"prompt_tokens": 10.0, "completion_tokens": 5.5}), [10, 5, 0]),
        (json!({"prompt_tokens": "10", "completion_tokens": "5"}), [10, 5, 0]),
        (json!({"prompt_tokens": -10, "completion_tokens": 5}), [0, 5, 0]),
        (json!([10, 5]), [0, 0, 0]),
        // Moonshot's place for the tokens of its cache.
        (json!({"prompt_tokens": 1000, "completion_tokens": 20, "cached_tokens": 800}), [200, 20, 800]),
    ];
    let bodies = rows.iter().map(|(usage, _)| (usage.to_string(), counting(usage))).collect();
    let counted = asked("openai-completions", bodies).await;
    for ((usage, expect), counted) in rows.iter().zip(&counted) {
        assert_eq!(kept(counted), *expect, "{usage}: {counted}");
    }

    let odd = [
        json!({"input_tokens": 10.0, "output_tokens": "5"}),
        json!({"input_tokens": -1, "output_tokens": []}),
        json!([]),
        json!("many"),
    ];
    let text = json!({"type": "text", "text": ""});
    let of =
        |body: &dyn Fn(&Value) -> String| odd.iter().map(|usage| (usage.to_string(), body(usage))).collect();
    asked("anthropic-messages", of(&|usage| messages(usage, &block(&text, json!(0))))).await;
    asked("openai-responses", of(&responses)).await;
    let google =
        [json!({"promptTokenCount": "10"}), json!({"candidatesTokenCount": -5.5}), json!([]), json!(7)];
    let google = google.into_iter().map(|usage| (usage.to_string(), part(json!({}), usage))).collect();
    asked("google-generative-ai", google).await;
}
