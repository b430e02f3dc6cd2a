//! Notes for clients that their conversation was compacted, in sessions that are told everything. They
//! stand in the history too, because clients read that anew after an answer. A chat on a platform is
//! told by a message instead.

use std::sync::Arc;
use std::time::Duration;

use openclaw_journal::inbox::InboxRow;
use openclaw_journal::source::RequestSource;
use openclaw_protocol::SessionKey;
use openclaw_runtime::events::{Hub, Verbose, injected as injected_event};
use openclaw_sessions::time::now_ms;
use openclaw_sessions::transcript::Injector;
use openclaw_sessions::transcript::inject::injected;

use super::result::compacted;
use super::session::RunSession;

/// Time for which a note may wait for its place. A conversation is compacted between two steps of its
/// run, so that it need not wait.
const PATIENCE: Duration = Duration::from_secs(1);

/// Compactions of a conversation that clients are told of.
pub(super) struct CompactionNotes {
    hub: Arc<Hub>,
    session_key: SessionKey,
    /// Number of compactions so far.
    count: u64,
}

impl CompactionNotes {
    /// Notes of the run of a `chat.send`; `None` for any other run.
    pub(super) fn of(hub: &Arc<Hub>, row: &InboxRow, session: &RunSession) -> Option<Self> {
        let request = &row.payload;
        let is_clients = matches!(request.source, RequestSource::Client(_));
        is_clients.then(|| Self {
            hub: Arc::clone(hub),
            session_key: row.session_key.clone(),
            count: session.entry.compaction_count.unwrap_or(0),
        })
    }

    /// Counts another compaction, and tells clients unless the session is `verbose` off.
    pub(super) async fn add(&mut self, verbose: Verbose, injector: &Injector) {
        self.count += 1;
        if verbose == Verbose::Off {
            return;
        }
        let said = injected(&compacted(self.count), None, now_ms());
        match injector.put(said.clone(), None, PATIENCE).await {
            Some(Ok(id)) => {
                let event = injected_event(&self.session_key, id.as_str(), &said);
                self.hub.publish(event).await;
            }
            Some(Err(error)) => {
                tracing::warn!(session = %self.session_key, %error, "the note of a compaction is not in the history");
            }
            None => {}
        }
    }
}
