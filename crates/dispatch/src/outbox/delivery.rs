//! What the outbox carries.

use openclaw_channels::{Address, Outgoing, Part, Receipt};
use openclaw_protocol::SessionKey;

use super::states::{DeliveryFailure, DeliveryState};
use crate::inbox::Digest;

/// One message for a chat platform: what one request sends.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Unique for ever, such as `<run id>:<part>`: a second delivery of the same id is not sent, and platforms that know
    /// idempotency keys are given it.
    pub id: String,
    /// Where it goes.
    pub address: Address,
    /// The session it belongs to, canonical key.
    pub session_key: Option<SessionKey>,
    /// What is sent.
    pub part: Part,
    /// Unix milliseconds after which it is not worth sending any more.
    pub expires_at: Option<i64>,
    /// SHA-256 of what its client asked for, where its id comes from a client: the same id with another is a mistake.
    pub asked: Option<Digest>,
}

impl Delivery {
    /// What stands before the number of its part in an id: the parts of one message have it in common.
    pub(crate) fn message_of(id: &str) -> &str {
        id.rsplit_once(':').map_or(id, |(message, _)| message)
    }

    /// The same, for a person: what a tool sent within a run (`<run id>:t….<part>`) is a message of its own beside the run's answer.
    fn letter_of(id: &str) -> &str {
        let message = Self::message_of(id);
        let part = id.get(message.len()..).unwrap_or_default();
        match part.rsplit_once('.') {
            Some((letter, _)) => id.get(..message.len() + letter.len()).unwrap_or(message),
            None => message,
        }
    }

    /// Whether it is part of what a run answers: no client asked for it, and no tool sent it (`<run id>:t….<part>`).
    pub(super) fn is_of_answer(&self) -> bool {
        is_of_answer(&self.id, self.asked.as_ref())
    }

    /// As its account is given it.
    pub(super) fn outgoing(&self) -> Outgoing<'_> {
        Outgoing { id: &self.id, address: &self.address, part: &self.part }
    }
}

fn is_of_answer(id: &str, asked: Option<&Digest>) -> bool {
    let part = id.get(Delivery::message_of(id).len()..).unwrap_or_default();
    asked.is_none() && !part.starts_with(":t")
}

/// How a delivery stands.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryStatus {
    /// Its id.
    pub id: String,
    /// How far it is.
    pub state: DeliveryState,
    /// Tries that count.
    pub attempts: u32,
    /// What the platform made of it, once it is sent.
    pub receipt: Option<Receipt>,
    /// Why it is not sent yet, or will not be; for people.
    pub error: Option<String>,
    /// The session it belongs to.
    pub session_key: Option<SessionKey>,
    /// Unix milliseconds of acceptance.
    pub accepted_at: i64,
    /// It was sent once more although an earlier try may have had its effect: its reader may see it twice.
    pub may_repeat: bool,
    /// Unix milliseconds of the next try at the earliest, while it is open.
    pub next_at: Option<i64>,
    /// Unix milliseconds at which it was sent or given up.
    pub ended_at: Option<i64>,
    /// As [`Delivery::asked`].
    pub asked: Option<Digest>,
    /// Where it goes.
    pub address: Address,
    /// Why it was given up, if it was.
    pub given_up: Option<DeliveryFailure>,
    /// What of it is not sent with the rest, and why, for people: a file that its platform does not take.
    pub left_out: Option<String>,
}

impl DeliveryStatus {
    /// Whether there is a pause before it, and it was not tried so far.
    pub(crate) fn is_paced(&self) -> bool {
        let is_untried = self.state == DeliveryState::Pending && self.attempts == 0 && self.error.is_none();
        is_untried && self.next_at.is_some_and(|at| at > self.accepted_at)
    }

    /// As [`Delivery::is_of_answer`].
    pub(super) fn is_of_answer(&self) -> bool {
        is_of_answer(&self.id, self.asked.as_ref())
    }

    /// Whether a person may throw it away now. What is being sent is not known to be sent or not.
    pub(crate) fn may_be_discarded(&self) -> bool {
        match self.state {
            DeliveryState::Pending | DeliveryState::Uncertain => true,
            DeliveryState::Failed => self.given_up != Some(DeliveryFailure::Discarded),
            DeliveryState::Sending | DeliveryState::Sent => false,
        }
    }

    /// Why it is not sent, once it was thrown away while it waited.
    pub(crate) fn discarded_as(&self) -> Option<String> {
        let arrived = (self.state == DeliveryState::Uncertain).then(|| "it may have arrived".to_owned());
        let why: Vec<String> = self.error.clone().into_iter().chain(arrived).collect();
        Some(why.join("; ")).filter(|why| !why.is_empty())
    }

    /// Whether one that was given up is tried again with this one that was: both are parts of one message.
    pub(super) fn goes_with(&self, other: &Self) -> bool {
        let is_same_message = Delivery::letter_of(&self.id) == Delivery::letter_of(&other.id);
        self.id == other.id || is_same_message && self.address == other.address
    }
}

/// A delivery that was given up, or waits.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedDelivery {
    /// How it stands.
    pub status: DeliveryStatus,
    /// What was to be sent; `None` where it can't be read any more.
    pub part: Option<Part>,
}
