//! Typing indicator for senders who wait for a run to begin (spec `streaming.md` §11, mode
//! `instant`).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::{Account, Activity, Address, Platforms};
use openclaw_config::settings::TypingMode;
use openclaw_delivery::reply::typing;
use openclaw_journal::inbox::{InboxRow, Queued};
use openclaw_runtime::setup::LiveSettings;

use crate::stored_messages::StoredMessages;

/// Place at which it is shown.
struct TypingTarget {
    account: Arc<dyn Account>,
    at: Address,
    every: Duration,
}

impl TypingTarget {
    async fn once(&self) {
        if let Err(error) = self.account.show_activity(&self.at, Activity::Typing).await {
            tracing::debug!(%error, "that somebody writes is not shown");
        }
    }

    /// Shows the indicator until this is dropped, or until nobody would believe it any more.
    async fn on_and_on(self) {
        let showing = async {
            loop {
                self.once().await;
                tokio::time::sleep(self.every).await;
            }
        };
        // The indicator is given up after a while, whatever is awaited.
        let _: Result<(), _> = tokio::time::timeout(typing::TTL, showing).await;
    }
}

/// Typing indicators for the senders of messages that wait.
pub struct WaitingSigns {
    messages: Arc<StoredMessages>,
    settings: LiveSettings,
    platforms: Arc<Platforms>,
}

impl WaitingSigns {
    pub(crate) fn new(
        messages: Arc<StoredMessages>,
        settings: LiveSettings,
        platforms: Arc<Platforms>,
    ) -> Self {
        Self { messages, settings, platforms }
    }

    /// Shows the typing indicator once in the conversation of a message, if it is shown at once
    /// there.
    pub async fn show_typing(&self, row: &InboxRow<Queued>) {
        if let Some(shown) = self.shown_at_once(row).await {
            shown.once().await;
        }
    }

    /// Waits, and shows the typing indicator meanwhile in the conversation of a message. A future
    /// that is ready at once shows nothing.
    pub(super) async fn shown_to_wait<T>(
        &self,
        row: &InboxRow<Queued>,
        waiting: impl Future<Output = T>,
    ) -> T {
        let mut waiting = pin!(waiting);
        let showing = async {
            if let Some(shown) = self.shown_at_once(row).await {
                shown.on_and_on().await;
            }
        };
        tokio::select! { biased;
            waited = &mut waiting => return waited,
            () = showing => {}
        }
        waiting.await
    }

    async fn shown_at_once(&self, row: &InboxRow<Queued>) -> Option<TypingTarget> {
        let origin = self.messages.origin_of(row).await?;
        let settings = self.settings.now();
        let (agents, session) = (&settings.config.agents.defaults, &settings.config.session);
        let is_addressed = origin.is_direct() || origin.was_mentioned;
        let is_beat = row.payload.facts.beat.is_some();
        let mode = typing::mode(is_beat, session.typing_mode, agents.typing_mode, is_addressed);
        let every = typing::interval(
            agents.typing_interval_seconds,
            session.typing_interval_seconds,
            Some(typing::SHOWN_FOR),
        )?;
        let at = origin.address.clone();
        let account = self.platforms.account(&settings.config, &at.channel, &at.account)?;
        (mode == TypingMode::Instant).then_some(TypingTarget { account, at, every })
    }
}
