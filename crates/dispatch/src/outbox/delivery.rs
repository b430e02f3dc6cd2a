//! What an outbox carries, and what it asks of a channel.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use openclaw_protocol::SessionKey;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::states::DeliveryState;

/// The payload of one kind of deliveries. It is stored as JSON: fields may be added, none changes its meaning.
pub trait DeliveryPayload: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Its name in the database; no two kinds have the same.
    const KIND: &'static str;

    /// What people read of it, which hooks may change; `None` where it has no words, as a reaction.
    fn words(&self) -> Option<&str> {
        None
    }

    /// The same in other words.
    #[must_use]
    fn with_words(self, words: String) -> Self
    where
        Self: Sized,
    {
        let _ = words;
        self
    }
}

/// Where a delivery goes. Fixed when it is accepted: what becomes of a session's route later does not redirect it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// Channel id.
    pub channel: String,
    /// Account on the channel.
    pub account: String,
    /// Conversation. Deliveries to one conversation keep their order.
    pub target: String,
    /// Thread in it.
    pub thread: Option<String>,
}

/// One message for a chat platform: what one request sends.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery<P> {
    /// Unique for ever, such as `<run id>:<part>`: a second delivery of the same id is not sent, and platforms that know
    /// idempotency keys are given it.
    pub id: String,
    /// Where it goes.
    pub address: Address,
    /// The session it belongs to, canonical key.
    pub session_key: Option<SessionKey>,
    /// What is sent.
    pub payload: P,
    /// Unix milliseconds after which it is not worth sending any more.
    pub expires_at: Option<i64>,
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
}

/// What a channel should know of one try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// 1 for the first.
    pub number: u32,
    /// Accepted so long ago that the message should say so (spec `channels.md` §5.5: half an hour).
    pub late: bool,
    /// An earlier try may have had its effect: the reader may see it twice.
    pub may_repeat: bool,
}

/// The platform has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Receipt {
    /// The platform's ids of what was made of it.
    pub message_ids: Vec<String>,
}

/// What a platform does with a second request of the same delivery id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// It recognises the id and answers with the first one's receipt.
    Recognised,
    /// It sends it twice.
    Doubled,
}

/// What a platform says of a delivery whose fate is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It is there.
    Sent(Receipt),
    /// It is not, and no request of it is under way.
    NotSent,
    /// The platform can't be asked.
    Unknown,
}

/// Why a delivery was not sent, or may not have been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The channel is not connected. Nothing was tried: it does not count, and is tried again soon.
    #[error("the channel is not ready")]
    NotReady,
    /// It was not sent, and may be later: tried again.
    #[error("{reason}")]
    Retry {
        /// What happened, for people.
        reason: String,
        /// How long the platform asks to wait.
        after: Option<Duration>,
    },
    /// It will never be sent: a chat that does not exist, a missing right.
    #[error("{reason}")]
    Final {
        /// What happened, for people.
        reason: String,
    },
    /// The request went out and nothing came back: it may have been sent.
    #[error("{reason}")]
    Uncertain {
        /// What happened, for people.
        reason: String,
    },
}

/// A future of a channel.
pub type DeliverFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SendError>> + Send + 'a>>;

/// The sending side of an account of a channel. Calls for different conversations come at the same time, for one
/// conversation one after the other.
pub trait Deliver<P>: Send + Sync + 'static {
    /// What a second request does.
    fn repeats(&self) -> Repeats;

    /// Sends. Everything that was sent before has ended.
    fn send<'a>(&'a self, delivery: &'a Delivery<P>, attempt: Attempt) -> DeliverFuture<'a, Receipt>;

    /// Looks whether a delivery is there. Asked only where repeats are [`Repeats::Doubled`].
    fn confirm<'a>(&'a self, delivery: &'a Delivery<P>) -> DeliverFuture<'a, Found> {
        // Without a way to look.
        let _ = delivery;
        Box::pin(async { Ok(Found::Unknown) })
    }
}
