//! Lookup of messages that this gateway sent by their id on the platform, and of their authors.

use std::time::Duration;

use openclaw_channels::{Address, Part, Receipt};
use openclaw_journal::delivery::{Author, Delivery, DeliveryState, SentMessage};
use openclaw_journal::journal::{NewDelivery, Update};
use openclaw_journal::rights::Rights;

use super::{Outbox, OutboxError};

/// Longest wait for a message that is being sent and whose id is not known yet.
const PATIENCE: Duration = Duration::from_secs(10);

/// Test that is true for addresses of the conversation in question.
type IsThere<'a> = &'a (dyn Fn(&Address) -> bool + Sync);

impl Outbox {
    /// Finds a message that this gateway sent, by its id on the platform.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn sent(
        &self,
        channel: &str,
        message_id: &str,
        is_there: IsThere<'_>,
    ) -> Result<Option<SentMessage>, OutboxError> {
        let mut found = self.inner.journal.sent_messages(channel, message_id).await?;
        found.retain(|one| is_there(&one.address));
        let author = found.iter().map(|one| one.author.clone()).reduce(Author::and).unwrap_or_default();
        // If several match, the gateway's own counts.
        let own = found.iter().position(|one| one.author == Author::Gateway);
        Ok(found.into_iter().nth(own.unwrap_or_default()).map(|one| SentMessage { author, ..one }))
    }

    /// Returns the author of a message. People may press a button before the platform has told the message's id, so a message with buttons
    /// that is still being sent is waited for.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn author_of(
        &self,
        channel: &str,
        message_id: &str,
        is_there: IsThere<'_>,
    ) -> Result<Author, OutboxError> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let mut tries = self.inner.tries.subscribe();
        loop {
            // Asked before the lookup: the message may arrive between the two.
            let is_on_its_way = self.waiting().await?.iter().any(|one| {
                let (status, at) = (&one.status, &one.status.address);
                status.state == DeliveryState::Sending
                    && status.author != Author::Other
                    && at.channel == channel
                    && is_there(at)
            });
            if let Some(sent) = self.sent(channel, message_id, is_there).await? {
                return Ok(sent.author);
            }
            if !is_on_its_way
                || !matches!(tokio::time::timeout_at(deadline, tries.changed()).await, Ok(Ok(())))
            {
                return Ok(Author::Other);
            }
        }
    }

    /// Records, under an id of its own, that a caller with these rights is about to put other buttons below a message that a platform has.
    /// Pressing them grants no more rights than pressing the message's former buttons did.
    ///
    /// # Errors
    /// When it can't be stored: nobody may be shown the buttons.
    pub async fn note_buttons(
        &self,
        id: String,
        (at, message_id): (&Address, &str),
        is_there: IsThere<'_>,
        rights: &Rights,
    ) -> Result<(), OutboxError> {
        let known = self.sent(&at.channel, message_id, is_there).await?;
        let address = known.map_or_else(|| at.clone(), |known| known.address);
        let (author, part) = (Author::Buttons(rights.clone()), Part::text(""));
        let (session_key, expires_at, asked) = (None, None, None);
        let delivery = Delivery { id, address, session_key, author, part, expires_at, asked };
        let now = self.inner.clock.now_ms();
        let note = Box::new(NewDelivery { delivery, accepted_at: now, not_before: now });
        let receipt = Receipt { message_ids: vec![message_id.to_owned()], ..Receipt::default() };
        self.inner.journal.update(Update::Buttons { note, receipt }).await?;
        Ok(())
    }
}
