use openclaw_protocol::message::UserMessage;
use serde_json::json;

use super::*;
use crate::provider_entry::Compat;

/// Address and headers.
fn head_of(spec: &ModelSpec, key: Option<&SecretString>, request: &ModelRequest) -> RequestHead {
    head(spec, key, RequestConversation::whole(&request.messages).asked()).unwrap()
}

/// The body as a value.
fn body(spec: &ModelSpec, request: &ModelRequest) -> Value {
    let request = request.prepared_for(spec, Dialect::of(spec).ids);
    let conversation = RequestConversation::whole(&request.messages);
    serde_json::from_slice(&super::body(spec, &request, &conversation).to_bytes()).unwrap()
}

fn llama() -> ModelSpec {
    let mut spec = ModelSpec::sample("local", "llama", "openai-completions");
    spec.base_url = "http://127.0.0.1:1/v1".to_owned();
    spec.max_tokens = 4096;
    spec
}

fn user(text: &str) -> Message {
    Message::User(UserMessage::text(text, 1))
}

fn assistant(spec: &ModelSpec, content: Value) -> Message {
    Message::Assistant(AssistantMessage {
        content: serde_json::from_value(content).unwrap(),
        api: spec.api.as_str().to_owned(),
        provider: spec.provider().to_owned(),
        model: spec.id().to_owned(),
        ..AssistantMessage::default()
    })
}

fn result(id: &str, content: Value) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: id.to_owned(),
        tool_name: "x".to_owned(),
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

fn tool_x() -> ToolSpec {
    ToolSpec { name: "x".into(), description: "d".into(), parameters: json!({"type": "object"}).into() }
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "x", "arguments": {"a": 1}})
}

/// The captured request, with the elided prose filled in; the capture shows the first tool whole.
#[test]
fn the_request_is_the_recorded_one() {
    let golden: Value =
        serde_json::from_str(include_str!("../../../tests/golden/agent-openai-completions-request.json"))
            .unwrap();
    let mut expect = golden["body"].clone();
    expect["messages"][0]["content"] = json!("the prompt");
    expect.as_object_mut().unwrap().shift_remove("toolNames");
    let function = &mut expect["tools"][0]["function"];
    function["description"] = json!("reads");
    let tool = ToolSpec {
        name: "read".into(),
        description: "reads".into(),
        parameters: function["parameters"].clone().into(),
    };
    let request = ModelRequest {
        system: "the prompt".into(),
        tools: vec![tool].into(),
        ..with(vec![user("[Sat 2026-11-21 02:45 UTC] hi lo")])
    };
    assert_eq!(body(&llama(), &request), expect);
    let built = head_of(&llama(), Some(&SecretString::from("lk")), &request);
    assert_eq!(built.url, format!("http://127.0.0.1:1{}", golden["url"].as_str().unwrap()));
    let mut recorded: Vec<(String, String)> =
        serde_json::from_value::<std::collections::BTreeMap<_, _>>(golden["headers"].clone())
            .unwrap()
            .into_iter()
            .filter(|(name, _): &(String, String)| name != "user-agent")
            .collect();
    let mut sent = built.headers.pairs();
    recorded.sort();
    sent.sort();
    assert_eq!(sent, recorded);
}

#[test]
fn without_a_key_no_authorization_is_sent() {
    let built = head_of(&llama(), None, &with(vec![]));
    assert!(built.headers.pairs().iter().all(|(name, _)| name != "authorization"));
}

#[test]
fn calls_results_and_their_images_take_their_shape() {
    let mut spec = llama();
    spec.images = true;
    let said = assistant(
        &spec,
        json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": "reasoning_content"},
            {"type": "text", "text": "one"}, {"type": "text", "text": " "}, call("a"), call("b")]),
    );
    let image = json!([{"type": "image", "data": "QQ==", "mimeType": "image/png"}]);
    let messages = vec![
        said,
        result("a", json!([{"type": "text", "text": "1"}, {"type": "text", "text": "2"}])),
        result("b", image),
        user("go on"),
        assistant(&spec, json!([{"type": "thinking", "thinking": "only thoughts"}])),
        assistant(&spec, json!([call("c")])),
        result("c", json!([])),
    ];
    let found = body(&spec, &with(messages));
    let called =
        |id: &str| json!({"id": id, "type": "function", "function": {"name": "x", "arguments": "{\"a\":1}"}});
    assert_eq!(
        found["messages"],
        json!([
            {"role": "assistant", "content": "one", "reasoning_content": "hm",
                "tool_calls": [called("a"), called("b")]},
            {"role": "tool", "tool_call_id": "a", "content": "1\n2"},
            {"role": "tool", "tool_call_id": "b", "content": "(see attached image)"},
            {"role": "user", "content": [{"type": "text", "text": "Attached image(s) from tool result:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}]},
            {"role": "user", "content": [{"type": "text", "text": "go on"}]},
            {"role": "assistant", "content": null, "tool_calls": [called("c")]},
            {"role": "tool", "tool_call_id": "c", "content": "(no output)"}])
    );
    assert_eq!(found["tools"], json!([]), "tools in the history and none on offer");
    assert_eq!(body(&spec, &with(vec![user("hi")])).get("tools"), None);
}

#[test]
fn dialects_change_the_request() {
    let body_of = |change: &dyn Fn(&mut ModelSpec), level: ThinkingLevel| {
        let mut spec = llama();
        spec.reasoning = true;
        change(&mut spec);
        let messages = vec![
            assistant(&spec, json!([{"type": "thinking", "thinking": "hm"}, call("call-12345")])),
            result("call-12345", json!([{"type": "text", "text": "1"}])),
            user("go on"),
        ];
        body(
            &spec,
            &ModelRequest {
                system: "s".into(),
                thinking: level,
                tools: vec![tool_x()].into(),
                ..with(messages)
            },
        )
    };
    let openai = body_of(&|_| (), ThinkingLevel::Medium);
    assert_eq!(
        (
            &openai["messages"][0]["role"],
            &openai["reasoning_effort"],
            &openai["tools"][0]["function"]["strict"]
        ),
        (&json!("developer"), &json!("medium"), &json!(false))
    );
    assert_eq!(body_of(&|_| (), ThinkingLevel::Off).get("reasoning_effort"), None);
    assert_eq!(body_of(&|_| (), ThinkingLevel::XHigh)["reasoning_effort"], json!("high"));

    let mistral = body_of(&|spec| spec.base_url = "https://api.mistral.ai/v1".to_owned(), ThinkingLevel::Off);
    assert_eq!(mistral["max_tokens"], json!(4096));
    assert_eq!((mistral.get("store"), &mistral["messages"][0]["role"]), (None, &json!("system")));
    assert_eq!(mistral["messages"][1]["content"], json!("hm"));
    assert_eq!(mistral["messages"][2]["name"], json!("x"));

    let zai = body_of(&|spec| spec.base_url = "https://api.z.ai/x".to_owned(), ThinkingLevel::Off);
    assert_eq!((&zai["thinking"], zai.get("reasoning_effort")), (&json!({"type": "disabled"}), None));
    let zai = body_of(&|spec| spec.base_url = "https://api.z.ai/x".to_owned(), ThinkingLevel::Low);
    assert_eq!((&zai["thinking"], zai.get("reasoning_effort")), (&json!({"type": "enabled"}), None));
    let xai = body_of(&|spec| spec.base_url = "https://api.x.ai/v1".to_owned(), ThinkingLevel::Low);
    assert_eq!((xai.get("thinking"), xai.get("reasoning_effort")), (None, None));
    let with_compat = |compat: Compat| body_of(&move |spec| spec.compat = compat.clone(), ThinkingLevel::Low);
    let qwen = Compat { thinking_format: Some("qwen".to_owned()), ..Compat::default() };
    assert_eq!(with_compat(qwen.clone())["enable_thinking"], json!(true));
    let quiet = body_of(&move |spec| spec.compat = qwen.clone(), ThinkingLevel::Off);
    assert_eq!((&quiet["enable_thinking"], quiet.get("reasoning_effort")), (&json!(false), None));
    let strict = with_compat(Compat { supports_strict_mode: Some(false), ..Compat::default() });
    assert_eq!(strict["tools"][0]["function"].get("strict"), None);
    let usage = with_compat(Compat { supports_usage_in_streaming: Some(false), ..Compat::default() });
    assert_eq!(usage.get("stream_options"), None);
    let bridge =
        with_compat(Compat { requires_assistant_after_tool_result: Some(true), ..Compat::default() });
    assert_eq!(
        bridge["messages"][3],
        json!({"role": "assistant", "content": "I have processed the tool results."})
    );
    let routed = with_compat(Compat {
        open_router_routing: Some(json!({"only": ["a"]})),
        vercel_gateway_routing: Some(json!({"order": ["b"]})),
        ..Compat::default()
    });
    assert_eq!(routed["provider"], json!({"only": ["a"]}));
    assert_eq!(routed["providerOptions"], json!({"gateway": {"order": ["b"]}}));
}

#[test]
fn the_reasoning_behind_calls_is_given_back_with_them() {
    let detail = |data: &str| json!({"type": "reasoning.encrypted", "id": "a", "data": data});
    let signed = |id: &str, signature: String| json!({"type": "toolCall", "id": id, "name": "x", "arguments": {}, "thoughtSignature": signature});
    let calls = json!([
        signed("a", detail("1").to_string()),
        call("b"),
        signed("c", "opaque".to_owned()),
        signed("d", detail("2").to_string())
    ]);
    let found = body(&llama(), &with(vec![assistant(&llama(), calls.clone())]));
    assert_eq!(found["messages"][0]["reasoning_details"], json!([detail("1"), detail("2")]));
    let foreign = body(&llama(), &with(vec![assistant(&ModelSpec::sample("local", "other", "x"), calls)]));
    assert_eq!(foreign["messages"][0].get("reasoning_details"), None);
}

#[test]
fn ids_of_another_provider_fit_this_one() {
    let foreign =
        assistant(&ModelSpec::sample("openai", "gpt", "openai-responses"), json!([call("toolu_1")]));
    for (provider, id) in [("mine", "toolu1ABC"), ("mistral", "86439319c")] {
        let mut spec = ModelSpec::sample(provider, "m", "openai-completions");
        spec.base_url = "https://api.mistral.ai/v1".to_owned();
        let found = body(&spec, &with(vec![foreign.clone(), result("toolu_1", json!([]))]));
        assert_eq!(found["messages"][0]["tool_calls"][0]["id"], json!(id));
        assert_eq!(found["messages"][1]["tool_call_id"], json!(id));
    }
}

#[test]
fn a_server_that_cannot_stream_tool_calls_is_asked_for_a_whole_answer() {
    let mut spec = llama();
    spec.streaming = false;
    let plain = body(&spec, &with(vec![user("hi")]));
    assert_eq!(plain["stream"], json!(true));
    let tools = body(&spec, &ModelRequest { tools: vec![tool_x()].into(), ..with(vec![user("hi")]) });
    assert_eq!((&tools["stream"], tools.get("stream_options")), (&json!(false), None));
}

#[test]
fn openrouter_gets_its_headers_and_cache_marks_for_claude() {
    let mut spec = ModelSpec::sample("openrouter", "anthropic/claude-opus-4.6", "openai-completions");
    spec.headers = [("x-title".to_owned(), SecretString::from("Mine"))].into();
    let said = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}, call("a")]);
    let request =
        with(vec![user("hi"), assistant(&spec, said.clone()), result("a", json!([])), user("go on")]);
    let found = body(&spec, &request);
    assert_eq!(found["messages"][3]["content"][0]["cache_control"], json!({"type": "ephemeral"}));
    assert_eq!(found["messages"][0]["content"][0].get("cache_control"), None);
    let parts = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]);
    assert_eq!(found["messages"][1]["content"], parts, "a part may carry the mark");
    let other = ModelSpec::sample("openrouter", "any", "openai-completions");
    let found_other = body(&other, &with(vec![assistant(&other, said)]));
    assert_eq!(found_other["messages"][0]["content"], json!("one\ntwo"));
    let headers: std::collections::BTreeMap<_, _> =
        head_of(&spec, None, &request).headers.pairs().into_iter().collect();
    assert_eq!(
        (headers["http-referer"].as_str(), headers["x-title"].as_str()),
        ("https://openclaw.ai", "Mine")
    );
    let uncached = body(&spec, &ModelRequest { cache: CacheRetention::None, ..request });
    assert_eq!(uncached["messages"][3]["content"][0].get("cache_control"), None);
}

#[test]
fn copilots_models_get_its_headers() {
    let spec = ModelSpec::sample("github-copilot", "gpt-4.1", "openai-completions");
    let messages = vec![user("hi"), assistant(&spec, json!([call("a")])), result("a", json!([]))];
    let built = head_of(&spec, None, &with(messages));
    let headers: std::collections::BTreeMap<_, _> = built.headers.pairs().into_iter().collect();
    assert_eq!(
        (headers["x-initiator"].as_str(), headers["openai-intent"].as_str()),
        ("agent", "conversation-edits")
    );
    assert!(!headers.contains_key("copilot-vision-request"));
    let image = json!([{"type": "image", "data": "QQ==", "mimeType": "image/png"}]);
    let seen = vec![user("hi"), assistant(&spec, json!([call("a")])), result("a", image)];
    let headers = head_of(&spec, None, &with(seen)).headers.pairs();
    assert!(headers.contains(&("copilot-vision-request".to_owned(), "true".to_owned())), "{headers:?}");
}

#[test]
fn copilot_wants_an_answer_as_one_string() {
    let spec = ModelSpec::sample("github-copilot", "gpt-4.1", "openai-completions");
    let said = json!([{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]);
    assert_eq!(body(&spec, &with(vec![assistant(&spec, said)]))["messages"][0]["content"], json!("one two"));
}

/// Fields that a server sent with a call go back to the model that made it, and to no other.
#[test]
fn what_came_with_a_call_goes_back_to_the_same_model_alone() {
    let fields =
        json!({"extra_content": {"google": {"thought_signature": "c2ln", "later": 1}}, "novel": [1]});
    let said =
        json!([{"type": "toolCall", "id": "a", "name": "x", "arguments": {}, "providerFields": fields}]);
    let gemini = ModelSpec::sample("google-openai", "gemini-3-pro", "openai-completions");
    let sent = |to: &ModelSpec| {
        let messages = vec![user("hi"), assistant(&gemini, said.clone()), result("a", json!([]))];
        body(to, &with(messages))["messages"][1]["tool_calls"][0].clone()
    };
    let function = json!({"name": "x", "arguments": "{}"});
    assert_eq!(
        sent(&gemini),
        json!({"id": "a", "type": "function", "function": function,
            "extra_content": fields["extra_content"], "novel": [1]})
    );
    let other = ModelSpec::sample("google-openai", "gemini-3-flash", "openai-completions");
    assert_eq!(sent(&other), json!({"id": "a", "type": "function", "function": function}));
}
