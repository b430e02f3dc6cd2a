mod bad;
mod laws;
mod long;
mod refusals;
mod turns;

use std::path::Path;

use openclaw_protocol::message::{AssistantMessage, Block, Message, ToolCall, UserMessage};
use serde_json::{Value, json};

use super::*;
use crate::transcript_contract as contract;

fn new() -> NewTranscript {
    NewTranscript { session_id: "s".into(), cwd: "/w".into(), parent: None }
}

fn user(text: &str) -> Message {
    Message::User(UserMessage::text(text, 1))
}

fn assistant(text: &str) -> Message {
    Message::Assistant(AssistantMessage {
        content: vec![Block::text(text)],
        provider: "p".into(),
        model: "m".into(),
        timestamp: 2,
        ..AssistantMessage::default()
    })
}

fn say(file: &mut OpenTranscript, message: Message) -> EntryId {
    file.refresh().unwrap();
    file.append(message.into(), None).unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Copies the branch of a file's last entry into one beside it, and tells its id and path.
fn forked(parent: &Path, cwd: &str) -> (String, std::path::PathBuf) {
    let id = crate::entry::new_session_id();
    let all = testing::anywhere();
    let parent = TranscriptRef::new(parent);
    let child = all.of_fork(&parent, &id, crate::time::now_ms());
    let (session_id, cwd) = (id.to_string(), cwd.to_owned());
    fork::fork_to(all.logs(), &parent, &child, NewTranscript { session_id, cwd, parent: None }).unwrap();
    (id.to_string(), child.path().to_owned())
}

fn texts(context: &Context) -> Vec<String> {
    context
        .messages
        .iter()
        .map(|message| match &**message {
            Message::User(m) => m.content.to_text(),
            Message::Assistant(m) => m.text(),
            Message::ToolResult(m) => m.tool_call_id.clone(),
        })
        .collect()
}

fn backups(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_string_lossy().contains(".bak-")).collect()
}

#[tokio::test]
async fn a_fresh_transcript_begins_as_openclaw_begins_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/s.jsonl");
    let mut transcript = testing::opened(&path, new()).await;
    let settings = ModelSettings {
        provider: "anthropic".into(),
        model_id: "claude".into(),
        api: "anthropic-messages".into(),
        thinking_level: "off".into(),
        touches_cache: false,
    };
    transcript.now(|open| open.note_settings(&settings)).unwrap();
    let id = transcript.append_message(user("hi"), Some(EntryId::new("cafe0001"))).await.unwrap();
    transcript.append_message(assistant("hello"), None).await.unwrap();
    let higher = ModelSettings { thinking_level: "high".into(), ..settings };
    transcript.now(|open| open.note_settings(&higher)).unwrap();
    transcript.sync().await.unwrap();
    let lines = lines(&path);
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    let expect = ["session", "model_change", "thinking_level_change", "custom", "message", "message"];
    assert_eq!(kinds[..6], expect);
    // The assistant of this test is another model than the settings name: both are said again.
    assert_eq!(kinds[6..], ["model_change", "thinking_level_change"]);
    assert_eq!(
        lines[0],
        json!({"type": "session", "version": 3, "id": "s", "timestamp": lines[0]["timestamp"], "cwd": "/w"})
    );
    assert_eq!(lines[1]["parentId"], Value::Null);
    assert_eq!(lines[3]["customType"], "model-snapshot");
    assert_eq!(lines[3]["data"]["modelApi"], "anthropic-messages");
    for pair in lines[1..].windows(2) {
        assert_eq!(pair[1]["parentId"], pair[0]["id"]);
    }
    assert_eq!((lines[4]["id"].as_str(), id.as_str()), (Some("cafe0001"), "cafe0001"));
    assert!(lines[5]["id"].as_str().unwrap().chars().all(|c| c.is_ascii_hexdigit() && !c.is_uppercase()));
    assert!(transcript.contains("cafe0001") && !transcript.contains("nothing"));
    let again = transcript.append_message(user("hi"), Some(EntryId::new("cafe0001"))).await;
    assert!(matches!(again, Err(TranscriptError::DuplicateId { .. })));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// Rules of `sessions.md` §4.2.
#[test]
fn what_changed_of_the_model_is_said_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut file = OpenTranscript::create_file(&path, &new()).unwrap();
    let settings = |model: &str, api: &str, level: &str| ModelSettings {
        provider: "p".into(),
        model_id: model.into(),
        api: api.into(),
        thinking_level: level.into(),
        touches_cache: false,
    };
    let rows: [(ModelSettings, &[&str]); 5] = [
        (settings("m", "a", "off"), &["model_change", "thinking_level_change", "custom"]),
        (settings("m", "a", "off"), &[]),
        (settings("n", "a", "off"), &["model_change", "custom"]),
        (settings("n", "b", "off"), &["custom"]),
        (settings("n", "b", "low"), &["thinking_level_change"]),
    ];
    for (settings, expect) in rows {
        let before = lines(&path).len();
        file.note_settings(&settings).unwrap();
        let said = lines(&path).split_off(before);
        let kinds: Vec<&str> = said.iter().map(|line| line["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, expect, "{settings:?}");
        for line in said.iter().filter(|line| line["type"] == "custom") {
            let timestamp = &line["data"]["timestamp"];
            let data = json!({"timestamp": timestamp, "provider": "p", "modelApi": settings.api, "modelId": settings.model_id});
            assert_eq!((&line["customType"], &line["data"]), (&json!("model-snapshot"), &data));
            assert!(timestamp.is_i64() || timestamp.is_u64(), "{timestamp}");
        }
    }
}

#[test]
fn ids_are_eight_hex_digits() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = OpenTranscript::create_file(&dir.path().join("s.jsonl"), &new()).unwrap();
    for _ in 0..50 {
        let id = say(&mut file, user("u"));
        let is_hex = id.as_str().bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        assert!(is_hex && id.as_str().len() == 8, "{id}");
    }
}

#[tokio::test]
async fn context_and_settings_follow_the_branch() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut file = OpenTranscript::create_file(&path, &new()).unwrap();
    let u1 = say(&mut file, user("u1"));
    let a1 = say(&mut file, assistant("a1"));
    say(&mut file, user("u2"));
    file.append(Body::ThinkingLevelChange { thinking_level: "low".into() }, None).unwrap();
    file.branch(Branch::At(a1.clone())).unwrap();
    say(&mut file, user("u9"));
    let context = file.context().unwrap();
    assert_eq!(texts(&context), ["u1", "a1", "u9"]);
    assert_eq!((context.thinking_level, context.model), (None, Some(("p".into(), "m".into()))));

    let compaction = format::Compaction {
        summary: "S".into(),
        first_kept_entry_id: a1.to_string(),
        tokens_before: 9,
        details: None,
        from_hook: None,
    };
    file.append(Body::Compaction(compaction), None).unwrap();
    say(&mut file, user("u10"));
    let mut again = OpenTranscript::open_file(&path).unwrap();
    let shown = texts(&again.context().unwrap());
    assert!(shown[0].contains("<summary>\nS\n</summary>"));
    assert_eq!(shown[1..], ["a1", "u9", "u10"]);
    again.branch(Branch::Root).unwrap();
    assert_eq!(again.context().unwrap(), Context::default());
    again.branch(Branch::Latest).unwrap();
    assert_eq!(again.known_entries(), 7);
    assert!(matches!(again.branch(Branch::At(EntryId::new("x"))), Err(TranscriptError::UnknownId { .. })));
    assert!(again.contains(u1.as_str()));
}

#[test]
fn a_file_cut_at_any_byte_opens_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut file = OpenTranscript::create_file(&path, &new()).unwrap();
    say(&mut file, user("one"));
    say(&mut file, assistant("two é"));
    let whole = std::fs::read(&path).unwrap();
    for cut in 0..=whole.len() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, &whole[..cut]).unwrap();
        let mut file = OpenTranscript::open_or_create_file(&path, &new()).unwrap();
        let newlines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        // A last line that lacks nothing but its newline is whole.
        let complete = newlines + usize::from(whole.get(cut) == Some(&b'\n'));
        assert_eq!(file.known_entries(), complete.saturating_sub(1), "{cut}");
        say(&mut file, user("next"));
        let parsed = lines(&path);
        assert_eq!(parsed.len(), complete.max(1) + 1, "{cut}");
        let torn = cut > 0 && complete == newlines && whole[..cut].last() != Some(&b'\n');
        let kept = backups(dir.path());
        assert_eq!(kept.len(), usize::from(torn), "{cut}");
        if torn && newlines > 0 {
            let start = whole[..cut].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
            assert_eq!(std::fs::read(&kept[0]).unwrap(), &whole[start..cut]);
        }
    }
}

#[test]
fn malformed_lines_and_unknown_entries_stay_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let text = concat!(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n",
        "garbage\n\n",
        "{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"x\\ud83d\",\"timestamp\":1}}\n",
        "{\"type\":\"novel\",\"id\":\"b\",\"parentId\":\"a\",\"timestamp\":\"t\",\"x\":1}\n",
    );
    std::fs::write(&path, text).unwrap();
    let mut file = OpenTranscript::open_file(&path).unwrap();
    assert_eq!((file.known_entries(), file.leaf().map(EntryId::as_str)), (2, Some("b")));
    assert_eq!(texts(&file.context().unwrap()), ["x"]);
    say(&mut file, user("y"));
    let now = std::fs::read_to_string(&path).unwrap();
    assert!(now.starts_with(text));
    assert!(now[text.len()..].contains("\"parentId\":\"b\""));
    assert!(backups(dir.path()).is_empty());
}

#[test]
fn a_line_without_an_id_cuts_nothing_off() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let entry = |frame: &str, text: &str| {
        format!(
            "{{\"type\":\"message\",{frame}\"timestamp\":\"t\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\",\"timestamp\":1}}}}\n"
        )
    };
    let text = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n"
        .to_owned()
        + &entry("\"id\":\"a\",\"parentId\":null,", "one")
        + &entry("\"id\":\"b\",\"parentId\":\"a\",", "two")
        + &entry("\"parentId\":\"b\",", "nameless");
    std::fs::write(&path, &text).unwrap();
    for said in ["three", "four"] {
        let mut file = OpenTranscript::open_file(&path).unwrap();
        say(&mut file, user(said));
    }
    let now = std::fs::read_to_string(&path).unwrap();
    assert!(now.starts_with(&text), "the line stays");
    assert_eq!(lines(&path)[4]["parentId"], "b");
    assert_eq!(
        texts(&OpenTranscript::open_file(&path).unwrap().context().unwrap()),
        ["one", "two", "three", "four"]
    );
    assert_eq!(crate::history::read(&TranscriptReader::of_file(&path), 10).unwrap().len(), 4);
}

#[test]
fn what_is_no_transcript_is_refused_or_moved_aside() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    for text in ["hello\n", "{\"type\":\"message\",\"id\":\"a\"}\n", "{\"type\":\"session\",\"id\":5}\n"] {
        std::fs::write(&path, text).unwrap();
        assert!(
            matches!(OpenTranscript::open_file(&path), Err(TranscriptError::NotATranscript(_))),
            "{text}"
        );
        OpenTranscript::open_or_create_file(&path, &new()).unwrap();
        let kept = backups(dir.path());
        assert_eq!(std::fs::read_to_string(&kept[0]).unwrap(), text);
        std::fs::remove_file(&kept[0]).unwrap();
    }
    let foreign = dir.path().join("data-et.jsonl");
    std::fs::write(&foreign, "hello\n").unwrap();
    let refused = OpenTranscript::open_or_create_file(&foreign, &new());
    assert!(matches!(refused, Err(TranscriptError::NotATranscript(_))), "not named after the session");
    assert_eq!(
        (std::fs::read_to_string(&foreign).unwrap().as_str(), backups(dir.path()).len()),
        ("hello\n", 0)
    );
    assert!(matches!(OpenTranscript::open_file(&dir.path().join("none")), Err(TranscriptError::Missing(_))));
    assert!(OpenTranscript::create_file(&path, &new()).is_err(), "an existing file is never overwritten");
}

#[test]
fn a_line_of_twenty_megabytes_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut file = OpenTranscript::create_file(&path, &new()).unwrap();
    let big = "x".repeat(20 * 1024 * 1024);
    say(&mut file, user(&big));
    say(&mut file, user("after"));
    let mut again = OpenTranscript::open_file(&path).unwrap();
    let shown = texts(&again.context().unwrap());
    assert_eq!((shown[0].len(), shown[1].as_str()), (big.len(), "after"));
}

#[test]
fn what_another_process_appends_is_taken_in() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut ours = OpenTranscript::create_file(&path, &new()).unwrap();
    say(&mut ours, user("a"));
    let mut theirs = OpenTranscript::open_file(&path).unwrap();
    let b = say(&mut theirs, user("b"));
    say(&mut ours, user("c"));
    assert_eq!(lines(&path)[3]["parentId"], b.as_str());
    let whole = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(ours.refresh(), Err(TranscriptError::Missing(_))));
    std::fs::write(&path, whole).unwrap();
    say(&mut ours, user("d"));
    assert_eq!(texts(&ours.context().unwrap()), ["a", "b", "c", "d"]);
}

const FIRST_VERSION: &str = concat!(
    "{\"type\":\"session\",\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n",
    "{\"type\":\"message\",\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"one\",\"timestamp\":1}}\n",
    "{\"type\":\"message\",\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"two\",\"timestamp\":1}}\n",
    "{\"type\":\"compaction\",\"timestamp\":\"t\",\"summary\":\"S\",\"firstKeptEntryIndex\":2,\"tokensBefore\":5}\n",
    "{\"type\":\"message\",\"timestamp\":\"t\",\"message\":{\"role\":\"hookMessage\",\"content\":\"three\",\"timestamp\":1}}\n",
);

#[test]
fn files_of_the_first_version_are_read_as_they_are_and_rewritten_when_appended_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, FIRST_VERSION).unwrap();
    let mut file = OpenTranscript::open_file(&path).unwrap();
    let shown = texts(&file.context().unwrap());
    assert_eq!(shown[1..], ["two", "three"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), FIRST_VERSION);
    say(&mut file, user("four"));
    let kept = backups(dir.path());
    assert_eq!(std::fs::read_to_string(&kept[0]).unwrap(), FIRST_VERSION);
    let lines = lines(&path);
    assert_eq!(lines[0]["version"], 3);
    assert_eq!(lines[3]["firstKeptEntryId"], lines[2]["id"]);
    assert_eq!(lines[4]["message"]["role"], "custom");
    assert_eq!(lines[5]["parentId"], lines[4]["id"]);
    let shown = texts(&OpenTranscript::open_file(&path).unwrap().context().unwrap());
    assert_eq!(shown[1..], ["two", "three", "four"]);
}

/// Rule of `sessions.md` §4.6.
#[test]
fn files_of_the_second_version_keep_their_ids() {
    let entry = |id: &str, parent: Value, role: &str| {
        let message = json!({"role": role, "content": id, "timestamp": 1});
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": "t", "message": message})
            .to_string()
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let header =
        json!({"type": "session", "version": 2, "id": "s", "timestamp": "t", "cwd": "/"}).to_string();
    let text = [
        header,
        entry("aaaa0001", Value::Null, "user"),
        entry("aaaa0002", json!("aaaa0001"), "hookMessage"),
        entry("aaaa0003", json!("aaaa0001"), "user"),
    ];
    std::fs::write(&path, text.join("\n") + "\n").unwrap();
    let mut file = OpenTranscript::open_file(&path).unwrap();
    say(&mut file, user("next"));
    let lines = lines(&path);
    assert_eq!(lines[0]["version"], 3);
    assert_eq!(lines[2]["message"]["role"], "custom");
    let frames: Vec<_> =
        lines[1..].iter().map(|line| (line["id"].clone(), line["parentId"].clone())).collect();
    let expect = [
        (json!("aaaa0001"), Value::Null),
        (json!("aaaa0002"), json!("aaaa0001")),
        (json!("aaaa0003"), json!("aaaa0001")),
        (lines[4]["id"].clone(), json!("aaaa0003")),
    ];
    assert_eq!(frames, expect);
}

#[test]
fn calls_left_open_by_a_crash_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut file = OpenTranscript::create_file(&path, &new()).unwrap();
    let call = |id: &str| {
        Block::ToolCall(ToolCall {
            id: id.into(),
            name: "exec".into(),
            arguments: json!({}),
            ..ToolCall::default()
        })
    };
    say(&mut file, user("go"));
    say(
        &mut file,
        Message::Assistant(AssistantMessage {
            content: vec![call("1"), call("2")],
            ..AssistantMessage::default()
        }),
    );
    let result: Message = serde_json::from_value(
        json!({"role": "toolResult", "toolCallId": "1", "content": [], "timestamp": 1}),
    )
    .unwrap();
    say(&mut file, result);
    let mut pending = OpenTranscript::open_file(&path).unwrap().pending_calls().unwrap();
    assert_eq!(pending.calls().collect::<Vec<_>>(), [("2", "exec")]);
    for message in pending.close(5) {
        say(&mut file, message);
    }
    assert!(file.pending_calls().unwrap().is_empty());
}

#[test]
fn a_fork_holds_the_branch_and_names_its_parent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut file = OpenTranscript::create_file(&path, &new()).unwrap();
    let u1 = say(&mut file, user("u1"));
    file.append(Body::Label { target_id: u1.clone(), label: Some("l".into()) }, None).unwrap();
    say(&mut file, user("u2"));
    let (id, child) = forked(&path, "/child");
    assert_eq!(child.parent(), path.parent());
    let lines = lines(&child);
    assert_eq!(lines[0]["parentSession"], path.to_str().unwrap());
    assert_eq!((lines[0]["id"].as_str(), lines[0]["cwd"].as_str()), (Some(id.as_str()), Some("/child")));
    let kinds: Vec<&str> = lines[1..].iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["message", "message", "label"]);
    assert_eq!(lines[1]["id"], u1.as_str());
    assert_eq!(texts(&OpenTranscript::open_file(&child).unwrap().context().unwrap()), ["u1", "u2"]);
}

#[test]
fn a_fork_of_nothing_is_a_header_and_a_cleared_label_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut file = OpenTranscript::create_file(&path, &new()).unwrap();
    let (id, child) = forked(&path, "/child");
    let header = lines(&child);
    assert_eq!((header.len(), header[0]["id"].as_str()), (1, Some(id.as_str())));
    assert_eq!(header[0]["parentSession"], path.to_str().unwrap());
    let u1 = say(&mut file, user("u1"));
    for label in [Some("l".to_owned()), None] {
        file.append(Body::Label { target_id: u1.clone(), label }, None).unwrap();
    }
    let (_, child) = forked(&path, "/child");
    let kinds: Vec<Value> = lines(&child).iter().map(|line| line["type"].clone()).collect();
    assert_eq!(kinds, ["session", "message"]);
}

#[tokio::test]
async fn a_kept_transcript_is_used_until_somebody_touches_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let settings = ModelSettings {
        provider: "p".into(),
        model_id: "m".into(),
        api: "a".into(),
        thinking_level: "off".into(),
        touches_cache: false,
    };
    let begin = async |kept| {
        let lock = testing::lock(&path).await.unwrap();
        lock.begin(kept, new(), settings.clone(), None).await.unwrap()
    };
    let (mut first, context) = begin(None).await;
    assert_eq!(texts(&context), [""; 0]);
    first.append_message(user("one"), None).await.unwrap();
    first.sync().await.unwrap();
    let shared = Arc::clone(&first.shared);

    let (mut second, context) = begin(Some(first.keep())).await;
    assert!(Arc::ptr_eq(&second.shared, &shared), "nobody touched it");
    assert_eq!(texts(&context), ["one"]);
    second.append_message(user("two"), None).await.unwrap();
    second.sync().await.unwrap();

    // As long as before, put in its place as editors do it.
    let edited = std::fs::read_to_string(&path).unwrap().replace("two", "2.0");
    std::fs::write(dir.path().join("new"), edited).unwrap();
    std::fs::rename(dir.path().join("new"), &path).unwrap();
    let (mut third, context) = begin(Some(second.keep())).await;
    assert!(!Arc::ptr_eq(&third.shared, &shared), "somebody did");
    assert_eq!(texts(&context), ["one", "2.0"]);

    // Not synced: what it knows may not be what is on the disk.
    third.append_message(user("three"), None).await.unwrap();
    let shared = Arc::clone(&third.shared);
    let (fourth, context) = begin(Some(third.keep())).await;
    assert!(!Arc::ptr_eq(&fourth.shared, &shared));
    assert_eq!(texts(&context), ["one", "2.0", "three"]);

    std::fs::remove_file(&path).unwrap();
    let (_, context) = begin(Some(fourth.keep())).await;
    assert_eq!(texts(&context), [""; 0]);
}

#[tokio::test]
async fn others_write_between_entries_but_never_between_a_call_and_its_result() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let patience = std::time::Duration::from_secs(30);
    let mut transcript = testing::opened(&path, new()).await;
    let injector = transcript.injector();
    transcript.append_message(user("go"), None).await.unwrap();
    injector.put(assistant("at once"), None, patience).await.unwrap().unwrap();
    let call = Block::ToolCall(ToolCall {
        id: "1".into(),
        name: "exec".into(),
        arguments: json!({}),
        ..ToolCall::default()
    });
    let asks = Message::Assistant(AssistantMessage { content: vec![call], ..AssistantMessage::default() });
    transcript.append_message(asks, None).await.unwrap();
    let late = injector.put(assistant("too late"), None, std::time::Duration::ZERO).await.unwrap();
    assert!(matches!(late, Err(TranscriptError::CallUnderWay(_))), "{late:?}");
    let mut waiting = Box::pin(injector.put(assistant("after it"), None, patience));
    // Until it waits in the file.
    while !format!("{:?}", transcript.shared.lock()).contains("after it") {
        let _ = tokio::time::timeout(std::time::Duration::from_millis(1), &mut waiting).await;
    }
    let result: Message = serde_json::from_value(
        json!({"role": "toolResult", "toolCallId": "1", "content": [{"type": "text", "text": "done"}], "timestamp": 1}),
    )
    .unwrap();
    transcript.append_message(result, None).await.unwrap();
    waiting.await.unwrap().unwrap();
    transcript.append_message(assistant("end"), None).await.unwrap();
    transcript.end_injections();
    assert!(injector.put(assistant("over"), None, patience).await.is_none());
    let shown = texts(&transcript.context().await.unwrap());
    assert_eq!(shown, ["go", "at once", "", "1", "after it", "end"]);
    assert_eq!(texts(&OpenTranscript::open_file(&path).unwrap().context().unwrap()), shown, "one branch");
    // A handle that was given back gets no more writes, whatever the next owner does.
    drop(transcript);
    assert!(injector.put(assistant("gone"), None, patience).await.is_none());
}

struct Files(tempfile::TempDir);

impl contract::Storage for Files {
    fn open(&self) -> Transcripts {
        Transcripts::in_files(crate::Layout::new(self.0.path(), "/", None))
    }

    fn hold(&self, transcript: &TranscriptRef, is_held: bool) {
        let lock = crate::disk::beside(transcript.path(), "lock");
        if is_held {
            // The parent process lives as long as this test.
            std::fs::write(lock, format!("{{\"pid\":{}}}", nix::unistd::getppid())).unwrap();
        } else {
            std::fs::remove_file(lock).unwrap();
        }
    }
}

impl contract::Storage for MemoryLogs {
    fn open(&self) -> Transcripts {
        self.transcripts()
    }

    fn hold(&self, transcript: &TranscriptRef, is_held: bool) {
        self.hold(transcript, is_held.then_some(1));
    }
}

#[tokio::test]
async fn transcripts_in_files_keep_every_law() {
    contract::keeps_every_law(|| Files(tempfile::tempdir().unwrap())).await;
}

#[tokio::test]
async fn transcripts_in_memory_keep_every_law() {
    contract::keeps_every_law(MemoryLogs::default).await;
}
