//! Acknowledgement reactions of a run's messages.

use std::sync::Arc;

use openclaw_channels::{Account, Address};
use openclaw_journal::inbox::{InboxRow, RequestForm};
use openclaw_journal::origin::MessageOrigin;

use crate::runner::Runner;

impl Runner {
    /// Shows that a message was accepted, if that is to be shown.
    pub fn acknowledge(&self, origin: &MessageOrigin) {
        if origin.ack.is_none() {
            return;
        }
        let Some(account) = self.account_of(origin) else { return };
        let shared = &self.shared;
        self.acks.show(account, origin, self.takes_back(), shared.stopping.clone(), &shared.accepting);
    }

    /// Takes the reaction back after its message is over.
    pub async fn no_longer_acknowledged<P: RequestForm>(&self, row: &InboxRow<P>) {
        if !self.takes_back() {
            return;
        }
        let Some(origin) = self.origin_of(row).await.filter(|origin| origin.ack.is_some()) else { return };
        self.acks.take_back(|| self.account_of(&origin), &origin, row.recovered, &self.shared.accepting);
    }

    fn takes_back(&self) -> bool {
        self.settings().config.messages.remove_ack_after_reply
    }

    /// Account that heard a message.
    fn account_of(&self, origin: &MessageOrigin) -> Option<Arc<dyn Account>> {
        let Address { channel, account, .. } = &origin.address;
        let config = Arc::clone(&self.settings().config);
        self.deps.platforms.account(&config, channel, account)
    }
}
