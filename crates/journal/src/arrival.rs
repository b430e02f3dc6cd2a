//! Stored form of a platform's event, and its fate.

use openclaw_channels::{Inbound, InboundEvent};
use openclaw_protocol::RunId;

/// An event to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewArrival {
    /// The event.
    pub event: Inbound,
    /// Unix milliseconds.
    pub received_at: i64,
    /// Fate, if it is already known; then the event's contents are not kept, unless it waits as
    /// context.
    pub fate: Option<Fate>,
}

impl NewArrival {
    /// Returns the platform's id of the message it is about, by which people ask for it.
    pub fn message_id(&self) -> Option<&str> {
        match &self.event.event {
            InboundEvent::Message(message) => Some(&message.message_id),
            InboundEvent::Button { message_id, .. }
            | InboundEvent::Edited { message_id, .. }
            | InboundEvent::Reaction { message_id, .. } => Some(message_id),
            InboundEvent::Moved { .. } | InboundEvent::Unreadable { .. } => None,
        }
    }
}

/// Result of storing an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalInsert {
    /// Stored under this number: numbers grow in the order of arrival.
    New(i64),
    /// Already delivered before.
    Known,
}

/// An event about which nothing is decided yet.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredArrival {
    /// Number in the inbox.
    pub number: i64,
    /// The event, or the reason why it can't be read any more.
    pub event: Result<Inbound, String>,
    /// Unix milliseconds.
    pub received_at: i64,
}

/// The numbers of the events that a message is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrivals {
    /// Events that make up the text of the message.
    pub said: Vec<i64>,
    /// Events noted earlier that are told with it.
    pub context: Vec<i64>,
    /// Session that the message was routed to, and why.
    pub route: Option<Routed>,
}

/// Session that an event was routed to, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routed {
    /// The session.
    pub session_key: String,
    /// Kind of binding that matched; `default` if none did.
    pub matched_by: String,
}

/// Fate of an event. Each event has exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// Part of the message of this run.
    Run(RunId),
    /// Waits as context for the next message of its conversation that is answered.
    Noted,
    /// The gateway did by itself what the event asks for, such as answering with a pairing code.
    Handled(String),
    /// Answered by nobody; the string names the rule, such as `no-mention`.
    Dropped(String),
}

impl Fate {
    /// Fate of an event that the gateway handled by itself in this way.
    pub fn handled(how: &str) -> Self {
        Self::Handled(how.to_owned())
    }

    /// Fate of an event that this rule dropped.
    pub fn dropped(why: &str) -> Self {
        Self::Dropped(why.to_owned())
    }

    /// The columns `fate`, `reason` and `run_id`.
    pub fn columns(&self) -> (&'static str, Option<&str>, Option<&str>) {
        match self {
            Self::Run(run_id) => ("run", None, Some(run_id.as_str())),
            Self::Noted => ("noted", None, None),
            Self::Handled(how) => ("handled", Some(how), None),
            Self::Dropped(why) => ("dropped", Some(why), None),
        }
    }

    /// Reads the columns; `None` while nothing is decided.
    pub fn read(fate: Option<&str>, reason: Option<String>, run_id: Option<String>) -> Option<Self> {
        match fate? {
            "run" => run_id.map(|id| Self::Run(RunId::new(id))),
            "noted" => Some(Self::Noted),
            "handled" => Some(Self::Handled(reason.unwrap_or_default())),
            _ => Some(Self::Dropped(reason.unwrap_or_default())),
        }
    }
}

/// Record of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivalRecord {
    /// Number in the inbox: numbers grow in the order of arrival.
    pub number: i64,
    /// Channel id.
    pub channel: String,
    /// Account on the channel.
    pub account: String,
    /// The platform's id of the event.
    pub native_id: String,
    /// The platform's id of the message it is about.
    pub message_id: Option<String>,
    /// Conversation.
    pub target: String,
    /// Unix milliseconds.
    pub received_at: i64,
    /// Fate of the event; `None` while nothing is decided.
    pub fate: Option<Fate>,
    /// Unix milliseconds at which that was decided.
    pub decided_at: Option<i64>,
    /// The run with whose message it was told as context.
    pub told_in: Option<RunId>,
    /// Session that the event was routed to, and why.
    pub route: Option<Routed>,
    /// Number of times it was delivered again.
    pub again: u32,
    /// Unix milliseconds at which the platform says it happened; of older versions nothing.
    pub said_at: Option<i64>,
    /// Identity by which repeated deliveries of the event are recognised.
    pub identity: String,
}
