//! An event on its way out: its payload is serialised once, whatever the number of clients.

use openclaw_protocol::frame::StateVersion;

use super::rules;
use crate::payload::Payload;

/// An event to broadcast or to send to some.
#[derive(Debug, Clone)]
pub struct Event {
    name: &'static str,
    droppable: bool,
    payload: Payload,
}

impl Event {
    /// An event with the delivery rule of its name.
    pub fn named(name: &'static str, payload: Payload) -> Self {
        Self::new(name, payload, rules::droppable(name))
    }

    /// An event that a slow client may miss, or else one without which it is closed.
    pub fn new(name: &'static str, payload: Payload, droppable: bool) -> Self {
        Self { name, droppable, payload }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Puts the frame together, but for its number.
    pub(crate) fn encode(self, state_version: Option<StateVersion>) -> EncodedEvent {
        let head = format!(r#"{{"type":"event","event":"{}","payload":{}"#, self.name, self.payload.as_str());
        let tail = state_version.map_or_else(String::new, |version| {
            format!(r#","stateVersion":{{"presence":{},"health":{}}}"#, version.presence, version.health)
        });
        EncodedEvent { name: self.name, droppable: self.droppable, head, tail }
    }
}

/// An event as text but for its number, which differs by connection. Shared by all queues it waits in.
#[derive(Debug, PartialEq, Eq)]
pub struct EncodedEvent {
    name: &'static str,
    droppable: bool,
    head: String,
    tail: String,
}

impl EncodedEvent {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn droppable(&self) -> bool {
        self.droppable
    }

    /// What it counts for in a queue: its text, with room for a number.
    pub(crate) fn bytes(&self) -> usize {
        const NUMBER: usize = 16;
        self.head.len() + self.tail.len() + NUMBER
    }

    /// The frame's text for one connection.
    pub(crate) fn text(&self, seq: Option<u64>) -> String {
        match seq {
            Some(seq) => format!(r#"{},"seq":{seq}{}}}"#, self.head, self.tail),
            None => format!("{}{}}}", self.head, self.tail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openclaw_protocol::frame::Frame;
    use serde_json::json;

    #[test]
    fn the_text_is_that_of_the_protocols_event_frame() {
        let version = StateVersion { presence: 2, health: 3 };
        let rows = [
            (
                Some(7),
                Some(version),
                r#"{"type":"event","event":"health","payload":{"ok":true},"seq":7,"stateVersion":{"presence":2,"health":3}}"#,
            ),
            (Some(1), None, r#"{"type":"event","event":"health","payload":{"ok":true},"seq":1}"#),
            (None, None, r#"{"type":"event","event":"health","payload":{"ok":true}}"#),
        ];
        for (seq, version, expect) in rows {
            let text = Event::named("health", json!({"ok": true}).into()).encode(version).text(seq);
            assert_eq!(text, expect);
            let frame: Frame = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&frame).unwrap(), text);
        }
    }
}
