//! Messages in the outbox, their authors and their status, as the journal keeps them.

mod open;
mod state;

use std::borrow::Cow;

use openclaw_channels::{Address, OutgoingPart, Part, Receipt};
use openclaw_protocol::SessionKey;

pub use open::{LaneKey, OpenDelivery};
pub use state::{DeliveryFailure, DeliveryState};
pub use state::{DeliveryVerdict, Hold, MAX_HOLD, Retry};

use crate::inbox::Digest;
use crate::rights::{ANYBODY, Rights};

/// A message for a chat platform, sent with one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Unique for ever, such as `<run id>:<part>`: a second delivery of the same id is not sent, and platforms that know
    /// idempotency keys are given it.
    pub id: String,
    /// Conversation that it goes to.
    pub address: Address,
    /// Canonical key of the session that it belongs to.
    pub session_key: Option<SessionKey>,
    /// Author of the message.
    pub author: Author,
    /// Content.
    pub part: Part,
    /// Time after which it is not worth sending any more, in Unix milliseconds.
    pub expires_at: Option<i64>,
    /// SHA-256 of the client's request, if the id comes from a client: the same id with another hash is a mistake.
    pub asked: Option<Digest>,
}

/// Author of a delivery, who decides what its buttons may do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Author {
    /// The gateway itself: the answer to a command, a question, a notice. Its buttons give commands, and no agent may change it.
    Gateway,
    /// An agent or a client that put buttons below the message. Pressing one says words, with at most these rights.
    Buttons(Rights),
    /// An agent or a client that put no buttons below it. If it has buttons all the same, their maker is not known.
    #[default]
    Other,
}

impl Author {
    const GATEWAY: &str = "gateway";

    /// Returns the author of a part that a client sends.
    pub fn of_client(part: &Part) -> Self {
        Self::with(part, &ANYBODY)
    }

    /// Returns the author of a part that a caller with these rights sends.
    pub fn with(part: &Part, rights: &Rights) -> Self {
        if part.buttons.is_empty() { Self::Other } else { Self::Buttons(rights.clone()) }
    }

    /// Combines two authors of one message, such as its sender and the caller that put other
    /// buttons below it. The gateway's message stays the gateway's; otherwise the buttons have only
    /// the rights that both have.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Gateway, _) | (_, Self::Gateway) => Self::Gateway,
            (Self::Buttons(rights), Self::Buttons(others)) => Self::Buttons(rights.least(&others)),
            (Self::Buttons(rights), Self::Other) | (Self::Other, Self::Buttons(rights)) => {
                Self::Buttons(rights)
            }
            (Self::Other, Self::Other) => Self::Other,
        }
    }

    /// Returns the `author` column of the outbox: a name, or rights as JSON.
    pub fn column(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Gateway => Some(Self::GATEWAY.into()),
            Self::Buttons(rights) => serde_json::to_string(rights).ok().map(Cow::Owned),
            Self::Other => None,
        }
    }

    /// Reads the column.
    pub fn of_column(written: Option<&str>) -> Self {
        match written {
            None => Self::Other,
            Some(Self::GATEWAY) => Self::Gateway,
            Some(rights) => serde_json::from_str(rights).map_or(Self::Other, Self::Buttons),
        }
    }
}

/// A message that this gateway sent and that its platform has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMessage {
    /// Conversation that it is in.
    pub address: Address,
    /// Author of the message.
    pub author: Author,
}

impl Delivery {
    /// Returns an id without the number of the part: the parts of one message share it.
    pub fn message_of(id: &str) -> &str {
        id.rsplit_once(':').map_or(id, |(message, _)| message)
    }

    /// Returns the beginning that the ids of one message's parts share, as people see messages: what a tool sent within a run
    /// (`<run id>:t….<part>`) is a message of its own beside the run's answer.
    fn letter_of(id: &str) -> &str {
        let message = Self::message_of(id);
        let part = id.get(message.len()..).unwrap_or_default();
        match part.rsplit_once('.') {
            Some((letter, _)) => id.get(..message.len() + letter.len()).unwrap_or(message),
            None => message,
        }
    }

    /// True if it is part of a run's answer: no client asked for it, and no tool sent it (`<run id>:t….<part>`).
    pub fn is_of_answer(&self) -> bool {
        is_of_answer(&self.id, self.asked.as_ref())
    }

    /// Returns the form in which its account is given it.
    pub fn outgoing(&self) -> OutgoingPart<'_> {
        OutgoingPart { id: &self.id, address: &self.address, part: &self.part }
    }
}

fn is_of_answer(id: &str, asked: Option<&Digest>) -> bool {
    let part = id.get(Delivery::message_of(id).len()..).unwrap_or_default();
    asked.is_none() && !part.starts_with(":t")
}

/// Status of a delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryStatus {
    /// Id of the delivery.
    pub id: String,
    /// State of the delivery.
    pub state: DeliveryState,
    /// Tries that count.
    pub attempts: u32,
    /// Receipt of the platform, once it is sent.
    pub receipt: Option<Receipt>,
    /// Reason why it is not sent yet, or never will be; for people.
    pub error: Option<String>,
    /// Session that it belongs to.
    pub session_key: Option<SessionKey>,
    /// Time of acceptance, in Unix milliseconds.
    pub accepted_at: i64,
    /// True if it was sent once more although an earlier try may have succeeded: its reader may see it twice.
    pub may_repeat: bool,
    /// Earliest time of the next try while it is open, in Unix milliseconds.
    pub next_at: Option<i64>,
    /// Time at which it was sent or given up, in Unix milliseconds.
    pub ended_at: Option<i64>,
    /// Same as [`Delivery::asked`].
    pub asked: Option<Digest>,
    /// Conversation that it goes to.
    pub address: Address,
    /// Author of the message.
    pub author: Author,
    /// Reason for giving it up, if it was given up.
    pub given_up: Option<DeliveryFailure>,
    /// Content that was left out and why, for people: a file that its platform does not take.
    pub left_out: Option<String>,
}

impl DeliveryStatus {
    /// True if it was never tried because it waits for an intended pause.
    pub fn is_paced(&self) -> bool {
        let next_at = self.next_at.unwrap_or(self.accepted_at);
        self.state.is_paced(self.attempts, self.error.as_deref(), next_at, self.accepted_at)
    }

    /// Same as [`Delivery::is_of_answer`].
    pub fn is_of_answer(&self) -> bool {
        is_of_answer(&self.id, self.asked.as_ref())
    }

    /// True if a person may discard it now. Not while it is being sent: until that ends, nobody knows whether it arrives.
    pub fn may_be_discarded(&self) -> bool {
        self.state.may_be_discarded(self.given_up)
    }

    /// True if `other` is retried together with this one, where both were given up: they are parts of one message.
    pub fn goes_with(&self, other: &Self) -> bool {
        let is_same_message = Delivery::letter_of(&self.id) == Delivery::letter_of(&other.id);
        self.id == other.id || is_same_message && self.address == other.address
    }
}

/// A delivery that waits or was given up.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedDelivery {
    /// Status of the delivery.
    pub status: DeliveryStatus,
    /// Content to send; `None` if it can't be read any more.
    pub part: Option<Part>,
}

/// Result of storing a delivery.
#[derive(Debug, Clone, PartialEq)]
pub enum DeliveryInsert {
    /// Stored.
    New,
    /// The id was there already.
    Known(Box<DeliveryStatus>),
    /// Too many wait.
    Full,
}
