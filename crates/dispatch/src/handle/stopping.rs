//! Stopping the work of a session (spec `queue.md` §6.2).

use std::sync::Arc;

use openclaw_journal::api::{AbortError, AbortReason, AbortTarget};
use openclaw_protocol::{RunId, SessionKey};
use tokio::sync::oneshot;

use super::{Dispatch, Placed, Stopped};
use crate::lane::LaneCommand;

impl Dispatch {
    /// Stops runs of a session, whoever began them, including queued ones (spec `queue.md` §6.2):
    /// all that were placed before. The outcome is their ids, after `chat` `aborted` was handled by
    /// every subscriber. An unknown run is no error and gives no ids; one that is active in another
    /// session is an error, and so is a stop that could not be stored.
    pub async fn abort(
        &self,
        session_key: &SessionKey,
        target: AbortTarget,
        reason: AbortReason,
    ) -> Placed<Result<Vec<RunId>, AbortError>> {
        if let AbortTarget::Run(run_id) = &target
            && self.requests().registry.session_of(run_id).is_some_and(|session| session != *session_key)
        {
            return Placed::known(Err(AbortError::OtherSession));
        }
        let (reply, stopped) = oneshot::channel();
        self.lanes.send_existing(session_key, LaneCommand::Abort { target, reason, reply }).await;
        let hub = Arc::clone(&self.requests().hub);
        Placed::new(async move {
            // Without a lane there is nothing to stop.
            let stopped = stopped.await.unwrap_or(Ok(Vec::new()));
            hub.flush().await;
            Ok(stopped?)
        })
    }

    /// Stops all work of a session: its runs as [`Dispatch::abort`] does, and the sub-agents that
    /// it has started. The sub-agents are stopped even if its runs could not be.
    pub async fn stop(
        &self,
        session_key: &SessionKey,
        reason: AbortReason,
    ) -> Placed<Result<Stopped, AbortError>> {
        let stopping = self.abort(session_key, AbortTarget::All, reason).await;
        let (dispatch, key) = (self.clone(), session_key.clone());
        Placed::new(async move {
            let runs = stopping.outcome().await;
            let subagents = dispatch.stop_subagents(&key).await;
            Ok(Stopped { runs: runs?, subagents })
        })
    }
}
