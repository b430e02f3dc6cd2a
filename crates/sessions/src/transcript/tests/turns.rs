//! Two session keys, one transcript, one crash.

use openclaw_protocol::message::cap::STORED;
use openclaw_protocol::message::{MISSING_RESULT, StopReason};

use super::*;

fn at(text: &str, at: i64) -> Message {
    Message::User(UserMessage::text(text, at))
}

fn put(file: &mut OpenTranscript, message: Message, id: &str) {
    file.append(message.into(), Some(EntryId::new(id))).unwrap();
}

fn state(file: &mut OpenTranscript, id: &str, at: i64) -> Option<TurnState> {
    let turn = file.turn_of(&[EntryId::new(id), EntryId::new("other")], at, |_| true).unwrap()?;
    assert_eq!(turn.entry.as_str(), id);
    Some(turn.state)
}

#[test]
fn each_message_finds_its_own_answer() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = OpenTranscript::create_file(&dir.path().join("s.jsonl"), &new()).unwrap();
    put(&mut file, at("one", 1), "u1");
    assert_eq!(state(&mut file, "u1", 1), Some(TurnState::Last));
    assert_eq!(state(&mut file, "u1", 2), None);
    assert_eq!(state(&mut file, "u2", 2), None);
    say(&mut file, assistant("to one"));
    file.begin_turn().unwrap();
    put(&mut file, at("two", 2), "u2");
    say(&mut file, assistant("to two"));
    let Some(TurnState::Answered(context)) = state(&mut file, "u1", 1) else { panic!() };
    assert_eq!(texts(&context), ["one", "to one"]);
    assert_eq!(state(&mut file, "u2", 2), Some(TurnState::Last));
    assert_eq!(file.known_entries(), 4, "between whole turns nothing is said");
    assert_eq!(texts(&file.context().unwrap()).len(), 4, "the leaf stayed where it was");
}

#[test]
fn a_message_without_an_answer_does_not_take_the_next_ones() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut file = OpenTranscript::create_file(&path, &new()).unwrap();
    put(&mut file, at("one", 1), "u1");
    let call = ToolCall { id: "c".into(), name: "exec".into(), arguments: json!({}), ..ToolCall::default() };
    let content = vec![Block::ToolCall(call)];
    say(&mut file, Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() }));
    // Words put in do not end a turn either.
    say(&mut file, inject::injected("by the way", None, 3));
    file.begin_turn().unwrap();
    file.begin_turn().unwrap();
    put(&mut file, at("two", 2), "u2");
    say(&mut file, assistant("to two"));
    assert_eq!(state(&mut file, "u1", 1), Some(TurnState::Overtaken));
    assert_eq!(state(&mut file, "u2", 2), Some(TurnState::Last));
    let customs = lines(&path).iter().filter(|line| line["customType"] == TURN_START).count();
    assert_eq!(customs, 1, "{:#?}", lines(&path));
    // Said again, it is found there.
    put(&mut file, at("one", 1), "other");
    let turn = file.turn_of(&[EntryId::new("u1"), EntryId::new("other")], 1, |_| true).unwrap().unwrap();
    assert_eq!((turn.entry.as_str(), turn.state), ("other", TurnState::Last));
}

/// OpenClaw goes on in a transcript that a crash of ours left in the middle of a turn, and says nothing of that.
#[test]
fn another_programs_message_begins_a_turn_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = OpenTranscript::create_file(&dir.path().join("s.jsonl"), &new()).unwrap();
    put(&mut file, at("one", 1), "u1");
    let call = ToolCall { id: "c".into(), name: "exec".into(), arguments: json!({}), ..ToolCall::default() };
    let content = vec![Block::ToolCall(call)];
    say(&mut file, Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() }));
    put(&mut file, at("two", 2), "u2");
    say(&mut file, assistant("to two"));
    let ids = [EntryId::new("u1")];
    assert_eq!(file.turn_of(&ids, 1, |_| true).unwrap().unwrap().state, TurnState::Last, "steered");
    let ours = |id: &EntryId| id.as_str() == "u1";
    assert_eq!(file.turn_of(&ids, 1, ours).unwrap().unwrap().state, TurnState::Overtaken);
}

#[test]
fn a_turn_that_failed_before_the_next_one_stays_failed() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = OpenTranscript::create_file(&dir.path().join("s.jsonl"), &new()).unwrap();
    put(&mut file, at("one", 1), "u1");
    let failed = AssistantMessage {
        stop_reason: StopReason::Error,
        error_message: Some("400 no".to_owned()),
        ..AssistantMessage::default()
    };
    say(&mut file, Message::Assistant(failed));
    assert_eq!(state(&mut file, "u1", 1), Some(TurnState::Last), "it may be tried again");
    put(&mut file, at("two", 2), "u2");
    assert_eq!(state(&mut file, "u1", 1), Some(TurnState::Failed("400 no".to_owned())));
}

#[test]
fn a_call_without_a_result_gets_one_before_the_next_message() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let call = |id: &str, arguments| {
        Block::ToolCall(ToolCall { id: id.into(), name: "exec".into(), arguments, ..ToolCall::default() })
    };
    let content = vec![call("1", json!({})), call("none", Value::Null), call("2", json!({}))];
    let mut file = OpenTranscript::create_file(&path, &new()).unwrap();
    say(&mut file, Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() }));
    let big = json!({"role": "toolResult", "toolCallId": "2", "content": [{"type": "text", "text": "x".repeat(500_000)}]});
    // By whomever it is opened.
    let mut file = OpenTranscript::open_file(&path).unwrap();
    say(&mut file, serde_json::from_value(big).unwrap());
    file.append(Body::SessionInfo { name: None }, None).unwrap();
    say(&mut file, user("go on"));
    let lines = lines(&path);
    let ids: Vec<&Value> = lines.iter().filter_map(|line| line.get("message")?.get("toolCallId")).collect();
    assert_eq!(ids, ["2", "1"]);
    assert_eq!(lines[1]["message"]["content"].as_array().unwrap().len(), 2, "one call had no arguments");
    let text = lines[2]["message"]["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with(STORED.suffix) && text.chars().count() <= STORED.max);
    assert_eq!(lines[4]["message"]["content"][0]["text"], MISSING_RESULT);
    assert_eq!(lines[5]["parentId"], lines[4]["id"]);
    say(&mut file, user("once"));
    assert_eq!(file.known_entries(), 6);
}
