//! What makes two messages the same: an idempotency key that comes again with another is a mistake of its client.

use std::io;

use openclaw_protocol::message::Block;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::Payload;

/// SHA-256 over kind, session and content.
pub(crate) type Digest = [u8; 32];

/// What a client says that it would say the same way when it asks again. Left out is what may differ by then: time limits, the
/// client's own name, and what is looked up in the session's row.
#[derive(Serialize)]
struct Same<'a> {
    kind: &'a str,
    /// The transcript a request names, or else the session's key: where a named one leads may change with the first run.
    session: &'a str,
    text: &'a str,
    images: &'a [Block],
    thinking: Option<&'a str>,
    extra_system_prompt: Option<&'a str>,
}

/// The digest of a message.
pub(super) fn of(session_key: &str, payload: &Payload) -> Result<Digest, serde_json::Error> {
    let (named, extra_system_prompt) = match payload {
        Payload::Chat(_) => (None, None),
        Payload::Agent(agent) => (agent.session_id.as_deref(), agent.extra_system_prompt.as_deref()),
    };
    let same = Same {
        kind: payload.kind(),
        session: named.unwrap_or(session_key),
        text: payload.text(),
        images: payload.images(),
        thinking: payload.thinking(),
        extra_system_prompt,
    };
    let mut hasher = Hasher(Sha256::new());
    serde_json::to_writer(&mut hasher, &same)?;
    Ok(hasher.0.finalize().into())
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
    use crate::inbox::{AgentPayload, ChatPayload};

    fn chat(change: impl FnOnce(&mut ChatPayload)) -> Payload {
        let mut chat = ChatPayload { text: "hello".to_owned(), ..ChatPayload::default() };
        change(&mut chat);
        Payload::Chat(chat)
    }

    fn agent(change: impl FnOnce(&mut AgentPayload)) -> Payload {
        let mut agent = AgentPayload { text: "hello".to_owned(), ..AgentPayload::default() };
        change(&mut agent);
        Payload::Agent(agent)
    }

    #[test]
    fn messages_are_the_same_by_what_is_said_and_where() {
        let base = of("a", &chat(|_| {})).unwrap();
        let image = || Block::Image(ImageBlock { data: "AAAA".to_owned(), ..ImageBlock::default() });
        let rows = [
            ("again", true, of("a", &chat(|_| {}))),
            ("another time limit", true, of("a", &chat(|chat| chat.timeout_ms = Some(9)))),
            ("another client", true, of("a", &chat(|chat| chat.sender = Some("phone".to_owned())))),
            ("another session", false, of("b", &chat(|_| {}))),
            ("another text", false, of("a", &chat(|chat| chat.text = "hello!".to_owned()))),
            ("with an image", false, of("a", &chat(|chat| chat.images = vec![image()]))),
            ("another level", false, of("a", &chat(|chat| chat.thinking = Some("high".to_owned())))),
            ("another kind", false, of("a", &agent(|_| {}))),
        ];
        for (name, same, digest) in rows {
            assert_eq!(digest.unwrap() == base, same, "{name}");
        }
    }

    #[test]
    fn what_is_looked_up_in_the_row_makes_no_other_message() {
        let named = |agent: &mut AgentPayload| agent.session_id = Some("s".to_owned());
        let patched = |agent: &mut AgentPayload| {
            named(agent);
            agent.entry_patch = json!({"channel": "slack"}).as_object().unwrap().clone();
        };
        assert_eq!(of("a", &agent(named)).unwrap(), of("b", &agent(patched)).unwrap());
        assert_ne!(of("a", &agent(named)).unwrap(), of("a", &agent(|_| {})).unwrap());
    }
}
