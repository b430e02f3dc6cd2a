//! Model servers that speak their protocol carelessly, and models that say nothing: what was meant is done, and nobody waits in silence.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, group_message, private_message};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::config::merge;
use crate::support::conversation::{end, history, send, turn};
use crate::support::telegram::bot;

/// A stream of Chat Completions with these deltas.
fn stream(deltas: &[Value], finish: &str) -> Reply {
    let chunk = |delta: &Value| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}));
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
    let body: String = deltas.iter().map(chunk).collect();
    Reply::plain(200, "text/event-stream", format!("{body}data: {end}\n\ndata: [DONE]\n\n"))
}

/// A gateway whose provider `one` asks this server, with a file `a.txt` in its workspace, and more configuration.
async fn served(server: &ModelServer, more: Value) -> GatewayUnderTest {
    let provider = |id: &str| {
        json!({"baseUrl": server.v1(), "api": "openai-completions", "apiKey": format!("key-of-{id}"),
            "models": [{"id": "m", "name": "M"}, {"id": "other", "name": "O"}]})
    };
    let mut config = json!({
        "agents": {"defaults": {"model": {"primary": "one/m"}}},
        "models": {"providers": {"one": provider("one"), "two": provider("two")}}});
    merge(&mut config, more);
    let mut gateway = gateway().config(config).prepare().unwrap();
    std::fs::create_dir_all(gateway.state_dir().join("workspace")).unwrap();
    std::fs::write(gateway.state_dir().join("workspace/a.txt"), "CONTENT-A\n").unwrap();
    gateway.start().await.unwrap();
    gateway
}

/// Profile `<provider>:a` of each of these providers.
fn write_profiles(gateway: &GatewayUnderTest, providers: &[&str]) {
    let profile = |provider: &&str| {
        (
            format!("{provider}:a"),
            json!({"type": "api_key", "provider": provider, "key": format!("key-of-{provider}")}),
        )
    };
    let profiles: serde_json::Map<String, Value> = providers.iter().map(profile).collect();
    let dir = gateway.state_dir().join("agents/main/agent");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("auth-profiles.json"), json!({"version": 1, "profiles": profiles}).to_string())
        .unwrap();
}

fn usage_stats(gateway: &GatewayUnderTest) -> Value {
    let path = gateway.state_dir().join("agents/main/agent/auth-profiles.json");
    serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap()["usageStats"].clone()
}

/// The models that were asked, in order.
fn asked(server: &ModelServer) -> Vec<String> {
    let by_key = |request: &openclaw_testkit::model_server::Captured| {
        let key = request.header("authorization").unwrap_or_default().to_owned();
        format!(
            "{}/{}",
            key.rsplit('-').next().unwrap_or_default(),
            request.body["model"].as_str().unwrap_or_default()
        )
    };
    server.requests().iter().map(by_key).collect()
}

#[tokio::test]
async fn calls_whose_names_ids_or_indexes_come_late_or_oddly_are_made() {
    const READ: &str = r#"{"path":"a.txt"}"#;
    const OTHER: &str = r#"{"path":"b.txt"}"#;
    let pieces = |calls: Value| vec![json!({"tool_calls": calls})];
    let call = |more: Value| {
        let mut call = json!({"index": 0});
        merge(&mut call, more);
        json!({"tool_calls": [call]})
    };
    let function = |function: Value| call(json!({"function": function}));
    let opened = |function: Value| call(json!({"id": "call_1", "type": "function", "function": function}));
    let whole = json!({"name": "read", "arguments": READ});
    let shapes: Vec<(&str, Vec<Value>)> = vec![
        (
            "no name at first",
            vec![
                opened(json!({"arguments": ""})),
                function(json!({"name": "read"})),
                function(json!({"arguments": READ})),
            ],
        ),
        (
            "an empty name at first",
            vec![
                opened(json!({"name": "", "arguments": ""})),
                call(json!({"id": "", "function": {"name": "read", "arguments": ""}})),
                call(json!({"id": "", "function": {"name": "", "arguments": READ}})),
            ],
        ),
        (
            "null at first, then named under the same id",
            vec![opened(json!({"name": null, "arguments": null})), opened(whole.clone())],
        ),
        (
            "arguments before the id",
            vec![
                function(json!({"arguments": r#"{"pa"#})),
                opened(json!({"name": "read", "arguments": r#"th":"#})),
                function(json!({"arguments": r#""a.txt"}"#})),
            ],
        ),
        (
            "the id second, with the name again",
            vec![function(json!({"name": "read", "arguments": ""})), opened(whole.clone())],
        ),
        (
            "two calls with neither index nor id",
            pieces(json!([{"function": whole}, {"function": {"name": "read", "arguments": OTHER}}])),
        ),
        ("a number as id", vec![call(json!({"id": 0, "function": whole}))]),
        ("the index as text", vec![call(json!({"index": "0", "id": "call_1", "function": whole}))]),
        (
            "odd types beside",
            vec![
                json!({"reasoning_content": {}, "refusal": [], "tool_calls": {}, "content": null}),
                call(
                    json!({"index": "0", "id": 7, "type": 1, "function": {"name": "read", "arguments": {"path": "a.txt"}}}),
                ),
            ],
        ),
        (
            "an empty object first",
            vec![opened(json!({"name": "read", "arguments": "{}"})), function(json!({"arguments": READ}))],
        ),
        ("all of it with each piece", vec![opened(whole.clone()), opened(whole.clone())]),
        (
            "fenced arguments",
            vec![opened(json!({"name": "read", "arguments": format!("```json\n{READ}\n```")}))],
        ),
        (
            "a prefix of the name",
            vec![call(
                json!({"id": "functions.read:0", "function": {"name": "functions.read", "arguments": READ}}),
            )],
        ),
        (
            "as text",
            vec![
                json!({"content": format!("<tool_call>\n{{\"name\":\"read\",\"arguments\":{READ}}}\n</tool_call>")}),
            ],
        ),
        ("the old way", vec![json!({"content": null, "function_call": whole})]),
    ];
    let replies = shapes.iter().flat_map(|(_, deltas)| {
        // A strict server takes what it is shown of the call later, too.
        [stream(deltas, "stop"), Reply::text("FINE"), Reply::text("AGAIN")]
    });
    let server = ModelServer::queue(replies.collect::<Vec<_>>()).await;
    let gateway = served(&server, json!({})).await;
    std::fs::write(gateway.state_dir().join("workspace/b.txt"), "CONTENT-B\n").unwrap();
    let mut client = gateway.client().await.unwrap();
    for (at, (what, deltas)) in shapes.iter().enumerate() {
        let key = format!("shape-{at}");
        assert_eq!(turn(&mut client, &key, "look", &format!("{key}-a")).await, "FINE", "{what}");
        assert_eq!(turn(&mut client, &key, "and?", &format!("{key}-b")).await, "AGAIN", "{what}");
        let again = server.requests().pop().unwrap().body;
        let messages = again["messages"].as_array().unwrap();
        let calls = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
        let names: Vec<&Value> = calls.map(|call| &call["function"]["name"]).collect();
        let count = deltas[0]["tool_calls"].as_array().map_or(1, Vec::len);
        assert_eq!(names, vec!["read"; count], "{what}: {again}");
        let results: Vec<&Value> = messages.iter().filter(|message| message["role"] == "tool").collect();
        assert_eq!(results.len(), count, "{what}: {again}");
        for (result, content) in results.iter().zip(["CONTENT-A\n", "CONTENT-B\n"]) {
            assert_eq!(result["content"], content, "{what}: {again}");
        }
    }
}

#[tokio::test]
async fn what_a_server_sends_with_a_call_goes_back_with_it() {
    let extra = json!({"google": {"thought_signature": "c2lnbmF0dXJl"}});
    let call = json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "extra_content": extra,
        "function": {"name": "read", "arguments": "{\"path\":\"a.txt\"}"}}]});
    let server =
        ModelServer::queue([stream(&[call], "tool_calls"), Reply::text("FINE"), Reply::text("AGAIN")]).await;
    let gateway = served(&server, json!({})).await;
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "look", "r1").await, "FINE");
    assert_eq!(turn(&mut client, "main", "/model two/m go on", "r2").await, "AGAIN");
    let sent = |number: usize| {
        let body = server.requests()[number].body.clone();
        body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .find_map(|message| message["tool_calls"].get(0).cloned())
            .unwrap()
    };
    assert_eq!(sent(1)["extra_content"], extra);
    assert_eq!(sent(2).get("extra_content"), None, "another model is not shown it");
}

/// Answers in which there is nothing to read.
fn speechless() -> Vec<(&'static str, Reply)> {
    vec![
        ("nothing", stream(&[], "stop")),
        ("blanks", stream(&[json!({"content": " \n"})], "stop")),
        ("thoughts alone", stream(&[json!({"reasoning_content": "hm"})], "stop")),
        ("thoughts in tags", stream(&[json!({"content": "<think>hm</think>"})], "stop")),
        ("cut while thinking", stream(&[json!({"reasoning_content": "hm"})], "length")),
    ]
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_once_more() {
    for (what, empty) in speechless() {
        let server = ModelServer::queue([empty, Reply::text("FINE")]).await;
        let gateway = served(&server, json!({})).await;
        let mut client = gateway.client().await.unwrap();
        assert_eq!(turn(&mut client, "main", "hello", "r1").await, "FINE", "{what}");
        assert_eq!(asked(&server), ["one/m", "one/m"], "{what}");
        let shown = history(&mut client, "main").await;
        assert_eq!(shown.iter().filter(|line| line.contains("FINE")).count(), 1, "{shown:?}");
    }
}

#[tokio::test]
async fn an_empty_answer_behind_a_tool_is_asked_for_once_more_and_the_tool_is_not_called_again() {
    let call = json!({"content": null, "tool_calls": [{"index": 0, "id": "call_1", "type": "function",
        "function": {"name": "read", "arguments": "{\"path\":\"a.txt\"}"}}]});
    let server = ModelServer::queue([
        stream(&[call], "tool_calls"),
        stream(&[json!({"content": ""})], "stop"),
        Reply::text("FINE"),
    ])
    .await;
    let gateway = served(&server, json!({})).await;
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "look", "r1").await, "FINE");
    let last = server.requests().pop().unwrap().body["messages"].to_string();
    assert_eq!((server.requests().len(), last.matches("CONTENT-A").count()), (3, 1), "{last}");
}

#[tokio::test]
async fn a_model_that_says_nothing_twice_gives_way_to_the_fallback_and_then_a_sentence_is_said() {
    let fallbacks = json!({"agents": {"defaults": {"model": {"primary": "one/m", "fallbacks": ["two/m"]}}}});
    let empty = || stream(&[], "stop");
    let server =
        ModelServer::queue([empty(), empty(), Reply::text("from two"), empty(), empty(), empty()]).await;
    let gateway = served(&server, fallbacks).await;
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "r1").await, "from two");
    send(&mut client, "main", "again", "r2").await;
    let ended = end(&mut client, "r2").await;
    assert_eq!(ended["state"], "error", "{ended}");
    let told = ended.to_string();
    assert!(
        told.contains("No response generated. Please try again.") && told.contains(": one/m, two/m. "),
        "{ended}"
    );
    assert_eq!(asked(&server), ["one/m", "one/m", "two/m", "one/m", "one/m", "two/m"]);
    let said = openclaw(&gateway, &["agent", "--agent", "main", "-m", "hello"]).await;
    said.failed(&["500"]);
}

#[tokio::test]
async fn an_empty_answer_is_a_sentence_in_a_private_chat_and_silence_in_a_group() {
    let groups = json!({"dmPolicy": "open", "allowFrom": ["*"], "groupPolicy": "open", "groups": {"*": {"requireMention": false}}});
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| match request.last_user_text() {
        said if said.contains("quiet") => Reply::text("NO_REPLY"),
        said if said.contains("stars") => Reply::text("***"),
        _ => stream(&[json!({"reasoning_content": "hm"})], "stop"),
    })
    .await;
    let gateway = bot(&server, &model, groups, json!({})).await;
    server.push(group_message(-7, 5, "say something"));
    model.arrived(2).await;
    gateway.fates().await.unwrap();
    server.push(private_message(5, "be quiet"));
    model.arrived(3).await;
    gateway.fates().await.unwrap();
    server.push(private_message(5, "say something"));
    let told = server.nth_call("sendMessage", 1).await.params["text"].as_str().unwrap().to_owned();
    assert!(told.starts_with("No response generated. Please try again.\n"), "{told}");
    assert!(told.contains("fake/fake-1") && told.contains("openclaw models status --probe"), "{told}");
    gateway.fates().await.unwrap();
    assert_eq!((model.requests().len(), server.calls("sendMessage").len()), (5, 1));
    // Words of which a platform would show nothing.
    server.push(private_message(5, "stars please"));
    let told = server.nth_call("sendMessage", 2).await.params["text"].as_str().unwrap().to_owned();
    assert!(told.starts_with("No response generated. Please try again."), "{told}");
}

#[tokio::test]
async fn whoever_was_told_something_by_tool_or_before_a_call_is_not_told_that_nothing_came() {
    let spoke_first = stream(
        &[
            json!({"content": "I look."}),
            json!({"tool_calls": [{"index": 0, "id": "c1",
            "function": {"name": "read", "arguments": "{\"path\":\"a.txt\"}"}}]}),
        ],
        "tool_calls",
    );
    let server = ModelServer::queue([spoke_first, stream(&[], "stop")]).await;
    let gateway = served(&server, json!({})).await;
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "r1").await, "I look.");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_throttle_in_the_words_of_a_used_up_quota_is_a_rate_limit() {
    let rows = [
        (
            429,
            json!({"error": {"code": "insufficient_quota", "type": "insufficient_quota",
            "message": "Allocated quota exceeded, please increase your quota limit."}}),
            false,
        ),
        (
            429,
            json!({"error": {"code": "insufficient_quota", "type": "insufficient_quota",
            "message": "You exceeded your current quota, please check your plan and billing details."}}),
            true,
        ),
        (
            429,
            json!({"error": {"code": "1113", "message": "Insufficient balance or no resource package. Please recharge."}}),
            true,
        ),
        (429, json!({"code": "Throttling.AllocationQuota", "message": "Allocated quota exceeded"}), false),
        (410, json!({"error": {"message": "gone for good"}}), false),
    ];
    for (status, body, is_disabled) in rows {
        let refused = body.clone();
        let server = ModelServer::answering(move |request| match request.header("authorization") {
            Some("Bearer key-of-one") => Reply::error(status, &refused),
            _ => Reply::text("from two"),
        })
        .await;
        let fallbacks =
            json!({"agents": {"defaults": {"model": {"primary": "one/m", "fallbacks": ["two/m"]}}}});
        let mut gateway = prepared(&server, fallbacks);
        write_profiles(&gateway, &["one"]);
        gateway.start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        assert_eq!(turn(&mut client, "main", "hello", "r1").await, "from two", "{body}");
        drop(client);
        assert!(gateway.terminate().await.unwrap().success());
        let stats = &usage_stats(&gateway)["one:a"];
        assert_eq!(stats.get("disabledUntil").is_some(), is_disabled, "{body} {stats}");
        assert_eq!(stats.get("cooldownUntil").is_some(), status == 429 && !is_disabled, "{body} {stats}");
    }
}

fn prepared(server: &ModelServer, more: Value) -> GatewayUnderTest {
    let provider = |id: &str| {
        json!({"baseUrl": server.v1(), "api": "openai-completions", "apiKey": format!("key-of-{id}"),
            "models": [{"id": "m", "name": "M"}]})
    };
    let mut config = json!({"models": {"providers": {"one": provider("one"), "two": provider("two")}}});
    merge(&mut config, more);
    gateway().config(config).prepare().unwrap()
}

#[tokio::test]
async fn a_credit_that_is_enough_for_a_shorter_answer_gives_one() {
    let said = "This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford 1200.";
    let server =
        ModelServer::answering(move |request| match request.body["max_completion_tokens"].as_u64() {
            Some(1200) => Reply::text("short"),
            _ => Reply::error(402, &json!({"error": {"message": said, "code": 402}})),
        })
        .await;
    let mut gateway = prepared(&server, json!({"agents": {"defaults": {"model": {"primary": "one/m"}}}}));
    write_profiles(&gateway, &["one"]);
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "r1").await, "short");
    assert_eq!(server.requests().len(), 2);
    drop(client);
    assert!(gateway.terminate().await.unwrap().success());
    assert_eq!(usage_stats(&gateway)["one:a"].get("disabledUntil"), None, "its key is as good as before");
}

#[tokio::test]
async fn a_server_that_knows_no_tools_is_asked_once() {
    let said = json!({"error": {"message": "registry.ollama.ai/library/gemma does not support tools", "type": "api_error"}});
    let server = ModelServer::answering(move |_| Reply::error(400, &said)).await;
    let gateway = served(&server, json!({})).await;
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "hello", "r1").await;
    let ended = end(&mut client, "r1").await;
    assert!(ended.to_string().contains("does not support tools"), "{ended}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_fallback_that_is_not_among_the_allowed_models_is_named_at_the_start_by_doctor_and_by_status() {
    let server = ModelServer::answering(|_| Reply::text("fine")).await;
    let model = json!({"primary": "one/m", "fallbacks": ["two/m"]});
    let configs = [
        json!({"agents": {"defaults": {"model": model, "models": {"one/m": {}}}}}),
        json!({"agents": {"defaults": {"models": {"one/m": {}}}, "list": [{"id": "main", "model": model}]}}),
    ];
    for config in configs {
        let gateway = served(&server, config.clone()).await;
        let told = "fallback two/m is not in agents.defaults.models and is left out";
        gateway.logged(told).await.unwrap();
        for command in [&["models", "status"][..], &["doctor"], &["models", "fallbacks", "list"]] {
            let said = format!("{:?}", openclaw(&gateway, command).await);
            assert_eq!(said.matches(told).count(), 1, "{config} {command:?}: {said}");
        }
    }
}

/// The provider wants money once. Then it was topped up, and the person chooses the model again.
#[tokio::test]
async fn a_model_that_a_person_chooses_is_tried_although_its_credential_is_disabled() {
    let low =
        json!({"error": {"message": "Your credit balance is too low", "type": "invalid_request_error"}});
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = ModelServer::answering(move |request| {
        let is_one = request.header("authorization") == Some("Bearer key-of-one");
        match is_one && count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 {
            true => Reply::error(400, &low),
            false => Reply::text(if is_one { "from one" } else { "from two" }),
        }
    })
    .await;
    let fallbacks = json!({"agents": {"defaults": {"model": {"primary": "one/m", "fallbacks": ["two/m"]}}}});
    let mut gateway = prepared(&server, fallbacks);
    write_profiles(&gateway, &["one"]);
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "one", "r1").await, "from two");
    assert_eq!(turn(&mut client, "main", "two", "r2").await, "from two", "its credential is disabled");
    turn(&mut client, "main", "/model one/m", "r3").await;
    assert_eq!(turn(&mut client, "main", "three", "r4").await, "from one");
    assert_eq!(turn(&mut client, "main", "four", "r5").await, "from one");
}
