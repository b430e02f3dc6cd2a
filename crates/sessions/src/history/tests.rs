use serde_json::{Value, json};

use super::*;
use crate::transcript::TranscriptReader;

struct File {
    _dir: tempfile::TempDir,
    path: std::path::PathBuf,
}

/// A transcript of `(id, parent, rest of the entry)`.
fn file(entries: &[(&str, Option<&str>, Value)]) -> File {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.jsonl");
    let mut text =
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n".to_owned();
    for (id, parent, rest) in entries {
        let mut entry =
            json!({"type": "message", "id": id, "parentId": parent, "timestamp": "1970-01-01T00:00:05.000Z"});
        entry.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        text.push_str(&format!("{entry}\n"));
    }
    std::fs::write(&path, text).unwrap();
    File { _dir: dir, path }
}

fn user(text: &str) -> Value {
    json!({"message": {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}})
}

fn assistant(content: &Value) -> Value {
    json!({"message": {"role": "assistant", "content": content, "api": "a", "timestamp": 2}})
}

fn said(text: &str) -> Value {
    assistant(&json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]))
}

fn values(items: &[Box<RawValue>]) -> Vec<Value> {
    items.iter().map(|item| serde_json::from_str(item.get()).unwrap()).collect()
}

#[test]
fn the_branch_of_the_leaf_is_shown_with_markers() {
    let file = file(&[
        ("s", None, json!({"type": "model_change", "provider": "p", "modelId": "m"})),
        ("u1", Some("s"), user("[Sat 2026-11-21 02:42 UTC] one\n[message_id: x]")),
        ("a1", Some("u1"), said("left")),
        ("a2", Some("u1"), said("taken")),
        (
            "c",
            Some("a2"),
            json!({"type": "compaction", "summary": "S", "firstKeptEntryId": "a2", "tokensBefore": 1}),
        ),
        ("o", Some("c"), json!({"message": {"role": "bashExecution", "command": "ls"}})),
    ]);
    let expect = [
        user("one")["message"].clone(),
        said("taken")["message"].clone(),
        json!({"role": "system", "content": [{"type": "text", "text": "Compaction"}], "timestamp": 5000,
               "__openclaw": {"kind": "compaction", "id": "c"}}),
        json!({"role": "bashExecution", "command": "ls"}),
    ];
    assert_eq!(values(&read(&TranscriptReader::of_file(&file.path), 200).unwrap()), expect);
    assert_eq!(values(&read(&TranscriptReader::of_file(&file.path), 2).unwrap()), expect[2..]);
}

#[test]
fn a_missing_file_is_an_empty_history() {
    assert!(read(&TranscriptReader::of_file("/nowhere/t.jsonl"), 5).unwrap().is_empty());
}

/// The largest limit of `sessions.md` §4.9.
#[test]
fn a_thousand_messages_are_shown_at_most() {
    let ids: Vec<String> = (0..1001).map(|n| n.to_string()).collect();
    let parents = std::iter::once(None).chain(ids.iter().map(|id| Some(id.as_str())));
    let entries: Vec<_> =
        ids.iter().zip(parents).map(|(id, parent)| (id.as_str(), parent, user(id))).collect();
    let file = file(&entries);
    for (limit, first) in [(5000, 1), (1000, 1), (999, 2)] {
        let shown = values(&read(&TranscriptReader::of_file(&file.path), limit).unwrap());
        let expect: Vec<Value> = ids[first..].iter().map(|id| user(id)["message"].clone()).collect();
        assert_eq!(shown, expect, "{limit}");
    }
}

/// Vector of `sessions.md` §4.9: `["a","b","c"]`, at most 10 bytes.
#[test]
fn what_does_not_fit_is_dropped_from_the_front() {}

#[test]
fn a_history_stays_below_its_bytes() {
    let big = "x".repeat(4 * 1024 * 1024);
    let file = file(&[("1", None, user(&big)), ("2", Some("1"), user(&big)), ("3", Some("2"), user("end"))]);
    let items = read(&TranscriptReader::of_file(&file.path), 200).unwrap();
    assert_eq!(items.len(), 2);
    assert!(items.iter().map(|item| item.get().len()).sum::<usize>() < MAX_BYTES);
    let huge = "x".repeat(20 * 1024 * 1024);
    let alone = self::file(&[("1", None, user(&huge))]);
    assert_eq!(
        read(&TranscriptReader::of_file(&alone.path), 200).unwrap().len(),
        1,
        "the last message is shown whatever its size"
    );
}

#[test]
fn a_message_that_fits_in_no_frame_hides_nothing_else() {
    let huge = "x".repeat(MOST_OF_ONE);
    let file =
        file(&[("1", None, user("begin")), ("2", Some("1"), user(&huge)), ("3", Some("2"), user("end"))]);
    let shown = values(&read(&TranscriptReader::of_file(&file.path), 200).unwrap());
    let texts: Vec<&str> =
        shown.iter().map(|message| message["content"][0]["text"].as_str().unwrap_or_default()).collect();
    assert_eq!(shown.len(), 3);
    assert_eq!(texts[1], "[A message of 25 MiB is too large to be shown.]");
    assert_eq!(shown[1]["role"], "user");
}

#[test]
fn previews_show_who_said_what() {
    let file = file(&[
        ("1", None, user("[Sat 2026-11-21 02:42 UTC] hello agent\n[message_id: r]")),
        (
            "2",
            Some("1"),
            assistant(&json!([{"type": "toolCall", "id": "c", "name": "exec", "arguments": {}}])),
        ),
        (
            "3",
            Some("2"),
            json!({"message": {"role": "toolResult", "content": [{"type": "text", "text": "out"}]}}),
        ),
        ("4", Some("3"), said(&"long ".repeat(20))),
        ("5", Some("4"), said(" ")),
    ]);
    let items = preview(&TranscriptReader::of_file(&file.path), 12, 20).unwrap();
    let got: Vec<(PreviewRole, &str)> = items.iter().map(|item| (item.role, item.text.as_str())).collect();
    let expect = [
        (PreviewRole::User, "hello agent"),
        (PreviewRole::Tool, "call exec"),
        (PreviewRole::Tool, "out"),
        (PreviewRole::Assistant, "long long long lo..."),
    ];
    assert_eq!(got, expect);
    assert_eq!(preview(&TranscriptReader::of_file(&file.path), 1, 20).unwrap().len(), 1);
    assert_eq!(
        first_user_text(&TranscriptReader::of_file(&file.path)).unwrap().as_deref(),
        Some("hello agent")
    );
    assert_eq!(last_text(&TranscriptReader::of_file(&file.path), 9).unwrap().as_deref(), Some("long l..."));
}

#[test]
fn the_question_for_a_greeting_is_shown_as_a_command_and_is_no_title() {
    let greeting = format!("{}\n[message_id: r]", display::GREETING);
    let file = file(&[
        ("u1", None, user(&greeting)),
        ("a1", Some("u1"), said("hello")),
        ("u2", Some("a1"), user("[Sat 2026-11-21 02:42 UTC] take notes")),
    ]);
    let first = values(&read(&TranscriptReader::of_file(&file.path), 10).unwrap()).remove(0);
    assert_eq!(first, user("/new")["message"]);
    assert_eq!(
        first_user_text(&TranscriptReader::of_file(&file.path)).unwrap().as_deref(),
        Some("take notes")
    );
}
