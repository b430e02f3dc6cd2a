//! Messages that were accepted: what the inbox has of them, and what was decided about them.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use openclaw_agent::user_time::user_zone;
use openclaw_journal::inbox::{InboxRow, Queued, RequestForm};
use openclaw_journal::journal::{Journal, JournalError};
use openclaw_journal::origin::MessageOrigin;
use openclaw_journal::request::RunRequest;
use openclaw_protocol::RunId;
use openclaw_protocol::message::UserMessage;
use openclaw_runtime::setup::LiveSettings;

use crate::decide::Decider;
use crate::wording::{self, Circumstances};

/// The messages of the inbox.
pub struct StoredMessages {
    journal: Arc<dyn Journal>,
    decider: Arc<Decider>,
    settings: LiveSettings,
}

impl StoredMessages {
    pub(crate) fn new(journal: Arc<dyn Journal>, decider: Arc<Decider>, settings: LiveSettings) -> Self {
        Self { journal, decider, settings }
    }

    /// Loads a message with its request, which may be on disk alone, and decides about it.
    pub async fn load(&self, waiting: &InboxRow<Queued>) -> Result<InboxRow, JournalError> {
        let row = self.load_alone(waiting).await?;
        match &waiting.gathering {
            Some(gathering) => self.gathered(row, gathering).await,
            None => Ok(row),
        }
    }

    /// Loads a message as if nothing was run together with it.
    pub(crate) async fn load_alone(&self, waiting: &InboxRow<Queued>) -> Result<InboxRow, JournalError> {
        let request = match waiting.payload.kept() {
            Some(request) => request.clone(),
            None => self.journal.payload(&waiting.run_id).await?,
        };
        let request = self.decider.decided(&waiting.session_key, request).await;
        Ok(waiting.without_payload().with(request))
    }

    /// Returns a message as a run under way sees it.
    pub fn steered_message(&self, row: &InboxRow) -> UserMessage {
        wording::message(row, &Circumstances::plain(self.zone()))
    }

    /// Returns the time zone of the user.
    pub(crate) fn zone(&self) -> TimeZone {
        user_zone(self.settings.now().config.agents.defaults.user_timezone.as_deref())
    }

    /// Returns the conversation in which a message was said, if on a chat platform.
    pub async fn origin_of<P: RequestForm>(&self, row: &InboxRow<P>) -> Option<Box<MessageOrigin>> {
        self.of_request(row, |request| request.source.origin().cloned().map(Box::new)).await
    }

    /// Takes a value from a message's request, which is on disk if it is big.
    pub(crate) async fn of_request<P: RequestForm, T>(
        &self,
        row: &InboxRow<P>,
        take: fn(&RunRequest) -> Option<T>,
    ) -> Option<T> {
        if let Some(request) = row.payload.request() {
            return take(request);
        }
        let read = self.journal.payload(&row.run_id).await;
        let read = read.inspect_err(|error| tracing::error!(run_id = %row.run_id, %error, "a message can't be read: nobody is told of its end"));
        take(&read.ok()?)
    }
}

/// Returns the message that was found at start, and all that were accepted since, by the ids of
/// their entries. `None` for a new message, and if they can't be read.
pub(crate) async fn entries_since<P>(
    journal: &dyn Journal,
    row: &InboxRow<P>,
) -> Option<HashMap<String, RunId>> {
    let accepted_at = row.recovered.then_some(row.accepted_at)?;
    let read = journal.entries_since(accepted_at).await;
    read.inspect_err(|error| tracing::warn!(%error, "inbox could not be read")).ok()
}
