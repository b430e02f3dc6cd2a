//! A transcript's lock that somebody else has, or seems to have: the message waits for a living holder and for nobody else.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{ModelServer, Reply, Step};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::config::one_by_one;
use crate::support::conversation::{end, history, send, sessions_dir, transcript_path, turn};
use crate::support::locks::{Bystander, WAITS, plant, set_age};

const MINUTE: Duration = Duration::from_secs(60);

/// A gateway with one turn in session `main`, and the lock of its transcript.
async fn with_a_turn(model: &ModelServer, config: Value) -> (GatewayUnderTest, PathBuf) {
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hello", "run-0").await;
    let lock = lock_of(&transcript_path(&gateway, "main").await);
    given_back(&lock).await;
    (gateway, lock)
}

/// A run's lock stays a moment for the next.
async fn given_back(lock: &Path) {
    let gone = async {
        while lock.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(openclaw_testkit::DEADLINE, gone).await.expect("the lock is given back");
}

fn lock_of(transcript: &Path) -> PathBuf {
    PathBuf::from(format!("{}.lock", transcript.display()))
}

fn the_only_lock(gateway: &GatewayUnderTest) -> PathBuf {
    let locks = std::fs::read_dir(sessions_dir(gateway)).unwrap().map(|entry| entry.unwrap().path());
    let mut locks = locks.filter(|path| path.to_str().unwrap().ends_with(".jsonl.lock"));
    let lock = locks.next().expect("a run that was killed leaves its lock");
    assert_eq!(locks.next(), None);
    lock
}

#[tokio::test]
async fn an_accepted_message_is_answered_although_its_killed_gateways_number_is_anothers_now() {
    // As the killed gateway wrote it; as one wrote it that knew no start times.
    for members in [&["pid", "createdAt", "startTime", "pidScope"][..], &["pid", "createdAt"]] {
        let model = ModelServer::queue([Reply::never(), Reply::text("here"), Reply::text("and here")]).await;
        let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        send(&mut client, "main", "hello", "run-1").await;
        model.arrived(1).await;
        gateway.kill().await.unwrap();

        let (lock, bystander) = (the_only_lock(&gateway), Bystander::start());
        let mut content: Value = serde_json::from_slice(&std::fs::read(&lock).unwrap()).unwrap();
        content["pid"] = json!(bystander.pid());
        content.as_object_mut().unwrap().retain(|name, _| members.contains(&name.as_str()));
        assert_eq!(content.as_object().unwrap().len(), members.len(), "{content}");
        std::fs::write(&lock, content.to_string()).unwrap();
        set_age(&lock, MINUTE);

        gateway.start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        let done = client.request("agent.wait", json!({"runId": "run-1"})).await.unwrap();
        assert_eq!(done["status"], "ok", "{done}\n{}", gateway.log());
        assert_eq!(history(&mut client, "main").await, ["user: hello", "assistant: here"]);
        assert_eq!(turn(&mut client, "main", "again", "run-2").await, "and here");
    }
}

/// A gateway in another container: neither its process nor its PID namespace can be seen from here.
#[tokio::test]
async fn a_gateway_knows_the_locks_of_the_one_it_took_over_from_wherever_that_ran() {
    let model = ModelServer::queue([Reply::never(), Reply::text("here")]).await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "hello", "run-1").await;
    model.arrived(1).await;
    gateway.kill().await.unwrap();
    for lock in [the_only_lock(&gateway), gateway.state_dir().join("gateway.lock")] {
        let mut content: Value = serde_json::from_slice(&std::fs::read(&lock).unwrap()).unwrap();
        content["pidScope"] = json!("another-boot pid:[1]");
        content["pid"] = json!(1);
        std::fs::write(&lock, content.to_string()).unwrap();
    }
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let done = client.request("agent.wait", json!({"runId": "run-1"})).await.unwrap();
    assert_eq!(done["status"], "ok", "{done}\n{}", gateway.log());
    assert_eq!(history(&mut client, "main").await, ["user: hello", "assistant: here"]);
}

#[tokio::test]
async fn a_message_waits_for_a_living_program_while_other_sessions_go_on() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let config = json!({"agents": {"defaults": {"maxConcurrent": 1}}});
    let (gateway, lock) = with_a_turn(&model, config).await;
    let mut client = gateway.client().await.unwrap();
    plant(&lock, std::process::id(), Duration::ZERO);
    send(&mut client, "main", "are you there?", "run-1").await;
    gateway.logged(WAITS).await.unwrap();
    for n in 0..3 {
        assert_eq!(turn(&mut client, "other", "and you?", &format!("run-other-{n}")).await, "here");
    }
    assert!(lock.exists(), "it was taken from a living program");
    std::fs::remove_file(&lock).unwrap();
    assert_eq!(end(&mut client, "run-1").await["state"], "final");
    let told = gateway.log();
    let lines: Vec<&str> = told.lines().filter(|line| line.contains(WAITS)).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains(&std::process::id().to_string()), "{}", lines[0]);
    assert_eq!(history(&mut client, "main").await.len(), 4);
}

#[tokio::test]
async fn a_command_waits_for_a_living_program_too() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let (gateway, lock) = with_a_turn(&model, json!({})).await;
    let mut client = gateway.client().await.unwrap();
    plant(&lock, std::process::id(), Duration::ZERO);
    send(&mut client, "main", "/model", "run-1").await;
    gateway.logged(WAITS).await.unwrap();
    std::fs::remove_file(&lock).unwrap();
    let end = end(&mut client, "run-1").await;
    assert_eq!(end["state"], "final", "{end}");
    assert_eq!(history(&mut client, "main").await.len(), 3);
}

#[tokio::test]
async fn a_message_that_waits_for_a_lock_can_be_stopped() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let (gateway, lock) = with_a_turn(&model, one_by_one()).await;
    let mut client = gateway.client().await.unwrap();
    plant(&lock, std::process::id(), Duration::ZERO);
    send(&mut client, "main", "are you there?", "run-1").await;
    gateway.logged(WAITS).await.unwrap();
    let aborted =
        client.request("chat.abort", json!({"sessionKey": "main", "runId": "run-1"})).await.unwrap();
    assert_eq!(aborted["runIds"], json!(["run-1"]));
    // Clients hear of it although the lock is held.
    assert_eq!(end(&mut client, "run-1").await["state"], "aborted");
    std::fs::remove_file(&lock).unwrap();
    assert_eq!(turn(&mut client, "main", "never mind", "run-2").await, "here");
    let told = [
        "user: hello",
        "assistant: here",
        "user: are you there?",
        "assistant: ",
        "user: never mind",
        "assistant: here",
    ];
    assert_eq!(history(&mut client, "main").await, told);
}

/// Too late for a stop: the command was done and answered, before a crash and after it.
#[tokio::test]
async fn the_answer_of_a_command_is_written_down_although_it_is_stopped_while_it_waits() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let (mut gateway, lock) = with_a_turn(&model, json!({})).await;
    let mut client = gateway.client().await.unwrap();
    plant(&lock, std::process::id(), Duration::ZERO);
    let stop = json!({"sessionKey": "main"});
    send(&mut client, "main", "/model", "run-1").await;
    gateway.logged(WAITS).await.unwrap();
    client.request("chat.abort", stop.clone()).await.unwrap();
    gateway.crash_and_restart().await.unwrap();
    gateway.logged(WAITS).await.unwrap();
    let mut client = gateway.client().await.unwrap();
    client.request("chat.abort", stop).await.unwrap();
    std::fs::remove_file(&lock).unwrap();
    assert_eq!(turn(&mut client, "main", "and now?", "run-2").await, "here");
    let told = history(&mut client, "main").await;
    assert_eq!(told.len(), 5, "{told:?}");
    assert!(told[2].starts_with("assistant: Current: fake/fake-1"), "{told:?}");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_lock_and_the_next_start_answers() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let (mut gateway, lock) = with_a_turn(&model, json!({})).await;
    let mut client = gateway.client().await.unwrap();
    plant(&lock, std::process::id(), Duration::ZERO);
    send(&mut client, "main", "are you there?", "run-1").await;
    gateway.logged(WAITS).await.unwrap();
    assert!(gateway.terminate().await.unwrap().success());
    std::fs::remove_file(&lock).unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let done = client.request("agent.wait", json!({"runId": "run-1"})).await.unwrap();
    assert_eq!(done["status"], "ok", "{done}");
    assert_eq!(history(&mut client, "main").await.len(), 4);
}

#[tokio::test]
async fn a_zombie_and_a_program_younger_than_the_lock_hold_nothing_and_nobody_holds_it_for_long() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let (gateway, lock) = with_a_turn(&model, json!({})).await;
    let mut client = gateway.client().await.unwrap();
    let mut zombie = Command::new("true").spawn().unwrap();
    let stat = format!("/proc/{}/stat", zombie.id());
    while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
        tokio::task::yield_now().await;
    }
    let bystander = Bystander::start();
    let gateway_pid = gateway.pid().unwrap();
    let rows = [
        ("a zombie", zombie.id(), Duration::ZERO),
        ("a younger program", bystander.pid(), 10 * MINUTE),
        ("the gateway's own number, from before", gateway_pid, 10 * MINUTE),
        ("a living program, after half an hour", std::process::id(), 31 * MINUTE),
        ("a living program, after two days", std::process::id(), 48 * 60 * MINUTE),
    ];
    for (n, (name, pid, age)) in rows.into_iter().enumerate() {
        plant(&lock, pid, age);
        assert_eq!(turn(&mut client, "main", name, &format!("run-{}", n + 1)).await, "here", "{name}");
        given_back(&lock).await;
    }
    zombie.wait().unwrap();
    assert!(!gateway.log().contains(WAITS), "{}", gateway.log());
}

#[tokio::test]
async fn containers_with_the_same_number_do_not_take_each_others_locks() {
    let model = ModelServer::queue([
        Reply::text("here"),
        Reply::deltas(["half"]).then(Step::Hang),
        Reply::text("and here"),
    ])
    .await;
    let (gateway, lock) = with_a_turn(&model, json!({})).await;
    let mut client = gateway.client().await.unwrap();
    // Content of this gateway's own lock, in another container.
    send(&mut client, "main", "tell me", "run-1").await;
    model.arrived(2).await;
    let mut theirs: Value = serde_json::from_slice(&std::fs::read(&lock).unwrap()).unwrap();
    assert_eq!(theirs["pid"], json!(gateway.pid().unwrap()));
    let scope = theirs["pidScope"].as_str().expect("the lock says where its number counts").to_owned();
    client.request("chat.abort", json!({"sessionKey": "main", "runId": "run-1"})).await.unwrap();
    client.event("agent", |payload| payload["data"]["aborted"] == true).await.unwrap();

    theirs["pidScope"] = json!(format!("{scope}9"));
    theirs["instance"] = json!("another");
    std::fs::write(&lock, theirs.to_string()).unwrap();
    send(&mut client, "main", "are you there?", "run-2").await;
    gateway.logged(WAITS).await.unwrap();
    assert_eq!(std::fs::read_to_string(&lock).unwrap(), theirs.to_string());
    std::fs::remove_file(&lock).unwrap();
    assert_eq!(end(&mut client, "run-2").await["state"], "final");
}
