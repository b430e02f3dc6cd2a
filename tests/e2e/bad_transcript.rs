//! Transcripts with lines that nobody expects.

use std::path::{Path, PathBuf};

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{history, told, transcript_path, turn, well_formed, words};
use crate::support::files::append;

const HUGE: usize = 20 * 1024 * 1024;

/// A stopped gateway with a session of one turn.
async fn stopped(model: &ModelServer) -> (GatewayUnderTest, PathBuf) {
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "one", "run-1").await;
    let path = transcript_path(&gateway, "main").await;
    gateway.terminate().await.unwrap();
    (gateway, path)
}

async fn model() -> ModelServer {
    /// Length of a conversation that is to be summarised, in characters; no message of these tests
    /// is as long.
    const LONG: usize = 1_000;
    ModelServer::answering(|request| match request.last_user_text() {
        text if text.len() > LONG => Reply::text("They looked at a big file."),
        text => Reply::text(&format!("to {}", words(&text))),
    })
    .await
}

fn last_id(path: &Path) -> Value {
    well_formed(path).pop().unwrap()["id"].take()
}

fn backups(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let entries = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter(|entry| entry.file_name().unwrap().to_str().unwrap().starts_with(&format!("{name}.bak")))
        .collect()
}

#[tokio::test]
async fn a_torn_last_line_is_cut_off_and_kept_in_a_copy() {
    let model = model().await;
    let (mut gateway, path) = stopped(&model).await;
    let before = std::fs::read_to_string(&path).unwrap();
    let torn = r#"{"type":"message","id":"0badf00d","parentId":nu"#;
    append(&path, torn);

    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(history(&mut client, "main").await, ["user: one", "assistant: to one"]);
    assert_eq!(turn(&mut client, "main", "two", "run-2").await, "to two");
    let expected = ["user: one", "assistant: to one", "user: two", "assistant: to two"];
    assert_eq!(history(&mut client, "main").await, expected);

    assert!(std::fs::read_to_string(&path).unwrap().starts_with(&before));
    well_formed(&path);
    let [copy] = &backups(&path)[..] else { panic!("{:?}", backups(&path)) };
    assert_eq!(std::fs::read_to_string(copy).unwrap(), torn);
    gateway.logged(&copy.display().to_string()).await.unwrap();
}

#[tokio::test]
async fn entries_of_an_unknown_type_and_lines_of_no_type_stay_where_they_are() {
    let model = model().await;
    let (mut gateway, path) = stopped(&model).await;
    let parent = last_id(&path);
    let unknown = json!({"type": "hologram", "id": "a0000001", "parentId": parent, "timestamp": "2026-02-09T10:00:00.000Z", "beam": [1, 2]});
    let role = json!({"type": "message", "id": "a0000002", "parentId": "a0000001", "timestamp": "2026-02-09T10:00:01.000Z", "message": {"role": "oracle", "content": "x", "timestamp": 1}});
    let foreign = format!("{unknown}\nnot json at all\n[1,2,3]\n\n{role}\n");
    append(&path, &foreign);
    let before = std::fs::read_to_string(&path).unwrap();

    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "two", "run-2").await, "to two");
    let shown = history(&mut client, "main").await;
    let known: Vec<&String> = shown.iter().filter(|line| !line.starts_with("oracle")).collect();
    assert_eq!(known, ["user: one", "assistant: to one", "user: two", "assistant: to two"]);
    let after = std::fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(&before), "what was there was changed");
    // The conversation goes on after what it does not know, and the model was told all it had said.
    let added: Value = serde_json::from_str(after[before.len()..].lines().next().unwrap()).unwrap();
    assert_eq!(added["parentId"], "a0000002");
    assert!(model.requests()[1].body["messages"].to_string().contains("to one"));
    assert!(backups(&path).is_empty(), "{:?}", backups(&path));
}

#[tokio::test]
async fn a_line_of_20_mb_is_kept_and_the_conversation_goes_on() {
    let model = model().await;
    let (mut gateway, path) = stopped(&model).await;
    let at = "2026-02-09T10:00:00.000Z";
    let entry = |id: &str, parent: &Value, message: Value| {
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": at, "message": message})
            .to_string()
    };
    let call = json!({"type": "toolCall", "id": "c1", "name": "exec", "arguments": {"command": "cat big"}});
    let usage = json!({"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}});
    let assistant = json!({"role": "assistant", "content": [call], "api": "openai-completions", "provider": "fake", "model": "fake-1",
        "usage": usage, "stopReason": "toolUse", "timestamp": 2});
    let huge = json!({"role": "toolResult", "toolCallId": "c1", "toolName": "exec",
        "content": [{"type": "text", "text": "output ".repeat(HUGE / 7)}], "isError": false, "timestamp": 3});
    let lines = [
        entry(
            "b0000001",
            &last_id(&path),
            json!({"role": "user", "content": [{"type": "text", "text": "big"}], "timestamp": 1}),
        ),
        entry("b0000002", &json!("b0000001"), assistant),
        entry("b0000003", &json!("b0000002"), huge),
    ];
    append(&path, &(lines.join("\n") + "\n"));
    let before = std::fs::metadata(&path).unwrap().len();
    assert!(before > HUGE as u64);

    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "two", "run-2").await, "to two");
    let shown = history(&mut client, "main").await;
    assert_eq!(shown[shown.len() - 2..], ["user: two", "assistant: to two"]);
    let entries = well_formed(&path);
    assert_eq!(told(&entries).len(), 7);
    assert!(std::fs::metadata(&path).unwrap().len() > before);
    // Messages that a model can't take are not sent to it.
    for request in model.requests() {
        let sent = request.body.to_string().len();
        assert!(sent < HUGE / 4, "{sent} bytes were sent to the model");
    }
}

/// OpenClaw 2026.2.9's `sessions.compact` keeps the last lines and loses the header.
#[tokio::test]
async fn a_transcript_that_lost_its_header_goes_on() {
    let model = model().await;
    let (mut gateway, path) = stopped(&model).await;
    let before = std::fs::read_to_string(&path).unwrap();
    let tail: Vec<&str> = before.lines().rev().take(2).collect();
    let headless = format!("{}\n{}\n", tail[1], tail[0]);
    std::fs::write(&path, &headless).unwrap();

    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(history(&mut client, "main").await, ["user: one", "assistant: to one"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), headless, "reading changed the file");
    assert_eq!(turn(&mut client, "main", "two", "run-2").await, "to two");
    let expected = ["user: one", "assistant: to one", "user: two", "assistant: to two"];
    assert_eq!(history(&mut client, "main").await, expected);
    assert!(model.requests()[1].body["messages"].to_string().contains("to one"));
    let after = std::fs::read_to_string(&path).unwrap();
    let (header, rest) = after.split_once('\n').unwrap();
    assert_eq!(serde_json::from_str::<Value>(header).unwrap()["type"], "session");
    assert!(rest.starts_with(&headless), "what was there was changed");
    let [copy] = &backups(&path)[..] else { panic!("{:?}", backups(&path)) };
    assert_eq!(std::fs::read_to_string(copy).unwrap(), headless);
}

#[tokio::test]
async fn cycles_unknown_parents_and_line_ends_of_windows_hide_nothing() {
    let model = model().await;
    let (mut gateway, path) = stopped(&model).await;
    let said = |id: &str, parent: &str, text: &str| {
        let message = json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 5});
        let entry = json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-02-09T10:00:00.000Z", "message": message});
        format!("{entry}\r\n")
    };
    append(
        &path,
        &[
            said("a1", "a2", "two"),
            said("a2", "a1", "three"),
            said("a3", "a3", "four"),
            said("a4", "nowhere", "five"),
        ]
        .concat(),
    );
    let before = std::fs::read_to_string(&path).unwrap();

    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    // Successive messages of people reach the model as one.
    let answer = turn(&mut client, "main", "six", "run-2").await;
    assert!(answer.starts_with("to two\n\nthree\n\nfour\n\nfive\n\n") && answer.ends_with("six"), "{answer}");
    let shown = history(&mut client, "main").await;
    let expected = [
        "user: one",
        "assistant: to one",
        "user: two",
        "user: three",
        "user: four",
        "user: five",
        "user: six",
    ];
    assert_eq!(shown[..7], expected);
    assert_eq!(shown[7..], [format!("assistant: {answer}")]);
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(&before), "what was there was changed");
    assert!(backups(&path).is_empty(), "{:?}", backups(&path));
}
