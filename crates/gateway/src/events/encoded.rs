//! An event on its way out: its payload is serialised once, whatever the number of clients.

use bytes::Bytes;
use openclaw_protocol::event;
use openclaw_protocol::frame::StateVersion;
use openclaw_protocol::{Payload, RunId};

use super::growing_text;
use crate::frame_text::FrameText;

/// An event to broadcast or to send to some.
#[derive(Debug, Clone)]
pub struct GatewayEvent {
    name: &'static str,
    droppable: bool,
    payload: Payload,
    run: Option<OfRun>,
}

/// Facts about a run's event that a queue depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfRun {
    pub(crate) id: RunId,
    /// The number of the text that it shows all of so far ([`openclaw_dispatch::api::Broadcast::growing`]).
    pub(crate) growing: Option<u64>,
}

impl GatewayEvent {
    /// An event with the delivery rule of its name.
    pub fn named(name: &'static str, payload: Payload) -> Self {
        Self::new(name, payload, droppable(name))
    }

    /// An event that a slow client may miss, or else one without which it is closed.
    pub fn new(name: &'static str, payload: Payload, droppable: bool) -> Self {
        Self { name, droppable, payload, run: None }
    }

    /// The same event; it belongs to a run.
    #[must_use]
    pub(crate) fn of_run(mut self, run: OfRun) -> Self {
        self.run = Some(run);
        self
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Puts the frame together, but for its number.
    pub(crate) fn encode(self, state_version: Option<StateVersion>) -> EncodedEvent {
        let Self { name, droppable, payload, run } = self;
        let opening = format!(r#"{{"type":"event","event":"{name}","payload":"#);
        let tail = state_version.map_or_else(String::new, |version| {
            format!(r#","stateVersion":{{"presence":{},"health":{}}}"#, version.presence, version.health)
        });
        EncodedEvent { name, droppable, opening: opening.into(), payload, tail, run }
    }
}

/// True if a slow client may miss an event, unless its sender says otherwise.
fn droppable(name: &str) -> bool {
    event::find(name).is_some_and(|kind| kind.droppable)
}

/// An event as text but for its number, which differs by connection. Shared by all queues it waits in.
#[derive(Debug, PartialEq, Eq)]
pub struct EncodedEvent {
    name: &'static str,
    droppable: bool,
    opening: Bytes,
    payload: Payload,
    tail: String,
    run: Option<OfRun>,
}

impl EncodedEvent {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn droppable(&self) -> bool {
        self.droppable
    }

    /// Size that counts in a queue, in bytes: its text, with room for a number.
    pub(crate) fn bytes(&self) -> usize {
        const NUMBER: usize = 16;
        self.opening.len() + self.payload.bytes().len() + self.tail.len() + NUMBER
    }

    /// The run it belongs to.
    pub(crate) fn run(&self) -> Option<&OfRun> {
        self.run.as_ref()
    }

    /// True if the event shows all that an older event shows, and more.
    pub(crate) fn contains(&self, older: &Self) -> bool {
        self.run.as_ref().is_some_and(|run| run.growing.is_some())
            && self.name == older.name
            && self.run == older.run
    }

    /// The frame's text for one connection.
    pub(crate) fn text(&self, seq: Option<u64>) -> FrameText {
        self.frame(self.payload.bytes().clone(), seq)
    }

    /// [`Self::text`] for a connection that did not get an older event, which this one contains.
    pub(crate) fn text_since(&self, older: &Self, seq: Option<u64>) -> FrameText {
        match growing_text::joined(self.payload.as_str(), older.payload.as_str()) {
            Some(payload) => self.frame(payload.into(), seq),
            None => self.text(seq),
        }
    }

    fn frame(&self, payload: Bytes, seq: Option<u64>) -> FrameText {
        let tail = &self.tail;
        let ending = seq.map_or_else(|| format!("{tail}}}"), |seq| format!(r#","seq":{seq}{tail}}}"#));
        FrameText { opening: self.opening.clone(), payload, ending: ending.into() }
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
            let text = GatewayEvent::named("health", json!({"ok": true}).into())
                .encode(version)
                .text(seq)
                .to_string();
            assert_eq!(text, expect);
            let frame: Frame = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&frame).unwrap(), text);
        }
    }
}
