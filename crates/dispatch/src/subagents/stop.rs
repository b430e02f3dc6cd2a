//! Stopping of sub-agents (spec `sessions.md` §8.9). The stop is stored; the follow-up of a stopped
//! sub-agent sees its end and announces nothing.

use futures_util::future::join_all;
use openclaw_journal::api::{AbortReason, AbortTarget};
use openclaw_journal::child_run::ChildRun;
use openclaw_protocol::SessionKey;
use tokio::sync::oneshot;

use crate::handle::Dispatch;
use crate::lane::LaneCommand;

impl Dispatch {
    /// Stops the sub-agents that a session has started and that have not ended. How many that were.
    pub async fn stop_subagents(&self, requester: &SessionKey) -> usize {
        let runs = &self.children().child_runs;
        let active = runs.select(|run| run.requester_session_key == *requester && !run.has_ended());
        let stopping = active.iter().map(|run| self.stop_subagent(run));
        join_all(stopping).await.into_iter().filter(|is_stopped| *is_stopped).count()
    }

    /// Stops one. `false`: there was nothing to stop.
    pub(crate) async fn stop_subagent(&self, run: &ChildRun) -> bool {
        self.children_are_listed().await;
        let (reply, stopped) = oneshot::channel();
        let (target, reason) = (AbortTarget::All, AbortReason::Stop);
        let command = LaneCommand::Abort { target, reason, reply };
        self.lanes().send_existing(&run.child_session_key, command).await;
        match stopped.await {
            Ok(Ok(stopped)) => !stopped.is_empty(),
            // The run is stopped, and the log says that this may not last.
            Ok(Err(_)) => true,
            Err(_) => false,
        }
    }
}

/// Text told to somebody who has stopped the agent, and so many sub-agents with it. Clients know
/// these words.
pub(crate) fn told(stopped: usize) -> String {
    match stopped {
        0 => "⚙️ Agent was aborted.".to_owned(),
        1 => "⚙️ Agent was aborted. Stopped 1 sub-agent.".to_owned(),
        n => format!("⚙️ Agent was aborted. Stopped {n} sub-agents."),
    }
}
