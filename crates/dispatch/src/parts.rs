//! Parts of a dispatcher that sub-agents, talks between sessions and tools of runs work with. They
//! outlive the handles, and reach the lanes as long as those are there.

use std::sync::{Arc, Weak};

use openclaw_runs::Runner;

use crate::child_tasks::ChildTasks;
use crate::lane::Supervisor;
use crate::waits::Waits;

/// Parts of a dispatcher.
pub(crate) struct DispatchParts {
    pub(crate) runner: Arc<Runner>,
    lanes: Weak<Supervisor>,
    /// Sessions whose runs wait for others.
    pub(crate) waits: Waits,
    /// Tasks that look after the sub-agents of its sessions.
    pub(crate) child_tasks: ChildTasks,
}

impl DispatchParts {
    pub(crate) fn new(runner: Arc<Runner>, lanes: &Arc<Supervisor>) -> Self {
        let lanes = Arc::downgrade(lanes);
        Self { runner, lanes, waits: Waits::default(), child_tasks: ChildTasks::default() }
    }

    /// Returns the lanes; `None` once the gateway has ended.
    pub(crate) fn lanes(&self) -> Option<Arc<Supervisor>> {
        self.lanes.upgrade()
    }

    /// Begins work on sub-agents that ends with the gateway, wherever it is: the next start does it
    /// again.
    pub(crate) fn spawn_for_children(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.child_tasks.spawn_until(self.runner.shared.stopping.clone(), work);
    }
}
