//! Whatever a transcript's file holds, it can be read, reading changes nothing, and a conversation goes on in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openclaw_protocol::message::{Message, UserMessage};
use openclaw_sessions::history;
use openclaw_sessions::transcript::{self, Body, NewTranscript, StoredMessage, TranscriptFile};

const HEADER: &[u8] =
    b"{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n";

fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.jsonl");
    // Half of the inputs begin as a transcript does.
    let text = match bytes.split_first() {
        Some((first, rest)) if first % 2 == 0 => [HEADER, rest].concat(),
        _ => bytes.to_vec(),
    };
    std::fs::write(&path, &text).expect("a file");
    let shown = history::read(&path, 200).expect("a file can be read");
    history::preview(&path, 12, 240).expect("a file can be read");
    history::first_user_text(&path).expect("a file can be read");
    history::last_text(&path, 100).expect("a file can be read");
    assert_eq!(std::fs::read(&path).expect("it is there"), text, "reading changed the file");

    let new = NewTranscript { session_id: "s".to_owned(), cwd: "/".to_owned(), parent: None };
    let mut file = TranscriptFile::open_or_create(&path, &new).expect("any file becomes a transcript");
    let before = file.context().expect("it can be read").messages.len();
    let message = Message::User(UserMessage::text("next", 1));
    file.append(Body::Message(StoredMessage::Known(message)), None).expect("it can be written");
    let mut again = TranscriptFile::open(&path).expect("it is a transcript");
    let context = again.context().expect("it can be read");
    assert!(context.messages.len() > before, "something is gone");
    assert!(history::read(&path, history::MAX_LIMIT).expect("it can be read").len() > shown.len().min(1));
    let (_, child) = transcript::fork(&path, "/").expect("it can be forked");
    let child =
        TranscriptFile::open(&child).expect("a fork is a transcript").context().expect("it can be read");
    assert_eq!(child.messages, context.messages, "a fork shows something else");
});
