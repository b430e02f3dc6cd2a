//! Last request of a conversation, which the next request extends: the next one repeats all of it
//! but its end.
//!
//! A part of the conversation that is settled is made fit and written once. It is gone on from for as long as the next request
//! begins with the same messages and is for the same model; otherwise everything is written anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use openclaw_protocol::message::Message;
use parking_lot::Mutex;

use crate::body::RequestBody;
use crate::conversation::{MessageFacts, RequestConversation, RequestFacts};
use crate::history::{IdMap, IdRule, is_seam, last_seam, prepare_part};
use crate::model_spec::ModelSpec;

/// The last request of a conversation. Clones share it; whoever keeps it between two runs decides how long it lives.
#[derive(Debug, Clone, Default)]
pub struct KeptRequest(Arc<Mutex<Option<SettledPart>>>);

impl KeptRequest {
    /// About how much memory it takes, in bytes, the messages themselves aside.
    pub fn memory(&self) -> usize {
        self.0.lock().as_ref().map_or(0, SettledPart::memory)
    }

    /// Writes the body of a request with these messages: `write` is given the messages that are
    /// still to be written, and the body they go into. Returns it, with further facts about the
    /// request.
    pub(crate) fn write(
        &self,
        spec: &ModelSpec,
        ids: IdRule,
        messages: &[Arc<Message>],
        write: impl FnOnce(&RequestConversation<'_>, &mut RequestBody) -> Bytes,
    ) -> (Bytes, RequestFacts) {
        let mut kept = self.0.lock();
        let last = kept.take().filter(|last| last.spec.writes_as(spec));
        let last = last.and_then(|last| last.beginning(messages));
        let rules = spec.history_rules(ids);
        let written = kept.insert(last.unwrap_or_else(|| SettledPart::new(spec, rules.id_map())));
        let before = written.messages.len();
        let settled_until = last_seam(messages, before).unwrap_or(before);
        let (settled, open) = messages.split_at(settled_until);
        let settled = settled.get(before..).unwrap_or_default();
        written.messages.extend_from_slice(settled);
        let settled = prepare_part(settled.to_vec(), &rules, &mut written.ids);
        let open = prepare_part(open.to_vec(), &rules, &mut IdMap::after(&written.ids));
        let conversation = RequestConversation {
            written: written.prepared,
            known: &written.known,
            settled: &settled,
            open: &open,
        };
        let asked = conversation.asked();
        let body = write(&conversation, &mut written.body);
        written.prepared += settled.len();
        written.known.note(&settled);
        (body, asked)
    }
}

/// Settled part of a conversation.
#[derive(Debug)]
struct SettledPart {
    /// The model it is written for, without its headers.
    spec: ModelSpec,
    /// The messages, as the transcript has them. As long as they are here nobody can change them in place.
    messages: Vec<Arc<Message>>,
    /// Number of messages after they were adapted to the model.
    prepared: usize,
    ids: IdMap<'static>,
    known: MessageFacts,
    body: RequestBody,
}

impl SettledPart {
    fn new(spec: &ModelSpec, ids: IdMap<'static>) -> Self {
        let spec = ModelSpec { headers: BTreeMap::new(), ..spec.clone() };
        Self {
            spec,
            messages: Vec::new(),
            prepared: 0,
            ids,
            known: MessageFacts::default(),
            body: RequestBody::default(),
        }
    }

    fn memory(&self) -> usize {
        /// Memory estimate of an id, in bytes.
        const ID: usize = 96;
        self.body.memory() + self.ids.len() * ID + self.messages.len() * size_of::<Arc<Message>>()
    }

    /// Returns `self` if a conversation begins with it and has a seam right after it.
    fn beginning(mut self, conversation: &[Arc<Message>]) -> Option<Self> {
        let end = self.messages.len();
        let begins = conversation.get(..end)?;
        let is_same = self.messages.iter_mut().zip(begins).all(|(kept, now)| is_same(kept, now));
        (is_same && (end == 0 || is_seam(conversation, end))).then_some(self)
    }
}

/// Returns true if a message is the kept one. Summaries, which become a person's message, and
/// results that are shown in part are made anew for each run.
fn is_same(kept: &mut Arc<Message>, now: &Arc<Message>) -> bool {
    if Arc::ptr_eq(kept, now) {
        return true;
    }
    let is_equal = match (&**kept, &**now) {
        (Message::User(kept), Message::User(now)) => kept == now,
        (Message::ToolResult(kept), Message::ToolResult(now)) => kept == now,
        _ => false,
    };
    if is_equal {
        kept.clone_from(now);
    }
    is_equal
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::{AssistantMessage, Block, ToolCall, ToolResultMessage, UserMessage};
    use serde_json::json;

    use super::*;
    use crate::anthropic::Anthropic;
    use crate::request::ModelRequest;
    use crate::wire::write_body;

    fn user(text: &str) -> Message {
        Message::User(UserMessage::text(text, 1))
    }

    fn answer(block: Block) -> Message {
        Message::Assistant(AssistantMessage { content: vec![block], ..AssistantMessage::default() })
    }

    fn call() -> Message {
        let arguments = json!({});
        answer(Block::ToolCall(ToolCall { id: "c".to_owned(), arguments, ..ToolCall::default() }))
    }

    fn result() -> Message {
        Message::ToolResult(ToolResultMessage {
            tool_call_id: "c".to_owned(),
            ..ToolResultMessage::default()
        })
    }

    fn settled(kept: &KeptRequest) -> usize {
        kept.0.lock().as_ref().unwrap().messages.len()
    }

    #[test]
    fn all_but_the_last_step_is_settled_and_a_change_unsettles_it() {
        let spec = ModelSpec::sample("anthropic", "claude", "anthropic-messages");
        let other = ModelSpec::sample("anthropic", "other", "anthropic-messages");
        let mut request = ModelRequest::default();
        let ask = |request: &ModelRequest, spec: &ModelSpec| {
            drop(write_body(&Anthropic, spec, request));
            settled(&request.kept)
        };
        let steps: [(&[Message], usize); 5] = [
            (&[user("hi")], 0),
            (&[answer(Block::text("hello")), user("look")], 1),
            (&[call(), result()], 3),
            (&[call(), result()], 5),
            (&[answer(Block::text("done")), user("thanks")], 7),
        ];
        for (said, expect) in steps {
            Arc::make_mut(&mut request.messages).extend(said.iter().cloned().map(Arc::new));
            assert_eq!(ask(&request, &spec), expect, "{said:?}");
        }
        let first = Arc::clone(&request.kept.0.lock().as_ref().unwrap().messages[0]);
        assert!(Arc::ptr_eq(&first, &request.messages[0]), "settled once, at the first of these requests");
        assert!(request.kept.memory() > 0);
        assert_eq!(ask(&request, &other), 7, "written anew for another model");
        Arc::make_mut(&mut request.messages).truncate(2);
        assert_eq!(ask(&request, &other), 1, "cut");
        Arc::make_mut(&mut request.messages)[0] = user("edited").into();
        assert_eq!(ask(&request, &other), 1, "edited");
        let body = write_body(&Anthropic, &other, &request).0;
        assert!(String::from_utf8_lossy(&body).contains("edited"));
    }

    #[test]
    fn what_is_settled_is_not_copied() {
        let spec = ModelSpec::sample("anthropic", "claude", "anthropic-messages");
        let mut request = ModelRequest { system: "The rules.".into(), ..ModelRequest::default() };
        let write = |request: &ModelRequest| write_body(&Anthropic, &spec, request).0;
        for n in 0..40 {
            let said = [user(&format!("question {n}")), answer(Block::text("x".repeat(n)))];
            Arc::make_mut(&mut request.messages).extend(said.map(Arc::new));
        }
        Arc::make_mut(&mut request.messages).push(user("and now?").into());
        let place = write(&request).as_ptr();
        let sent = write(&request);
        assert_eq!(sent.as_ptr(), place, "written over the end of the last body");
        assert_ne!(write(&request).as_ptr(), place, "which is still being sent");
    }
}
