//! List of sub-agents, kept in memory and written behind: many changes are one write.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_journal::child_run::ChildRun;
use openclaw_journal::rights::Rights;
use openclaw_protocol::{AgentId, SessionKey};
use openclaw_sessions::KeyRules;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

mod file;

/// Pause before the disk is asked again.
const PAUSE: Duration = Duration::from_secs(2);
/// Time for which changes are gathered for one write.
const GATHER: Duration = Duration::from_millis(10);

/// Pause after a write, as a multiple of the write's duration.
const REST: u32 = 4;

/// Number of changes made so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ChangeNumber(u64);

/// Every sub-agent until it is archived. Leaf data: nothing is awaited under its lock.
pub struct ChildRuns {
    path: PathBuf,
    state: Mutex<ChildRunsState>,
    changed: Notify,
    /// Number of the last change that was written, or that the disk has refused.
    tried: watch::Sender<ChangeNumber>,
}

#[derive(Default)]
struct ChildRunsState {
    runs: BTreeMap<String, ChildRun>,
    change: ChangeNumber,
    /// Number of the last change that is on disk.
    written: ChangeNumber,
}

impl ChildRuns {
    /// Makes the list of a state directory; empty until it is loaded.
    pub fn new(state_dir: &Path) -> Self {
        let (path, state) = (file::path(state_dir), Mutex::default());
        Self { path, state, changed: Notify::new(), tried: watch::Sender::default() }
    }

    /// Loads the list that the last process has left. Blocking.
    pub fn load(&self, rules: &KeyRules, now: i64) {
        let runs = file::load(&self.path, rules, now);
        self.state.lock().runs = runs;
    }

    /// Adds a sub-agent, unless it is there.
    pub fn add(&self, run: ChildRun) -> ChangeNumber {
        self.edit(|runs| {
            runs.entry(run.run_id.clone()).or_insert(run);
        })
    }

    /// Changes one that is there.
    pub fn change(&self, run_id: &str, change: impl FnOnce(&mut ChildRun)) -> ChangeNumber {
        self.edit(|runs| {
            if let Some(run) = runs.get_mut(run_id) {
                change(run);
            }
        })
    }

    /// Removes a sub-agent.
    pub fn remove(&self, run_id: &str) -> ChangeNumber {
        self.edit(|runs| drop(runs.remove(run_id)))
    }

    fn edit(&self, edit: impl FnOnce(&mut BTreeMap<String, ChildRun>)) -> ChangeNumber {
        let mut state = self.state.lock();
        edit(&mut state.runs);
        state.change.0 += 1;
        let change = state.change;
        drop(state);
        self.changed.notify_one();
        change
    }

    /// Returns the sub-agent of a run id.
    pub fn get(&self, run_id: &str) -> Option<ChildRun> {
        self.state.lock().runs.get(run_id).cloned()
    }

    /// Returns the sub-agent that works in a session.
    pub fn of_session(&self, key: &SessionKey) -> Option<ChildRun> {
        self.state.lock().runs.values().find(|run| run.child_session_key == *key).cloned()
    }

    /// Returns the rights that the session of a sub-agent was started with; `None` for any other
    /// session, and for a sub-agent that an older version started.
    pub fn rights_of(&self, key: &SessionKey) -> Option<Rights> {
        if !key.is_subagent() {
            return None;
        }
        self.state.lock().runs.values().find(|run| run.child_session_key == *key)?.rights.clone()
    }

    /// Returns the state of each, in a word, by its session.
    pub fn states(&self, is_running: impl Fn(&ChildRun) -> bool) -> HashMap<SessionKey, &'static str> {
        let state = self.state.lock();
        state.runs.values().map(|run| (run.child_session_key.clone(), run.state(is_running(run)))).collect()
    }

    /// Returns the sub-agents that meet a condition, the newest first.
    pub fn select(&self, which: impl Fn(&ChildRun) -> bool) -> Vec<ChildRun> {
        let mut found: Vec<ChildRun> =
            self.state.lock().runs.values().filter(|run| which(run)).cloned().collect();
        found.sort_by(|one, other| {
            let order = other.created_at.cmp(&one.created_at);
            order.then_with(|| one.run_id.cmp(&other.run_id))
        });
        found
    }

    /// Returns the sub-agents that a session has started, the newest first.
    pub fn of_requester(&self, key: &SessionKey) -> Vec<ChildRun> {
        self.select(|run| run.requester_session_key == *key)
    }

    /// Counts the sub-agents that an agent has started and that have not ended.
    pub fn count_active(&self, agent: &AgentId, rules: &KeyRules) -> usize {
        let state = self.state.lock();
        let is_active =
            |run: &&ChildRun| !run.has_ended() && rules.agent_of(&run.requester_session_key) == *agent;
        state.runs.values().filter(is_active).count()
    }

    /// Waits until a change is on disk, or the disk has refused it.
    pub async fn tried(&self, change: ChangeNumber) {
        // The sender lives as long as this.
        let _ = self.tried.subscribe().wait_for(|tried| *tried >= change).await;
    }

    /// Waits until all that is listed by now is on disk, or the disk has refused it.
    pub async fn all_tried(&self) {
        let change = self.state.lock().change;
        self.tried(change).await;
    }

    /// Writes changes until the gateway stops, and the rest then.
    pub async fn write_behind(self: Arc<Self>, closing: CancellationToken) {
        loop {
            let is_last = closing.is_cancelled();
            let began = Instant::now();
            let is_written = self.write().await;
            if is_last {
                return;
            }
            // A long list takes long: most of the time is left to others.
            let pause = if is_written { GATHER.max(began.elapsed() * REST) } else { PAUSE };
            tokio::select! { biased;
                () = closing.cancelled() => continue,
                () = tokio::time::sleep(pause) => {}
            }
            if is_written {
                tokio::select! { biased;
                    () = closing.cancelled() => {}
                    () = self.changed.notified() => {}
                }
            }
        }
    }

    /// Writes the changed list. `false`: the disk refused.
    async fn write(self: &Arc<Self>) -> bool {
        {
            let state = self.state.lock();
            if state.written == state.change {
                return true;
            }
        }
        let runs = Arc::clone(self);
        let writing = tokio::task::spawn_blocking(move || {
            let (content, change) = {
                let state = runs.state.lock();
                (file::content(&state.runs), state.change)
            };
            (file::store(&runs.path, &content), change)
        });
        // The pool refuses only when the process ends.
        let Ok((stored, change)) = writing.await else { return false };
        if stored.is_ok() {
            self.state.lock().written = change;
        }
        self.tried.send_replace(change);
        stored
            .inspect_err(|error| {
                tracing::warn!(path = %self.path.display(), %error, "the list of sub-agents is not written yet");
            })
            .is_ok()
    }
}
