//! Error policy: which failures of runs and tools chats are told of (`errorPolicy`,
//! `silentErrorReplies`).

use openclaw_agent::ReplyPayload;
use openclaw_channels::access::{AccessSettings, ErrorPolicy};
use openclaw_channels::{Address, ConversationKind};
use openclaw_protocol::RunId;
use openclaw_runtime::setup::LiveSettings;
use tokio::time::Instant;

use crate::said::Destination;
use crate::told_errors::ToldErrors;

/// Rules by which chats are told of errors, and the errors that they were told of.
pub(crate) struct ErrorRules {
    settings: LiveSettings,
    told: ToldErrors,
}

impl ErrorRules {
    pub(crate) fn new(settings: LiveSettings) -> Self {
        Self { settings, told: ToldErrors::default() }
    }

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
            ErrorPolicy::Once => self.told.may_tell(&to.address, &payload.text, run_id, Instant::now()),
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
        AccessSettings::of(&self.settings.now().config, &at.channel, &at.account).ok()
    }
}
