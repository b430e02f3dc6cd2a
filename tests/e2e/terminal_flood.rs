//! A program in a terminal that asks without end where its cursor is, and reads no answer: it is ended all the same.

use std::time::Duration;

use openclaw_testkit::GatewayUnderTest;
use serde_json::json;

use crate::gateway;
use crate::support::told_calls::{Caller, model};

/// The group is named in a file, so that its end can be seen.
const FLOOD: &str =
    "echo $$ > group; printf -v many '\\033[6n%.0s' {1..500}; while :; do printf %s \"$many\"; done";
/// Answers are kept for a program until there is no room, or, where its terminal is made so, thrown back at it.
const TERMINALS: [&str; 2] = ["stty raw -echo; ", ""];

async fn started() -> (openclaw_testkit::model_server::ModelServer, GatewayUnderTest) {
    let model = model().await;
    let config = json!({"tools": {"exec": {"notifyOnExit": false}}});
    let gateway =
        gateway().fake_model(&model.v1()).config(config).env("SHELL", "/bin/bash").start().await.unwrap();
    (model, gateway)
}

/// The process group of the flood, once it is there.
async fn group(gateway: &GatewayUnderTest) -> nix::unistd::Pid {
    let path = gateway.state_dir().join("workspace/group");
    let there = async {
        loop {
            match std::fs::read_to_string(&path).ok().and_then(|group| group.trim().parse().ok()) {
                Some(group) => return nix::unistd::Pid::from_raw(group),
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(openclaw_testkit::DEADLINE, there).await.unwrap()
}

async fn is_gone(group: nix::unistd::Pid) {
    let gone = async {
        while nix::sys::signal::killpg(group, None).is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(openclaw_testkit::DEADLINE, gone).await.expect("the flood goes on");
}

/// Checks that the gateway answers others meanwhile.
async fn is_responsive(gateway: &GatewayUnderTest) {
    let asked = async {
        let mut client = gateway.client().await.unwrap();
        for _ in 0..20 {
            client.request("health", json!({})).await.unwrap();
        }
    };
    tokio::time::timeout(openclaw_testkit::DEADLINE, asked).await.expect("the gateway answers nobody");
}

#[tokio::test]
async fn a_flood_of_questions_is_killed() {
    for terminal in TERMINALS {
        let (_model, gateway) = started().await;
        let mut caller = Caller::new(gateway.client().await.unwrap());
        let args = json!({"command": format!("{terminal}{FLOOD}"), "pty": true});
        let id = caller.start("main", args).await;
        let group = group(&gateway).await;
        is_responsive(&gateway).await;
        let polled = caller.act("main", "poll", &id).await;
        assert!(polled.ends_with("\n\nProcess still running."), "{terminal}");
        // Echoes of the terminal stand anywhere, also within a question.
        assert!(terminal.is_empty() || !polled.contains("[6n"), "{terminal}");
        // Input is not read either; that is reported, and holds nobody up.
        let written = caller.act("main", "write", &id).await;
        assert!(
            written.starts_with("Wrote ") || written.ends_with("stdin is not writable."),
            "{terminal}: {written}"
        );
        assert_eq!(caller.act("main", "kill", &id).await, format!("Killed session {id}."), "{terminal}");
        is_gone(group).await;
        is_responsive(&gateway).await;
    }
}

#[tokio::test]
async fn a_flood_of_questions_ends_with_its_time() {
    for terminal in TERMINALS {
        let (_model, gateway) = started().await;
        let mut caller = Caller::new(gateway.client().await.unwrap());
        // Long enough for a busy machine to begin.
        let args = json!({"command": format!("{terminal}{FLOOD}"), "pty": true, "timeout": 5});
        let ended = caller.call("main", "exec", args.clone()).await;
        assert!(ended.contains("Command timed out after 5 seconds"), "{terminal}");
        is_gone(group(&gateway).await).await;
        // The same behind the call's back.
        let id = caller.start("main", args).await;
        let polling = async {
            loop {
                let polled = caller.act("main", "poll", &id).await;
                if polled.contains("exited") {
                    return polled;
                }
            }
        };
        let polled =
            tokio::time::timeout(openclaw_testkit::DEADLINE, polling).await.expect("its time is over");
        let ending = "Process exited with signal SIGKILL (it ran out of time).";
        assert!(polled.ends_with(ending), "{terminal}");
        is_gone(group(&gateway).await).await;
    }
}
