//! Sub-agents as chat commands and tools see them.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_commands::SubagentControl;
use openclaw_journal::api::{DispatchError, Waited};
use openclaw_journal::child_run::ChildRun;
use openclaw_journal::request::RunRequest;
use openclaw_protocol::{RunId, SessionKey};

use openclaw_runtime::child_runs::ChildRuns;
use openclaw_runtime::registry::Registry;

use crate::handle::Dispatch;

impl SubagentControl for Dispatch {
    fn stop_all<'a>(&'a self, requester: &'a SessionKey) -> BoxFuture<'a, usize> {
        self.stop_subagents(requester).boxed()
    }

    fn stop<'a>(&'a self, run: &'a ChildRun) -> BoxFuture<'a, bool> {
        self.stop_subagent(run).boxed()
    }

    fn send<'a>(
        &'a self,
        run_id: RunId,
        key: &'a SessionKey,
        request: RunRequest,
    ) -> BoxFuture<'a, Result<(), DispatchError>> {
        async move { self.accept(run_id, key.clone(), request).await.outcome().await.map(drop) }.boxed()
    }

    fn wait<'a>(&'a self, run_id: &'a RunId, patience: Duration) -> BoxFuture<'a, Waited> {
        Self::wait(self, run_id, patience).boxed()
    }
}

/// Returns the state of a session's sub-agent, in a word; `None` if the session is not one of a
/// known sub-agent.
pub(crate) fn state_of(runs: &ChildRuns, registry: &Registry, key: &SessionKey) -> Option<&'static str> {
    if !key.is_subagent() {
        return None;
    }
    let run = runs.of_session(key)?;
    Some(run.state(registry.is_running(&run.id())))
}
