//! Whatever a transcript's file holds, it can be read, reading changes nothing, and a conversation goes on in it.
#![no_main]

use std::error::Error;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use openclaw_protocol::message::{Message, UserMessage};
use openclaw_protocol::{AgentId, SessionId};
use openclaw_sessions::transcript::{
    Context, NewTranscript, OpenTranscript, TranscriptLock, TranscriptReader, Transcripts,
};
use openclaw_sessions::{Layout, SessionEntry, history};

const HEADER: &[u8] =
    b"{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n";

/// What a model sees of a session that begins with another's branch.
async fn forked(dir: &Path, parent: &Path, new: NewTranscript) -> Result<Context, Box<dyn Error>> {
    let all = Transcripts::in_files(Layout::new(dir, dir, None));
    let session_file = Some(parent.display().to_string().into());
    let row = SessionEntry { session_file, ..SessionEntry::default() };
    let parent = all.find(&AgentId::default(), &row).ok_or("it is not found")?;
    let child = all.of_fork(&parent, &SessionId::new("child"), 0);
    TranscriptLock::acquire_now(&all, &parent).await?.fork(child.clone(), new).await?;
    Ok(TranscriptLock::acquire_now(&all, &child).await?.open().await?.context().await?)
}

fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.jsonl");
    // Half of the inputs begin as a transcript does.
    let text = match bytes.split_first() {
        Some((first, rest)) if first % 2 == 0 => [HEADER, rest].concat(),
        _ => bytes.to_vec(),
    };
    std::fs::write(&path, &text).expect("a file");
    let reader = TranscriptReader::of_file(&path);
    let shown = history::read(&reader, 200).expect("a file can be read");
    history::preview(&reader, 12, 240).expect("a file can be read");
    history::first_user_text(&reader).expect("a file can be read");
    history::last_text(&reader, 100).expect("a file can be read");
    assert_eq!(std::fs::read(&path).expect("it is there"), text, "reading changed the file");

    let new = NewTranscript { session_id: "s".to_owned(), cwd: "/".to_owned(), parent: None };
    let mut file = OpenTranscript::open_or_create_file(&path, &new).expect("any file becomes a transcript");
    let before = file.context().expect("it can be read").messages.len();
    let message = Message::User(UserMessage::text("next", 1));
    file.append(message.into(), None).expect("it can be written");
    let mut again = OpenTranscript::open_file(&path).expect("it is a transcript");
    let context = again.context().expect("it can be read");
    assert!(context.messages.len() > before, "something is gone");
    // A file that was no transcript has another in its place now.
    let reader = TranscriptReader::of_file(&path);
    assert!(history::read(&reader, history::MAX_LIMIT).expect("it can be read").len() > shown.len().min(1));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let child = runtime.block_on(forked(dir.path(), &path, new)).expect("it can be forked");
    assert_eq!(child.messages, context.messages, "a fork shows something else");
});
