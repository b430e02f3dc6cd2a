//! SIGTERM in the middle of a run that streams: the run ends in time, or goes on after the next start. Exactly one reply
//! either way.

use nix::sys::signal::Signal;
use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{Gate, ModelServer, Reply, Step};
use serde_json::json;

use crate::gateway;
use crate::support::conversation::{end, message, send, told, transcript_path, well_formed};

/// A gateway whose run has streamed its first words.
async fn in_the_middle(model: &ModelServer) -> (GatewayUnderTest, openclaw_testkit::WsClient) {
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "first", "run-1").await;
    client.event("agent", |payload| payload["data"]["text"] == "some").await.unwrap();
    (gateway, client)
}

#[tokio::test]
async fn a_run_that_ends_in_time_is_finished_before_the_gateway_goes() {
    let gate = Gate::new();
    let reply = Reply::deltas(["some"]).then(Step::Wait(gate.clone())).then(Step::Text(" words".into()));
    let model = ModelServer::queue([reply]).await;
    let (mut gateway, mut client) = in_the_middle(&model).await;
    gateway.signal(Signal::SIGTERM).unwrap();
    client.event("shutdown", |_| true).await.unwrap();
    let refused = client.call("chat.send", message("main", "too late", "run-2")).await.unwrap();
    assert_eq!((refused.ok, &refused.error["code"]), (false, &json!("UNAVAILABLE")), "{refused:?}");
    gate.open();
    let ended = end(&mut client, "run-1").await;
    assert_eq!(
        (&ended["state"], &ended["message"]["content"][0]["text"]),
        (&json!("final"), &json!("some words"))
    );
    let (code, reason) = client.closed().await.unwrap();
    assert_eq!((code, reason.as_str()), (1001, "gateway stopping"));
    assert_eq!(gateway.exited().await.unwrap().code(), Some(0));

    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let wait = client.request("agent.wait", json!({"runId": "run-1"})).await.unwrap();
    assert_eq!(wait["status"], "ok", "{wait}");
    let entries = well_formed(&transcript_path(&gateway, "main").await);
    assert_eq!(told(&entries), ["user: first", "assistant: some words (stop)"]);
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn a_run_that_does_not_end_in_time_goes_on_after_the_next_start() {
    let hung = Reply::deltas(["some"]).then(Step::Hang);
    let model = ModelServer::queue([hung, Reply::text("whole")]).await;
    let (mut gateway, _client) = in_the_middle(&model).await;
    assert_eq!(gateway.terminate().await.unwrap().code(), Some(0));
    let log = gateway.log();
    assert!(log.contains("interrupted by the stop; it goes on at the next start"), "{log}");
    assert!(!log.contains("Failed("), "{log}");

    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let wait = client.request("agent.wait", json!({"runId": "run-1", "timeoutMs": 20_000})).await.unwrap();
    assert_eq!(wait["status"], "ok", "{wait}");
    let entries = well_formed(&transcript_path(&gateway, "main").await);
    assert_eq!(told(&entries), ["user: first", "assistant: whole (stop)"]);
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn an_idle_gateway_goes_at_once_and_leaves_no_locks() {
    let mut gateway = gateway().start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    gateway.signal(Signal::SIGINT).unwrap();
    let (code, _) = client.closed().await.unwrap();
    assert_eq!((code, gateway.exited().await.unwrap().code()), (1001, Some(0)));
    let left = std::fs::read_dir(gateway.state_dir()).unwrap().map(|entry| entry.unwrap().file_name());
    // The file `commands.lock` stays: it is held by locking it, not by being there.
    let left = left.filter(|name| name != "commands.lock");
    let locks: Vec<_> = left.filter(|name| name.to_str().unwrap().ends_with(".lock")).collect();
    assert!(locks.is_empty(), "{locks:?}");
}
