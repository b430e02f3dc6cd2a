//! A `sessions.json` that is not as it should be: cut in half, of something else, with rows of wrong types, from another
//! machine, read-only, edited all the time, too long.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::conversation::{end, history, message, said_history, send, sessions_dir, turn};
use crate::support::mount::Mount;

/// A gateway that has not run yet, with this store. Its conversations do not go stale.
fn with_store(model: &ModelServer, text: &str) -> GatewayUnderTest {
    let never = json!({"session": {"reset": {"mode": "idle", "idleMinutes": 10_000_000}}});
    let gateway = gateway().fake_model(&model.v1()).config(never).prepare().unwrap();
    let dir = sessions_dir(&gateway);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("sessions.json"), text).unwrap();
    gateway
}

fn rows(gateway: &GatewayUnderTest) -> Value {
    serde_json::from_slice(&std::fs::read(sessions_dir(gateway).join("sessions.json")).unwrap()).unwrap()
}

async fn here() -> ModelServer {
    ModelServer::answering(|_| Reply::text("here")).await
}

#[tokio::test]
async fn a_store_cut_in_half_is_kept_in_a_copy_and_what_can_be_read_goes_on() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let sessions = ["first", "second", "third", "fourth"];
    for session in sessions {
        turn(&mut client, session, &format!("hello {session}"), &format!("run-{session}")).await;
    }
    gateway.terminate().await.unwrap();
    let dir = sessions_dir(&gateway);
    let store = dir.join("sessions.json");
    let whole = std::fs::read(&store).unwrap();
    let half = &whole[..whole.len() / 2];
    std::fs::write(&store, half).unwrap();

    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let listed = client.request("sessions.list", json!({})).await.unwrap();
    let keys: Vec<&str> =
        listed["sessions"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    assert!(keys.contains(&"agent:main:first") && !keys.contains(&"agent:main:fourth"), "{keys:?}");

    let copies: Vec<_> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("sessions.json.damaged-"))
        .collect();
    assert_eq!(copies.len(), 1, "{copies:?}");
    assert_eq!(std::fs::read(&copies[0]).unwrap(), half);
    gateway.logged(&copies[0].display().to_string()).await.unwrap();

    // A row that survived goes on in its transcript; a lost one begins anew, its old transcript untouched.
    let transcripts = || {
        std::fs::read_dir(&dir)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == "jsonl"))
            .count()
    };
    assert_eq!(transcripts(), sessions.len());
    turn(&mut client, "first", "again", "run-5").await;
    assert_eq!(
        history(&mut client, "first").await,
        ["user: hello first", "assistant: here", "user: again", "assistant: here"]
    );
    turn(&mut client, "fourth", "again", "run-6").await;
    assert_eq!(history(&mut client, "fourth").await, ["user: again", "assistant: here"]);
    assert_eq!(transcripts(), sessions.len() + 1);

    // The next start finds a whole store and makes no further copy.
    gateway.terminate().await.unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(history(&mut client, "fourth").await, ["user: again", "assistant: here"]);
    let again = std::fs::read_dir(&dir)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().contains("damaged"))
        .count();
    assert_eq!(again, 1);
}

#[tokio::test]
async fn a_store_of_something_else_is_kept_in_a_copy_and_the_sessions_begin() {
    let model = here().await;
    for text in ["[{\"sessionId\": \"a\"}]", "", "17", "\u{0}\u{0}\u{0}"] {
        let mut gateway = with_store(&model, text);
        gateway.start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "here", "{text:?}");
        gateway.terminate().await.unwrap();
        assert_eq!(
            rows(&gateway).as_object().unwrap().keys().collect::<Vec<_>>(),
            ["agent:main:main"],
            "{text:?}"
        );
        let names = std::fs::read_dir(sessions_dir(&gateway)).unwrap().map(|entry| entry.unwrap().path());
        let copies: Vec<_> =
            names.filter(|path| path.to_str().unwrap().contains("sessions.json.damaged-")).collect();
        assert_eq!(copies.len(), 1, "{text:?}: {copies:?}");
        assert_eq!(std::fs::read_to_string(&copies[0]).unwrap(), text);
    }
}

#[tokio::test]
async fn rows_of_wrong_types_have_their_turns_and_keep_what_nobody_understands() {
    let model = here().await;
    let odd = json!({
        "sessionId": 5, "updatedAt": "x", "label": [], "deliveryContext": "no", "origin": 7, "skillsSnapshot": "s",
        "lastThreadId": {}, "sendPolicy": 1, "inputTokens": -5, "modelOverride": 3, "sessionFile": {"a": 1},
    });
    let bad_id = |id: &str| json!({"sessionId": id, "updatedAt": 1_795_229_479_704_i64, "label": format!("label {id}")});
    let store = json!({
        "agent:main:main": odd, "agent:main:seven": 7, "agent:main:null": null, "agent:main:list": [],
        "agent:main:up": bad_id("../../../openclaw"), "agent:main:blank": bad_id(""), "": {"sessionId": "e"},
    });
    let mut gateway = with_store(&model, &store.to_string());
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for (at, session) in ["main", "seven", "null", "list", "up", "blank"].into_iter().enumerate() {
        assert_eq!(turn(&mut client, session, "hello", &format!("run-{at}")).await, "here", "{session}");
        assert_eq!(history(&mut client, session).await, ["user: hello", "assistant: here"], "{session}");
    }
    gateway.terminate().await.unwrap();
    let rows = rows(&gateway);
    for (field, value) in [("label", json!([])), ("sendPolicy", json!(1)), ("modelOverride", json!(3))] {
        assert_eq!(rows["agent:main:main"][field], value, "{field}");
    }
    assert_eq!(rows["agent:main:blank"]["label"], "label ", "a session that begins anew keeps its settings");
    assert_eq!(rows[""], json!({"sessionId": "e"}));
}

/// Guards against somebody who can write the store: they must not get the gateway to rename, cut or
/// write files of others.
#[tokio::test]
async fn a_file_that_is_no_transcript_is_never_touched_whatever_a_row_says() {
    let model = here().await;
    let mut gateway = with_store(&model, "{}");
    let foreign = gateway.home().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    let files =
        [("secret", "the secret"), ("data.jsonl", "{\"a\": 1}\n"), ("plain.jsonl", "no json at all\n")];
    let mut store = serde_json::Map::new();
    for (name, text) in files {
        std::fs::write(foreign.join(name), text).unwrap();
        for work in ["turn", "delete", "compact", "inject"] {
            let row = json!({"sessionId": format!("id-{work}-{name}"), "updatedAt": 1_795_229_479_704_i64, "sessionFile": foreign.join(name)});
            store.insert(format!("agent:main:{work}-{name}"), row);
        }
    }
    std::fs::write(sessions_dir(&gateway).join("sessions.json"), Value::Object(store).to_string()).unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for (name, _) in files {
        let key = |work: &str| format!("agent:main:{work}-{name}");
        send(&mut client, &key("turn"), "hello", &format!("run-{name}")).await;
        let end = end(&mut client, &format!("run-{name}")).await;
        // A row that names no transcript has one of its own; one that names a foreign file says so.
        let expected = if name == "secret" { "final" } else { "error" };
        assert_eq!(end["state"], expected, "{name}: {end}");
        let words = end["errorMessage"].as_str().unwrap_or_default();
        assert!(name == "secret" || words.contains("is not a transcript"), "{words}");
        client.call("sessions.compact", json!({"key": key("compact"), "maxLines": 1})).await.unwrap();
        client.call("chat.inject", json!({"sessionKey": key("inject"), "message": "x"})).await.unwrap();
        let deleted = client.request("sessions.delete", json!({"key": key("delete")})).await.unwrap();
        assert_eq!((&deleted["deleted"], &deleted["archived"]), (&json!(true), &json!([])), "{name}");
    }
    let mut left: Vec<String> = std::fs::read_dir(&foreign)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["data.jsonl", "plain.jsonl", "secret"]);
    for (name, text) in files {
        assert_eq!(std::fs::read_to_string(foreign.join(name)).unwrap(), text, "{name}");
    }
}

/// OpenClaw writes absolute paths into its rows; a directory that is copied to another home still has its conversations.
#[tokio::test]
async fn a_directory_from_another_home_goes_on_with_its_conversations() {
    let model = here().await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "before", "run-1").await;
    gateway.terminate().await.unwrap();
    let store = sessions_dir(&gateway).join("sessions.json");
    let mut rows = rows(&gateway);
    let row = &mut rows["agent:main:main"];
    let gone = gateway.home().join("old-home/.openclaw/agents/main/sessions");
    row["sessionFile"] = json!(gone.join(format!("{}.jsonl", row["sessionId"].as_str().unwrap())));
    std::fs::write(&store, rows.to_string()).unwrap();

    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "after", "run-2").await;
    let expected = ["user: before", "assistant: here", "user: after", "assistant: here"];
    assert_eq!(history(&mut client, "main").await, expected);
    let asked = model.requests();
    assert!(asked[1].body.to_string().contains("before"), "the model knows what was said");
    assert!(!gateway.home().join("old-home").exists());
    let deleted = client.request("sessions.reset", json!({"key": "main"})).await.unwrap();
    assert_eq!(deleted["entry"].get("sessionFile"), None);
}

#[tokio::test]
async fn a_read_only_directory_can_be_read_and_what_is_said_waits_until_it_can_be_written() {
    let model = here().await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "before", "run-1").await;
    gateway.terminate().await.unwrap();
    let Some(mount) = Mount::read_only(&sessions_dir(&gateway)) else { return };

    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(history(&mut client, "main").await, ["user: before", "assistant: here"]);
    let refused = client.call("sessions.patch", json!({"key": "main", "label": "x"})).await.unwrap();
    assert_eq!((refused.ok, &refused.error["code"]), (false, &json!("UNAVAILABLE")), "{refused:?}");
    assert!(refused.error["message"].as_str().unwrap().contains("Read-only file system"), "{refused:?}");
    send(&mut client, "main", "during", "run-2").await;
    gateway.logged("the disk refuses: the message waits").await.unwrap();
    let doctor = openclaw(&gateway, &["doctor"]).await;
    assert!(doctor.out.contains("The file system refuses to be written in"), "{}", doctor.out);
    gateway.terminate().await.unwrap();
    drop(mount);

    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let done = client.request("agent.wait", json!({"runId": "run-2"})).await.unwrap();
    assert_eq!(done["status"], "ok", "{done}");
    turn(&mut client, "main", "after", "run-3").await;
    let expected = [
        "user: before",
        "assistant: here",
        "user: during",
        "assistant: here",
        "user: after",
        "assistant: here",
    ];
    // What waits may be told to have waited.
    assert_eq!(said_history(&mut client, "main").await, expected);
}

/// Rewrites the store as a careful editor does, every ten milliseconds until it is told to stop;
/// gives the last number written. Newer content would be overwritten by its old text, as if
/// somebody had deleted rows: it begins again then.
fn scribble(store: &Path, stop: &AtomicBool, in_place: &AtomicBool) -> u64 {
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(10));
        let Ok(text) = std::fs::read(store) else { continue };
        let Ok(mut rows) = serde_json::from_slice::<Value>(&text) else { continue };
        rows["agent:main:by-hand"] = json!({"sessionId": "hand", "updatedAt": 5, "counter": number + 1});
        rows["agent:main:s0"]["note"] = json!(number + 1);
        let edited = format!("{rows:#}");
        let beside = store.with_extension("edited");
        std::fs::write(&beside, &edited).unwrap();
        if std::fs::read(store).ok().as_ref() != Some(&text) {
            continue;
        }
        if in_place.load(Ordering::Relaxed) {
            std::fs::write(store, edited).unwrap();
        } else {
            std::fs::rename(&beside, store).unwrap();
        }
        number += 1;
    }
    number
}

#[tokio::test]
async fn edits_every_ten_milliseconds_and_the_gateways_own_leave_each_other_alone() {
    const ROUNDS: usize = 30;
    let model = here().await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for session in 0..3 {
        turn(&mut client, &format!("s{session}"), "hello", &format!("run-{session}")).await;
    }
    gateway.terminate().await.unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let (stop, in_place) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let editor = std::thread::spawn({
        let (store, stop, in_place) =
            (sessions_dir(&gateway).join("sessions.json"), Arc::clone(&stop), Arc::clone(&in_place));
        move || scribble(&store, &stop, &in_place)
    });
    for round in 0..2 * ROUNDS {
        in_place.store(round >= ROUNDS, Ordering::Relaxed);
        turn(&mut client, &format!("s{}", round % 3), "hello", &format!("turn-{round}")).await;
        let patch = json!({"key": format!("p{round}"), "label": format!("label {round}")});
        client.request("sessions.patch", patch).await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    let last = editor.join().unwrap();
    assert!(last > 0);
    gateway.terminate().await.unwrap();
    let rows = rows(&gateway);
    // On a busy machine the gateway may look at the file, be held up, and replace it behind the last edit
    // (`docs/durability.md`).
    let (counter, note) = (&rows["agent:main:by-hand"]["counter"], &rows["agent:main:s0"]["note"]);
    assert!(
        counter == note && [last, last - 1].contains(&counter.as_u64().unwrap()),
        "{counter} {note} {last}"
    );
    for round in 0..2 * ROUNDS {
        assert_eq!(rows[format!("agent:main:p{round}")]["label"], format!("label {round}"));
    }
}

#[tokio::test]
async fn a_key_of_ten_kilobytes_is_refused_by_every_method() {
    let model = here().await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let key = "k".repeat(10_240);
    let by_key = |key: &str| json!({"key": key});
    let by_session = |key: &str| json!({"sessionKey": key, "message": "x", "idempotencyKey": "run-1"});
    let methods: [(&str, Value); 11] = [
        ("chat.send", message(&key, "x", "run-1")),
        ("agent", by_session(&key)),
        ("chat.history", json!({"sessionKey": key})),
        ("chat.abort", json!({"sessionKey": key})),
        ("chat.inject", json!({"sessionKey": key, "message": "x"})),
        ("sessions.patch", json!({"key": key, "label": "x"})),
        ("sessions.reset", by_key(&key)),
        ("sessions.delete", by_key(&key)),
        ("sessions.compact", by_key(&key)),
        ("sessions.resolve", by_key(&key)),
        ("sessions.usage", by_key(&key)),
    ];
    for (method, params) in methods {
        let refused = client.call(method, params).await.unwrap();
        assert_eq!(
            (refused.ok, &refused.error["code"]),
            (false, &json!("INVALID_REQUEST")),
            "{method}: {refused:?}"
        );
        let text = refused.error["message"].as_str().unwrap();
        assert!(text.contains("session key of 10240 bytes is too long"), "{method}: {text}");
    }
    let listed = client.request("sessions.list", json!({})).await.unwrap();
    assert_eq!(listed["count"], 0);
}

/// OpenClaw's clients end the connection at a frame of more than 25 MiB, and so did the gateway before it was sent.
#[tokio::test]
async fn who_asks_for_more_than_a_frame_holds_is_told_and_not_cut_off() {
    let model = here().await;
    let row = |n: usize| {
        let row = json!({"sessionId": format!("s{n}"), "updatedAt": n, "subject": "x".repeat(10_000)});
        (format!("agent:main:telegram:group:{n}"), row)
    };
    let store: serde_json::Map<String, Value> = (0..3_000).map(row).collect();
    let mut gateway = with_store(&model, &Value::Object(store).to_string());
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let refused = client.call("sessions.list", json!({})).await.unwrap();
    assert_eq!(
        (refused.ok, &refused.error["code"]),
        (false, &json!("INVALID_REQUEST")),
        "{:?}",
        refused.error
    );
    assert!(refused.error["message"].as_str().unwrap().contains("ask for less"), "{:?}", refused.error);
    let listed = client.request("sessions.list", json!({"limit": 3})).await.unwrap();
    assert_eq!((&listed["count"], &listed["sessions"][0]["updatedAt"]), (&json!(3), &json!(2_999)));
}
