//! `sessions_history` (spec `sessions.md` §8.2).

use std::sync::Arc;

use openclaw_agent::host::{HistoryWish, HostError};
use openclaw_sessions::{Row, history};
use serde_json::Value;

use super::sanitise::sanitised;
use super::{Purpose, ToolCaller, VisibleSession, told, unreadable};

/// Number of messages if none is asked for: the same as for `chat.history`.
const USUAL: usize = 200;

impl ToolCaller<'_> {
    /// Returns the messages of a session.
    pub(crate) async fn history(&self, wish: &HistoryWish) -> Result<Value, HostError> {
        let VisibleSession { key, row } = match self.find(&wish.session, Purpose::Read).await {
            Ok(found) => found,
            Err(trouble) => return told(trouble),
        };
        let limit = wish.limit.unwrap_or(USUAL).min(history::MAX_LIMIT);
        let mut messages = match row {
            Some(row) => self.messages(&row, limit).await?,
            None => Vec::new(),
        };
        if !wish.with_tools {
            messages.retain(|message| !is_tool_result(message));
        }
        let told = sanitised(messages);
        Ok(told.answer(&self.shown(&key)))
    }

    /// The last messages of a session, oldest first.
    pub(super) async fn messages(&self, row: &Row, limit: usize) -> Result<Vec<Value>, HostError> {
        let transcripts = self.family().transcripts.clone();
        let (agent, entry) = (self.viewer.owner(&row.key, self.rules()), Arc::clone(&row.entry));
        let read = tokio::task::spawn_blocking(move || match transcripts.find(&agent, &entry) {
            Some(found) => history::read(&transcripts.reader(&found), limit),
            None => Ok(Vec::new()),
        });
        let read = read.await.map_err(unreadable)?;
        let read =
            read.map_err(|error| HostError::Unavailable(format!("history of {}: {error}", row.key)))?;
        Ok(read.iter().filter_map(|message| serde_json::from_str(message.get()).ok()).collect())
    }
}

/// True if a message is the result of a tool.
pub(super) fn is_tool_result(message: &Value) -> bool {
    let role = message.get("role").and_then(Value::as_str);
    matches!(role, Some("toolResult" | "tool"))
}
