//! The state directory as the programs of OpenClaw 2026.2.9 beside us see it, and what they leave in it.

use std::path::Path;
use std::time::Duration;

use openclaw_testkit::many_sessions::{self, Skills};
use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{DEADLINE, GatewayUnderTest, WsAnswer, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::clock::now_ms;
use crate::support::command::openclaw;
use crate::support::conversation::{history, sessions_dir, told, turn, well_formed, words};

const UNKNOWN: &str = "22222222-2222-4333-8444-555555555555";

/// Repeats what it is told, and refuses what it is told to refuse.
async fn model() -> ModelServer {
    ModelServer::answering(|request| {
        let text = request.last_user_text();
        match words(&text) {
            "fail" => Reply::openai_error(400, "invalid_request_error", "the model refuses this"),
            words => Reply::text(words),
        }
    })
    .await
}

/// Both answers of an `agent` request.
async fn agent(client: &mut WsClient, params: Value) -> (WsAnswer, WsAnswer) {
    let id = client.send("agent", params).await.unwrap();
    (client.answer(&id).await.unwrap(), client.answer(&id).await.unwrap())
}

async fn listed(client: &mut WsClient) -> Vec<Value> {
    let params = json!({"includeDerivedTitles": true, "includeLastMessage": true});
    client.request("sessions.list", params).await.unwrap()["sessions"].as_array().unwrap().clone()
}

async fn session_id(client: &mut WsClient, key: &str) -> Option<String> {
    let rows = listed(client).await;
    let row = rows.iter().find(|row| row["key"] == key)?;
    row["sessionId"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn the_main_session_keeps_its_transcript_when_a_request_names_an_unknown_one() {
    let model = model().await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "before", "run-before").await;
    let main = session_id(&mut client, "agent:main:main").await.unwrap();
    // Selectors of the session beside the transcript, and whether the turn goes to the main session
    // then.
    let selectors = [
        (json!({}), false),
        (json!({"agentId": "main"}), true),
        (json!({"sessionKey": "main"}), true),
        (json!({"to": "+15550001111"}), true),
    ];
    let mut in_main = 1;
    for (number, (selector, goes_to_main)) in selectors.iter().enumerate() {
        for text in ["hello", "fail"] {
            let id = format!("{number}-{text}-{UNKNOWN}");
            let mut params = json!({"message": text, "sessionId": id, "idempotencyKey": format!("run-{id}")});
            params.as_object_mut().unwrap().extend(selector.as_object().unwrap().clone());
            let (_, answer) = agent(&mut client, params).await;
            let used = &answer.payload["result"]["meta"]["agentMeta"]["sessionId"];
            assert_eq!(used == &json!(main), *goes_to_main, "{selector}: {answer:?}");
            in_main += usize::from(*goes_to_main);
            assert_eq!(session_id(&mut client, "agent:main:main").await.as_ref(), Some(&main), "{selector}");
            let own = session_id(&mut client, &format!("agent:main:explicit:{id}")).await;
            assert_eq!(own, (!goes_to_main).then_some(id), "{selector}");
        }
    }
    let dir = sessions_dir(&gateway);
    let path = |id: &str| dir.join(format!("{id}.jsonl"));
    let said = |id: &str| told(&well_formed(&path(id))).into_iter().filter(|line| line.starts_with("user: "));
    assert_eq!(said(&main).count(), in_main, "nothing of the main session is lost");

    // The transcript that was begun so goes on under its name alone, and under its key.
    let own = format!("0-hello-{UNKNOWN}");
    let again = json!({"message": "again", "sessionId": own, "idempotencyKey": "run-again"});
    agent(&mut client, again).await;
    turn(&mut client, &format!("agent:main:explicit:{own}"), "and by its key", "run-key").await;
    assert_eq!(said(&own).collect::<Vec<_>>(), ["user: hello", "user: again", "user: and by its key"]);

    // A run without the gateway chooses in the same way.
    drop(client);
    gateway.terminate().await.unwrap();
    let ended = openclaw(&gateway, &["agent", "--local", "--session-id", UNKNOWN, "-m", "alone"]).await;
    assert!(ended.code == Some(0) && ended.out.contains("alone"), "{ended:?}");
    assert_eq!(said(UNKNOWN).collect::<Vec<_>>(), ["user: alone"]);
    assert_eq!(rows(&gateway)["agent:main:main"]["sessionId"], json!(main));
}

#[tokio::test]
async fn a_failed_run_is_answered_with_ok_and_status_error_so_that_nobody_runs_it_again() {
    let model = model().await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let params = json!({"message": "fail", "sessionKey": "main", "idempotencyKey": "run-1"});
    let (first, last) = agent(&mut client, params.clone()).await;
    assert_eq!(first.payload["status"], "accepted");
    assert!(last.ok, "{last:?}");
    let summary = last.payload["summary"].as_str().unwrap();
    assert_eq!(last.payload["status"], "error");
    assert!(summary.contains("the model refuses this"), "{summary}");
    // Lines that OpenClaw's command line prints.
    let payloads = last.payload["result"]["payloads"].as_array().unwrap();
    assert!(payloads.len() == 1 && payloads[0]["text"] == summary, "{last:?}");
    let waited = client.request("agent.wait", json!({"runId": "run-1"})).await.unwrap();
    assert_eq!((&waited["status"], &waited["error"]), (&json!("error"), &json!(summary)), "{waited}");

    let again = client.call("agent", params).await.unwrap();
    assert!(
        again.ok && again.payload["status"] == "error" && again.payload["summary"] == summary,
        "{again:?}"
    );
    assert_eq!(model.requests().len(), 1, "the repetition asks no model");

    let ended = openclaw(&gateway, &["agent", "--session-id", UNKNOWN, "-m", "fail"]).await;
    ended.failed(&["the model refuses this"]);
    assert!(!ended.err.contains("falling back") && model.requests().len() == 2, "{ended:?}");
}

/// The keys of a row that OpenClaw 2026.2.9 has written for a turn of `chat.send`, in its order.
const OF_OPENCLAW: [&str; 18] = [
    "sessionId",
    "updatedAt",
    "systemSent",
    "abortedLastRun",
    "chatType",
    "deliveryContext",
    "lastChannel",
    "origin",
    "sessionFile",
    "compactionCount",
    "skillsSnapshot",
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "modelProvider",
    "model",
    "contextTokens",
    "systemPromptReport",
];

fn rows(gateway: &GatewayUnderTest) -> Value {
    let text = std::fs::read_to_string(sessions_dir(gateway).join("sessions.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_new_session_is_written_as_openclaw_writes_its_own() {
    let model = model().await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hello", "run-1").await;
    drop(client);
    gateway.terminate().await.unwrap();
    let row = &rows(&gateway)["agent:main:main"];
    let keys = row.as_object().unwrap().keys().map(String::as_str);
    // Ours alone, which OpenClaw passes over.
    let keys: Vec<&str> = keys.filter(|key| !key.starts_with("lastInteraction")).collect();
    assert_eq!(keys, OF_OPENCLAW, "{row}");
    let id = row["sessionId"].as_str().unwrap();
    let file = sessions_dir(&gateway).join(format!("{id}.jsonl"));
    assert_eq!(row["sessionFile"], json!(file));
    assert_eq!((&row["compactionCount"], &row["systemSent"]), (&json!(0), &json!(true)));
    assert_eq!(
        row["skillsSnapshot"],
        json!({"prompt": "", "skills": [], "version": 0}),
        "also without a skill"
    );
}

/// Keeps the gateway from writing `sessions.json`, as an OpenClaw command does that is at it.
fn lock(gateway: &GatewayUnderTest) -> std::path::PathBuf {
    let path = sessions_dir(gateway).join("sessions.json.lock");
    let holder = json!({"pid": std::process::id(), "startedAt": now_ms()});
    std::fs::write(&path, holder.to_string()).unwrap();
    path
}

#[tokio::test]
async fn rows_that_openclaw_wrote_after_a_crash_count_whole() {
    let model = model().await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for key in ["main", "reset", "kept"] {
        turn(&mut client, key, "before", &format!("run-{key}")).await;
    }
    drop(client);
    gateway.terminate().await.unwrap();
    let in_file = rows(&gateway);

    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let lock = lock(&gateway);
    for key in ["main", "reset", "kept", "made"] {
        turn(&mut client, key, "only in the journal", &format!("run-late-{key}")).await;
        client.request("sessions.patch", json!({"key": key, "label": format!("label {key}")})).await.unwrap();
    }
    gateway.kill().await.unwrap();
    std::fs::remove_file(lock).unwrap();

    // OpenClaw knows nothing of the journal. It goes on with one session and begins another anew.
    let mut theirs = in_file.clone();
    let later = now_ms() + 1;
    theirs["agent:main:main"]["updatedAt"] = json!(later);
    theirs["agent:main:main"]["thinkingLevel"] = json!("low");
    theirs["agent:main:reset"] = json!({"sessionId": UNKNOWN, "updatedAt": 5, "label": "theirs"});
    theirs["agent:main:kept"]["sendPolicy"] = json!("allow");
    let store = sessions_dir(&gateway).join("sessions.json");
    std::fs::write(&store, serde_json::to_string_pretty(&theirs).unwrap()).unwrap();

    gateway.start().await.unwrap();
    gateway.logged("another program wrote a newer version of this session").await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let label = |rows: &[Value], key: &str| {
        rows.iter()
            .find(|row| row["key"] == key)
            .map(|row| row["label"].as_str().unwrap_or_default().to_owned())
    };
    let seen = listed(&mut client).await;
    let labels =
        ["main", "reset", "kept", "made"].map(|key| label(&seen, &format!("agent:main:{key}")).unwrap());
    assert_eq!(labels, ["", "theirs", "label kept", "label made"]);
    drop(client);
    gateway.terminate().await.unwrap();
    let after = rows(&gateway);
    for key in ["agent:main:main", "agent:main:reset"] {
        assert_eq!(after[key], theirs[key], "{key}");
    }
    assert_eq!(after["agent:main:kept"]["sendPolicy"], "allow", "single fields go together");
    for key in ["agent:main:main", "agent:main:reset"] {
        assert!(
            gateway.log().lines().any(|line| line.contains(key) && line.contains("label")),
            "{key} is not told"
        );
    }
}

/// Waits until a file holds a text. Nothing tells of a file that another process replaces, so it is looked at.
async fn holds(path: &Path, text: &str) {
    let mut looks = tokio::time::interval(Duration::from_millis(100));
    let found = async {
        while !std::fs::read_to_string(path).is_ok_and(|found| found.contains(text)) {
            looks.tick().await;
        }
    };
    let found = tokio::time::timeout(DEADLINE, found).await;
    found.unwrap_or_else(|_| panic!("{} never holds {text:?}", path.display()));
}

/// With ten thousand rows it took three quarters of a minute, more than [`DEADLINE`].
#[tokio::test]
async fn sessions_json_follows_within_seconds_also_with_ten_thousand_rows() {
    let model = model().await;
    let mut gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    many_sessions::write(&gateway.state_dir(), 10_000, Skills::Some).unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let store = sessions_dir(&gateway).join("sessions.json");
    for number in 0..2 {
        let label = format!("label {number}");
        let patch = json!({"key": many_sessions::key(number), "label": label});
        client.request("sessions.patch", patch).await.unwrap();
        holds(&store, &label).await;
    }
    turn(&mut client, "main", "hello", "run-1").await;
    holds(&store, "agent:main:main").await;
    assert_eq!(history(&mut client, "main").await.len(), 2);
}
