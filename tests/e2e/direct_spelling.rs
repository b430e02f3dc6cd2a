//! A direct chat whose row OpenClaw stored as `…:direct:…` (decision 1): it is told of as it is stored, and found in either spelling.

use std::time::{SystemTime, UNIX_EPOCH};

use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use openclaw_testkit::{GatewayUnderTest, WsClient};
use serde_json::{Value, json};

use crate::support::command::openclaw;
use crate::support::config::merge;
use crate::support::conversation::{end, history, send};
use crate::support::hooks::{Heard, commands};
use crate::support::session_rows::{row, rows, write_rows, write_transcript};
use crate::support::session_tools::{asked_call, tool_said};
use crate::support::telegram::{bot_setup, open};
use crate::support::tools_invoke::invoke;

const DIRECT: &str = "agent:main:telegram:direct:123";
const DM: &str = "agent:main:telegram:dm:123";

fn reply(request: &Captured) -> Reply {
    match asked_call(&request.last_user_text()) {
        Some((tool, args)) if !request.ends_with_tool_result() => Reply::tool("call-1", &tool, &args),
        _ => Reply::text("Noted."),
    }
}

/// A gateway that does not run yet, and has the row and its transcript.
fn prepared(server: &TelegramServer, model: &ModelServer, more: Value) -> GatewayUnderTest {
    let mut rest = json!({"session": {"dmScope": "per-channel-peer"}});
    merge(&mut rest, more);
    let gateway = bot_setup(server, model, open(), rest).prepare().unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    write_rows(&gateway, &json!({DIRECT: row("s-direct", u64::try_from(now).unwrap())}));
    write_transcript(&gateway, "s-direct", "from before");
    gateway
}

async fn listed(client: &mut WsClient) -> Vec<String> {
    let list = client.request("sessions.list", json!({})).await.unwrap();
    let rows = list["sessions"].as_array().unwrap().iter();
    rows.map(|row| row["key"].as_str().unwrap().to_owned()).collect()
}

/// The keys of the store's rows, of a gateway that does not run.
fn stored(gateway: &GatewayUnderTest) -> Vec<String> {
    rows(gateway).as_object().unwrap().keys().cloned().collect()
}

/// The session of a run in its `agent` events, and in the last `chat` event.
async fn told(client: &mut WsClient, run: &str) -> [Value; 2] {
    let end = end(client, run).await;
    assert_eq!(end["state"], "final", "{end}");
    let of_run = |event: &Value| event["runId"] == run && event["stream"] == "lifecycle";
    [client.event("agent", of_run).await.unwrap()["sessionKey"].take(), end["sessionKey"].clone()]
}

#[tokio::test]
async fn a_row_is_told_as_it_is_stored_and_found_in_either_spelling() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(reply).await;
    let mut gateway = prepared(&server, &model, json!({}));
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(listed(&mut client).await, [DIRECT]);
    for key in [DM, DIRECT] {
        let resolved = client.request("sessions.resolve", json!({"key": key})).await.unwrap();
        assert_eq!(resolved["key"], DIRECT);
        assert_eq!(history(&mut client, key).await, ["user: from before"], "{key}");
    }
    let searched = client.request("sessions.list", json!({"search": "telegram:direct"})).await.unwrap();
    assert_eq!(searched["sessions"][0]["key"], DIRECT);

    for (run, key) in [("by-dm", DM), ("by-direct", DIRECT)] {
        send(&mut client, key, "hello", run).await;
        assert_eq!(told(&mut client, run).await, [DIRECT, DIRECT], "{key}");
        let asked = json!({"message": "hello", "sessionKey": key, "idempotencyKey": format!("{run}-agent")});
        client.request("agent", asked).await.unwrap();
        assert_eq!(told(&mut client, &format!("{run}-agent")).await, [DIRECT, DIRECT], "{key}");
    }
    let asked = model.requests().iter().map(|request| request.body.to_string()).collect::<Vec<_>>();
    assert!(asked.len() == 4 && asked.iter().all(|body| body.contains("from before")), "{asked:?}");
    server.push(private_message(123, "hello from my phone"));
    let ended = client.event("chat", |chat| chat["state"] == "final").await.unwrap();
    assert_eq!(ended["sessionKey"], DIRECT);
    server.nth_call("sendMessage", 1).await;
    client.request("chat.inject", json!({"sessionKey": DM, "message": "by hand"})).await.unwrap();
    let injected = client.event("chat", |chat| chat["seq"] == 0).await.unwrap();
    assert_eq!(injected["sessionKey"], DIRECT, "{injected}");
    assert_eq!(history(&mut client, DM).await, history(&mut client, DIRECT).await);

    for (method, more) in [
        ("sessions.patch", json!({"label": "mine"})),
        ("sessions.compact", json!({})),
        ("sessions.reset", json!({})),
    ] {
        let mut params = json!({"key": DM});
        merge(&mut params, more);
        assert_eq!(client.request(method, params).await.unwrap()["key"], DIRECT, "{method}");
    }
    assert_eq!(listed(&mut client).await, [DIRECT]);
    let explain = ["tools", "explain", "--session", DM];
    for words in [&["sessions", "--json"][..], &["status", "--json"], &explain] {
        let printed = openclaw(&gateway, words).await;
        assert!(printed.out.contains(DIRECT) && !printed.out.contains(DM), "{printed:?}");
    }
    drop(client);
    gateway.terminate().await.unwrap();
    assert_eq!(stored(&gateway), [DIRECT]);
}

/// Spelling of a session key in hooks and in tool results.
#[tokio::test]
async fn hooks_and_tools_are_told_it_as_it_is_stored() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(reply).await;
    let dir = tempfile::tempdir().unwrap();
    let mut heard = Heard::at(dir.path().join("heard"));
    let tell = format!("given=$(cat); printf '%s\\n' \"$given\" > {}", heard.path().display());
    let points = ["message_received", "agent_end"].map(|point| (point, tell.clone(), 0));
    let mut gateway = prepared(&server, &model, commands(&points));
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();

    send(&mut client, DM, "CALL sessions_list {}", "run-1").await;
    end(&mut client, "run-1").await;
    let said = model.requests().last().map(tool_said).unwrap();
    assert!(said.contains(DIRECT) && !said.contains(DM), "{said}");
    server.push(private_message(123, "hello"));
    server.nth_call("sendMessage", 1).await;
    let mut points = Vec::new();
    for _ in 0..4 {
        let event = heard.next().await;
        let session = match event["hook"].as_str() {
            Some("message_received") => &event["payload"]["metadata"]["sessionKey"],
            _ => &event["context"]["sessionKey"],
        };
        assert_eq!(session, DIRECT, "{event}");
        points.push(event["hook"].clone());
    }
    assert_eq!(points.iter().filter(|point| **point == "agent_end").count(), 2, "{points:?}");

    for key in [DM, DIRECT] {
        let asked = json!({"tool": "sessions_history", "args": {"sessionKey": key}});
        let (status, answer) = invoke(gateway.port(), &asked).await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        let session = serde_json::from_str::<Value>(text).unwrap_or_default()["sessionKey"].take();
        assert_eq!((status, session), (200, json!(DIRECT)), "{answer}");
    }
}

/// New rows have the spelling of today, whatever the one before them had and however they are asked for.
#[tokio::test]
async fn a_session_that_begins_after_the_row_is_deleted_is_spelled_as_new_ones_are() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(reply).await;
    let mut gateway = prepared(&server, &model, json!({}));
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let deleted = client.request("sessions.delete", json!({"key": DM})).await.unwrap();
    assert_eq!((&deleted["key"], &deleted["deleted"]), (&json!(DIRECT), &json!(true)));
    send(&mut client, DIRECT, "hello", "anew").await;
    assert_eq!(told(&mut client, "anew").await, [DM, DM]);
    assert_eq!(listed(&mut client).await, [DM]);
    drop(client);
    gateway.terminate().await.unwrap();
    assert_eq!(stored(&gateway), [DM]);
}

/// A run that the last process died in goes on under the key as it is stored.
#[tokio::test]
async fn a_message_that_is_taken_up_again_is_told_as_the_row_is_stored() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |_| Reply::text("late").after(Step::Wait(held.clone()))).await;
    let mut gateway = prepared(&server, &model, json!({}));
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, DM, "hello", "cut-short").await;
    model.arrived(1).await;
    drop(client);
    gateway.kill().await.unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    model.arrived(2).await;
    gate.open();
    let ended = end(&mut client, "cut-short").await;
    assert_eq!((&ended["state"], &ended["sessionKey"]), (&json!("final"), &json!(DIRECT)));
}
