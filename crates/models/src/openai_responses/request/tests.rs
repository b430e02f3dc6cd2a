use openclaw_protocol::message::{
    AssistantMessage, Block, MISSING_RESULT, Message, ToolResultMessage, UserContent, UserMessage,
};
use serde_json::{Value, json};

use super::*;
use crate::history::IdRule;
use crate::parts::IMAGE_LEFT_OUT;
use crate::thinking::ThinkingLevel;

/// Address and headers.
fn head_of(spec: &ModelSpec, key: Option<&SecretString>, request: &ModelRequest) -> RequestHead {
    head(spec, key, RequestConversation::whole(&request.messages).asked()).unwrap()
}

/// The body as a value.
fn body(spec: &ModelSpec, request: &ModelRequest) -> Value {
    let request = request.prepared_for(spec, IdRule::Responses);
    let conversation = RequestConversation::whole(&request.messages);
    serde_json::from_slice(&super::body(spec, &request, &conversation).to_bytes()).unwrap()
}

fn gpt() -> ModelSpec {
    let mut spec = ModelSpec::sample("openai", "gpt-5.2", "openai-responses");
    spec.base_url = "http://127.0.0.1:1/v1".to_owned();
    (spec.reasoning, spec.images, spec.max_tokens) = (true, true, 128_000);
    spec
}

fn user(text: &str) -> Message {
    Message::User(UserMessage::text(text, 1))
}

fn answer_of(spec: &ModelSpec, content: Value) -> Message {
    Message::Assistant(AssistantMessage {
        content: serde_json::from_value(content).unwrap(),
        api: spec.api.as_str().to_owned(),
        provider: spec.provider().to_owned(),
        model: spec.id().to_owned(),
        ..AssistantMessage::default()
    })
}

fn answer(content: Value) -> Message {
    answer_of(&gpt(), content)
}

fn result(id: &str, content: Value) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: id.to_owned(),
        content: serde_json::from_value(content).unwrap(),
        ..ToolResultMessage::default()
    })
}

fn with(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        messages: messages.into_iter().map(Into::into).collect::<Vec<_>>().into(),
        ..ModelRequest::default()
    }
}

fn input_of(spec: &ModelSpec, messages: Vec<Message>) -> Value {
    body(spec, &with(messages))["input"].clone()
}

/// The tool whose capture is whole.
fn read_tool(golden: &Value) -> ToolSpec {
    let tool = &golden["body"]["tools"][0];
    ToolSpec {
        name: "read".into(),
        description: "reads".into(),
        parameters: tool["parameters"].clone().into(),
    }
}

fn golden() -> Value {
    serde_json::from_str(include_str!("../../../tests/golden/agent-openai-responses-request.json")).unwrap()
}

/// The captured request, with the elided prose filled in; the capture shows the first tool whole.
#[test]
fn the_request_is_the_recorded_one() {
    let golden = golden();
    let mut expect = golden["body"].clone();
    expect["input"][0]["content"] = json!("the prompt");
    expect["tools"][0]["description"] = json!("reads");
    expect.as_object_mut().unwrap().shift_remove("toolNames");
    let request = ModelRequest {
        system: "the prompt".into(),
        tools: vec![read_tool(&golden)].into(),
        thinking: ThinkingLevel::Low,
        session_id: Some("c29f8d04-2890-48ad-8942-25744b19a150".to_owned()),
        ..with(vec![user("[Sat 2026-11-21 02:45 UTC] hi oa")])
    };
    let sent = body(&gpt(), &request);
    assert_eq!(sent, expect);
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&sent), names(&expect), "in the recorded order");

    let built = head_of(&gpt(), Some(&SecretString::from("sk-fake")), &request);
    assert_eq!(built.url, format!("http://127.0.0.1:1{}", golden["url"].as_str().unwrap()));
    let mut recorded: Vec<(String, String)> =
        serde_json::from_value::<std::collections::BTreeMap<_, _>>(golden["headers"].clone())
            .unwrap()
            .into_iter()
            .filter(|(name, _): &(String, String)| name != "user-agent")
            .collect();
    let mut headers = built.headers.pairs();
    recorded.sort();
    headers.sort();
    assert_eq!(headers, recorded);
}

/// Three turns with tools and thinking.
fn three_turns() -> Vec<Message> {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "which?"}],
        "encrypted_content": "gAAAA", "status": null});
    vec![
        user("read them"),
        answer(json!([
            {"type": "thinking", "thinking": "which?", "thinkingSignature": reasoning.to_string()},
            {"type": "text", "text": "Let me look.", "textSignature": "msg_abc"},
            {"type": "toolCall", "id": "call_1|fc_1", "name": "read", "arguments": {"path": "a.txt"}},
            {"type": "toolCall", "id": "call_2|fc_2", "name": "read", "arguments": {"path": "b.png"}}])),
        result("call_1|fc_1", json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])),
        result("call_2|fc_2", json!([{"type": "image", "data": "QQ==", "mimeType": "image/png"}])),
        answer(json!([{"type": "text", "text": "A text and a picture."}])),
        user("thanks"),
        answer_of(
            &ModelSpec::sample("anthropic", "claude", "anthropic-messages"),
            json!([{"type": "thinking", "thinking": "polite", "thinkingSignature": "sig"}, {"type": "text", "text": "Bye."}]),
        ),
        user("one more"),
    ]
}

/// The whole request of a conversation, to the byte.
#[test]
fn a_conversation_of_three_turns_keeps_its_pinned_form() {
    let request = ModelRequest {
        system: "You help.".into(),
        tools: vec![read_tool(&golden())].into(),
        thinking: ThinkingLevel::High,
        cache: CacheRetention::Long,
        max_tokens: Some(4_000),
        temperature: Some(0.5),
        session_id: Some("s-1".to_owned()),
        ..with(three_turns())
    };
    let mut spec = gpt();
    spec.base_url = "https://api.openai.com/v1".to_owned();
    let sent = serde_json::to_string_pretty(&body(&spec, &request)).unwrap() + "\n";
    let pinned = include_str!("../../../tests/golden/openai-responses-three-turns.json");
    assert_eq!(sent, pinned);
}

#[test]
fn the_request_of_the_next_turn_begins_with_the_same_bytes() {
    let all = three_turns();
    let mut before = String::new();
    for length in [1, 4, 6, 8] {
        let now = input_of(&gpt(), all[..length].to_vec()).to_string();
        assert!(now.starts_with(before.trim_end_matches(']')), "{before}\n{now}");
        before = now;
    }
}

#[test]
fn items_of_another_model_of_the_provider_lose_their_id() {
    let call = json!([{"type": "thinking", "thinking": "", "thinkingSignature": "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":\"e\"}"},
        {"type": "toolCall", "id": "call.1|fc_1", "name": "x", "arguments": {"a": 1}}]);
    let called = |from: &ModelSpec| {
        let messages = vec![answer_of(from, call.clone()), result("call.1|fc_1", json!([]))];
        input_of(&gpt(), messages)
    };
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "(no output)"});
    let item = |id: Value, call_id: &str| {
        let mut item = json!({"type": "function_call", "id": id, "call_id": call_id, "name": "x", "arguments": "{\"a\":1}"});
        if id.is_null() {
            item.as_object_mut().unwrap().shift_remove("id");
        }
        item
    };
    let own = json!([{"type": "reasoning", "id": "rs_1", "encrypted_content": "e"}, item(json!("fc_1"), "call.1"), output("call.1")]);
    assert_eq!(called(&gpt()), own);
    let sibling = ModelSpec::sample("openai", "gpt-5.1", "openai-responses");
    assert_eq!(called(&sibling), json!([item(Value::Null, "call_1"), output("call_1")]));
    let codex = ModelSpec::sample("openai-codex", "gpt-5.3-codex", "openai-codex-responses");
    assert_eq!(called(&codex), json!([item(json!("fc_1"), "call_1"), output("call_1")]));
}

#[test]
fn texts_have_ids_of_their_own_that_fit() {
    let long = "m".repeat(65);
    let found = input_of(
        &gpt(),
        vec![answer(
            json!([{"type": "text", "text": "a"}, {"type": "text", "text": " "}, {"type": "text", "text": "b"},
            {"type": "text", "text": "c", "textSignature": long}, {"type": "text", "text": "d", "textSignature": "msg_x"}]),
        )],
    );
    let ids: Vec<_> = found.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!((ids[0], ids[1], ids[3]), ("msg_0", "msg_0_1", "msg_x"));
    assert!(ids[2].starts_with("msg_") && ids[2].len() <= 64 && ids[2] == fit_id("msg_", &long), "{ids:?}");
    assert_ne!(ids[2], fit_id("msg_", &"n".repeat(65)));
}

#[test]
fn reasoning_that_led_to_nothing_or_is_damaged_is_left_out() {
    let thought =
        |signature: &str| json!({"type": "thinking", "thinking": "hm", "thinkingSignature": signature});
    let item = "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":\"e\"}";
    let rows = [
        (json!([thought(item)]), json!([])),
        (json!([thought(item), {"type": "text", "text": " "}]), json!([])),
        (json!([thought("reasoning_content")]), json!([])),
        (json!([thought("{\"type\":\"message\"}")]), json!([])),
        (
            json!([thought(item), thought(item), {"type": "toolCall", "id": "c", "name": "x", "arguments": "?"}]),
            json!([{"type": "reasoning", "id": "rs_1", "encrypted_content": "e"},
                {"type": "reasoning", "id": "rs_1", "encrypted_content": "e"},
                {"type": "function_call", "call_id": "c", "name": "x", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": MISSING_RESULT}]),
        ),
    ];
    for (content, expect) in rows {
        assert_eq!(input_of(&gpt(), vec![answer(content.clone())]), expect, "{content}");
    }
}

/// The server stores nothing: an item that is named by its id alone is not found, and neither is what belongs to it.
#[test]
fn reasoning_without_its_encrypted_content_is_left_out_with_the_ids_that_belong_to_it() {
    for encrypted in [Value::Null, json!(""), json!(7)] {
        let item = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": encrypted});
        let said = json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": item.to_string()},
            {"type": "text", "text": "a", "textSignature": "msg_x"},
            {"type": "toolCall", "id": "call_1|fc_1", "name": "x", "arguments": {}}]);
        let input = input_of(&gpt(), vec![answer(said), result("call_1|fc_1", json!([]))]);
        let part = json!({"type": "output_text", "text": "a", "annotations": []});
        let expect = json!([
            {"type": "message", "role": "assistant", "content": [part], "status": "completed", "id": "msg_0"},
            {"type": "function_call", "call_id": "call_1", "name": "x", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "(no output)"}]);
        assert_eq!(input, expect, "{item}");
    }
}

#[test]
fn images_are_shown_to_models_that_see_and_others_are_told_of_them() {
    let image = json!({"type": "image", "data": "QQ==", "mimeType": "image/png"});
    let blocks: Vec<Block> = serde_json::from_value(json!([{"type": "text", "text": ""}, image])).unwrap();
    let shown = Message::User(UserMessage { content: UserContent::Blocks(blocks), ..UserMessage::default() });
    let part = json!({"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,QQ=="});
    assert_eq!(input_of(&gpt(), vec![shown.clone()]), json!([{"role": "user", "content": [part]}]));
    let blind = ModelSpec { images: false, ..gpt() };
    let called = answer(json!([{"type": "toolCall", "id": "c", "name": "x", "arguments": {}}]));
    let told = json!({"type": "input_text", "text": IMAGE_LEFT_OUT});
    assert_eq!(
        input_of(&blind, vec![shown, called, result("c", json!([image]))]),
        json!([{"role": "user", "content": [told]},
            {"type": "function_call", "call_id": "c", "name": "x", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": IMAGE_LEFT_OUT}])
    );
}

#[test]
fn the_rest_of_the_body_follows_model_and_settings() {
    let asked = |spec: &ModelSpec, request: ModelRequest| {
        let body = body(spec, &ModelRequest { system: "s".into(), ..request });
        json!([
            body["input"][0]["role"],
            body["reasoning"],
            body["include"],
            body["temperature"],
            body["max_output_tokens"]
        ])
    };
    let level = |thinking| ModelRequest { thinking, temperature: Some(0.5), ..with(vec![]) };
    let named = |id: &str| ModelSpec { reference: crate::reference::ModelRef::new("openai", id), ..gpt() };
    let plain = ModelSpec::sample("openai", "gpt-4.1", "openai-responses");
    let include = json!(["reasoning.encrypted_content"]);
    let rows = [
        (
            gpt(),
            level(ThinkingLevel::XHigh),
            json!(["developer", {"effort": "xhigh", "summary": "auto"}, include, null, 32_000]),
        ),
        (gpt(), level(ThinkingLevel::Off), json!(["developer", {"effort": "none"}, include, 0.5, 32_000])),
        (
            named("gpt-5-mini"),
            level(ThinkingLevel::Off),
            json!(["developer", {"effort": "minimal", "summary": "auto"}, include, null, 32_000]),
        ),
        (named("o3"), level(ThinkingLevel::Off), json!(["developer", null, include, null, 32_000])),
        (plain.clone(), level(ThinkingLevel::High), json!(["system", null, null, 0.5, 8_192])),
        (
            plain,
            ModelRequest { max_tokens: Some(3), ..with(vec![]) },
            json!(["system", null, null, null, 16]),
        ),
    ];
    for (spec, request, expect) in rows {
        assert_eq!(asked(&spec, request), expect, "{}", spec.id());
    }
}

#[test]
fn prompts_are_cached_by_session_and_for_a_day_only_at_openai_itself() {
    let cached = |base_url: &str, cache: CacheRetention, session: &str| {
        let spec = ModelSpec { base_url: base_url.to_owned(), ..gpt() };
        let request = ModelRequest { cache, session_id: Some(session.to_owned()), ..with(vec![]) };
        let body = body(&spec, &request);
        (body["prompt_cache_key"].clone(), body["prompt_cache_retention"].clone())
    };
    let own = "https://api.openai.com/v1";
    assert_eq!(cached(own, CacheRetention::Short, "s"), (json!("s"), Value::Null));
    assert_eq!(cached(own, CacheRetention::Long, "s"), (json!("s"), json!("24h")));
    assert_eq!(cached("https://proxy", CacheRetention::Long, "s"), (json!("s"), Value::Null));
    assert_eq!(cached(own, CacheRetention::None, "s"), (Value::Null, Value::Null));
    let (key, _) = cached(own, CacheRetention::Short, &"s".repeat(100));
    assert!(key.as_str().unwrap().len() <= 64, "{key}");
}

#[test]
fn copilots_models_get_its_headers() {
    let spec = ModelSpec::sample("github-copilot", "gpt-5.2", "openai-responses");
    let built = head_of(&spec, None, &with(vec![user("hi")]));
    let headers: std::collections::BTreeMap<_, _> = built.headers.pairs().into_iter().collect();
    assert_eq!(headers["x-initiator"], "user");
    assert_eq!(headers["openai-intent"], "conversation-edits");
    assert!(!headers.contains_key("copilot-vision-request") && !headers.contains_key("authorization"));
}
