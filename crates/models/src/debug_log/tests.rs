use std::time::{Duration, Instant};

use openclaw_protocol::message::{Message, UserMessage};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::*;
use crate::provider_key::ProviderKey;
use crate::request::ModelRequest;
use crate::stream::ModelEvent;

/// The lines a log holds once there are this many.
fn lines(path: &Path, count: usize) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.lines().count() >= count || begun.elapsed() > Duration::from_secs(20) {
            return text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        }
        std::thread::yield_now();
    }
}

fn call(log: &CallLog) {
    let request = ModelRequest {
        system: "rules".into(),
        messages: vec![Message::User(UserMessage::text("my key is sk-secret-1", 1)).into()].into(),
        session_id: Some("s-1".to_owned()),
        ..ModelRequest::default()
    };
    let key = ProviderKey::from(SecretString::from("sk-secret-1"));
    log.context(&request, Some(&key));
    log.posted(Some("s-1"), br#"{"model":"m","messages":["my key is sk-secret-1"]}"#, Some(&key));
    let message = serde_json::from_value(
        json!({"role": "assistant", "content": [{"type": "text", "text": "hi"}], "api": "a",
        "provider": "p", "model": "m", "usage": {"input": 3}, "stopReason": "stop", "timestamp": 2}),
    )
    .unwrap();
    log.event(Some("s-1"), &ModelEvent::TextDelta { block: 0, delta: "hi".to_owned() }, Some(&key));
    log.event(Some("s-1"), &ModelEvent::Done { message, failure: None }, Some(&key));
}

fn agent_dir(state: &Path) -> PathBuf {
    state.join("agents/main/agent")
}

#[test]
fn nothing_is_written_unless_it_is_asked_for() {
    let spec = ModelSpec::sample("p", "m", "anthropic-messages");
    let logs = DebugLogs::from(&Variables::default());
    assert!(logs.of(&spec, &CacheTrace::default(), Path::new("/a/b/c/d")).is_none());
    let off: Variables =
        [("OPENCLAW_RAW_STREAM", "0"), ("OPENCLAW_CACHE_TRACE", "false")].into_iter().collect();
    let asked = CacheTrace { enabled: true, ..CacheTrace::default() };
    assert!(DebugLogs::from(&off).of(&spec, &asked, Path::new("/a/b/c/d")).is_none(), "a variable wins");
    let payloads: Variables = [("OPENCLAW_ANTHROPIC_PAYLOAD_LOG", "1")].into_iter().collect();
    let other = ModelSpec::sample("p", "m", "openai-completions");
    assert!(DebugLogs::from(&payloads).of(&other, &CacheTrace::default(), Path::new("/a/b/c/d")).is_none());
}

#[test]
fn every_log_has_its_lines_and_no_keys() {
    let state = tempfile::tempdir().unwrap();
    let named = state.path().join("elsewhere/stream.jsonl");
    let shown = named.display().to_string();
    let variables: Variables = [
        ("OPENCLAW_ANTHROPIC_PAYLOAD_LOG", "1"),
        ("OPENCLAW_RAW_STREAM", "true"),
        ("OPENCLAW_RAW_STREAM_PATH", &shown),
        ("OPENCLAW_CACHE_TRACE", "1"),
    ]
    .into_iter()
    .collect();
    let spec = ModelSpec::sample("p", "m", "anthropic-messages");
    let logs = DebugLogs::from(&variables);
    call(&logs.of(&spec, &CacheTrace::default(), &agent_dir(state.path())).unwrap());
    let logs = state.path().join("logs");

    let payloads = lines(&logs.join("anthropic-payload.jsonl"), 2);
    assert_eq!(payloads[0]["payload"], json!({"model": "m", "messages": ["my key is [redacted]"]}));
    assert_eq!(
        (&payloads[0]["stage"], &payloads[0]["sessionId"], &payloads[0]["modelApi"]),
        (&json!("request"), &json!("s-1"), &json!("anthropic-messages"))
    );
    assert_eq!((&payloads[1]["stage"], &payloads[1]["usage"]["input"]), (&json!("usage"), &json!(3)));

    let stream = lines(&named, 2);
    assert_eq!((&stream[0]["evtType"], &stream[0]["delta"]), (&json!("text_delta"), &json!("hi")));
    assert_eq!((&stream[1]["event"], &stream[1]["rawText"]), (&json!("assistant_message_end"), &json!("hi")));

    let trace = lines(&logs.join("cache-trace.jsonl"), 2);
    let stages: Vec<_> = trace.iter().map(|line| line["stage"].clone()).collect();
    assert_eq!(stages, ["stream:context", "session:after"]);
    assert_eq!((&trace[0]["system"], &trace[0]["messageRoles"]), (&json!("rules"), &json!(["user"])));
    assert!(!format!("{trace:?}").contains("sk-secret-1"), "{trace:?}");
    assert_eq!(trace[0]["messageFingerprints"].as_array().unwrap().len(), 1);
}

#[test]
fn a_trace_may_leave_out_what_was_said() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("t.jsonl");
    let settings = CacheTrace {
        enabled: true,
        file_path: Some(file.display().to_string()),
        include_messages: false,
        include_system: true,
    };
    let quiet: Variables = [("OPENCLAW_CACHE_TRACE_SYSTEM", "0")].into_iter().collect();
    let spec = ModelSpec::sample("p", "m", "openai-completions");
    call(&DebugLogs::from(&quiet).of(&spec, &settings, &agent_dir(state.path())).unwrap());
    let lines = lines(&file, 2);
    assert!(lines.iter().all(|line| line.get("messages").is_none() && line.get("system").is_none()));
    assert_eq!(
        (&lines[0]["messageCount"], lines[0]["systemDigest"].as_str().unwrap().len()),
        (&json!(1), 64)
    );
}
