//! The gateway as runs see it.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_agent::host::Host;
use openclaw_commands::SubagentControl;
use openclaw_runs::{CallingRun, NextStep, RunHost};

use crate::handle::Dispatch;
use crate::host::ToolHost;
use crate::parts::DispatchFamilies;

impl RunHost for DispatchFamilies {
    fn tool_host(self: Arc<Self>, run: CallingRun) -> Arc<dyn Host> {
        Arc::new(ToolHost::new(self, run))
    }

    fn subagents(self: Arc<Self>) -> Option<Box<dyn SubagentControl>> {
        Some(Box::new(Dispatch::of(&self)?))
    }

    fn place_step<'a>(&'a self, step: NextStep) -> BoxFuture<'a, Option<BoxFuture<'static, ()>>> {
        Self::place_step(self, step).boxed()
    }
}
