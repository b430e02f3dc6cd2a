//! Groups that have got another id: their settings in the configuration follow them. The gateway
//! provides the callback that writes the configuration.

use crate::handle::Dispatch;
use crate::known_chats::FollowGroup;

impl Dispatch {
    /// Sets the callback that is asked when a group has got another id. Called once, before
    /// accounts are started.
    pub fn follow_groups(&self, follow: FollowGroup) {
        // Only what starts a gateway comes here.
        let _ = self.chats().follow_group.set(follow);
    }
}
