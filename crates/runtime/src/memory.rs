//! Memory of the agents: one [`AgentMemory`] for each, opened when it is first used.
//!
//! [`Memories`] opens and closes them as the configuration says, and hands in where texts are embedded (`embedder`) and
//! what was said (`transcripts`). What tools, clients and the command line are told of them is made in `answers` and
//! `report`. The index itself is `openclaw-memory`, which knows nothing of agents; `qmd` is the program that may search in its
//! place.

mod answers;
mod embedder;
mod forget;
mod held;
mod jobs;
mod local_model;
mod qmd;
mod report;
mod resolve;
mod transcripts;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use openclaw_config::settings::{MemoryBackend, MemoryOff};
use openclaw_memory::{MemoryError, SearchAnswer, SearchRequest};
use openclaw_models::Models;
use openclaw_models::embeddings::Embeddings;
use openclaw_protocol::AgentId;
use openclaw_sessions::transcript::Transcripts;
use parking_lot::Mutex as Lock;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use crate::settings::Settings;
pub use held::AgentMemory;
use held::HeldMemory;
pub use openclaw_memory::{ForgetEntry, ForgetOutcome};
pub use qmd::qmd_program;
pub use report::StatusDepth;

/// Removes what looks like a secret from a text.
pub type Mask = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Reason why an agent has no memory that could be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoMemory {
    /// Memory is switched off.
    #[error("{}", switched_off(.0))]
    Off(MemoryOff),
    /// Another agent has the same index file.
    #[error(
        "the agents {agent} and {other} have the same memory index; put {{agentId}} into agents.defaults.memorySearch.store.path, \
         or give each a path of its own"
    )]
    SharedStore {
        /// The agent.
        agent: AgentId,
        /// The other one.
        other: AgentId,
    },
    /// The gateway stops.
    #[error("memory is closed")]
    Closed,
}

fn switched_off(off: &MemoryOff) -> String {
    match off {
        MemoryOff::Search => "memory search is switched off (memorySearch.enabled is false)".to_owned(),
        MemoryOff::Plugin { setting } => format!("memory is switched off ({setting})"),
    }
}

/// The memory of all agents. Clones are the same one.
#[derive(Clone)]
pub struct Memories(Arc<Shared>);

struct Shared {
    settings: watch::Receiver<Arc<Settings>>,
    embeddings: Embeddings,
    transcripts: Transcripts,
    mask: Mask,
    held: Mutex<HashMap<AgentId, HeldMemory>>,
    /// Agents whose memory is open, for whoever must not wait.
    open: Lock<HashMap<AgentId, Arc<AgentMemory>>>,
    /// True once [`Memories::begin`] was called: then what works in the background does.
    is_in_gateway: AtomicBool,
    /// Follows the configuration while a memory is open.
    follower: Lock<Follower>,
}

#[derive(Default)]
enum Follower {
    #[default]
    Idle,
    Running(JoinHandle<()>),
    Closed,
}

impl Memories {
    /// Knows where everything is, and opens nothing. `mask` takes secrets out of what was said in transcripts.
    pub fn new(
        settings: watch::Receiver<Arc<Settings>>,
        models: Models,
        transcripts: Transcripts,
        mask: Mask,
    ) -> Self {
        Self(Arc::new(Shared {
            settings,
            embeddings: Embeddings::new(models),
            transcripts,
            mask,
            held: Mutex::default(),
            open: Lock::default(),
            is_in_gateway: AtomicBool::new(false),
            follower: Lock::default(),
        }))
    }

    /// The settings in force.
    fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.0.settings.borrow())
    }

    /// Returns the memory of an agent as the settings in force want it, and opens it if it is not open.
    ///
    /// # Errors
    /// [`NoMemory`] says why there is none.
    pub async fn of(&self, agent: &AgentId) -> Result<Arc<AgentMemory>, NoMemory> {
        let settings = self.settings();
        let mut held = self.0.held.lock().await;
        if let Some(found) = held.get_mut(agent).filter(|found| found.is_of(&settings)) {
            found.fall_back(&self.0, &settings, None).await;
            return Ok(Arc::clone(&found.memory));
        }
        if let Err(reason) = allowed(&settings, agent) {
            self.forget_open(agent);
            if let Some(old) = held.remove(agent) {
                old.memory.close().await;
            }
            return Err(reason);
        }
        if matches!(*self.0.follower.lock(), Follower::Closed) {
            return Err(NoMemory::Closed);
        }
        let opened = HeldMemory::open(held.remove(agent), &self.0, &settings, agent).await;
        let memory = Arc::clone(&opened.memory);
        held.insert(agent.clone(), opened);
        self.0.open.lock().insert(agent.clone(), Arc::clone(&memory));
        drop(held);
        self.follow();
        Ok(memory)
    }

    /// Searches the index of an agent, and once more with the fallback of its provider if that one gave no vector.
    async fn search_index(
        &self,
        memory: &AgentMemory,
        request: &SearchRequest,
    ) -> Result<SearchAnswer, MemoryError> {
        let answer = memory.index.search(request).await?;
        match &answer.embed_error {
            Some(reason) if self.fall_back(&memory.agent, Some(reason.clone())).await => {
                memory.index.search(request).await
            }
            _ => Ok(answer),
        }
    }

    /// Goes on with the fallback of an agent's provider if that one failed, for `reason` or in the last sync. Returns `true`
    /// if it did.
    async fn fall_back(&self, agent: &AgentId, reason: Option<String>) -> bool {
        let settings = self.settings();
        match self.0.held.lock().await.get_mut(agent) {
            Some(held) => held.fall_back(&self.0, &settings, reason).await,
            None => false,
        }
    }

    /// Begins what works without a search: watching and indexing for agents with `sync.intervalMinutes`, and `qmd` where it is
    /// chosen.
    pub async fn begin(&self) {
        self.0.is_in_gateway.store(true, Ordering::Relaxed);
        let settings = self.settings();
        let has_qmd = settings.config.memory.backend == MemoryBackend::Qmd;
        for agent in settings.config.agent_ids() {
            let has_interval = settings.config.memory_search(&agent).interval.is_some();
            if (has_interval || has_qmd)
                && let Ok(memory) = self.of(&agent).await
            {
                if has_interval {
                    memory.index.start();
                }
                self.qmd(&memory).await;
            }
        }
    }

    /// True in a gateway, which works in the background; false in a command that ends soon.
    fn is_in_gateway(&self) -> bool {
        self.0.is_in_gateway.load(Ordering::Relaxed)
    }

    /// Tells that a transcript of an agent has grown. Asks for its name only if the memory is open and has transcripts.
    pub fn transcript_grew<'a>(&self, agent: &AgentId, name: impl FnOnce() -> &'a OsStr) {
        let memory = self.0.open.lock().get(agent).cloned();
        if let Some(memory) = memory.filter(|memory| memory.index.settings().sessions)
            && let Some(name) = name().to_str()
        {
            memory.index.transcript_changed(name);
        }
    }

    /// True if the index of an agent can't be written. Waits for nothing.
    pub fn is_failing(&self) -> bool {
        self.0.open.lock().values().any(|memory| memory.index.last_sync().error.is_some())
    }

    /// Closes all of them. None is opened again.
    pub async fn close(&self) {
        let follower = std::mem::replace(&mut *self.0.follower.lock(), Follower::Closed);
        if let Follower::Running(task) = follower {
            task.abort();
        }
        self.0.open.lock().clear();
        for (_, held) in self.0.held.lock().await.drain() {
            held.memory.close().await;
        }
    }

    /// Follows the settings from the first memory on.
    fn follow(&self) {
        let mut follower = self.0.follower.lock();
        if !matches!(*follower, Follower::Idle) {
            return;
        }
        let shared = Arc::downgrade(&self.0);
        let mut settings = self.0.settings.clone();
        settings.mark_unchanged();
        *follower = Follower::Running(tokio::spawn(async move {
            while settings.changed().await.is_ok() {
                let Some(shared) = shared.upgrade() else { return };
                Self(shared).refresh().await;
            }
        }));
    }

    /// Gives each open memory the settings in force, and closes those that there are to be no more.
    async fn refresh(&self) {
        let agents: Vec<AgentId> = self.0.held.lock().await.keys().cloned().collect();
        for agent in agents {
            match self.of(&agent).await {
                Ok(memory) => drop(self.qmd(&memory).await),
                Err(reason) => tracing::info!(%agent, %reason, "memory was closed"),
            }
        }
    }

    fn forget_open(&self, agent: &AgentId) {
        self.0.open.lock().remove(agent);
    }
}

/// Returns why an agent is to have no memory, if it is so.
fn allowed(settings: &Settings, agent: &AgentId) -> Result<(), NoMemory> {
    if let Some(off) = settings.config.memory_off(agent) {
        return Err(NoMemory::Off(off));
    }
    match settings.config.agent_with_same_memory(agent) {
        Some(other) => Err(NoMemory::SharedStore { agent: agent.clone(), other }),
        None => Ok(()),
    }
}
