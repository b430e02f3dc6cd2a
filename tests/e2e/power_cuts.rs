//! A power cut while a tool call is under way: what was not synced is gone, and the model still knows what it has had done.

use std::sync::{Arc, OnceLock};

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::faulty_disk::FaultyDisk;
use openclaw_testkit::model_server::{ModelServer, Reply, ScriptedCall};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use serde_json::{Value, json};

use crate::conversation::{end, send, sessions_dir, transcript_path};

/// Kills the gateway of this state directory.
pub(crate) fn suicide(gateway: &GatewayUnderTest) -> String {
    let lock = gateway.state_dir().join("gateway.lock");
    format!("kill -9 $(grep -o '\"pid\":[0-9]*' '{}' | cut -d: -f2); sleep 60", lock.display())
}

async fn wait(gateway: &GatewayUnderTest, run: &str) -> Value {
    let mut client = gateway.client().await.unwrap();
    client.request("agent.wait", json!({"runId": run, "timeoutMs": 20_000})).await.unwrap()
}

#[tokio::test]
async fn a_command_that_a_power_cut_met_is_told_to_the_model_and_not_run_once_more() {
    let Some(disk) = FaultyDisk::new().unwrap() else { return };
    let command = Arc::new(OnceLock::<String>::new());
    let told = Arc::clone(&command);
    let model = ModelServer::answering(move |request| match request.ends_with_tool_result() {
        true => Reply::text("I have looked"),
        false => Reply::tool("c1", "exec", &json!({"command": told.get().unwrap()})),
    })
    .await;
    let mut gateway = disk.under(crate::gateway().fake_model(&model.v1())).start().await.unwrap();
    command.set(format!("echo once >> did; {}", suicide(&gateway))).unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "go", "run-1").await;
    gateway.exited().await.unwrap();
    disk.cut_power(&sessions_dir(&gateway)).unwrap();
    gateway.start().await.unwrap();
    assert_eq!(wait(&gateway, "run-1").await["status"], "ok", "{}", gateway.log());
    let did = std::fs::read_to_string(gateway.state_dir().join("workspace/did")).unwrap();
    assert_eq!(did, "once\n");
    let asked = model.requests().pop().unwrap();
    assert!(asked.body.to_string().contains("may or may not have completed"), "{}", asked.body);
    gateway.logged("a tool call was under way when the gateway ended: it may have happened").await.unwrap();
    let traced = crate::command::openclaw(&gateway, &["trace", "run-1"]).await;
    assert!(traced.out.contains("  the gateway ended during exec: it may have happened"), "{traced:?}");
}

/// A call that is made again after a crash is known by its id, which the model made.
#[tokio::test]
async fn a_message_that_a_tool_has_sent_before_a_power_cut_is_not_sent_again() {
    let Some(disk) = FaultyDisk::new().unwrap() else { return };
    let server = TelegramServer::start().await;
    let command = Arc::new(OnceLock::<String>::new());
    let told = Arc::clone(&command);
    let model = ModelServer::answering(move |request| {
        let calls = request.messages().iter().filter(|message| message["role"] == "tool").count();
        let id = format!("c{}", request.messages().len());
        match (calls, request.body.to_string().contains("may or may not have completed")) {
            (0, _) => Reply::tool(&id, "message", &json!({"action": "send", "message": "by tool"})),
            (_, false) => Reply::tool(&id, "exec", &json!({"command": told.get().unwrap()})),
            (_, true) => Reply::text("done"),
        }
    })
    .await;
    let telegram =
        json!({"botToken": server.token(), "apiRoot": server.root(), "dmPolicy": "open", "allowFrom": ["*"]});
    let setup = crate::gateway().fake_model(&model.v1()).config(json!({"channels": {"telegram": telegram}}));
    let mut gateway = disk.under(setup).start().await.unwrap();
    command.set(suicide(&gateway)).unwrap();
    server.push(private_message(5, "go"));
    gateway.exited().await.unwrap();
    disk.cut_power(&sessions_dir(&gateway)).unwrap();
    gateway.start().await.unwrap();
    model.arrived(3).await;
    assert_eq!(gateway.fates().await.unwrap(), json!({"run": 1}), "{}", gateway.log());
    let told = model.requests().pop().unwrap().body.to_string();
    assert!(told.contains("may or may not have completed"), "{told}");
    let by_tool = server.made().iter().filter(|made| made["text"] == "by tool").count();
    assert_eq!(by_tool, 1, "{:?}", server.made());
}

/// A turn that only looks costs no sync, and the calls of one answer share one.
#[tokio::test]
async fn a_transcript_is_synced_once_before_the_calls_of_an_answer_that_act() {
    let Some(disk) = FaultyDisk::new().unwrap() else { return };
    let acts = |n: usize| ScriptedCall::new(&format!("a{n}"), "exec", &json!({"command": "true"}));
    let model = ModelServer::queue([
        Reply::tool("c1", "read", &json!({"path": "none.txt"})),
        Reply::text("looked"),
        Reply::tools([acts(1), acts(2)]),
        Reply::text("did"),
    ])
    .await;
    let gateway = disk.under(crate::gateway().fake_model(&model.v1())).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let mut syncs = Vec::new();
    for run in ["run-1", "run-2"] {
        send(&mut client, "main", "go", run).await;
        assert_eq!(end(&mut client, run).await["state"], "final");
        let path = transcript_path(&gateway, "main").await.canonicalize().unwrap();
        syncs.push(disk.synced().unwrap()[&path].times);
    }
    // Syncs of the header and of the end of the turn; then before the calls, and at the end.
    assert_eq!(syncs, [2, 4]);
}
