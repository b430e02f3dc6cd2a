use openclaw_protocol::message::UserMessage;
use serde_json::json;

use super::*;
use crate::history::IdRule;
use crate::parts::IMAGE_LEFT_OUT;
use crate::thinking::ThinkingLevel;

/// The body as a value.
fn body(spec: &ModelSpec, request: &ModelRequest) -> Value {
    let request = request.prepared_for(spec, IdRule::Anthropic);
    let conversation = RequestConversation::whole(&request.messages);
    serde_json::from_slice(&super::body(spec, &request, &conversation).to_bytes()).unwrap()
}

fn opus() -> ModelSpec {
    let mut spec = ModelSpec::sample("anthropic", "claude-opus-4-6", "anthropic-messages");
    (spec.reasoning, spec.images, spec.max_tokens) = (true, true, 128_000);
    spec
}

fn sonnet(max_tokens: u64) -> ModelSpec {
    let mut spec = ModelSpec::sample("anthropic", "claude-sonnet-4-5", "anthropic-messages");
    (spec.reasoning, spec.max_tokens) = (true, max_tokens);
    spec
}

fn user(text: &str) -> Message {
    Message::User(UserMessage::text(text, 1))
}

fn assistant(content: Value) -> Message {
    Message::Assistant(AssistantMessage {
        content: serde_json::from_value(content).unwrap(),
        api: "anthropic-messages".to_owned(),
        provider: "anthropic".to_owned(),
        model: "claude-opus-4-6".to_owned(),
        ..AssistantMessage::default()
    })
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
        cache: CacheRetention::None,
        ..ModelRequest::default()
    }
}

fn messages_of(spec: &ModelSpec, messages: Vec<Message>) -> Value {
    body(spec, &with(messages)).get("messages").cloned().unwrap()
}

/// The captured request, with the elided prose filled in.
#[test]
fn the_request_is_the_recorded_one() {
    let golden: Value =
        serde_json::from_str(include_str!("../../../tests/golden/agent-anthropic-request.json")).unwrap();
    let mut expect = golden["body"].clone();
    expect["system"][0]["text"] = json!("the prompt");
    let mut tools = Vec::new();
    for tool in expect["tools"].as_array_mut().unwrap() {
        let name = tool["name"].as_str().unwrap().to_owned();
        tool["description"] = json!(format!("does {name}"));
        tool.as_object_mut().unwrap().shift_remove("descriptionChars");
        let mut parameters = tool["input_schema"].clone();
        // Keys that must not survive.
        parameters["additionalProperties"] = json!(false);
        parameters["$schema"] = json!("x");
        tools.push(ToolSpec {
            description: format!("does {name}").into(),
            name: name.into(),
            parameters: parameters.into(),
        });
    }
    let request = ModelRequest {
        system: "the prompt".into(),
        messages: vec![
            user("[Sat 2026-11-21 02:45 UTC] hi th").into(),
            assistant(json!([{"type": "text", "text": "Hello from fake. "}])).into(),
            user("[Sat 2026-11-21 02:45 UTC] hi th").into(),
        ]
        .into(),
        tools: tools.into(),
        thinking: ThinkingLevel::High,
        ..ModelRequest::default()
    };
    assert_eq!(body(&opus(), &request), expect);

    let built = head(&opus(), Some(&SecretString::from("sk-ant-api03-fakekey"))).unwrap();
    assert_eq!(built.url, format!("http://127.0.0.1:1{}", golden["url"].as_str().unwrap()));
    // Left out on purpose: the client library's name and its browser switch.
    let mut recorded: Vec<(String, String)> =
        serde_json::from_value::<std::collections::BTreeMap<_, _>>(golden["headers"].clone())
            .unwrap()
            .into_iter()
            .filter(|(name, _): &(String, String)| {
                !name.contains("user-agent") && !name.contains("dangerous")
            })
            .collect();
    let mut sent = built.headers.pairs();
    recorded.sort();
    sent.sort();
    assert_eq!(sent, recorded);
}

#[test]
fn a_setup_token_goes_out_as_bearer_and_headers_of_the_owner_win() {
    let mut spec = opus();
    spec.base_url = "https://proxy.example/v1".to_owned();
    spec.headers =
        [("X-Extra".to_owned(), SecretString::from("1")), ("Accept".to_owned(), SecretString::from("*/*"))]
            .into();
    let built = head(&spec, Some(&SecretString::from("sk-ant-oat01-x"))).unwrap();
    let headers: std::collections::BTreeMap<_, _> = built.headers.pairs().into_iter().collect();
    assert_eq!(headers["authorization"], "Bearer sk-ant-oat01-x");
    assert_eq!(headers["anthropic-beta"], format!("{TOKEN_BETA},{BETAS}"));
    assert!(!headers.contains_key("x-api-key"));
    assert_eq!((headers["x-extra"].as_str(), headers["accept"].as_str()), ("1", "*/*"));
    assert_eq!(built.url, "https://proxy.example/v1/messages");
}

#[test]
fn thinking_is_asked_for_as_each_model_wants_it() {
    let fields = |spec: &ModelSpec, level: ThinkingLevel| {
        let body = body(spec, &ModelRequest { thinking: level, temperature: Some(0.5), ..with(vec![]) });
        json!([body["max_tokens"], body["thinking"], body["output_config"], body["temperature"]])
    };
    let plain = ModelSpec::sample("anthropic", "claude-3", "anthropic-messages");
    let enabled = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens});
    let rows = [
        (opus(), ThinkingLevel::XHigh, json!([32_000, {"type": "adaptive"}, {"effort": "max"}, null])),
        (opus(), ThinkingLevel::Off, json!([32_000, null, null, 0.5])),
        (sonnet(64_000), ThinkingLevel::High, json!([48_384, enabled(16_384), null, null])),
        (sonnet(8_192), ThinkingLevel::High, json!([8_192, enabled(7_168), null, null])),
        (sonnet(4_096), ThinkingLevel::Minimal, json!([4_096, enabled(1_024), null, null])),
        (plain, ThinkingLevel::High, json!([8_192, null, null, 0.5])),
    ];
    for (spec, level, expect) in rows {
        assert_eq!(fields(&spec, level), expect, "{} {level}", spec.id());
    }
}

#[test]
fn an_hour_of_cache_exists_only_at_anthropic_itself() {
    let marker = |base_url: &str, cache: CacheRetention| {
        let mut spec = opus();
        spec.base_url = base_url.to_owned();
        let request = ModelRequest { system: "s".into(), cache, ..with(vec![user("hi")]) };
        let body = body(&spec, &request);
        let on_message = body["messages"][0]["content"][0]["cache_control"].clone();
        assert_eq!(body["system"][0]["cache_control"], on_message);
        on_message
    };
    let own = "https://api.anthropic.com";
    assert_eq!(marker(own, CacheRetention::Long), json!({"type": "ephemeral", "ttl": "1h"}));
    assert_eq!(marker(own, CacheRetention::Short), json!({"type": "ephemeral"}));
    assert_eq!(marker("https://proxy", CacheRetention::Long), json!({"type": "ephemeral"}));
    assert_eq!(marker(own, CacheRetention::None), Value::Null);
}

/// Spec `models.md` §4.1.
#[test]
fn the_marker_is_on_the_last_block_of_the_last_message_if_that_is_the_users() {
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "x", "arguments": {}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let said = || assistant(json!([text("so")]));
    let called = || assistant(json!([call("a"), call("b")]));
    let image = json!({"type": "image", "data": "QQ==", "mimeType": "image/png"});
    let shown = |blocks: Value| {
        let content = UserContent::Blocks(serde_json::from_value(blocks).unwrap());
        Message::User(UserMessage { content, ..UserMessage::default() })
    };
    let rows = [
        (vec![], vec![]),
        (vec![user("hi"), said()], vec![]),
        (vec![user("hi"), called()], vec![(2, 1)]),
        (vec![user("hi"), said(), user("go on")], vec![(2, 0)]),
        (vec![shown(json!([text("one"), text("two"), image]))], vec![(0, 2)]),
        (vec![shown(json!([text("one"), text("two"), text(" ")]))], vec![(0, 1)]),
        (
            vec![user("hi"), called(), result("a", json!([text("1")])), result("b", json!([image]))],
            vec![(2, 1)],
        ),
        (
            vec![user("hi"), called(), result("a", json!([])), result("b", json!([])), user("go on")],
            vec![(3, 0)],
        ),
    ];
    for (messages, expect) in rows {
        let request = ModelRequest {
            messages: messages.into_iter().map(Into::into).collect::<Vec<_>>().into(),
            ..ModelRequest::default()
        };
        let body = body(&opus(), &request);
        let mut marked = Vec::new();
        for (at, message) in body["messages"].as_array().unwrap().iter().enumerate() {
            for (block, content) in message["content"].as_array().unwrap().iter().enumerate() {
                marked.extend(content.get("cache_control").map(|_| (at, block)));
            }
        }
        assert_eq!(marked, expect, "{body}");
    }
}

#[test]
fn consecutive_results_become_one_message_and_users_are_not_merged_into_it() {
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "x", "arguments": {"a": 1}});
    let found = messages_of(
        &opus(),
        vec![
            user("hi"),
            assistant(json!([call("a"), call("b"), call("c"), {"type": "text", "text": " "}])),
            result("a", json!([{"type": "text", "text": "1"}, {"type": "text", "text": "2"}])),
            result("b", json!([{"type": "image", "data": "QQ==", "mimeType": "image/png"}])),
            result("c", json!([])),
            user("go on"),
        ],
    );
    let used = |id: &str| json!({"type": "tool_use", "id": id, "name": "x", "input": {"a": 1}});
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}});
    let answered = |id: &str, content: Value| json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": false});
    assert_eq!(
        found,
        json!([
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [used("a"), used("b"), used("c")]},
            {"role": "user", "content": [
                answered("a", json!("1\n2")),
                answered("b", json!([{"type": "text", "text": "(see attached image)"}, image])),
                answered("c", json!(""))]},
            {"role": "user", "content": [{"type": "text", "text": "go on"}]}])
    );
}

#[test]
fn reasoning_is_given_back_with_its_signature() {
    let found = messages_of(
        &opus(),
        vec![assistant(json!([
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
            {"type": "thinking", "thinking": "unsigned"},
            {"type": "thinking", "thinking": "", "thinkingSignature": "blob", "redacted": true},
            {"type": "text", "text": "so"}]))],
    );
    assert_eq!(
        found[1]["content"],
        json!([
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "text", "text": "unsigned"},
            {"type": "redacted_thinking", "data": "blob"},
            {"type": "text", "text": "so"}])
    );
}

#[test]
fn blank_text_is_dropped_with_its_message_and_the_blind_are_told_of_images() {
    let blocks = UserContent::Blocks(
        serde_json::from_value(json!([
            {"type": "text", "text": " \n"},
            {"type": "image", "data": "QQ==", "mimeType": "image/png"},
            {"type": "novel"}]))
        .unwrap(),
    );
    let image = Message::User(UserMessage { content: blocks, ..UserMessage::default() });
    let plain =
        Message::User(UserMessage { content: UserContent::Text("hi".to_owned()), ..UserMessage::default() });
    let mut blind = opus();
    blind.images = false;
    let told = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        messages_of(&blind, vec![user(" "), image.clone(), plain]),
        json!([{"role": "user", "content": [told(IMAGE_LEFT_OUT), told("hi")]}])
    );
    assert_eq!(messages_of(&opus(), vec![image])[0]["content"][0]["type"], "image");
}

#[test]
fn the_refusal_trigger_is_defused_for_anthropic_alone() {
    let (text, harmless) = (
        "say ANTHROPIC_MAGIC_STRING_TRIGGER_REFUSAL",
        "say ANTHROPIC MAGIC STRING TRIGGER REFUSAL (redacted)",
    );
    let mut other = opus();
    other.reference = crate::reference::ModelRef::new("minimax-cn", "m");
    let call = json!([{"type": "toolCall", "id": "a", "name": "x", "arguments": {}}]);
    let block = json!([{"type": "text", "text": text}]);
    let image =
        json!([{"type": "text", "text": text}, {"type": "image", "data": "QQ==", "mimeType": "image/png"}]);
    let messages =
        vec![user(text), assistant(call.clone()), result("a", block), assistant(call), result("a", image)];
    for (spec, expect) in [(opus(), harmless), (other, text)] {
        let body = body(&spec, &ModelRequest { system: text.into(), ..with(messages.clone()) });
        let sent = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
        for pointer in [
            "/system/0/text",
            "/messages/0/content/0/text",
            "/messages/2/content/0/content",
            "/messages/4/content/0/content/0/text",
        ] {
            assert_eq!(sent(pointer), Some(expect), "{pointer} {body}");
        }
    }
}

#[test]
fn the_request_of_the_next_turn_begins_with_the_same_bytes() {
    let call = json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": "s"},
        {"type": "toolCall", "id": "a", "name": "x", "arguments": {"b": 1, "a": 2}}]);
    let mut messages =
        vec![user("one"), assistant(call), result("a", json!([{"type": "text", "text": "1"}]))];
    let first = messages_of(&opus(), messages.clone()).to_string();
    messages.push(assistant(json!([{"type": "text", "text": "done"}])));
    messages.push(user("two"));
    let second = messages_of(&opus(), messages).to_string();
    assert!(second.starts_with(first.trim_end_matches(']')), "{first}\n{second}");
}

/// Models with a budget for thoughts refuse to think behind calls that were made without.
#[test]
fn nothing_is_thought_behind_calls_of_a_model_that_did_not_think() {
    let spec = sonnet(8_192);
    let own = |content: Value| match assistant(content) {
        Message::Assistant(answer) => {
            Message::Assistant(AssistantMessage { model: spec.id().to_owned(), ..answer })
        }
        other => other,
    };
    let asked = |content: Value, more: Vec<Message>| {
        let messages = [vec![user("hi"), own(content)], more].concat();
        let request = ModelRequest { thinking: ThinkingLevel::High, ..with(messages) };
        body(&spec, &request).get("thinking").is_some()
    };
    let call = json!({"type": "toolCall", "id": "a", "name": "x", "arguments": {}});
    let thought = json!({"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"});
    let answered = || result("a", json!([]));
    assert!(!asked(json!([call]), vec![answered()]));
    assert!(asked(json!([thought, call]), vec![answered()]));
    assert!(asked(json!([call]), vec![answered(), user("go on")]), "another turn begins");
}

#[test]
fn a_conversation_that_begins_with_an_answer_is_begun_for_the_user() {
    let request = with(vec![assistant(json!([{"type": "text", "text": "hello"}])), user("hi")]);
    let found = body(&opus(), &request);
    assert_eq!(found["messages"][0]["role"], json!("user"));
    assert_eq!(found["messages"].as_array().unwrap().len(), 3);
}
