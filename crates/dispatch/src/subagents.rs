//! Sub-agents: started by `sessions_spawn`, worked on like other messages, announced once (spec
//! `sessions.md` §8.4–8.6, 8.9).
//!
//! [`openclaw_runtime::child_runs`] lists and keeps them; [`spawn`] starts one, [`context`] writes its
//! prompt; [`mod@follow`] waits for its end and has it told; [`result`] is its result, [`telling`] the
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

use openclaw_agent::host::Cleanup;
use openclaw_journal::child_run::ChildRun;
use openclaw_journal::inbox::{Unfinished, UnfinishedPart};
use openclaw_journal::request::RunRequest;
use openclaw_journal::source::RequestSource;
use openclaw_protocol::SessionKey;
use openclaw_sessions::time::now_ms;

use crate::handle::Dispatch;

use crate::parts::{ChildParts, DispatchFamilies};

pub(crate) use address::{origin_of, webchat};
pub(crate) use control::state_of;
pub(crate) use spawn::Spawner;
pub(crate) use stop::told as told_of_stop;

impl Dispatch {
    /// Returns the state of each sub-agent that is not archived, in a word, by its session.
    pub fn states_of_subagents(&self) -> HashMap<SessionKey, &'static str> {
        let ChildParts { registry, child_runs, .. } = self.children();
        child_runs.states(|run| registry.is_running(&run.id()))
    }
}

/// Restores the list of the last process, with the children that it had accepted and not listed
/// yet; called before any message is worked on.
pub(crate) async fn restore(parts: &DispatchFamilies, unfinished: &[Unfinished]) {
    let ChildParts { rows, child_runs: runs, journal, .. } = &parts.children;
    let (loaded, rules) = (Arc::clone(runs), rows.key_rules().clone());
    let loading = tokio::task::spawn_blocking(move || loaded.load(&rules, now_ms()));
    if let Err(error) = loading.await {
        tracing::error!(%error, "the list of sub-agents could not be read");
    }
    let mut added = None;
    for found in unfinished.iter().filter(|found| found.row.session_key.is_subagent()) {
        let run_id = &found.row.run_id;
        if runs.get(run_id.as_str()).is_some() {
            continue;
        }
        let request = match &found.row.payload {
            UnfinishedPart::Whole(request) => Some((**request).clone()),
            UnfinishedPart::OnDisk(_) => journal.payload(run_id).await.ok(),
        };
        let Some(RunRequest { text, source: RequestSource::SubagentTask(task), .. }) = request else {
            continue;
        };
        added = Some(runs.add(ChildRun { task: text, ..task.run }));
    }
    let tasks = &parts.child_tasks;
    tasks.spawn(Arc::clone(runs).write_behind(tasks.closing.clone()));
    if let Some(added) = added {
        runs.tried(added).await;
    }
}

/// Begins to look after everything that is still owed; called once messages are worked on.
pub(crate) fn begin(parts: &Arc<DispatchFamilies>) {
    let is_owed = |run: &ChildRun| !run.is_over() || run.cleanup == Cleanup::Delete;
    for run in parts.children.child_runs.select(is_owed) {
        follow(parts, run.run_id);
    }
    parts.spawn_for_children(sweep::work(Arc::clone(parts)));
}

/// Looks after one child from now on.
fn follow(parts: &Arc<DispatchFamilies>, run_id: String) {
    parts.spawn_for_children(follow::child(Arc::clone(parts), run_id));
}
