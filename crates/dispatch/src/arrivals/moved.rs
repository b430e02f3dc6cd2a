//! Groups that have got another id: their settings in the configuration follow them. The gateway
//! provides the callback that writes the configuration.

use std::pin::Pin;
use std::sync::Arc;

use super::KnownChats;
use crate::handle::Dispatch;

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

impl Dispatch {
    /// Sets the callback that is asked when a group has got another id. Called once, before
    /// accounts are started.
    pub fn follow_groups(&self, follow: FollowGroup) {
        // Only what starts a gateway comes here.
        let _ = self.chats().follow_group.set(follow);
    }
}

impl KnownChats {
    /// Tells the configuration that a group has another id now.
    pub(super) async fn group_moved(&self, moved: MovedGroup) {
        match self.follow_group.get() {
            Some(follow) => follow(moved).await,
            None => tracing::warn!(?moved, "name the group in groups by its new id"),
        }
    }
}
