//! Lifecycle of conversations: when one goes on and when it starts anew, and the fate of a database
//! that is not what it should be.

use std::path::Path;

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{Gate, ModelServer, Reply, Step};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::clock::now_ms;
use crate::support::command::openclaw;
use crate::support::conversation::{end, history, message, send, sessions_dir, turn, words};

const OLD: &str = "11111111-2222-4333-8444-555555555555";
const HOUR: u64 = 60 * 60 * 1000;

/// The zone in which it is noon or a little later now.
fn zone_of_noon() -> String {
    let hour = i64::try_from(now_ms() / HOUR % 24).unwrap();
    // `Etc/GMT-3` is three hours ahead of UTC.
    match 12 - hour {
        0 => "Etc/GMT".to_owned(),
        ahead if ahead > 0 => format!("Etc/GMT-{ahead}"),
        ahead => format!("Etc/GMT+{}", -ahead),
    }
}

/// A conversation that OpenClaw 2026.2.9 left so many hours ago.
fn leave(gateway: &GatewayUnderTest, hours: u64) {
    let dir = sessions_dir(gateway);
    std::fs::create_dir_all(&dir).unwrap();
    let at = now_ms() - hours * HOUR;
    let rows = json!({"agent:main:main": {"sessionId": OLD, "updatedAt": at, "label": "kept"}});
    std::fs::write(dir.join("sessions.json"), serde_json::to_string_pretty(&rows).unwrap()).unwrap();
    let entry = |id: &str, parent: Value, role: &str, text: &str| {
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-02-10T10:00:00.000Z", "message":
            {"role": role, "content": [{"type": "text", "text": text}], "timestamp": at, "stopReason": "stop",
             "provider": "fake", "model": "fake-1", "api": "openai-completions"}})
    };
    let lines = [
        json!({"type": "session", "version": 3, "id": OLD, "timestamp": "2026-02-10T10:00:00.000Z", "cwd": "/"}),
        entry("00000001", Value::Null, "user", "what was said long ago"),
        entry("00000002", json!("00000001"), "assistant", "and answered"),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(dir.join(format!("{OLD}.jsonl")), text).unwrap();
}

async fn session_id(gateway: &GatewayUnderTest) -> String {
    let mut client = gateway.client().await.unwrap();
    let history = client.request("chat.history", json!({"sessionKey": "main"})).await.unwrap();
    history["sessionId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_local_hour_and_the_silence_end_a_conversation_and_leave_its_transcript() {
    let model = ModelServer::answering(|request| Reply::text(words(&request.last_user_text()))).await;
    // The local time is past noon, and the last word was said three hours ago.
    let rows = [
        (json!({}), true),
        (json!({"reset": {"atHour": 8}}), true),
        (json!({"reset": {"atHour": 11}}), false),
        (json!({"reset": {"atHour": 8, "idleMinutes": 120}}), false),
        (json!({"idleMinutes": 240}), true),
        (json!({"idleMinutes": 120}), false),
        (json!({"reset": {"atHour": 11}, "resetByType": {"dm": {"mode": "idle", "idleMinutes": 240}}}), true),
        (json!({"resetByChannel": {"webchat": {"mode": "idle", "idleMinutes": 60}}}), false),
    ];
    for (session, goes_on) in rows {
        let setup = gateway().fake_model(&model.v1()).env("TZ", zone_of_noon());
        let mut gateway = setup.config(json!({"session": session})).prepare().unwrap();
        leave(&gateway, 3);
        gateway.start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        turn(&mut client, "main", "hello again", "run-1").await;
        let id = session_id(&gateway).await;
        assert_eq!(id == OLD, goes_on, "{session}");
        turn(&mut client, "main", "and again", "run-2").await;
        assert_eq!(session_id(&gateway).await, id, "{session}");
        let old = std::fs::read_to_string(sessions_dir(&gateway).join(format!("{OLD}.jsonl"))).unwrap();
        assert!(old.contains("long ago") && old.contains("hello again") == goes_on, "{session}");
        let list = client.request("sessions.list", json!({})).await.unwrap();
        assert_eq!(list["sessions"][0]["label"], "kept", "settings stay: {session}");
    }
}

#[tokio::test]
async fn new_stops_what_runs_and_begins_a_conversation_that_knows_nothing_of_it() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |request| {
        if request.last_user_text().contains("long work") {
            return Reply::steps([Step::Text("working".to_owned()), Step::Wait(held.clone())]);
        }
        Reply::text("done")
    })
    .await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "long work", "run-1").await;
    let is_working = |payload: &Value| payload["runId"] == "run-1" && payload["state"] == "delta";
    client.event("chat", is_working).await.unwrap();
    let before = session_id(&gateway).await;
    send(&mut client, "main", "/new what now?", "run-2").await;
    let stopped = end(&mut client, "run-1").await;
    assert_eq!(
        (&stopped["state"], &stopped["stopReason"]),
        (&json!("aborted"), &json!("interrupt")),
        "{stopped}"
    );
    assert_eq!(end(&mut client, "run-2").await["state"], "final");
    assert_ne!(session_id(&gateway).await, before);
    let told = history(&mut client, "main").await;
    assert!(told.len() == 2 && told[0].contains("what now?") && !told[0].contains("/new"), "{told:?}");
    gate.open();
}

fn set_aside(state_dir: &Path) -> Vec<String> {
    let names =
        std::fs::read_dir(state_dir).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let aside = |name: &String| name.starts_with("gateway.sqlite.damaged-") && !name.ends_with("-wal");
    names.filter(aside).collect()
}

#[tokio::test]
async fn a_damaged_database_is_kept_aside_and_the_gateway_goes_on() {
    let model = ModelServer::answering(|request| Reply::text(words(&request.last_user_text()))).await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "before", "run-1").await;
    // Closed, so that no log is left from which SQLite would mend it.
    gateway.terminate().await.unwrap();
    let path = gateway.state_dir().join("gateway.sqlite");
    std::fs::write(&path, "no database at all").unwrap();
    gateway.start().await.unwrap();
    gateway.logged("gateway.sqlite was damaged").await.unwrap();
    let [kept] = set_aside(&gateway.state_dir()).try_into().unwrap();
    assert_eq!(std::fs::read_to_string(gateway.state_dir().join(kept)).unwrap(), "no database at all");
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "after", "run-2").await;
    assert_eq!(history(&mut client, "main").await.len(), 4, "the conversation is untouched");
}

#[tokio::test]
async fn a_database_that_was_moved_away_refuses_messages_until_it_is_back() {
    let model = ModelServer::answering(|request| Reply::text(words(&request.last_user_text()))).await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "before", "run-1").await;
    let (path, aside) = (gateway.state_dir().join("gateway.sqlite"), gateway.state_dir().join("elsewhere"));
    std::fs::rename(&path, &aside).unwrap();
    for run in ["run-2", "run-3"] {
        let refused = client.request("chat.send", message("main", "lost?", run)).await.unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("UNAVAILABLE") && refused.contains("put the file back"), "{refused}");
    }
    assert_eq!(gateway.log().matches("the journal takes nothing new").count(), 1, "{}", gateway.log());
    let doctor = openclaw(&gateway, &["doctor"]).await;
    assert!(doctor.out.contains("was deleted or moved away while the gateway runs"), "{}", doctor.out);

    std::fs::rename(&aside, &path).unwrap();
    turn(&mut client, "main", "after", "run-4").await;
    gateway.kill().await.unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(history(&mut client, "main").await.len(), 4);
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused_and_left_alone() {
    let model = ModelServer::answering(|_| Reply::text("hi")).await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    client.request("chat.send", message("main", "hi", "run-1")).await.unwrap();
    end(&mut client, "run-1").await;
    gateway.terminate().await.unwrap();
    let path = gateway.state_dir().join("gateway.sqlite");
    let mut bytes = std::fs::read(&path).unwrap();
    // `user_version` in SQLite's header.
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let refused = gateway.start().await.unwrap_err().to_string();
    let said = format!("{refused}\n{}", gateway.log());
    assert!(said.contains("schema version 99") && said.contains("start the newer openclaw"), "{said}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(set_aside(&gateway.state_dir()), [""; 0]);
}
