//! Last messages of a session.

use std::sync::Arc;

use openclaw_protocol::SessionKey;
use openclaw_protocol::message::Message;
use openclaw_sessions::history;
use openclaw_sessions::transcript::Transcripts;

use crate::rows::SessionRows;

/// Parts for reading the conversations of sessions.
pub struct SessionMessages {
    rows: Arc<SessionRows>,
    transcripts: Transcripts,
}

impl SessionMessages {
    pub(crate) fn new(rows: Arc<SessionRows>, transcripts: Transcripts) -> Self {
        Self { rows, transcripts }
    }

    /// Returns the last messages of a session, oldest first; none if they can't be read.
    pub async fn messages_of(&self, key: &SessionKey, limit: usize) -> Vec<Message> {
        let Some(entry) = self.rows.entry_or_none(key).await else { return Vec::new() };
        let (transcripts, agent) = (self.transcripts.clone(), self.rows.key_rules().agent_of(key));
        let read = tokio::task::spawn_blocking(move || match transcripts.find(&agent, &entry) {
            Some(found) => history::read(&transcripts.reader(&found), limit),
            None => Ok(Vec::new()),
        });
        let read = read.await.map_err(std::io::Error::other).flatten();
        let read =
            read.inspect_err(|error| tracing::warn!(session = %key, %error, "a transcript can't be read"));
        // A compaction's marker is no message.
        read.unwrap_or_default().iter().filter_map(|entry| serde_json::from_str(entry.get()).ok()).collect()
    }
}
