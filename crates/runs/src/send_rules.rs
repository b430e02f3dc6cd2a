//! Rules by which a session may send.

use std::sync::Arc;

use openclaw_journal::api::DispatchError;
use openclaw_runtime::setup::LiveSettings;
use openclaw_sessions::entry::SendPolicy;
use openclaw_sessions::send_policy::{self, SendSubject};
use openclaw_sessions::{SessionEntry, SessionKey};

use crate::rows::SessionRows;

/// The send policy of the settings, applied to the rows of sessions.
pub struct SendRules {
    settings: LiveSettings,
    rows: Arc<SessionRows>,
}

impl SendRules {
    pub(crate) fn new(settings: LiveSettings, rows: Arc<SessionRows>) -> Self {
        Self { settings, rows }
    }

    /// True if the session may send to a channel.
    pub async fn may_deliver(&self, key: &SessionKey, channel: &str) -> Result<bool, DispatchError> {
        let entry = self.rows.entry(key).await.map_err(|error| DispatchError::Storage(error.to_string()))?;
        Ok(self.is_allowed(key, entry.as_deref(), Some(channel)))
    }

    /// True if a session with this row may send. Without a channel the session's own counts.
    pub(crate) fn is_allowed(
        &self,
        key: &SessionKey,
        entry: Option<&SessionEntry>,
        channel: Option<&str>,
    ) -> bool {
        let settings = self.settings.now();
        let subject = SendSubject { key, entry, channel, chat_type: None };
        send_policy::resolve(settings.sessions.section.send_policy.as_ref(), &subject) == SendPolicy::Allow
    }
}
