//! Digest by which two messages count as the same (dedupe): an idempotency key that comes again
//! with another message is a mistake of its client.

use std::io;

use openclaw_protocol::message::Block;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::request::RunRequest;

/// SHA-256 over kind, session and content.
pub type Digest = [u8; 32];

/// Parts of a request that a client repeats unchanged when it asks again. Parts that may differ by
/// then are left out: time limits, the client's own name, and what is looked up in the session's
/// row.
#[derive(Serialize)]
struct Same<'a> {
    kind: &'a str,
    /// Transcript that a request names, or else the session's key: the transcript of a named
    /// session may change with the first run.
    session: &'a str,
    text: &'a str,
    images: &'a [Block],
    thinking: Option<&'a str>,
    extra_system_prompt: Option<&'a str>,
}

/// The digest of a message.
pub(super) fn of(session_key: &str, request: &RunRequest) -> Result<Digest, serde_json::Error> {
    let same = Same {
        kind: request.source.kind().as_str(),
        session: named(request).unwrap_or(session_key),
        text: &request.text,
        images: &request.images,
        thinking: request.thinking.as_deref(),
        extra_system_prompt: request.extra_system_prompt.as_deref(),
    };
    let mut hasher = Hasher(Sha256::new());
    serde_json::to_writer(&mut hasher, &same)?;
    Ok(hasher.0.finalize().into())
}

/// Returns the transcript that a program names.
fn named(request: &RunRequest) -> Option<&str> {
    request.source.as_program()?.session_id.as_deref()
}

/// Takes the text as it is made.
struct Hasher(Sha256);

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::ImageBlock;
    use serde_json::json;

    use super::*;
    use crate::source::{ClientSource, ProgramSource, RequestSource};

    fn asked(source: RequestSource, change: impl FnOnce(&mut RunRequest)) -> RunRequest {
        let mut request = RunRequest { source, text: "hello".to_owned(), ..RunRequest::default() };
        change(&mut request);
        request
    }

    fn chat(change: impl FnOnce(&mut RunRequest)) -> RunRequest {
        asked(RequestSource::default(), change)
    }

    fn client(client: ClientSource) -> RunRequest {
        asked(RequestSource::Client(client), |_| {})
    }

    fn agent(program: ProgramSource) -> RunRequest {
        asked(RequestSource::Program(Box::new(program)), |_| {})
    }

    #[test]
    fn messages_are_the_same_by_what_is_said_and_where() {
        let base = of("a", &chat(|_| {})).unwrap();
        let image = || Block::Image(ImageBlock { data: "AAAA".to_owned(), ..ImageBlock::default() });
        let hasty = ClientSource { timeout_ms: Some(9), ..ClientSource::default() };
        let phone = ClientSource { name: Some("phone".to_owned()), ..ClientSource::default() };
        let rows = [
            ("again", true, of("a", &chat(|_| {}))),
            ("another time limit", true, of("a", &client(hasty))),
            ("another client", true, of("a", &client(phone))),
            ("another session", false, of("b", &chat(|_| {}))),
            ("another text", false, of("a", &chat(|chat| chat.text = "hello!".to_owned()))),
            ("with an image", false, of("a", &chat(|chat| chat.images = vec![image()]))),
            ("another level", false, of("a", &chat(|chat| chat.thinking = Some("high".to_owned())))),
            ("another kind", false, of("a", &agent(ProgramSource::default()))),
        ];
        for (name, same, digest) in rows {
            assert_eq!(digest.unwrap() == base, same, "{name}");
        }
    }

    #[test]
    fn what_is_looked_up_in_the_row_makes_no_other_message() {
        let named = || ProgramSource { session_id: Some("s".to_owned()), ..ProgramSource::default() };
        let entry_patch = json!({"channel": "slack"}).as_object().unwrap().clone();
        let patched = ProgramSource { entry_patch, ..named() };
        assert_eq!(of("a", &agent(named())).unwrap(), of("b", &agent(patched)).unwrap());
        assert_ne!(of("a", &agent(named())).unwrap(), of("a", &agent(ProgramSource::default())).unwrap());
    }
}
