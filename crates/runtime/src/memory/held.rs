//! An open memory, and what it was opened with.

use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_config::Config;
use openclaw_config::settings::ResolvedMemory;
use openclaw_memory::{Memory, MemorySettings};
use openclaw_protocol::AgentId;

use super::Shared;
use super::embedder::EmbedderChoice;
use super::qmd::HeldQmd;
use super::resolve::index_settings;
use super::transcripts::AgentTranscripts;
use crate::settings::Settings;

/// Time after which a provider that could not be used is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Time after which the first provider is tried again, where its fallback is used.
const TRY_FIRST_AGAIN: Duration = Duration::from_secs(60 * 60);

/// The memory of one agent.
pub struct AgentMemory {
    pub(super) agent: AgentId,
    pub(super) index: Memory,
    pub(super) resolved: Lock<Arc<ResolvedMemory>>,
    pub(super) choice: Lock<Arc<EmbedderChoice>>,
    /// The program that searches in the place of the index, once it was needed.
    pub(super) qmd: tokio::sync::Mutex<Option<HeldQmd>>,
}

type Lock<T> = parking_lot::Mutex<T>;

impl AgentMemory {
    pub(super) fn choice(&self) -> Arc<EmbedderChoice> {
        Arc::clone(&self.choice.lock())
    }

    pub(super) async fn close(&self) {
        if let Some(qmd) = self.qmd.lock().await.take() {
            qmd.close().await;
        }
        self.index.close().await;
    }

    pub(super) fn resolved(&self) -> Arc<ResolvedMemory> {
        Arc::clone(&self.resolved.lock())
    }
}

/// A memory that is open, and the settings that it was opened with.
pub(super) struct HeldMemory {
    pub(super) memory: Arc<AgentMemory>,
    config: Arc<Config>,
    index: MemorySettings,
    chosen_at: Instant,
}

impl HeldMemory {
    /// True if it was opened with these settings and its provider is not to be selected again.
    pub(super) fn is_of(&self, settings: &Settings) -> bool {
        let choice = self.memory.choice();
        let lasts = match (&choice.embedder, &choice.fallback) {
            (None, _) => LOOK_AGAIN,
            (Some(_), Some(_)) => TRY_FIRST_AGAIN,
            (Some(_), None) => Duration::MAX,
        };
        Arc::ptr_eq(&self.config, &settings.config) && self.chosen_at.elapsed() < lasts
    }

    /// Goes on with the provider of `memorySearch.fallback` if the first one gives no vectors. What that one
    /// has embedded stays in the index's cache. Returns `true` if it did.
    pub(super) async fn fall_back(
        &mut self,
        shared: &Shared,
        settings: &Settings,
        reason: Option<String>,
    ) -> bool {
        let (choice, resolved) = (self.memory.choice(), self.memory.resolved());
        if resolved.fallback.is_none() || choice.fallback.is_some() {
            return false;
        }
        let reason = reason.or_else(|| self.memory.index.last_sync().embed_error);
        let Some(reason) = reason else { return false };
        let agent = &self.memory.agent;
        let second = choice.fall_back(&shared.embeddings, settings, agent, &resolved, reason.clone()).await;
        let Some(second) = second else { return false };
        tracing::warn!(%agent, "memory: {} failed, using {}: {reason}", choice.provider, second.provider);
        self.memory.index.set_embedder(second.embedder.clone());
        *self.memory.choice.lock() = Arc::new(second);
        self.chosen_at = Instant::now();
        true
    }

    /// Opens the memory of an agent, or goes on with the one that is open if its index stays the same.
    pub(super) async fn open(
        old: Option<Self>,
        shared: &Shared,
        settings: &Settings,
        agent: &AgentId,
    ) -> Self {
        let resolved = settings.config.memory_search(agent);
        let index = index_settings(&resolved);
        let choice = EmbedderChoice::of(&shared.embeddings, settings, agent, &resolved).await;
        let (config, chosen_at) = (Arc::clone(&settings.config), Instant::now());
        if let Some(old) = old {
            if old.index == index {
                let is_new = !old.memory.choice().is_same(&choice) || !Arc::ptr_eq(&old.config, &config);
                if is_new {
                    old.memory.index.set_embedder(choice.embedder.clone());
                    *old.memory.choice.lock() = Arc::new(choice);
                    *old.memory.resolved.lock() = Arc::new(resolved);
                }
                return Self { memory: old.memory, config, index, chosen_at };
            }
            old.memory.close().await;
        }
        let transcripts = index.sessions.then(|| {
            Arc::new(AgentTranscripts::new(shared, settings, agent))
                as Arc<dyn openclaw_memory::TranscriptSource>
        });
        let memory = AgentMemory {
            agent: agent.clone(),
            index: Memory::open(index.clone(), choice.embedder.clone(), transcripts),
            resolved: Lock::new(Arc::new(resolved)),
            choice: Lock::new(Arc::new(choice)),
            qmd: tokio::sync::Mutex::default(),
        };
        Self { memory: Arc::new(memory), config, index, chosen_at }
    }
}
