//! Reply mode: the messages of an answer that quote the one they answer.

use serde::Deserialize;

/// `replyToMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplyToMode {
    /// No message quotes.
    Off,
    /// The first.
    First,
    /// All.
    #[default]
    All,
}
