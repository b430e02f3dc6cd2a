//! What tools ask of the gateway, answered from the session store and the transcripts.

mod run;

use std::sync::Arc;

use openclaw_agent::host::{Host, HostError, HostFuture, SessionsHost};
use openclaw_protocol::message::Message;
use openclaw_sessions::store::{Query, Rows};
use openclaw_sessions::transcript::Transcripts;
use openclaw_sessions::{Row, SessionKey, SessionStore, history};

pub(crate) use run::RunHost;

/// The gateway as tools see it.
pub(crate) struct GatewayHost {
    store: Arc<dyn SessionStore>,
    transcripts: Arc<dyn Transcripts>,
}

impl GatewayHost {
    pub(crate) fn new(store: Arc<dyn SessionStore>, transcripts: Arc<dyn Transcripts>) -> Self {
        Self { store, transcripts }
    }
}

impl Host for GatewayHost {
    fn sessions(&self) -> &dyn SessionsHost {
        self
    }
}

impl SessionsHost for GatewayHost {
    fn list<'a>(&'a self, query: &'a Query) -> HostFuture<'a, Vec<Row>> {
        Box::pin(async move {
            let found = self.store.select(Rows::All, query).await;
            found.map(|found| found.rows).map_err(|error| HostError::Unavailable(error.to_string()))
        })
    }

    fn history<'a>(&'a self, key: &'a SessionKey, limit: usize) -> HostFuture<'a, Vec<Message>> {
        Box::pin(async move {
            let unreadable =
                |error: &dyn std::fmt::Display| HostError::Unavailable(format!("history of {key}: {error}"));
            let row = self.store.get(key).await.map_err(|error| unreadable(&error))?;
            let entry = row.ok_or_else(|| HostError::UnknownSession(key.clone()))?.entry;
            let (transcripts, agent) = (Arc::clone(&self.transcripts), self.store.rules().agent_of(key));
            let read = tokio::task::spawn_blocking(move || match transcripts.find(&agent, &entry) {
                Some(found) => history::read(&*transcripts.reader(&found), limit),
                None => Ok(Vec::new()),
            });
            let read = read.await.map_err(|error| unreadable(&error))?.map_err(|error| unreadable(&error))?;
            // A compaction's marker is no message.
            Ok(read.iter().filter_map(|entry| serde_json::from_str(entry.get()).ok()).collect())
        })
    }
}

#[cfg(test)]
mod tests;
