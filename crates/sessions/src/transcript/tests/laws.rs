//! Laws, over random files.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::history;

/// A line of a random tree: what it is, its id, what it says it follows, an id it points at.
#[derive(Debug, Clone)]
struct Leaf {
    kind: u8,
    id: u8,
    parent: u8,
    points_at: u8,
}

fn leaf() -> impl Strategy<Value = Leaf> {
    (0..12_u8, 0..14_u8, 0..18_u8, 0..14_u8).prop_map(|(kind, id, parent, points_at)| Leaf {
        kind,
        id,
        parent,
        points_at,
    })
}

fn line(at: usize, leaf: &Leaf) -> Value {
    let mut line = Map::new();
    let body = match leaf.kind {
        0..=2 => {
            json!({"type": "message", "message": {"role": "user", "content": format!("u{at}"), "timestamp": at}})
        }
        3 | 4 => {
            json!({"type": "message", "message": {"role": "assistant", "timestamp": at, "provider": "p", "model": format!("m{at}"),
            "content": [{"type": "text", "text": format!("a{at}")}]}})
        }
        5 => {
            json!({"type": "compaction", "summary": format!("s{at}"), "firstKeptEntryId": leaf.points_at.to_string(), "tokensBefore": 1})
        }
        6 => json!({"type": "branch_summary", "summary": format!("b{at}"), "fromId": "root"}),
        7 => {
            json!({"type": "custom_message", "customType": "x", "content": format!("c{at}"), "display": true})
        }
        8 => json!({"type": "thinking_level_change", "thinkingLevel": format!("t{at}")}),
        9 => json!({"type": "model_change", "provider": "q", "modelId": format!("n{at}")}),
        10 => json!({"type": "label", "targetId": leaf.points_at.to_string(), "label": format!("l{at}")}),
        _ => json!({"type": "novel", "x": at}),
    };
    line.extend(body.as_object().unwrap().clone());
    line.insert("id".into(), leaf.id.to_string().into());
    match leaf.parent {
        // Nothing is said of a parent.
        17 => {}
        16 => _ = line.insert("parentId".into(), Value::Null),
        parent => _ = line.insert("parentId".into(), parent.to_string().into()),
    }
    line.insert("timestamp".into(), "1970-01-01T00:00:00.000Z".into());
    Value::Object(line)
}

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n";

fn write_tree(path: &Path, leaves: &[Leaf]) -> Vec<Value> {
    let lines: Vec<Value> = leaves.iter().enumerate().map(|(at, leaf)| line(at, leaf)).collect();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(path, HEADER.to_owned() + &text).unwrap();
    lines
}

/// The way to the last line, as plainly as the format's description says it.
fn naive_path(lines: &[Value]) -> Vec<usize> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut parents = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        parents.push(match line.get("parentId") {
            Some(Value::Null) => None,
            named => named.and_then(|id| seen.get(id.as_str()?).copied()).or(at.checked_sub(1)),
        });
        seen.insert(line["id"].as_str().unwrap(), at);
    }
    let mut path = Vec::new();
    let mut next = lines.len().checked_sub(1);
    while let Some(at) = next {
        path.insert(0, at);
        next = parents[at];
    }
    path
}

fn naive_text(line: &Value) -> Option<String> {
    match line["type"].as_str().unwrap() {
        "message" => Some(match &line["message"]["content"] {
            Value::String(text) => text.clone(),
            blocks => blocks[0]["text"].as_str().unwrap().to_owned(),
        }),
        "branch_summary" => Some(context::branch_summary_text(line["summary"].as_str().unwrap())),
        "custom_message" => Some(line["content"].as_str().unwrap().to_owned()),
        _ => None,
    }
}

fn naive_context(lines: &[Value]) -> (Vec<String>, Option<String>, Option<(String, String)>) {
    let path = naive_path(lines);
    let is = |at: &&usize, kind: &str| lines[**at]["type"] == kind;
    let compaction = path.iter().rposition(|at| is(&at, "compaction"));
    let mut texts = Vec::new();
    let shown = match compaction {
        None => &path[..],
        Some(at) => {
            texts.push(context::compaction_text(lines[path[at]]["summary"].as_str().unwrap()));
            let kept =
                path[..at].iter().rposition(|kept| lines[*kept]["id"] == lines[path[at]]["firstKeptEntryId"]);
            &path[kept.unwrap_or(at)..]
        }
    };
    texts.extend(shown.iter().filter_map(|at| naive_text(&lines[*at])));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let thinking = path.iter().rev().find(|at| is(at, "thinking_level_change"));
    let model = path.iter().rev().find_map(|at| {
        let line = &lines[*at];
        match line["type"].as_str().unwrap() {
            "model_change" => Some((text(&line["provider"]), text(&line["modelId"]))),
            "message" if line["message"]["role"] == "assistant" => {
                Some((text(&line["message"]["provider"]), text(&line["message"]["model"])))
            }
            _ => None,
        }
    });
    (texts, thinking.map(|at| text(&lines[*at]["thinkingLevel"])), model)
}

proptest! {
    /// However much of the file is read at once, the context is what the description of the format says.
    #[test]
    fn a_context_is_what_the_tree_says(leaves in proptest::collection::vec(leaf(), 1..40), tail in 1..3000_u64) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let lines = write_tree(&path, &leaves);
        let expect = naive_context(&lines);
        for tail in [tail, u64::MAX / 4] {
            let context = OpenTranscript::open_file_tail(&path, tail).unwrap().context().unwrap();
            prop_assert_eq!(&(texts(&context), context.thinking_level, context.model), &expect);
        }
        // The history for clients follows the same way.
        let shown = history::read(&TranscriptReader::of_file(&path), 1000).unwrap();
        let shown: Vec<Value> = shown.iter().map(|item| serde_json::from_str(item.get()).unwrap()).collect();
        let way: Vec<Value> = naive_path(&lines).into_iter().filter_map(|at| match lines[at]["type"].as_str().unwrap() {
            "message" => Some(lines[at]["message"].clone()),
            "compaction" => Some(json!({"role": "system", "content": [{"type": "text", "text": "Compaction"}], "timestamp": 0,
                "__openclaw": {"kind": "compaction", "id": lines[at]["id"]}})),
            _ => None,
        }).collect();
        prop_assert_eq!(shown, way);
    }

    /// A fork shows what its parent shows, whatever the labels.
    #[test]
    fn a_fork_has_its_parents_context(leaves in proptest::collection::vec(leaf(), 1..25)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let unique: Vec<Leaf> =
            leaves.into_iter().enumerate().map(|(at, leaf)| Leaf { id: 20 + at as u8, ..leaf }).collect();
        let lines = write_tree(&path, &unique);
        let before = std::fs::read(&path).unwrap();
        let (_, child) = forked(&path, "/");
        let mut child = OpenTranscript::open_file(&child).unwrap();
        prop_assert_eq!(texts(&child.context().unwrap()), naive_context(&lines).0);
        prop_assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    /// Bytes of any kind are read without a panic, and what is there stays there.
    #[test]
    fn any_bytes_can_be_opened(bytes in proptest::collection::vec(any::<u8>(), 0..300), with_header in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let text = if with_header { [HEADER.as_bytes(), &bytes].concat() } else { bytes };
        std::fs::write(&path, &text).unwrap();
        let _ = history::read(&TranscriptReader::of_file(&path), 10).unwrap();
        let _ = history::preview(&TranscriptReader::of_file(&path), 10, 100).unwrap();
        let _ = (history::first_user_text(&TranscriptReader::of_file(&path)).unwrap(), history::last_text(&TranscriptReader::of_file(&path), 10).unwrap());
        prop_assert_eq!(&std::fs::read(&path).unwrap(), &text, "reading changes nothing");
        let mut file = OpenTranscript::open_or_create_file(&path, &new()).unwrap();
        say(&mut file, user("next"));
        let context = OpenTranscript::open_file(&path).unwrap().context().unwrap();
        let shown = texts(&context);
        prop_assert_eq!(shown.last().map(String::as_str), Some("next"));
        let mut kept: Vec<u8> = std::fs::read(&path).unwrap();
        for backup in backups(dir.path()) {
            kept.extend(std::fs::read(backup).unwrap());
        }
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            prop_assert!(memchr::memmem::find(&kept, line).is_some(), "{:?} is gone", line);
        }
    }
}

fn some_text() -> impl Strategy<Value = String> {
    "[a-zé\u{1F600}\"\\\\\n ]{0,12}"
}

fn some_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(false)),
        any::<i32>().prop_map(Value::from),
        some_text().prop_map(Value::from),
        proptest::collection::vec(any::<u8>().prop_map(Value::from), 0..3).prop_map(Value::from),
    ]
}

fn some_body() -> impl Strategy<Value = Body> {
    let details = || proptest::option::of(some_value());
    prop_oneof![
        (some_text(), 0..1_i64 << 50)
            .prop_map(|(text, at)| { Message::User(UserMessage::text(text, at)).into() }),
        some_text().prop_map(|text| assistant(&text).into()),
        some_text()
            .prop_map(|text| Body::Message(StoredMessage::Other(json!({"role": "oracle", "x": text})))),
        (some_text(), some_text()).prop_map(|(provider, model_id)| Body::ModelChange { provider, model_id }),
        some_text().prop_map(|thinking_level| Body::ThinkingLevelChange { thinking_level }),
        (some_text(), some_text(), any::<u32>(), details(), proptest::option::of(any::<bool>())).prop_map(
            |(summary, first_kept_entry_id, tokens, details, from_hook)| {
                let tokens_before = tokens.into();
                Body::Compaction(format::Compaction {
                    summary,
                    first_kept_entry_id,
                    tokens_before,
                    details,
                    from_hook,
                })
            }
        ),
        (some_text(), some_text(), details(), proptest::option::of(any::<bool>())).prop_map(
            |(from_id, summary, details, from_hook)| {
                Body::BranchSummary(format::BranchSummary { from_id, summary, details, from_hook })
            }
        ),
        (some_text(), details()).prop_map(|(custom_type, data)| Body::Custom { custom_type, data }),
        (some_text(), some_text(), any::<bool>(), details()).prop_map(
            |(custom_type, text, display, details)| {
                let content = openclaw_protocol::message::UserContent::Text(text);
                Body::CustomMessage(format::CustomMessage { custom_type, content, display, details })
            }
        ),
        (some_text(), proptest::option::of(some_text()))
            .prop_map(|(target, label)| Body::Label { target_id: EntryId::new(target), label }),
        proptest::option::of(some_text()).prop_map(|name| Body::SessionInfo { name }),
    ]
}

proptest! {
    /// Checks that entries are read as they were written, fields of later versions included.
    #[test]
    fn entries_are_read_as_they_were_written(
        body in some_body(),
        id in "[0-9a-f]{8}",
        parent in proptest::option::of("[0-9a-f]{8}"),
        extra in proptest::collection::hash_map("x[a-z]{1,5}", some_value(), 0..3),
    ) {
        let extra = extra.into_iter().collect();
        let parent_id = parent.map(EntryId::new);
        let entry = Entry { id: EntryId::new(id), parent_id, timestamp: "t".into(), body, extra };
        let line = entry.to_line().unwrap();
        prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        prop_assert_eq!(Entry::parse(&line).unwrap(), entry);
    }

    #[test]
    fn a_list_of_entries_is_read_as_it_was_appended(bodies in proptest::collection::vec(some_body(), 1..12), tail in 1..2000_u64) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let mut file = OpenTranscript::create_file(&path, &new()).unwrap();
        for body in &bodies {
            file.append(body.clone(), None).unwrap();
        }
        for mut file in [file, OpenTranscript::open_file_tail(&path, tail).unwrap()] {
            let read: Vec<Body> = file.branch_entries().unwrap().into_iter().map(|entry| entry.body).collect();
            prop_assert_eq!(&read, &bodies);
        }
    }
}
