//! Facts about chats that were seen since the start.

mod old_words;
mod silent_groups;

use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use old_words::OldWords;
pub use silent_groups::SilentGroup;
pub(crate) use silent_groups::{GroupSighting, SilentGroups};

/// Facts about chats that were seen since the start.
#[derive(Default)]
pub(crate) struct KnownChats {
    /// Lets the configuration follow a group that has got another id.
    pub(crate) follow_group: OnceLock<FollowGroup>,
    /// Groups in which nobody is heard.
    pub(crate) silent_groups: SilentGroups,
    /// Direct chats with words that were too old to be answered.
    pub(crate) old_words: OldWords,
}

/// A group that has another id now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedGroup {
    /// Channel id of the platform.
    pub channel: String,
    /// The account that was told.
    pub account: String,
    /// The id it had.
    pub from: String,
    /// The id it has.
    pub to: String,
}

/// Lets the configuration follow a group.
pub type FollowGroup = Arc<dyn Fn(MovedGroup) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

impl KnownChats {
    /// Tells the configuration that a group has another id now.
    pub(crate) async fn group_moved(&self, moved: MovedGroup) {
        match self.follow_group.get() {
            Some(follow) => follow(moved).await,
            None => tracing::warn!(?moved, "name the group in groups by its new id"),
        }
    }
}
