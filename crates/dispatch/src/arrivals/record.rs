//! An event of a platform as it is stored, and what became of it.

use openclaw_channels::{Inbound, InboundEvent};
use openclaw_protocol::RunId;

/// An event to be stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewArrival {
    /// What happened.
    pub(crate) event: Inbound,
    /// Unix milliseconds.
    pub(crate) received_at: i64,
    /// What became of it, where that is known already; then nothing of what it says is kept, unless it waits as context.
    pub(crate) fate: Option<Fate>,
}

impl NewArrival {
    /// The platform's id of the message it is about, by which people ask for it.
    pub(crate) fn message_id(&self) -> Option<&str> {
        match &self.event.event {
            InboundEvent::Message(message) => Some(&message.message_id),
            InboundEvent::Button { message_id, .. }
            | InboundEvent::Edited { message_id, .. }
            | InboundEvent::Reaction { message_id, .. } => Some(message_id),
            InboundEvent::Moved { .. } | InboundEvent::Unreadable { .. } => None,
        }
    }
}

#[cfg(test)]
impl NewArrival {
    /// Whether another one is this one brought again; the condition of the database in plain words.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let (event, brought) = (&self.event, &other.event);
        let is_former = event.unique_id.is_none() && event.identity() == brought.former_identity();
        let is_about = |one: &Self| (one.event.address.target.clone(), one.message_id().map(str::to_owned));
        event.identity() == brought.identity() || (is_former && is_about(self) == is_about(other))
    }
}

/// What came of storing an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArrivalInsert {
    /// It is stored under this number: numbers grow in the order of arrival.
    New(i64),
    /// It was brought before.
    Known,
}

/// An event about which nothing is decided yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredArrival {
    /// Its number.
    pub(crate) number: i64,
    /// What happened; or why that can't be read any more.
    pub(crate) event: Result<Inbound, String>,
    /// Unix milliseconds.
    pub(crate) received_at: i64,
}

/// The numbers of the events that a message is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Arrivals {
    /// What it says.
    pub(crate) said: Vec<i64>,
    /// What was noted before and is told with it.
    pub(crate) context: Vec<i64>,
    /// Where it was led.
    pub(crate) route: Option<Routed>,
}

/// Where an event was led, and why there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routed {
    /// The session.
    pub session_key: String,
    /// By what kind of binding; `default` where none named it.
    pub matched_by: String,
}

/// What became of an event. Each has exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is part of the message of this run.
    Run(RunId),
    /// It waits as context for the next message of its conversation that is answered.
    Noted,
    /// The gateway did by itself what it asks for, such as answering with a pairing code.
    Handled(String),
    /// It is answered by nobody; says by which rule, such as `no-mention`.
    Dropped(String),
}

impl Fate {
    /// By the gateway itself, so.
    pub(crate) fn handled(how: &str) -> Self {
        Self::Handled(how.to_owned())
    }

    /// By this rule.
    pub(crate) fn dropped(why: &str) -> Self {
        Self::Dropped(why.to_owned())
    }

    /// The columns `fate`, `reason` and `run_id`.
    pub(crate) fn columns(&self) -> (&'static str, Option<&str>, Option<&str>) {
        match self {
            Self::Run(run_id) => ("run", None, Some(run_id.as_str())),
            Self::Noted => ("noted", None, None),
            Self::Handled(how) => ("handled", Some(how), None),
            Self::Dropped(why) => ("dropped", Some(why), None),
        }
    }

    /// Reads the columns; `None` while nothing is decided.
    pub(crate) fn read(fate: Option<&str>, reason: Option<String>, run_id: Option<String>) -> Option<Self> {
        match fate? {
            "run" => run_id.map(|id| Self::Run(RunId::new(id))),
            "noted" => Some(Self::Noted),
            "handled" => Some(Self::Handled(reason.unwrap_or_default())),
            _ => Some(Self::Dropped(reason.unwrap_or_default())),
        }
    }
}

/// What is remembered of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivalRecord {
    /// Its number: numbers grow in the order of arrival.
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
    /// What became of it; `None` while nothing is decided.
    pub fate: Option<Fate>,
    /// Unix milliseconds at which that was decided.
    pub decided_at: Option<i64>,
    /// The run with whose message it was told as context.
    pub told_in: Option<RunId>,
    /// Where it was led.
    pub route: Option<Routed>,
    /// How often it was brought once more.
    pub again: u32,
    /// Unix milliseconds at which the platform says it happened; of older versions nothing.
    pub said_at: Option<i64>,
    /// What it is known by.
    pub identity: String,
}
