//! Sub-agents: started by `sessions_spawn`, worked on like other messages, announced once (spec
//! `sessions.md` §8.4–8.6, 8.9).
//!
//! [`registry`] knows them, [`mod@file`] keeps them; [`spawn`] starts one, [`context`] writes its
//! prompt; [`follow`] waits for its end and has it told; [`result`] is its result, [`telling`] the
//! words for it; [`stop`] and [`sweep`] end and clear away.
//!
//! Work that is owed survives the process: a child is a message of the inbox, and so is its
//! announcement, under ids that follow from its run. The list on disk has a child before its run
//! begins; one that it misses is found in the inbox.

mod address;
mod context;
mod file;
mod follow;
mod registry;
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
use crate::runner::Runner;

pub(crate) use address::{origin_of, webchat};
pub(crate) use registry::Runs;
pub(crate) use spawn::Spawner;
pub(crate) use stop::told as told_of_stop;

/// Sub-agents of a gateway, and the tasks that look after them.
pub(crate) struct Subagents {
    pub(crate) runs: Arc<Runs>,
    tasks: TaskTracker,
    /// Cancelled when no more changes come; the rest is written then.
    closing: CancellationToken,
}

impl Runner {
    /// The door for messages; `None` once the gateway goes down.
    pub(crate) fn dispatch(&self) -> Option<Dispatch> {
        Subagents::dispatch(&self.own.upgrade()?)
    }

    /// Returns the state of a session's sub-agent, in a word; `None` if the session is not one of a
    /// known sub-agent.
    pub(crate) fn state_of_subagent(&self, key: &SessionKey) -> Option<&'static str> {
        if !key.is_subagent() {
            return None;
        }
        let run = self.subagents.runs.of_session(key)?;
        Some(run.state(self.shared.registry.is_running(&run.id())))
    }
}

impl Dispatch {
    /// Returns the state of each sub-agent that is not archived, in a word, by its session.
    pub fn states_of_subagents(&self) -> HashMap<SessionKey, &'static str> {
        let registry = &self.shared().registry;
        self.runner().subagents.runs.states(|run| registry.is_running(&run.id()))
    }
}

impl Subagents {
    pub(crate) fn new(state_dir: &std::path::Path) -> Self {
        Self {
            runs: Arc::new(Runs::new(state_dir)),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }
    }

    /// The door for messages; `None` before the gateway has one, and after it has ended.
    fn dispatch(runner: &Arc<Runner>) -> Option<Dispatch> {
        let lanes = runner.lanes.get()?.upgrade()?;
        Some(Dispatch::of_parts(Arc::clone(runner), lanes))
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
    pub(crate) fn begin(&self, runner: &Arc<Runner>) {
        for run in
            self.runs.select(|run| !run.is_over() || run.cleanup == openclaw_agent::host::Cleanup::Delete)
        {
            self.follow(runner, run.run_id);
        }
        self.spawn(runner, sweep::work(Arc::clone(runner)));
    }

    /// Looks after one child from now on.
    fn follow(&self, runner: &Arc<Runner>, run_id: String) {
        self.spawn(runner, follow::child(Arc::clone(runner), run_id));
    }

    /// Work that ends with the gateway, wherever it is: the next start does it again.
    fn spawn(&self, runner: &Arc<Runner>, work: impl Future<Output = ()> + Send + 'static) {
        let stopping = runner.shared.stopping.clone();
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
