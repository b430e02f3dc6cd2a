//! A run that is stopped at any point leaves a transcript that every provider accepts (spec `agent-runtime.md` §2.5).

use std::collections::BTreeSet;

use openclaw_testkit::model_server::{Captured, ModelServer, Reply, ScriptedCall, Step};
use openclaw_testkit::{GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{end, message, sessions_dir, well_formed};

/// A client that hears of tools too.
async fn watcher(gateway: &GatewayUnderTest) -> WsClient {
    let login = Login::token(TOKEN).with("caps", json!(["tool-events", "tool-activity"]));
    WsClient::connect(gateway.port(), login).await.unwrap().0
}

/// Checks what providers refuse: calls without results, results without calls, empty answers, an end that is no question.
fn acceptable(request: &Captured, at: &str) {
    let mut open = BTreeSet::new();
    let messages = request.messages();
    for message in messages {
        let role = message["role"].as_str().unwrap();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            assert!(open.remove(id), "{at}: a result without a call in {messages:#?}");
            continue;
        }
        assert!(open.is_empty(), "{at}: calls without results in {messages:#?}");
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open.extend(calls.map(|call| call["id"].as_str().unwrap().to_owned()));
        let is_empty = match &message["content"] {
            Value::String(text) => text.is_empty(),
            Value::Array(parts) => parts.is_empty(),
            _ => true,
        };
        assert!(!is_empty || !open.is_empty(), "{at}: an empty message in {messages:#?}");
    }
    assert_eq!(messages.last().unwrap()["role"], "user", "{at}: {messages:#?}");
}

/// Goes on in a session whose run was stopped, and checks what the model is told and what is on disk.
async fn goes_on(
    gateway: &GatewayUnderTest,
    client: &mut WsClient,
    model: &ModelServer,
    key: &str,
    at: &str,
) {
    let run = format!("{key}-next");
    client.request("chat.send", message(key, "go on", &run)).await.unwrap();
    let answer = end(client, &run).await;
    assert_eq!(
        (&answer["state"], &answer["message"]["content"][0]["text"]),
        (&json!("final"), &json!("whole")),
        "{at}"
    );
    let requests = model.requests();
    let asked = requests.iter().rfind(|request| request.last_user_text().contains("go on")).unwrap();
    acceptable(asked, at);
    let history = client.request("chat.history", json!({"sessionKey": key})).await.unwrap();
    let id = history["sessionId"].as_str().unwrap();
    well_formed(&sessions_dir(gateway).join(format!("{id}.jsonl")));
}

fn calls() -> [ScriptedCall; 2] {
    let read = |id: &str| ScriptedCall::new(id, "read", &json!({"path": "notes.txt"}));
    [read("call_1"), read("call_2")]
}

fn sleeps() -> ScriptedCall {
    ScriptedCall::new("call_2", "exec", &json!({"command": "sleep 600"}))
}

/// Moment at which a run is stopped.
enum When {
    /// Number of requests that have come to the model.
    Asked(usize),
    /// An `agent` event is like this.
    Heard(fn(&Value) -> bool),
}

fn has_text(event: &Value) -> bool {
    event["stream"] == "assistant"
}

fn tool(phase: &'static str) -> fn(&Value) -> bool {
    match phase {
        "start" => |event| event["stream"] == "tool" && event["data"]["phase"] == "start",
        _ => |event| event["stream"] == "tool" && event["data"]["phase"] == "result",
    }
}

#[tokio::test]
async fn at_every_stage_of_a_turn_a_stop_leaves_a_conversation_that_can_go_on() {
    let [first, second] = calls();
    let text = |text: &str| Step::Text(text.to_owned());
    let stages: Vec<(&str, Vec<Reply>, When)> = vec![
        ("before the first word", vec![Reply::never()], When::Asked(1)),
        ("while it thinks", vec![Reply::steps([Step::Thinking("hm".into()), Step::Hang])], When::Asked(1)),
        ("within its words", vec![Reply::steps([text("half"), Step::Hang])], When::Heard(has_text)),
        (
            "within a call",
            vec![Reply::steps([text("let me"), Step::HalfToolCall(first.clone()), Step::Hang])],
            When::Heard(has_text),
        ),
        (
            "behind its calls",
            vec![Reply::steps([text("let me"), Step::ToolCalls(vec![first.clone(), second]), Step::Hang])],
            When::Heard(has_text),
        ),
        ("while a tool runs", vec![Reply::tools([sleeps(), first.clone()])], When::Heard(tool("start"))),
        ("between two tools", vec![Reply::tools([first.clone(), sleeps()])], When::Heard(tool("result"))),
        ("before the second answer", vec![Reply::tools([first.clone()]), Reply::never()], When::Asked(2)),
        (
            "within the second answer",
            vec![Reply::tools([first]), Reply::steps([text("half"), Step::Hang])],
            When::Heard(has_text),
        ),
        (
            "while it waits to ask again",
            vec![Reply::openai_error(503, "server_error", "later")],
            When::Asked(1),
        ),
    ];
    for (at, replies, when) in stages {
        let model = ModelServer::queue(replies.into_iter().chain([Reply::text("whole")])).await;
        let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
        let mut client = watcher(&gateway).await;
        client.request("chat.send", message("main", "go", "run")).await.unwrap();
        match when {
            When::Asked(count) => model.arrived(count).await,
            When::Heard(pleases) => {
                client.event("agent", pleases).await.unwrap();
            }
        }
        let aborted =
            client.request("chat.abort", json!({"sessionKey": "main", "runId": "run"})).await.unwrap();
        assert_eq!(aborted["aborted"], true, "{at}");
        assert_eq!(end(&mut client, "run").await["state"], "aborted", "{at}");
        goes_on(&gateway, &mut client, &model, "main", at).await;
    }
}

/// A turn with everything in it.
fn whole_turn(request: &Captured) -> Reply {
    let text = |text: &str| Step::Text(text.to_owned());
    if request.last_user_text().contains("go on") {
        Reply::text("whole")
    } else if request.ends_with_tool_result() {
        Reply::deltas(["it ", "says ", "nothing"])
    } else {
        Reply::steps([
            Step::Thinking("hm".into()),
            text("let "),
            text("me"),
            Step::ToolCalls(calls().to_vec()),
        ])
    }
}

#[tokio::test]
async fn after_every_event_of_a_run_a_stop_leaves_a_conversation_that_can_go_on() {
    let model = ModelServer::answering(whole_turn).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut stopped = 0;
    for nth in 1.. {
        let (key, mut client) = (format!("agent:main:stop-{nth}"), watcher(&gateway).await);
        client.request("chat.send", message(&key, "go", &key)).await.unwrap();
        let mut heard = 0;
        while heard < nth {
            let of_run =
                |frame: &Value| frame["event"] == "agent" && frame["payload"]["runId"] == key.as_str();
            let event = client.wait_for(of_run).await.unwrap();
            heard += 1;
            let data = &event["payload"]["data"];
            if event["payload"]["stream"] == "lifecycle" && data["phase"] == "end" {
                break;
            }
        }
        let params = json!({"sessionKey": key, "runId": key});
        let aborted = client.request("chat.abort", params).await.unwrap();
        stopped += usize::from(aborted["aborted"] == true);
        end(&mut client, &key).await;
        goes_on(&gateway, &mut client, &model, &key, &format!("event {nth}")).await;
        if heard < nth {
            break;
        }
    }
    assert!(stopped > 0, "no run was stopped");
}

#[tokio::test]
async fn a_run_ends_after_the_rounds_of_tools_that_the_owner_allows() {
    let model = ModelServer::answering(|request| match request.last_user_text().contains("go on") {
        true => Reply::text("whole"),
        false => Reply::tools([calls()[0].clone()]),
    })
    .await;
    let limit = json!({"agents": {"defaults": {"maxToolRounds": 3}}});
    let gateway = gateway().fake_model(&model.v1()).config(limit).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    client.request("chat.send", message("main", "go", "run")).await.unwrap();
    end(&mut client, "run").await;
    assert_eq!(model.requests().len(), 4, "three rounds, and the call that asked for a fourth");
    goes_on(&gateway, &mut client, &model, "main", "the limit").await;
}
