//! The gateway as runs see it. Whoever owns the lanes implements it.

use std::sync::{Arc, OnceLock, Weak};

use futures_util::future::BoxFuture;
use openclaw_agent::host::Host;
use openclaw_commands::SubagentControl;
use openclaw_journal::request::RunRequest;
use openclaw_protocol::{RunId, SessionKey};

use crate::calling_run::CallingRun;

/// Step of a talk between sessions that follows from the end of another.
pub struct NextStep {
    /// Id of the talk.
    pub talk: RunId,
    /// Id of the step's run.
    pub run_id: RunId,
    /// Session whose turn it is.
    pub key: SessionKey,
    /// The message.
    pub request: RunRequest,
}

/// Requests of runs to the gateway around them.
pub trait RunHost: Send + Sync {
    /// Returns the gateway as the tools of a run see it.
    fn tool_host(self: Arc<Self>, run: CallingRun) -> Arc<dyn Host>;

    /// Returns the door to sub-agents; `None` once the gateway goes down.
    fn subagents(self: Arc<Self>) -> Option<Box<dyn SubagentControl>>;

    /// Begins to store the next step of a talk, ahead of whatever is stored from now on. The
    /// returned future waits until it is stored and lets it begin; `None` if it can't be stored.
    fn place_step<'a>(&'a self, step: NextStep) -> BoxFuture<'a, Option<BoxFuture<'static, ()>>>;
}

/// Host of tools whose gateway is gone: every request fails.
struct NoHost;

/// The gateway around the runs, once there is one. It is not kept alive.
#[derive(Default)]
pub struct HostLink(OnceLock<Weak<dyn RunHost>>);

impl HostLink {
    /// Sets the gateway around the runs. Only the first one counts.
    pub fn set(&self, host: Weak<dyn RunHost>) {
        let _ = self.0.set(host);
    }

    /// Returns the gateway around the runs; `None` before there is one and after it has ended.
    pub(crate) fn get(&self) -> Option<Arc<dyn RunHost>> {
        self.0.get()?.upgrade()
    }

    /// Returns what the tools of a run ask the gateway for.
    pub(crate) fn tool_host(&self, run: CallingRun) -> Arc<dyn Host> {
        match self.get() {
            Some(host) => host.tool_host(run),
            None => Arc::new(NoHost),
        }
    }
}

impl Host for NoHost {}
