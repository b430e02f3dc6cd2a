//! Open deliveries, as far as their order needs them.

use openclaw_channels::Address;

/// A conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LaneKey {
    /// The channel.
    pub channel: String,
    /// Account of the channel.
    pub account: String,
    /// Id of the chat on the platform.
    pub target: String,
}

impl From<&Address> for LaneKey {
    fn from(address: &Address) -> Self {
        Self {
            channel: address.channel.clone(),
            account: address.account.clone(),
            target: address.target.clone(),
        }
    }
}

/// An open delivery, as far as its order needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenDelivery {
    /// Number of the delivery: numbers grow in the order of acceptance.
    pub number: i64,
    /// Conversation of the delivery.
    pub lane: LaneKey,
    /// The thread in it.
    pub thread: Option<String>,
    /// Earliest time of the next try; Unix milliseconds.
    pub next_at: i64,
    /// True if it was not tried so far, only because a pause is made before it: messages in other
    /// threads need not wait for it.
    pub is_paced: bool,
}
