//! Waiting for the end of a run (spec `agent-runtime.md` §1.1).

use std::time::Duration;

use openclaw_journal::api::{RunRecord, Waited};
use openclaw_journal::inbox::KnownRun;
use openclaw_protocol::RunId;

use super::Dispatch;

impl Dispatch {
    /// Waits for the end of a run, which need not have been accepted yet. `Duration::ZERO` polls.
    pub async fn wait(&self, run_id: &RunId, timeout: Duration) -> Waited {
        // A run that has ended already is found however short the wait is: looking it up takes a
        // moment of its own.
        if let Some(record) = self.ended_already(run_id).await {
            return Waited::Ended(record);
        }
        match tokio::time::timeout(timeout, self.end(run_id)).await {
            Ok(Some(record)) => Waited::Ended(record),
            Ok(None) | Err(_) => Waited::TimedOut,
        }
    }

    /// Returns the end of a run that is over. Does not wait for one that is not.
    async fn ended_already(&self, run_id: &RunId) -> Option<RunRecord> {
        let Some(end) = self.requests().registry.end_of(run_id) else { return self.finished(run_id).await };
        let record = end.borrow().clone()?;
        self.requests().hub.flush().await;
        Some(record)
    }

    /// Waits for the end of a run that is here, was here, or will come. `None` on shutdown.
    async fn end(&self, run_id: &RunId) -> Option<RunRecord> {
        loop {
            let entered = self.requests().registry.entered();
            tokio::pin!(entered);
            entered.as_mut().enable();
            if let Some(record) = self.ended(run_id).await {
                return Some(record);
            }
            tokio::select! { biased;
                () = self.requests().stops.stopping.cancelled() => return None,
                () = entered => {}
            }
        }
    }

    /// Waits for the end of an accepted run, after its last event was handled by every subscriber: the moment for the
    /// second response of `agent`. `None`: the run is unknown, or the gateway goes down and the run will be resumed.
    pub async fn ended(&self, run_id: &RunId) -> Option<RunRecord> {
        if let Some(mut end) = self.requests().registry.end_of(run_id) {
            let record = end.wait_for(Option::is_some).await.ok()?.clone();
            self.requests().hub.flush().await;
            return record;
        }
        self.finished(run_id).await
    }

    /// Returns the record that the inbox keeps of a run that is over.
    async fn finished(&self, run_id: &RunId) -> Option<RunRecord> {
        match self.requests().journal.message(run_id).await {
            Ok(Some(KnownRun::Finished(record))) => Some(record),
            Ok(Some(KnownRun::Unfinished { .. }) | None) => None,
            Err(error) => {
                tracing::warn!(%run_id, %error, "inbox could not be read");
                None
            }
        }
    }
}
