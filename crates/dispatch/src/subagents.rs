//! Sub-agents: started by `sessions_spawn`, worked on like other messages, announced once (spec
//! `sessions.md` §8.4–8.6, 8.9).
//!
//! [`ChildRuns`] lists and keeps them; [`spawn`] starts one, [`context`] writes its
//! prompt; [`follow`] waits for its end and has it told; [`result`] is its result, [`telling`] the
//! words for it; [`stop`] and [`sweep`] end and clear away.
//!
//! Work that is owed survives the process: a child is a message of the inbox, and so is its
//! announcement, under ids that follow from its run. The list on disk has a child before its run
//! begins; one that it misses is found in the inbox.

mod address;
mod context;
mod control;
mod follow;
mod result;
mod spawn;
mod stop;
pub(crate) mod sweep;
mod telling;

use std::collections::HashMap;
use std::sync::Arc;

use openclaw_journal::child_run::ChildRun;
use openclaw_journal::inbox::{Found, Unfinished};
use openclaw_journal::request::Request;
use openclaw_journal::source::Source;
use openclaw_protocol::SessionKey;
use openclaw_sessions::time::now_ms;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::handle::Dispatch;
use openclaw_runs::Runner;
use openclaw_runtime::child_runs::ChildRuns;

use crate::parts::DispatchParts;

pub(crate) use address::{origin_of, webchat};
pub(crate) use spawn::Spawner;
pub(crate) use stop::told as told_of_stop;

/// Sub-agents of a gateway, and the tasks that look after them.
pub(crate) struct Subagents {
    runs: Arc<ChildRuns>,
    tasks: TaskTracker,
    /// Cancelled when no more changes come; the rest is written then.
    closing: CancellationToken,
}

impl Dispatch {
    /// Returns the state of each sub-agent that is not archived, in a word, by its session.
    pub fn states_of_subagents(&self) -> HashMap<SessionKey, &'static str> {
        let registry = &self.shared().registry;
        self.runner().child_runs.states(|run| registry.is_running(&run.id()))
    }
}

impl Subagents {
    pub(crate) fn new(runs: Arc<ChildRuns>) -> Self {
        Self { runs, tasks: TaskTracker::new(), closing: CancellationToken::new() }
    }

    /// Restores the list of the last process, with the children that it had accepted and not listed
    /// yet; called before any message is worked on.
    pub(crate) async fn restore(&self, runner: &Arc<Runner>, unfinished: &[Unfinished]) {
        let (runs, rules) = (Arc::clone(&self.runs), runner.key_rules().clone());
        let loading = tokio::task::spawn_blocking(move || runs.load(&rules, now_ms()));
        if let Err(error) = loading.await {
            tracing::error!(%error, "the list of sub-agents could not be read");
        }
        let mut added = None;
        for found in unfinished.iter().filter(|found| found.row.session_key.is_subagent()) {
            let run_id = &found.row.run_id;
            if self.runs.get(run_id.as_str()).is_some() {
                continue;
            }
            let request = match &found.row.payload {
                Found::Whole(request) => Some((**request).clone()),
                Found::OnDisk(_) => runner.shared.journal.payload(run_id).await.ok(),
            };
            let Some(Request { text, source: Source::SubagentTask(task), .. }) = request else { continue };
            added = Some(self.runs.add(ChildRun { task: text, ..task.run }));
        }
        self.tasks.spawn(Arc::clone(&self.runs).write_behind(self.closing.clone()));
        if let Some(added) = added {
            self.runs.tried(added).await;
        }
    }

    /// Begins to look after everything that is still owed; called once messages are worked on.
    pub(crate) fn begin(&self, parts: &Arc<DispatchParts>) {
        for run in
            self.runs.select(|run| !run.is_over() || run.cleanup == openclaw_agent::host::Cleanup::Delete)
        {
            self.follow(parts, run.run_id);
        }
        self.spawn(parts, sweep::work(Arc::clone(parts)));
    }

    /// Looks after one child from now on.
    fn follow(&self, parts: &Arc<DispatchParts>, run_id: String) {
        self.spawn(parts, follow::child(Arc::clone(parts), run_id));
    }

    /// Work that ends with the gateway, wherever it is: the next start does it again.
    fn spawn(&self, parts: &DispatchParts, work: impl Future<Output = ()> + Send + 'static) {
        let stopping = parts.runner.shared.stopping.clone();
        self.tasks.spawn(async move {
            tokio::select! { biased;
                () = stopping.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// Writes the rest of the changes.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
