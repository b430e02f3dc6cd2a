//! Events as hooks receive them (spec `agent-runtime.md` §8.2).

use serde_json::{Map, Value, json};

use super::point::HookPoint;
use openclaw_sessions::time::iso;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A person, or the gateway for them, gave a command.
    Command(CommandAction),
    /// The workspace files of a run were read.
    AgentBootstrap,
    /// The gateway takes messages.
    GatewayStartup,
}

/// Command that a person gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommandAction {
    /// The conversation starts anew.
    New,
    /// The conversation starts anew, by the other word for it.
    Reset,
    /// The session's runs were stopped.
    Stop,
}

/// Names that hooks may ask for and that nothing is told of: OpenClaw has announced them.
const RESERVED: &[&str] = &[
    "session",
    "session:start",
    "session:end",
    "agent:error",
    "message",
    "message:sent",
    "message:received",
];

const KINDS: &[EventKind] = &[
    EventKind::Command(CommandAction::New),
    EventKind::Command(CommandAction::Reset),
    EventKind::Command(CommandAction::Stop),
    EventKind::AgentBootstrap,
    EventKind::GatewayStartup,
];

impl CommandAction {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Reset => "reset",
            Self::Stop => "stop",
        }
    }
}

impl EventKind {
    /// `command` of `command:new`.
    pub fn family(self) -> &'static str {
        match self {
            Self::Command(_) => "command",
            Self::AgentBootstrap => "agent",
            Self::GatewayStartup => "gateway",
        }
    }

    /// `new` of `command:new`.
    pub fn action(self) -> &'static str {
        match self {
            Self::Command(action) => action.as_str(),
            Self::AgentBootstrap => "bootstrap",
            Self::GatewayStartup => "startup",
        }
    }
}

impl std::fmt::Display for EventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.family(), self.action())
    }
}

/// Subscription of a hook: a family of events or one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subscription {
    /// Every event of a family, such as `command`.
    Family(&'static str),
    /// Subscribes to a single event.
    Event(EventKind),
    /// A hook point.
    Point(HookPoint),
}

/// Reason why a hook can't subscribe to a name. The hook is loaded without it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownEvent {
    /// The name is kept for later.
    #[error("nothing is told of the event \"{0}\" yet")]
    Reserved(String),
    /// The event does not exist.
    #[error("there is no event \"{0}\"")]
    Unknown(String),
}

impl Subscription {
    /// Reads a name as hooks have it.
    ///
    /// # Errors
    /// [`UnknownEvent`].
    pub fn parse(name: &str) -> Result<Self, UnknownEvent> {
        let name = name.trim();
        if let Some(point) = HookPoint::parse(name) {
            return Ok(Self::Point(point));
        }
        for kind in KINDS {
            if name == kind.family() {
                return Ok(Self::Family(kind.family()));
            }
            if kind.to_string() == name {
                return Ok(Self::Event(*kind));
            }
        }
        Err(if RESERVED.contains(&name) {
            UnknownEvent::Reserved(name.to_owned())
        } else {
            UnknownEvent::Unknown(name.to_owned())
        })
    }
}

/// Event with the data that handlers receive.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Kind of the event.
    pub kind: EventKind,
    /// Session of the event; empty if there is none.
    pub session_key: String,
    /// Data of the event, with the field names of the specification.
    pub context: Map<String, Value>,
    /// Unix milliseconds.
    pub timestamp: i64,
    /// Messages that handlers want to send to the chat from which the event came.
    pub messages: Vec<String>,
}

impl Event {
    /// Converts the event to the JSON that a program reads.
    pub fn to_json(&self) -> Value {
        json!({
            "type": self.kind.family(),
            "action": self.kind.action(),
            "sessionKey": self.session_key,
            "context": self.context,
            "timestamp": iso(self.timestamp),
            "messages": self.messages,
        })
    }

    /// A text of the context.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.context.get(key)?.as_str().filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_families_events_and_points() {
        let rows = [
            ("command", Subscription::Family("command")),
            ("command:new", Subscription::Event(EventKind::Command(CommandAction::New))),
            (" command:stop ", Subscription::Event(EventKind::Command(CommandAction::Stop))),
            ("agent:bootstrap", Subscription::Event(EventKind::AgentBootstrap)),
            ("gateway", Subscription::Family("gateway")),
            ("before_tool_call", Subscription::Point(HookPoint::BeforeToolCall)),
        ];
        for (name, expect) in rows {
            assert_eq!(Subscription::parse(name), Ok(expect), "{name}");
        }
        assert_eq!(Subscription::parse("session:end"), Err(UnknownEvent::Reserved("session:end".into())));
        for name in ["", "Command", "command:", "command:delete"] {
            assert!(matches!(Subscription::parse(name), Err(UnknownEvent::Unknown(_))), "{name}");
        }
    }

    #[test]
    fn programs_read_the_events_of_the_reference() {
        let event = Event {
            kind: EventKind::Command(CommandAction::New),
            session_key: "agent:main:main".into(),
            context: json!({"commandSource": "webchat"}).as_object().cloned().unwrap(),
            timestamp: 1_770_595_200_123,
            messages: Vec::new(),
        };
        let expect = json!({"type": "command", "action": "new", "sessionKey": "agent:main:main",
            "context": {"commandSource": "webchat"}, "timestamp": "2026-02-09T00:00:00.123Z", "messages": []});
        assert_eq!(event.to_json(), expect);
    }
}
