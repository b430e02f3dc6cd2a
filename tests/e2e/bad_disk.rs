//! A disk that is full: what can't be kept is refused, what was accepted is not lost, and when there is space again all
//! goes on by itself.

use std::io::Write;
use std::path::Path;

use openclaw_testkit::model_server::{Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use openclaw_testkit::{DEADLINE, GatewayUnderTest, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::{has, ok, openclaw};
use crate::support::config::one_by_one;
use crate::support::conversation::{
    end, history, message, send, told, transcript_path, turn, well_formed, words,
};
use crate::support::mount::Mount;

const DISK: usize = 16 * 1024 * 1024;
/// Length that the last page of a file has no room for, in bytes.
const LONG: usize = 100_000;

/// Takes all the space there is.
fn fill(dir: &Path) {
    fill_but(dir, 0);
}

/// Takes all the space there is, but for so many bytes.
fn fill_but(dir: &Path, left: u64) {
    let mut file = std::fs::File::create(dir.join("ballast")).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    file.set_len(file.metadata().unwrap().len() - left).unwrap();
}

fn free(dir: &Path) {
    std::fs::remove_file(dir.join("ballast")).unwrap();
}

/// A gateway whose state directory is a small disk of its own. The mount goes before the directory does.
struct Small {
    _mount: Mount,
    gateway: GatewayUnderTest,
}

async fn small(model: &ModelServer) -> Option<Small> {
    small_with(model, json!({})).await
}

async fn small_with(model: &ModelServer, config: Value) -> Option<Small> {
    let mut gateway = gateway().fake_model(&model.v1()).config(config).prepare().unwrap();
    let config = gateway.state_dir().join("openclaw.json");
    let text = std::fs::read(&config).unwrap();
    let mount = Mount::of_size(&gateway.state_dir(), DISK)?;
    std::fs::write(&config, text).unwrap();
    gateway.start().await.unwrap();
    Some(Small { _mount: mount, gateway })
}

#[tokio::test]
async fn a_full_disk_refuses_messages_and_takes_them_when_there_is_space_again() {
    let model = ModelServer::answering(|request| Reply::text(words(&request.last_user_text()))).await;
    let Some(mut small) = small(&model).await else { return };
    let gateway = &mut small.gateway;
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "before", "run-1").await;

    fill(&gateway.state_dir());
    for (method, run) in [("chat.send", "run-2"), ("agent", "run-3")] {
        let refused = client.call(method, message("main", &"x".repeat(LONG), run)).await.unwrap();
        assert_eq!((refused.ok, &refused.error["code"]), (false, &json!("UNAVAILABLE")), "{refused:?}");
        assert_eq!(refused.error["retryable"], true, "{refused:?}");
        let text = refused.error["message"].as_str().unwrap();
        assert!(text.contains("could not be stored") && text.contains("full"), "{text}");
    }
    // Requests that need no space work.
    client.request("health", json!({})).await.unwrap();
    client.request("chat.history", json!({"sessionKey": "main"})).await.unwrap();

    free(&gateway.state_dir());
    // The same key: nothing of the refused message was kept.
    turn(&mut client, "main", "after", "run-2").await;
    gateway.terminate().await.unwrap();
    gateway.start().await.unwrap();
    let entries = well_formed(&transcript_path(gateway, "main").await);
    let expected = ["user: before", "assistant: before (stop)", "user: after", "assistant: after (stop)"];
    assert_eq!(told(&entries), expected);
    assert_eq!(model.requests().len(), 2);
}

/// Telegram keeps what the inbox can't take, and brings it again.
#[tokio::test]
async fn what_a_chat_says_on_a_full_disk_is_fetched_again_and_answered_once() {
    let model = ModelServer::answering(|_| Reply::text("well")).await;
    let server = TelegramServer::start().await;
    let telegram =
        json!({"botToken": server.token(), "apiRoot": server.root(), "dmPolicy": "open", "allowFrom": ["*"]});
    let Some(small) = small_with(&model, json!({"channels": {"telegram": telegram}})).await else { return };
    let gateway = &small.gateway;
    server.push(private_message(5, "before"));
    server.nth_answer("sendMessage", 1).await;
    let mut client = gateway.client().await.unwrap();
    fill(&gateway.state_dir());
    // Short enough for the model's window: ahead of a longer one the conversation is summarised, which is a request of its own.
    server.push(private_message(5, &"x".repeat(LONG / 5)));
    gateway.logged("the inbox did not take Telegram's updates; they are asked for again").await.unwrap();
    assert_eq!((server.unconfirmed().len(), server.made().len()), (1, 1));
    let status = client.request("channels.status", json!({})).await.unwrap();
    let why = &status["channelAccounts"]["telegram"][0]["lastError"];
    assert!(why.as_str().is_some_and(|why| why.contains("full")), "{status}");
    free(&gateway.state_dir());
    let answered = server.sees(|made| made.len() >= 2);
    tokio::time::timeout(4 * DEADLINE, answered).await.unwrap_or_else(|_| panic!("{}", gateway.log()));
    server.all_confirmed().await;
    let asked: Vec<String> =
        model.requests().iter().map(|request| request.last_user_text().chars().take(300).collect()).collect();
    assert_eq!((server.made().len(), asked.len()), (2, 2), "{asked:#?}\n{}", gateway.log());
}

#[tokio::test]
async fn what_a_run_says_on_a_full_disk_waits_for_space_also_through_a_crash() {
    for crashes in [false, true] {
        let gate = Gate::new();
        let long = "x".repeat(LONG);
        let first = || Reply::text(&long).after(Step::Wait(gate.clone()));
        // After a crash it is asked again.
        let answers = if crashes { vec![first(), first()] } else { vec![first()] };
        let model = ModelServer::queue(answers.into_iter().chain([Reply::text("well again")])).await;
        let Some(mut small) = small(&model).await else { return };
        let gateway = &mut small.gateway;
        let mut client = gateway.client().await.unwrap();
        send(&mut client, "main", "first", "run-1").await;
        model.arrived(1).await;
        fill(&gateway.state_dir());
        gate.open();
        gateway.logged("the disk is full: the run waits until there is space").await.unwrap();
        let wait = json!({"runId": "run-1", "timeoutMs": 0});
        assert_eq!(
            client.request("agent.wait", wait).await.unwrap()["status"],
            "timeout",
            "nobody is told of an end"
        );
        if crashes {
            gateway.kill().await.unwrap();
        }
        free(&gateway.state_dir());
        if crashes {
            gateway.start().await.unwrap();
            client = gateway.client().await.unwrap();
        }
        let wait = client.request("agent.wait", json!({"runId": "run-1"})).await.unwrap();
        assert_eq!(wait["status"], "ok", "{wait}");
        assert_eq!(turn(&mut client, "main", "second", "run-2").await, "well again");
        let entries = well_formed(&transcript_path(gateway, "main").await);
        let answer = format!("assistant: {long} (stop)");
        let expected = ["user: first", &answer, "user: second", "assistant: well again (stop)"];
        assert_eq!(told(&entries), expected);
        assert_eq!(model.requests().len(), if crashes { 3 } else { 2 });
    }
}

#[tokio::test]
async fn a_gateway_on_a_full_disk_starts_or_says_why_and_loses_nothing() {
    let gate = Gate::new();
    let first = Reply::text("late").after(Step::Wait(gate.clone()));
    let model = ModelServer::queue([first, Reply::text("late")]).await;
    let Some(mut small) = small(&model).await else { return };
    let gateway = &mut small.gateway;
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "first", "run-1").await;
    model.arrived(1).await;
    gateway.kill().await.unwrap();
    fill(&gateway.state_dir());
    let started = gateway.start().await;
    if let Err(error) = &started {
        let text = error.to_string();
        assert!(text.contains("full") || text.contains("No space left"), "{text}");
    }
    gate.open();
    // The accepted message has its one answer once there is space again, whatever the stop did.
    free(&gateway.state_dir());
    if started.is_err() {
        gateway.exited().await.unwrap();
        gateway.start().await.unwrap();
    }
    let mut client = gateway.client().await.unwrap();
    let wait = client.request("agent.wait", json!({"runId": "run-1", "timeoutMs": 20_000})).await.unwrap();
    assert_eq!(wait["status"], "ok", "{wait}\n{}", gateway.log());
    let entries = well_formed(&transcript_path(gateway, "main").await);
    assert_eq!(told(&entries), ["user: first", "assistant: late (stop)"]);
}

#[tokio::test]
async fn messages_that_were_accepted_wait_for_space_and_are_tried_again() {
    wait_for_space("hello", 0).await;
}

/// All that a run needs before its message has space, the message has none.
#[tokio::test]
async fn a_message_its_transcript_has_no_space_for_waits_and_is_written_once() {
    wait_for_space(&"x".repeat(LONG), 80 * 1024).await;
}

async fn wait_for_space(text: &str, left: u64) {
    const WAITING: usize = 8;
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |request| match request.last_user_text().contains("held") {
        true => Reply::text("late").after(Step::Wait(held.clone())),
        false => Reply::text("well"),
    })
    .await;
    let Some(mut small) = small(&model).await else { return };
    let gateway = &mut small.gateway;
    let mut client = gateway.client().await.unwrap();
    // As many as have a place at once.
    for held in 0..4 {
        send(&mut client, &format!("held-{held}"), "held", &format!("held-{held}")).await;
    }
    model.arrived(4).await;
    for waiting in 0..WAITING {
        send(&mut client, &format!("s-{waiting}"), text, &format!("run-{waiting}")).await;
    }
    fill_but(&gateway.state_dir(), left);
    gate.open();
    gateway.logged("the disk is full: the message waits until there is space").await.unwrap();
    free(&gateway.state_dir());
    for waiting in 0..WAITING {
        let end = end(&mut client, &format!("run-{waiting}")).await;
        assert_eq!(
            (&end["state"], &end["message"]["content"][0]["text"]),
            (&json!("final"), &json!("well")),
            "{end}"
        );
    }
    for waiting in 0..WAITING {
        let entries = well_formed(&transcript_path(gateway, &format!("s-{waiting}")).await);
        assert_eq!(told(&entries), [format!("user: {text}"), "assistant: well (stop)".to_owned()]);
    }
}

const NOT_STORED: &str = "stopped, but the stop could not be stored";

/// A run under way and a message behind it, and then the disk is full.
async fn full_during_a_run(model: &ModelServer) -> Option<(Small, WsClient)> {
    let small = small_with(model, one_by_one()).await?;
    let mut client = small.gateway.client().await.unwrap();
    send(&mut client, "main", "first", "run-1").await;
    model.arrived(1).await;
    send(&mut client, "main", "second", "run-2").await;
    fill(&small.gateway.state_dir());
    Some((small, client))
}

/// Checks that a stop which can't be stored warns whoever asked that it may not last. It is stored
/// as soon as there is space, and what was stopped while it waited is in the history then.
#[tokio::test]
async fn a_stop_on_a_full_disk_is_not_acknowledged_and_is_stored_when_there_is_space() {
    let model = ModelServer::queue([Reply::never(), Reply::text("third")]).await;
    let Some((mut small, mut client)) = full_during_a_run(&model).await else { return };
    let refused = client.call("chat.abort", json!({"sessionKey": "main"})).await.unwrap();
    assert_eq!((refused.ok, &refused.error["code"]), (false, &json!("UNAVAILABLE")), "{refused:?}");
    assert!(refused.error["message"].as_str().unwrap().contains(NOT_STORED), "{refused:?}");
    assert_eq!(end(&mut client, "run-1").await["state"], "aborted", "it is stopped all the same");
    let gateway = &mut small.gateway;
    gateway.logged("the disk is full: the message waits until there is space").await.unwrap();
    free(&gateway.state_dir());
    gateway.logged("the journal stored what it had refused").await.unwrap();
    assert_eq!(turn(&mut client, "main", "next", "run-3").await, "third");
    gateway.crash_and_restart().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for run in ["run-1", "run-2"] {
        let known = client.call("chat.send", message("main", "again", run)).await.unwrap();
        assert!(!known.ok, "the key is known: {known:?}");
        let wait = client.request("agent.wait", json!({"runId": run})).await.unwrap();
        assert_ne!(wait["status"], "timeout", "{run}: {wait}");
    }
    let said = history(&mut client, "main").await;
    let asked: Vec<&String> = said.iter().filter(|line| line.starts_with("user: ")).collect();
    assert_eq!(asked, ["user: first", "user: second", "user: next"]);
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn a_stop_word_and_a_reset_on_a_full_disk_are_not_acknowledged_and_the_session_is_as_it_was() {
    for stop in ["/stop", ""] {
        let model = ModelServer::queue([Reply::never(), Reply::text("one"), Reply::text("two")]).await;
        let Some((mut small, mut client)) = full_during_a_run(&model).await else { return };
        let (method, params) = match stop {
            "" => ("sessions.reset", json!({"key": "main"})),
            stop => ("chat.send", message("main", stop, "stop-1")),
        };
        let refused = client.call(method, params).await.unwrap();
        assert!(!refused.ok, "{refused:?}");
        assert!(refused.error["message"].as_str().unwrap().contains(NOT_STORED), "{refused:?}");
        let gateway = &mut small.gateway;
        gateway.kill().await.unwrap();
        free(&gateway.state_dir());
        gateway.start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        // The runs go on, since nobody was told otherwise.
        for run in ["run-1", "run-2"] {
            let wait =
                client.request("agent.wait", json!({"runId": run, "timeoutMs": 20_000})).await.unwrap();
            assert_eq!(wait["status"], "ok", "{method} {run}: {wait}");
        }
        let said = history(&mut client, "main").await;
        let answers: Vec<&String> =
            said.iter().filter(|line| line.ends_with(": one") || line.ends_with(": two")).collect();
        assert_eq!(answers, ["assistant: one", "assistant: two"], "{said:?}");
    }
}

/// Lets in every paired device, even one that was never seen: only a request to be paired needs to
/// be written down.
#[tokio::test]
async fn devices_and_the_command_line_come_in_on_a_full_disk() {
    let model = ModelServer::answering(|request| Reply::text(words(&request.last_user_text()))).await;
    let Some(small) = small(&model).await else { return };
    let gateway = &small.gateway;
    // Makes the key of this host's command line, and pairs it.
    ok(gateway, &["health"]).await;
    let paired = gateway.state_dir().join("devices/paired.json");
    let before = std::fs::read(&paired).unwrap();

    fill(&gateway.state_dir());
    ok(gateway, &["health"]).await;
    ok(gateway, &["status"]).await;
    let doctor = ok(gateway, &["doctor"]).await;
    has(&doctor, &["No message can be stored: there is no space left for ", "Free space on that disk."]);
    assert!(!doctor.contains("State is in order"), "{doctor}");
    assert_eq!(openclaw(gateway, &["doctor", "--check"]).await.code, Some(1));
    let refused = openclaw(gateway, &["config", "set", "logging.level", "info"]).await;
    refused.failed(&["Free space on that disk"]);
    assert!(!refused.err.contains("must be able to write"), "{refused:?}");
    assert_eq!(std::fs::read(&paired).unwrap(), before);
    // The device is not known yet. It is on this host, so that it needs no pairing.
    let mut client = gateway.client().await.unwrap();
    client.request("health", json!({})).await.unwrap();

    // Nor this one: it can't even store its key.
    free(&gateway.state_dir());
    let key = gateway.state_dir().join("identity/device.json");
    std::fs::remove_file(&key).unwrap();
    fill(&gateway.state_dir());
    let unsaved = openclaw(gateway, &["health"]).await;
    assert_eq!(unsaved.code, Some(0), "{unsaved:?}");
    has(&unsaved.err, &["The key of this device could not be stored (", "for this command only"]);
    assert!(!key.exists());

    free(&gateway.state_dir());
    let saved = openclaw(gateway, &["health"]).await;
    assert_eq!((saved.code, saved.err.as_str()), (Some(0), ""));
    assert!(key.exists());
    assert_ne!(std::fs::read(&paired).unwrap(), before);
}
