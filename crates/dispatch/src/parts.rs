//! Parts of a dispatcher that sub-agents, talks between sessions and tools of runs work with. They
//! outlive the handles, and reach the lanes as long as those are there.

use std::sync::{Arc, OnceLock, Weak};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_agent::host::Host;
use openclaw_commands::SubagentControl;
use openclaw_protocol::SessionKey;
use openclaw_runs::talk_step::NextStep;
use openclaw_runs::{CallingRun, RunHost, Runner};

use crate::handle::Dispatch;
use crate::host::ToolHost;
use crate::lane::Supervisor;
use crate::session_tools::waits::Waits;
use crate::subagents::Subagents;

/// Parts of a dispatcher.
pub(crate) struct DispatchParts {
    pub(crate) runner: Arc<Runner>,
    /// The lanes, once there are some.
    lanes: OnceLock<Weak<Supervisor>>,
    /// Sessions whose runs wait for others.
    pub(crate) waits: Waits,
    /// Sub-agents that its sessions have started.
    pub(crate) subagents: Subagents,
}

impl DispatchParts {
    /// Puts the parts together, makes the lanes, and becomes the host of the runs.
    pub(crate) fn start(runner: Arc<Runner>) -> (Arc<Self>, Arc<Supervisor>) {
        let subagents = Subagents::new(Arc::clone(&runner.child_runs));
        let parts = Arc::new(Self { runner, lanes: OnceLock::new(), waits: Waits::default(), subagents });
        let host: Arc<dyn RunHost> = Arc::<Self>::clone(&parts);
        parts.runner.set_host(Arc::downgrade(&host));
        let lanes = Arc::new(Supervisor::new(Arc::clone(&parts)));
        // Set only here.
        let _ = parts.lanes.set(Arc::downgrade(&lanes));
        (parts, lanes)
    }

    /// Returns the lanes; `None` once the gateway has ended.
    pub(crate) fn lanes(&self) -> Option<Arc<Supervisor>> {
        self.lanes.get()?.upgrade()
    }

    /// Returns the door for messages; `None` once the gateway has ended.
    pub(crate) fn dispatch(self: &Arc<Self>) -> Option<Dispatch> {
        Some(Dispatch::of_parts(Arc::clone(self), self.lanes()?))
    }

    /// Returns the state of a session's sub-agent, in a word; `None` if the session is not one of a
    /// known sub-agent.
    pub(crate) fn state_of_subagent(&self, key: &SessionKey) -> Option<&'static str> {
        if !key.is_subagent() {
            return None;
        }
        let run = self.runner.child_runs.of_session(key)?;
        Some(run.state(self.runner.shared.registry.is_running(&run.id())))
    }
}

impl RunHost for DispatchParts {
    fn tool_host(self: Arc<Self>, run: CallingRun) -> Arc<dyn Host> {
        Arc::new(ToolHost::new(self, run))
    }

    fn subagents(self: Arc<Self>) -> Option<Box<dyn SubagentControl>> {
        Some(Box::new(self.dispatch()?))
    }

    fn place_step<'a>(&'a self, step: NextStep) -> BoxFuture<'a, Option<BoxFuture<'static, ()>>> {
        Self::place_step(self, step).boxed()
    }
}
