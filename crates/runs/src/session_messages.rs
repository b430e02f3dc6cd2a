//! Last messages of a session.

use std::sync::Arc;

use openclaw_protocol::SessionKey;
use openclaw_protocol::message::Message;
use openclaw_sessions::history;

use crate::runner::Runner;

impl Runner {
    /// Returns the last messages of a session, oldest first; none if they can't be read.
    pub async fn messages_of(&self, key: &SessionKey, limit: usize) -> Vec<Message> {
        let Some(entry) = self.entry_or_none(key).await else { return Vec::new() };
        let (transcripts, agent) = (Arc::clone(&self.deps.transcripts), self.key_rules().agent_of(key));
        let read = tokio::task::spawn_blocking(move || match transcripts.find(&agent, &entry) {
            Some(found) => history::read(&*transcripts.reader(&found), limit),
            None => Ok(Vec::new()),
        });
        let read = read.await.map_err(std::io::Error::other).flatten();
        let read =
            read.inspect_err(|error| tracing::warn!(session = %key, %error, "a transcript can't be read"));
        // A compaction's marker is no message.
        read.unwrap_or_default().iter().filter_map(|entry| serde_json::from_str(entry.get()).ok()).collect()
    }
}
