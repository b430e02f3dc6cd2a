//! Text of a reply as JSON, appended to as it grows: encoded text is not encoded again for each
//! word that follows.

use openclaw_protocol::Payload;
use serde::Serialize;

/// Placeholder in an event whose text is yet to be put in.
const EMPTY: &str = r#""text":"""#;

/// The text so far, as it stands between the quotes of a JSON string.
#[derive(Debug, Default)]
pub(super) struct EscapedText(String);

impl EscapedText {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn replace(&mut self, text: &str) {
        self.0.clear();
        self.append(text);
    }

    pub(super) fn append(&mut self, delta: &str) {
        // A text always has a JSON form.
        let quoted = serde_json::to_string(delta).unwrap_or_default();
        self.0.push_str(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default());
    }

    /// Encodes an event, with this text in the place of its first `text`, which is empty. No text
    /// inside of the event is mistaken for that place, because its quotes are escaped.
    pub(super) fn put_into(&self, event: &impl Serialize) -> Payload {
        // These types always have a JSON form.
        let around = serde_json::to_string(event).unwrap_or_default();
        let at = around.find(EMPTY).map_or(around.len(), |at| at + EMPTY.len() - 1);
        let (before, after) = around.split_at(at);
        Payload::joined(&[before, &self.0, after])
    }
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::event::{AgentEvent, AgentStream, AssistantText, ChatEvent, ChatState, ReplyText};
    use openclaw_protocol::{AgentId, RunId, SessionKey};
    use proptest::prelude::*;

    use super::*;

    fn agent(run_id: &RunId, text: &str, delta: &str) -> AgentEvent<'static> {
        AgentEvent {
            run_id: run_id.clone(),
            stream: AgentStream::Assistant(AssistantText {
                text: text.to_owned().into(),
                delta: delta.to_owned().into(),
            }),
            session_key: Some(SessionKey::main(&AgentId::default(), "main")),
            seq: 7,
            ts: 1,
        }
    }

    fn chat<'a>(run_id: &RunId, text: &'a str) -> ChatEvent<ReplyText<'a>> {
        ChatEvent {
            run_id: run_id.clone(),
            session_key: SessionKey::global(),
            seq: 7,
            state: ChatState::Delta,
            message: Some(ReplyText::new(text, 1)),
            error_message: None,
            stop_reason: None,
        }
    }

    proptest! {
        #[test]
        fn events_are_those_that_are_encoded_whole(
            run in prop_oneof![Just("r".to_owned()), Just(EMPTY.to_owned()), any::<String>()],
            first in any::<String>(),
            deltas in prop::collection::vec(prop_oneof![any::<String>(), Just(EMPTY.to_owned()), Just("\"\\\u{1f}é😀".to_owned())], 0..6),
        ) {
            let run = RunId::new(run);
            let (mut whole, mut escaped) = (first.clone(), EscapedText::default());
            escaped.append("what was before");
            escaped.replace(&first);
            for delta in &deltas {
                whole.push_str(delta);
                escaped.append(delta);
                let (event, expected) = (agent(&run, "", delta), agent(&run, &whole, delta));
                prop_assert_eq!(escaped.put_into(&event), Payload::of(&expected).unwrap());
            }
            prop_assert_eq!(escaped.put_into(&chat(&run, "")), Payload::of(&chat(&run, &whole)).unwrap());
            prop_assert_eq!(escaped.is_empty(), whole.is_empty());
        }
    }
}
