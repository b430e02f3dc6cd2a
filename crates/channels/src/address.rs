//! Address of a message.

use serde::{Deserialize, Serialize};

/// A conversation on a chat platform, and the thread in it. Fixed when a message is accepted: what becomes of a session's route later
/// does not redirect an answer. Ids are the platform's own, byte for byte; none is made from a session key, which has lost their case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Address {
    /// Channel id.
    pub channel: String,
    /// Account on the channel.
    pub account: String,
    /// Conversation. Deliveries to one conversation keep their order.
    pub target: String,
    /// Thread in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}
