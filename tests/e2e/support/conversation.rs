//! A conversation over `chat.send`, and what it left on disk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use openclaw_testkit::model_server::Captured;
use openclaw_testkit::{GatewayUnderTest, WsClient};
use serde_json::{Value, json};

/// Sends, and waits for the acknowledgement.
pub(crate) async fn send(client: &mut WsClient, session: &str, text: &str, run: &str) {
    client.request("chat.send", message(session, text, run)).await.unwrap();
}

/// Parameters of `chat.send`.
pub(crate) fn message(session: &str, text: &str, run: &str) -> Value {
    json!({"sessionKey": session, "message": text, "idempotencyKey": run})
}

/// The last `chat` event of a run.
pub(crate) async fn end(client: &mut WsClient, run: &str) -> Value {
    client.event("chat", |payload| payload["runId"] == run && payload["state"] != "delta").await.unwrap()
}

/// A whole turn; gives the answer.
pub(crate) async fn turn(client: &mut WsClient, session: &str, text: &str, run: &str) -> String {
    send(client, session, text, run).await;
    let end = end(client, run).await;
    assert_eq!(end["state"], "final", "{end}");
    end["message"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// `role: text` of each message that `chat.history` shows.
pub(crate) async fn history(client: &mut WsClient, session: &str) -> Vec<String> {
    let history = client.request("chat.history", json!({"sessionKey": session})).await.unwrap();
    let messages = history["messages"].as_array().unwrap().iter();
    messages.map(|message| format!("{}: {}", text(&message["role"]), text_of(message))).collect()
}

/// The same without what stands before a message that waited alone for the end of a run.
pub(crate) async fn said_history(client: &mut WsClient, session: &str) -> Vec<String> {
    let said = |line: String| match line.strip_prefix("user: ") {
        Some(text) => format!("user: {}", said(text)),
        None => line,
    };
    history(client, session).await.into_iter().map(said).collect()
}

/// Words of a message, without what stands before one that waited alone for the end of a run, or for
/// the compaction behind it.
pub(crate) fn said(text: &str) -> &str {
    text.strip_prefix(TITLE).map_or(text, words)
}

/// The transcript of a session.
pub(crate) async fn transcript_path(gateway: &GatewayUnderTest, session: &str) -> PathBuf {
    let mut client = gateway.client().await.unwrap();
    let history = client.request("chat.history", json!({"sessionKey": session})).await.unwrap();
    let id = history["sessionId"].as_str().unwrap();
    sessions_dir(gateway).join(format!("{id}.jsonl"))
}

/// Directory of the default agent's sessions.
pub(crate) fn sessions_dir(gateway: &GatewayUnderTest) -> PathBuf {
    gateway.state_dir().join("agents/main/sessions")
}

/// The entries of a transcript that OpenClaw would take as it is: a header, every line JSON, every parent known before
/// its child, every tool call with its result before anyone else speaks.
pub(crate) fn well_formed(path: &Path) -> Vec<Value> {
    let whole = std::fs::read_to_string(path).unwrap();
    assert!(whole.ends_with('\n'), "{}: the last line is torn", path.display());
    let mut lines = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let header = lines.next().unwrap();
    assert_eq!(header["type"], "session", "{header}");
    let entries: Vec<Value> = lines.collect();
    let mut known = BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    for entry in &entries {
        let parent = &entry["parentId"];
        assert!(parent.is_null() || known.contains(parent.as_str().unwrap()), "unknown parent: {entry}");
        assert!(known.insert(entry["id"].as_str().unwrap()), "id used twice: {entry}");
        let message = &entry["message"];
        match message["role"].as_str() {
            Some("toolResult") => {
                let call = message["toolCallId"].as_str().unwrap();
                assert!(open.contains(&call.to_owned()), "a result without a call: {entry}");
                open.retain(|id| id != call);
            }
            Some(_) => {
                assert_eq!(open, [""; 0], "calls without results before {entry}");
                let blocks = message["content"].as_array().into_iter().flatten();
                let calls = blocks.filter(|block| block["type"] == "toolCall");
                open.extend(calls.map(|call| text(&call["id"])));
            }
            None => {}
        }
    }
    assert_eq!(open, [""; 0], "calls without results at the end");
    entries
}

/// `role: text (stop reason)` of each message of a transcript.
pub(crate) fn told(entries: &[Value]) -> Vec<String> {
    let messages = entries.iter().map(|entry| &entry["message"]).filter(|message| message.is_object());
    messages
        .map(|message| {
            let (role, text) = (text(&message["role"]), text_of(message));
            match message["stopReason"].as_str() {
                Some(stop) => format!("{role}: {text} ({stop})"),
                None if role == "user" => format!("{role}: {}", words(&text)),
                None => format!("{role}: {text}"),
            }
        })
        .collect()
}

/// Words of the user, without the time before them and the id after them that the model is told.
pub(crate) fn words(text: &str) -> &str {
    let said = text.split_once("\n[message_id:").map_or(text, |(said, _)| said);
    match said.strip_prefix('[').and_then(|rest| rest.split_once(" UTC] ")) {
        Some((_, said)) => said,
        None => said,
    }
}

pub(crate) fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        content => text(&content[0]["text"]),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Heading of messages that are asked together.
pub(crate) const TITLE: &str = "[Queued messages while agent was busy]\n\n---\nQueued #1\n";

/// Reads an answer to its end: what comes adds up to all of it. Gives how many events told of it.
pub(crate) async fn whole_answer(client: &mut WsClient, run: &str, all: &str) -> usize {
    let all = all.trim();
    let (mut added_up, mut whole, mut events) = (String::new(), String::new(), 0);
    while added_up.len() < all.len() {
        let is_piece = |agent: &Value| agent["runId"] == run && agent["stream"] == "assistant";
        let said = client.event("agent", is_piece).await.unwrap();
        added_up += said["data"]["delta"].as_str().unwrap();
        said["data"]["text"].as_str().unwrap().clone_into(&mut whole);
        events += 1;
    }
    assert_eq!(added_up, all);
    assert_eq!(whole, all);
    let last = client.event("chat", |chat| chat["runId"] == run && chat["state"] == "final").await.unwrap();
    assert_eq!(last["message"]["content"][0]["text"], all);
    events
}

/// The failure of a run as all who listen are told it: the same text everywhere.
pub(crate) async fn failure(client: &mut WsClient, session: &str, text: &str, run: &str) -> String {
    let error = |payload: &Value| payload["runId"] == run && payload["data"]["phase"] == "error";
    let lifecycle = client.event("agent", error).await.unwrap()["data"]["error"].clone();
    let chat = end(client, run).await;
    assert_eq!((&chat["state"], &chat["errorMessage"]), (&json!("error"), &lifecycle), "{chat}");
    let wait = client.request("agent.wait", json!({"runId": run})).await.unwrap();
    assert_eq!((&wait["status"], &wait["error"]), (&json!("error"), &lifecycle), "{wait}");
    // A repeated key is answered with the failure, not with another run.
    let again = client.call("chat.send", message(session, text, run)).await.unwrap();
    assert_eq!((again.ok, &again.payload["summary"]), (false, &lifecycle), "{again:?}");
    lifecycle.as_str().unwrap().to_owned()
}

/// Results of tools in a request, in order.
pub(crate) fn results(request: &Captured) -> Vec<String> {
    let tools = request.messages().iter().filter(|message| message["role"] == "tool");
    tools.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}
