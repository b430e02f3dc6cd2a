//! Acknowledgement reactions of a run's messages.

use std::sync::Arc;

use openclaw_channels::{Account, Address, Platforms};
use openclaw_delivery::ack_reaction::Acks;
use openclaw_journal::inbox::{InboxRow, RequestForm};
use openclaw_journal::origin::MessageOrigin;
use openclaw_runtime::setup::LiveSettings;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::stored_messages::StoredMessages;

/// Reactions that say that a message was taken.
pub struct Acknowledgements {
    acks: Arc<Acks>,
    settings: LiveSettings,
    platforms: Arc<Platforms>,
    messages: Arc<StoredMessages>,
    /// Messages between the client and their lane, and the reactions to them.
    accepting: TaskTracker,
    /// Cancelled when no run is started any more.
    stopping: CancellationToken,
}

impl Acknowledgements {
    pub(crate) fn new(
        settings: LiveSettings,
        platforms: Arc<Platforms>,
        messages: Arc<StoredMessages>,
        accepting: TaskTracker,
        stopping: CancellationToken,
    ) -> Self {
        Self { acks: Arc::default(), settings, platforms, messages, accepting, stopping }
    }

    /// Shows that a message was accepted, if that is to be shown.
    pub fn acknowledge(&self, origin: &MessageOrigin) {
        if origin.ack.is_none() {
            return;
        }
        let Some(account) = self.account_of(origin) else { return };
        self.acks.show(account, origin, self.takes_back(), self.stopping.clone(), &self.accepting);
    }

    /// Takes the reaction back after its message is over.
    pub(crate) async fn no_longer_acknowledged<P: RequestForm>(&self, row: &InboxRow<P>) {
        if !self.takes_back() {
            return;
        }
        let Some(origin) = self.messages.origin_of(row).await.filter(|origin| origin.ack.is_some()) else {
            return;
        };
        self.acks.take_back(|| self.account_of(&origin), &origin, row.recovered, &self.accepting);
    }

    fn takes_back(&self) -> bool {
        self.settings.now().config.messages.remove_ack_after_reply
    }

    /// Account that heard a message.
    fn account_of(&self, origin: &MessageOrigin) -> Option<Arc<dyn Account>> {
        let Address { channel, account, .. } = &origin.address;
        let config = Arc::clone(&self.settings.now().config);
        self.platforms.account(&config, channel, account)
    }
}
