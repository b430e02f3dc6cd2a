//! `/model` and `/models` as a person at a client types them (spec `models.md` §1.3, `messages.md` §4, §5).

use openclaw_testkit::model_server::{Gate, ModelServer, Reply, Step};
use openclaw_testkit::{GatewayUnderTest, WsClient};
use serde_json::{Value, json};

use crate::support::conversation::{end, history, send, transcript_path, turn, well_formed};

const SWITCHED: &str = "Model set to quick (fake/fake-2).";

/// A gateway whose owner lists two models of one server.
async fn started(model: &ModelServer) -> (GatewayUnderTest, WsClient) {
    let models = json!({"fake/fake-1": {}, "fake/fake-2": {"alias": "quick"}});
    let setup =
        crate::gateway().fake_model(&model.v1()).config(json!({"agents": {"defaults": {"models": models}}}));
    let gateway = setup.start().await.unwrap();
    let client = gateway.client().await.unwrap();
    (gateway, client)
}

/// The models that were called.
fn called(model: &ModelServer) -> Vec<String> {
    model.requests().iter().map(|request| request.body["model"].as_str().unwrap().to_owned()).collect()
}

async fn row(client: &mut WsClient) -> Value {
    client.request("sessions.list", json!({})).await.unwrap()["sessions"][0].clone()
}

#[tokio::test]
async fn a_directive_alone_is_kept_and_answered_as_clients_expect_it() {
    let model = ModelServer::answering(|_| Reply::text("hello")).await;
    let (mut gateway, mut client) = started(&model).await;
    turn(&mut client, "main", "hi", "r1").await;
    send(&mut client, "main", "/model quick", "c1").await;
    let told = end(&mut client, "c1").await;
    // As the recorded answer to `/status` in `gw-chat-send`, but with the canonical key.
    assert_eq!((told["state"].as_str(), told["seq"].as_u64()), (Some("final"), Some(1)));
    assert_eq!(told["sessionKey"], "agent:main:main");
    let message = &told["message"];
    assert_eq!(message["content"], json!([{"type": "text", "text": SWITCHED}]));
    for (field, expect) in [
        ("role", "assistant"),
        ("provider", "openclaw"),
        ("model", "gateway-injected"),
        ("stopReason", "stop"),
    ] {
        assert_eq!(message[field], expect);
    }
    assert!(client.take_passed().iter().all(|frame| frame["payload"]["runId"] != "c1"), "no other event");
    let waited = client.request("agent.wait", json!({"runId": "c1"})).await.unwrap();
    assert_eq!(waited["status"], "ok");
    assert_eq!(row(&mut client).await["model"], "fake-2");

    // Kept across a crash, and in the history once.
    gateway.crash_and_restart().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "more", "r2").await, "hello");
    assert_eq!(called(&model), ["fake-1", "fake-2"]);
    let said = history(&mut client, "main").await;
    assert_eq!(said.iter().filter(|line| line.contains("Model set")).count(), 1, "{said:?}");
    well_formed(&transcript_path(&gateway, "main").await);

    let reset = turn(&mut client, "main", "/model default", "c2").await;
    assert_eq!(reset, "Model reset to default (fake/fake-1).");
    turn(&mut client, "main", "again", "r3").await;
    assert_eq!(called(&model), ["fake-1", "fake-2", "fake-1"]);
}

#[tokio::test]
async fn a_directive_among_words_changes_their_run_alone() {
    let model = ModelServer::answering(|_| Reply::text("hello")).await;
    let (_gateway, mut client) = started(&model).await;
    turn(&mut client, "main", "please /model: quick be short", "r1").await;
    turn(&mut client, "main", "and now", "r2").await;
    assert_eq!(called(&model), ["fake-2", "fake-1"]);
    assert!(model.requests()[0].last_user_text().contains("please be short"));
    let refused = turn(&mut client, "main", "/model nobody/x be long", "r3").await;
    assert!(
        refused.starts_with("Model \"nobody/x\" is not allowed. Use /models to list providers"),
        "{refused}"
    );
    assert_eq!(called(&model).len(), 2);
    assert_eq!(row(&mut client).await["model"], "fake-1");
}

#[tokio::test]
async fn a_directive_during_a_run_is_answered_at_once_and_holds_for_the_next() {
    let gate = Gate::new();
    let first = Reply::deltas(["half "]).then(Step::Wait(gate.clone())).then(Step::Text("done".to_owned()));
    let model = ModelServer::queue([first, Reply::text("next")]).await;
    let (gateway, mut client) = started(&model).await;
    send(&mut client, "main", "first", "r1").await;
    client.event("agent", |payload| payload["data"]["text"] == "half").await.unwrap();
    assert_eq!(turn(&mut client, "main", "/quick", "c1").await, SWITCHED);
    assert_eq!(turn(&mut client, "main", "/models", "c2").await.lines().nth(1), Some("- fake (2)"));
    gate.open();
    assert_eq!(end(&mut client, "r1").await["message"]["content"][0]["text"], "half done");
    assert_eq!(turn(&mut client, "main", "second", "r2").await, "next");
    assert_eq!(called(&model), ["fake-1", "fake-2"]);
    well_formed(&transcript_path(&gateway, "main").await);
}

#[tokio::test]
async fn sessions_patch_takes_exact_names_alone() {
    let model = ModelServer::answering(|_| Reply::text("hello")).await;
    let (_gateway, mut client) = started(&model).await;
    let rows = [
        ("quick", Ok("fake-2")),
        ("fake/fake-1", Ok("fake-1")),
        ("fake-2", Err("model not allowed: anthropic/fake-2")),
        ("fake/gone", Err("model not allowed: fake/gone")),
        (" ", Err("invalid model: empty")),
        ("fake/", Err("invalid model: fake/")),
    ];
    for (text, expect) in rows {
        let answer = client.call("sessions.patch", json!({"key": "main", "model": text})).await.unwrap();
        let found = if answer.ok {
            Ok(answer.payload["resolved"]["model"].as_str().unwrap().to_owned())
        } else {
            Err(answer.error["message"].as_str().unwrap().to_owned())
        };
        assert_eq!(found, expect.map(str::to_owned).map_err(str::to_owned), "{text:?}");
    }
}
