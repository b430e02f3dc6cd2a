//! Error policy: which failures of runs and tools chats are told of (`errorPolicy`,
//! `silentErrorReplies`).

use openclaw_agent::ReplyPayload;
use openclaw_channels::access::{AccessSettings, ErrorPolicy};
use openclaw_channels::{Address, ConversationKind};
use openclaw_protocol::RunId;
use tokio::time::Instant;

use crate::runner::Runner;
use crate::said::Destination;

impl Runner {
    /// Removes the errors that a chat is not to be told.
    pub(super) fn without_unwanted_errors(
        &self,
        run_id: &RunId,
        to: &Destination,
        payloads: Vec<ReplyPayload>,
    ) -> Vec<ReplyPayload> {
        if !payloads.iter().any(|payload| payload.is_error) {
            return payloads;
        }
        let Some(access) = self.access_of(&to.address) else { return payloads };
        // Settings for all groups do not hold for private chats.
        let group = Some(to.address.target.as_str()).filter(|_| to.kind != ConversationKind::Direct);
        let policy = access.error_policy(group, to.address.thread.as_deref());
        let is_wanted = |payload: &ReplyPayload| match policy {
            _ if !payload.is_error => true,
            ErrorPolicy::Always => true,
            ErrorPolicy::Once => {
                self.told_errors.may_tell(&to.address, &payload.text, run_id, Instant::now())
            }
            ErrorPolicy::Silent => false,
        };
        payloads.into_iter().filter(is_wanted).collect()
    }

    /// True if the reader's device stays silent at an error.
    pub(super) fn tells_errors_silently(&self, at: &Address) -> bool {
        self.access_of(at).is_some_and(|access| access.silent_error_replies)
    }

    /// Returns the access settings; a section that can't be read says nothing about errors.
    fn access_of(&self, at: &Address) -> Option<AccessSettings> {
        AccessSettings::of(&self.settings().config, &at.channel, &at.account).ok()
    }
}
