//! Commands of a gateway that dies.

use std::sync::{Arc, Mutex};

use nix::sys::stat::Mode;
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use serde_json::json;
use tokio::net::unix::pipe;

use crate::gateway;
use crate::support::conversation::send;

/// The command and a child of it hold `alive` open for as long as they run.
const LONG: &str = "exec 3> alive; trap '' TERM HUP; sleep 10000 & echo on >&3; wait";

#[tokio::test]
async fn a_command_is_gone_before_the_run_it_belongs_to_is_resumed() {
    let alive: Arc<Mutex<Option<pipe::Receiver>>> = Arc::default();
    let held = Arc::clone(&alive);
    let model = ModelServer::answering(move |request: &Captured| {
        if !request.ends_with_tool_result() {
            return Reply::tool("c1", "exec", &json!({"command": LONG}));
        }
        // The end of the pipe is there when nobody holds its other side any more.
        let pipe = held.lock().unwrap();
        let read = pipe.as_ref().unwrap().try_read(&mut [0; 8]);
        Reply::text(&format!("{:?}", read.map_err(|error| error.kind())))
    })
    .await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    let path = workspace.join("alive");
    nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
    let pipe = pipe::OpenOptions::new().open_receiver(&path).unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "go", "run-1").await;
    let mut said = Vec::new();
    while said != b"on\n" {
        let mut buffer = [0; 8];
        tokio::time::timeout(openclaw_testkit::DEADLINE, pipe.readable()).await.unwrap().unwrap();
        if let Ok(count) = pipe.try_read(&mut buffer) {
            said.extend_from_slice(&buffer[..count]);
        }
    }
    *alive.lock().unwrap() = Some(pipe);

    gateway.crash_and_restart().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let record = client.request("agent.wait", json!({"runId": "run-1", "timeoutMs": 30000})).await.unwrap();
    assert_eq!(record["status"], "ok", "{record}");
    let history = crate::support::conversation::history(&mut client, "main").await;
    assert_eq!(history.last().map(String::as_str), Some("assistant: Ok(0)"), "{history:?}");
}

#[tokio::test]
async fn what_a_finished_command_left_in_the_background_ends_with_the_gateway() {
    let left = json!({"command": "sleep 10000 >/dev/null 2>&1 & echo $!"});
    let model = ModelServer::queue([Reply::tool("c1", "exec", &left), Reply::text("done")]).await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(crate::support::conversation::turn(&mut client, "main", "go", "run-1").await, "done");
    let last = model.requests().pop().unwrap();
    let said = last.messages().iter().find(|message| message["role"] == "tool").unwrap();
    let pid = nix::unistd::Pid::from_raw(said["content"].as_str().unwrap().trim().parse().unwrap());
    let is_there = || nix::sys::signal::kill(pid, None).is_ok();
    assert!(is_there(), "it lives as long as the gateway");

    gateway.kill().await.unwrap();
    let gone = async {
        while is_there() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(openclaw_testkit::DEADLINE, gone).await.unwrap();
}
