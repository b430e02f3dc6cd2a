//! Files of which not all is read.

use serde_json::json;

use super::*;

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n";
const WHEN: &str = "2026-02-09T10:00:00.000Z";

fn said(id: usize, parent: Option<usize>, text: &str) -> String {
    let parent = parent.map(|parent| format!("{parent:08x}"));
    let line = json!({"type": "message", "id": format!("{id:08x}"), "parentId": parent, "timestamp": WHEN,
        "message": {"role": "user", "content": text, "timestamp": id}});
    format!("{line}\n")
}

fn other(id: usize, parent: usize, rest: &Value) -> String {
    let mut line = json!({"id": format!("{id:08x}"), "parentId": format!("{parent:08x}"), "timestamp": WHEN});
    line.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    format!("{line}\n")
}

/// `count` messages one after the other, and what comes after them.
fn long(path: &Path, count: usize, end: &[String]) {
    let text: String = (0..count).map(|n| said(n, n.checked_sub(1), &format!("m{n}"))).collect();
    std::fs::write(path, HEADER.to_owned() + &text + &end.concat()).unwrap();
}

fn compacted(path: &Path, count: usize) {
    let last = count - 1;
    let end = [
        other(
            count,
            last,
            &json!({"type": "compaction", "summary": "S", "firstKeptEntryId": format!("{last:08x}"), "tokensBefore": 9}),
        ),
        other(count + 1, count, &json!({"type": "thinking_level_change", "thinkingLevel": "low"})),
        other(count + 2, count + 1, &json!({"type": "model_change", "provider": "p", "modelId": "m"})),
        said(count + 3, Some(count + 2), "end"),
    ];
    long(path, count, &end);
}

#[test]
fn no_more_is_read_than_the_context_takes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    compacted(&path, 5000);
    let mut file = OpenTranscript::open_file_tail(&path, 2000).unwrap();
    let context = file.context().unwrap();
    assert_eq!(texts(&context)[1..], ["m4999", "end"]);
    assert_eq!(
        (context.thinking_level.as_deref(), context.model),
        (Some("low"), Some(("p".into(), "m".into())))
    );
    assert!(file.known_entries() < 20, "{} entries were read", file.known_entries());
    assert!(file.contains("anything"), "it may be in what was not read");
    assert!(file.pending_calls().unwrap().is_empty() && file.known_entries() < 20);

    let id = say(&mut file, user("more"));
    assert_eq!(id.as_str().len(), 36, "a short id might be taken");
    assert!(file.known_entries() < 20);
    file.branch(Branch::At(EntryId::new("00000bb8"))).unwrap();
    say(&mut file, user("aside"));
    let shown = texts(&file.context().unwrap());
    assert_eq!((shown.len(), shown[0].as_str(), shown[3001].as_str()), (3002, "m0", "aside"));
    let whole = OpenTranscript::open_file(&path).unwrap();
    assert_eq!(whole.known_entries(), file.known_entries());
    assert!(!whole.contains("anything"));
}

#[test]
fn settings_are_noted_again_when_the_end_does_not_say_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    compacted(&path, 5000);
    let settings = ModelSettings {
        provider: "p".into(),
        model_id: "m".into(),
        api: "a".into(),
        thinking_level: "low".into(),
        touches_cache: false,
    };
    let mut file = OpenTranscript::open_file_tail(&path, 2000).unwrap();
    file.note_settings(&settings).unwrap();
    assert!(file.known_entries() < 20);
    let added = lines(&path).split_off(5005);
    let kinds: Vec<&str> = added.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["custom"]);
    OpenTranscript::open_file_tail(&path, 2000).unwrap().note_settings(&settings).unwrap();
    assert_eq!(lines(&path).len(), 5006);
}

#[test]
fn the_way_back_is_found_however_far_it_leads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let huge = "x".repeat(20_000);
    let rows: [(&str, &[String], usize); 4] = [
        ("to the start", &[said(9000, Some(0), "end")], 2),
        ("a parent that is nowhere", &[said(9000, Some(7000), "end")], 2001),
        ("a new root", &[said(9000, None, "end")], 1),
        ("over a long line", &[said(9000, Some(5), &huge), said(9001, Some(9000), "end")], 8),
    ];
    for (name, end, count) in rows {
        long(&path, 2000, end);
        for tail in [1, 100, 2000, 100_000] {
            let shown = texts(&OpenTranscript::open_file_tail(&path, tail).unwrap().context().unwrap());
            assert_eq!((shown.len(), shown.last().unwrap().as_str()), (count, "end"), "{name} {tail}");
        }
    }
}

#[test]
fn a_long_end_without_entries_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    long(&path, 5, &vec!["nonsense\n".to_owned(); 1000]);
    let mut file = OpenTranscript::open_file_tail(&path, 500).unwrap();
    assert_eq!(file.leaf().unwrap().as_str(), "00000004");
    assert_eq!(texts(&file.context().unwrap()).len(), 5);
}

#[test]
fn a_message_is_not_looked_for_before_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    long(&path, 5000, &[]);
    let at = crate::time::parse_iso(WHEN).unwrap();
    let ids = [EntryId::new("00000003")];
    let mut file = OpenTranscript::open_file_tail(&path, 2000).unwrap();
    let week = 7 * 24 * 60 * 60 * 1000;
    assert_eq!(file.turn_of(&ids, at + week, |_| true).unwrap(), None);
    assert!(file.known_entries() < 20);
    // The message's time is 3, long before all others: any entry may hold it.
    assert_eq!(file.turn_of(&ids, 3, |_| true).unwrap().unwrap().state, TurnState::Last);
    assert_eq!(file.known_entries(), 5000);
    assert_eq!(file.turn_of(&ids, 4, |_| true).unwrap(), None, "an id alone is not enough");
}
