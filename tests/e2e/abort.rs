//! Stopping a run at any moment leaves its session in order (KB-42).

use openclaw_testkit::WsClient;
use openclaw_testkit::model_server::{ModelServer, Reply, Step};
use serde_json::{Value, json};

use crate::gateway;

async fn send(client: &mut WsClient, text: &str, run: &str) {
    let params = json!({"sessionKey": "main", "message": text, "idempotencyKey": run});
    client.request("chat.send", params).await.unwrap();
}

async fn abort(client: &mut WsClient, run: &str) {
    let aborted = client.request("chat.abort", json!({"sessionKey": "main", "runId": run})).await.unwrap();
    assert_eq!(aborted, json!({"ok": true, "aborted": true, "runIds": [run]}));
    client.event("agent", |payload| payload["data"]["aborted"] == true).await.unwrap();
}

async fn history(client: &mut WsClient) -> Vec<(String, String, String)> {
    let history = client.request("chat.history", json!({"sessionKey": "main"})).await.unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let messages = history["messages"].as_array().unwrap().iter();
    messages
        .map(|message| {
            (text(&message["role"]), text(&message["content"][0]["text"]), text(&message["stopReason"]))
        })
        .collect()
}

fn said(role: &str, words: &str, stop: &str) -> (String, String, String) {
    (role.into(), words.into(), stop.into())
}

#[tokio::test]
async fn what_was_said_before_an_abort_stays_and_the_session_goes_on() {
    let model =
        ModelServer::queue([Reply::deltas(["half", " a sentence"]).then(Step::Hang), Reply::text("whole")])
            .await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "first", "run-1").await;
    client.event("agent", |payload| payload["data"]["text"] == "half a sentence").await.unwrap();
    abort(&mut client, "run-1").await;
    send(&mut client, "second", "run-2").await;
    client.event("chat", |payload| payload["runId"] == "run-2" && payload["state"] == "final").await.unwrap();

    let expected = [
        said("user", "first", ""),
        said("assistant", "half a sentence", "aborted"),
        said("user", "second", ""),
        said("assistant", "whole", "stop"),
    ];
    assert_eq!(history(&mut client).await, expected);
    // The history is on disk as well.
    gateway.crash_and_restart().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(history(&mut client).await, expected);
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn an_aborted_command_is_gone_with_all_it_started() {
    let command = "echo $$ > group; sleep 600 & sleep 600";
    let model = ModelServer::queue([Reply::tool("call_1", "exec", &json!({"command": command}))]).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let file = gateway.state_dir().join("workspace/group");
    send(&mut client, "go", "run-1").await;
    let group = async {
        loop {
            match std::fs::read_to_string(&file).unwrap_or_default().trim().parse::<i32>() {
                Ok(group) => return group,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let group = tokio::time::timeout(openclaw_testkit::DEADLINE, group).await.unwrap();
    abort(&mut client, "run-1").await;
    let gone = async {
        while std::path::Path::new(&format!("/proc/{group}")).exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(openclaw_testkit::DEADLINE, gone).await.expect("the shell is still there");
    let left = sleepers_in(group);
    assert!(left.is_empty(), "{left:?} of group {group} are left");
}

/// Processes of a process group, by `/proc/<pid>/stat`. A zombie waits for its parent and does nothing.
fn sleepers_in(group: i32) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| {
            let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
            let (state, its_group) = (fields.next(), fields.nth(1));
            its_group == Some(&group.to_string()) && state != Some("Z")
        })
        .collect()
}
