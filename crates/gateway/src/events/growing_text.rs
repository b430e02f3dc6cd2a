//! An event that shows a text as it grows, for a client that reads more slowly than it is written.

use openclaw_protocol::event::{AgentEvent, AgentStream};

/// The payload of an `agent` event that is sent in place of an older one: its `delta` begins where the older one's did. `None`
/// for events that have no `delta`: they are sent as they are.
pub(super) fn joined(newer: &str, older: &str) -> Option<String> {
    let mut newer: AgentEvent<'_> = serde_json::from_str(newer).ok()?;
    let older: AgentEvent<'_> = serde_json::from_str(older).ok()?;
    let (AgentStream::Assistant(new), AgentStream::Assistant(old)) = (&mut newer.stream, &older.stream)
    else {
        return None;
    };
    let seen = old.text.strip_suffix(&*old.delta)?;
    new.delta = new.text.strip_prefix(seen)?.to_owned().into();
    serde_json::to_string(&newer).ok()
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::event::{AssistantText, Lifecycle};
    use openclaw_protocol::{AgentId, RunId, SessionKey};

    use super::*;

    fn agent(stream: AgentStream<'_>, seq: u64) -> String {
        let session_key = Some(SessionKey::main(&AgentId::default(), "main"));
        let event = AgentEvent { run_id: RunId::new("r"), stream, session_key, seq, ts: 7 };
        serde_json::to_string(&event).unwrap()
    }

    fn said(text: &str, delta: &str, seq: u64) -> String {
        agent(AgentStream::Assistant(AssistantText { text: text.into(), delta: delta.into() }), seq)
    }

    #[test]
    fn what_is_new_is_counted_from_where_the_older_event_counted() {
        let first = said("a \"1\"", "\"1\"", 2);
        let both = joined(&said("a \"1\" é\n3", "3", 4), &first);
        assert_eq!(both, Some(said("a \"1\" é\n3", "\"1\" é\n3", 4)));
        let end = agent(AgentStream::Lifecycle(Lifecycle::Start { started_at: 1 }), 1);
        assert_eq!(joined(&first, &end), None);
        assert_eq!(joined(&said("other", "other", 3), &first), None, "no part of its text");
    }
}
