//! Provider of embeddings of an agent's memory, behind the port of the index.

use std::sync::Arc;

use openclaw_config::settings::{EmbeddingsFrom, ResolvedMemory};
use openclaw_embedding::{BatchLimits, Cooldown, EmbedFuture, Embedder, EmbedderIdentity};
use openclaw_models::embeddings::{
    EmbeddingClient, EmbeddingProvider, EmbeddingSettings, EmbeddingSource, Embeddings, LlamaServer,
    LocalEmbeddings, RemoteEmbeddings,
};
use openclaw_protocol::AgentId;
use openclaw_protocol::params::memory::MemoryFallback;

use super::jobs::JobEmbedder;
use super::local_model::LocalModel;
use crate::settings::Settings;

/// Longest time for which a search waits for the vector of its query.
const QUERY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Provider of embeddings of an agent, or the reason why it has none.
pub(super) struct EmbedderChoice {
    pub(super) embedder: Option<Arc<dyn Embedder>>,
    /// The embedder, where it uses batch jobs.
    pub(super) jobs: Option<Arc<JobEmbedder>>,
    /// Name of the provider; `none` without one.
    pub(super) provider: String,
    pub(super) model: String,
    /// The configured provider, or `auto`.
    pub(super) requested: &'static str,
    pub(super) fallback: Option<MemoryFallback>,
    /// Reason why there is none, for people.
    pub(super) reason: Option<String>,
    /// True if nothing is wrong but that nobody gave a key.
    pub(super) lacks_key: bool,
}

impl EmbedderChoice {
    /// Selects the provider that the settings name. Asks no server.
    pub(super) async fn of(
        embeddings: &Embeddings,
        settings: &Settings,
        agent: &AgentId,
        resolved: &ResolvedMemory,
    ) -> Self {
        let requested = resolved.provider.map_or("auto", EmbeddingsFrom::as_str);
        if resolved.provider == Some(EmbeddingsFrom::None) {
            return Self::none(requested, None, resolved);
        }
        let agent_dir = settings.config.agent(agent).agent_dir;
        let wanted = wanted(settings, resolved);
        let selected = match embeddings.select(&settings.models, &agent_dir, &wanted).await {
            Ok(selected) => selected,
            Err(error) => {
                let lacks_key = error.lacks_key();
                return Self { lacks_key, ..Self::none(requested, Some(error.to_string()), resolved) };
            }
        };
        let fallback = selected
            .fallback
            .map(|fallback| MemoryFallback { from: fallback.from.id().to_owned(), reason: fallback.reason });
        Self::using(selected.source, (agent, resolved), requested, fallback)
            .unwrap_or_else(|reason| Self::none(requested, Some(reason), resolved))
    }

    /// Selects the provider of `memorySearch.fallback`, after this one failed for `reason`. Returns `None` if there is
    /// none, if it is this one, or if it can't be used.
    pub(super) async fn fall_back(
        &self,
        embeddings: &Embeddings,
        settings: &Settings,
        agent: &AgentId,
        resolved: &ResolvedMemory,
        reason: String,
    ) -> Option<Self> {
        let second = resolved.fallback.and_then(|from| EmbeddingProvider::parse(from.as_str()))?;
        if self.fallback.is_some() || self.provider == second.id() {
            return None;
        }
        // The model that is named is the first provider's.
        let wanted = EmbeddingSettings { model: String::new(), ..wanted(settings, resolved) };
        let agent_dir = settings.config.agent(agent).agent_dir;
        let bound = embeddings.bind(&settings.models, &agent_dir, &wanted, second).await;
        let fallback = MemoryFallback { from: self.provider.clone(), reason };
        let choice = bound
            .map_err(|error| error.to_string())
            .and_then(|source| Self::using(source, (agent, resolved), self.requested, Some(fallback)));
        choice
            .inspect_err(
                |error| tracing::warn!(%agent, "memory: fallback to {} failed: {error}", second.id()),
            )
            .ok()
    }

    /// Uses this provider.
    ///
    /// # Errors
    /// The reason, for people, if it is a model directory without weights.
    fn using(
        source: EmbeddingSource,
        (agent, resolved): (&AgentId, &ResolvedMemory),
        requested: &'static str,
        fallback: Option<MemoryFallback>,
    ) -> Result<Self, String> {
        let mut jobs = None;
        let embedder: Arc<dyn Embedder> = match source {
            EmbeddingSource::Client(client) => {
                jobs =
                    JobEmbedder::of(&client, resolved.batch, agent.as_str(), &resolved.store).map(Arc::new);
                match &jobs {
                    Some(jobs) => Arc::clone(jobs) as Arc<dyn Embedder>,
                    None => Arc::new(Remote::client(client)),
                }
            }
            EmbeddingSource::LlamaServer(server) => Arc::new(Remote::new(RemoteSource::LlamaServer(server))),
            EmbeddingSource::Directory(dir) => Arc::new(LocalModel::of(&dir)?),
        };
        let EmbedderIdentity { provider, model, .. } = embedder.identity().clone();
        Ok(Self {
            provider,
            model,
            embedder: Some(embedder),
            jobs,
            requested,
            fallback,
            reason: None,
            lacks_key: false,
        })
    }

    fn none(requested: &'static str, reason: Option<String>, resolved: &ResolvedMemory) -> Self {
        let (provider, model) = match resolved.provider {
            Some(EmbeddingsFrom::Local) => {
                ("local", resolved.local.model_path.clone().unwrap_or_else(|| resolved.model.clone()))
            }
            _ => ("none", String::new()),
        };
        Self {
            embedder: None,
            jobs: None,
            provider: provider.to_owned(),
            model,
            requested,
            fallback: None,
            reason,
            lacks_key: false,
        }
    }

    /// True if both embed alike, or both have no provider for the same reason.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let identity = |choice: &Self| choice.embedder.as_ref().map(|embedder| embedder.identity().clone());
        let jobs = |choice: &Self| choice.jobs.as_ref().map(|jobs| jobs.settings());
        identity(self) == identity(other)
            && jobs(self) == jobs(other)
            && self.reason == other.reason
            && self.fallback == other.fallback
    }
}

fn wanted(settings: &Settings, resolved: &ResolvedMemory) -> EmbeddingSettings {
    let provider = |from: EmbeddingsFrom| EmbeddingProvider::parse(from.as_str());
    // Names of files to download stay as they are.
    let expanded = |path: &String| match path.contains(':') {
        true => path.clone(),
        false => settings.config.environment().expand_path(path).display().to_string(),
    };
    EmbeddingSettings {
        provider: resolved.provider.and_then(provider),
        model: resolved.model.clone(),
        fallback: resolved.fallback.and_then(provider),
        remote: RemoteEmbeddings {
            base_url: resolved.base_url.clone(),
            api_key: resolved.api_key.clone(),
            headers: resolved.headers.clone(),
        },
        local: LocalEmbeddings {
            model_path: resolved.local.model_path.as_ref().map(expanded),
            cache_dir: resolved.local.model_cache_dir.as_ref().map(expanded),
        },
    }
}

/// A server, on this machine or elsewhere.
pub(super) struct Remote {
    source: RemoteSource,
    identity: EmbedderIdentity,
    cooldown: Cooldown,
}

enum RemoteSource {
    Client(EmbeddingClient),
    LlamaServer(LlamaServer),
}

impl Remote {
    /// A server that is asked over HTTP.
    pub(super) fn client(client: EmbeddingClient) -> Self {
        Self::new(RemoteSource::Client(client))
    }

    fn new(source: RemoteSource) -> Self {
        let identity = match &source {
            RemoteSource::Client(client) => client.identity().clone(),
            RemoteSource::LlamaServer(server) => server.identity().clone(),
        };
        Self { source, identity, cooldown: Cooldown::default() }
    }
}

impl Embedder for Remote {
    fn identity(&self) -> &EmbedderIdentity {
        &self.identity
    }

    fn limits(&self) -> BatchLimits {
        let limits = match &self.source {
            RemoteSource::Client(client) => client.limits(),
            RemoteSource::LlamaServer(server) => server.limits(),
        };
        BatchLimits { query_timeout: limits.query_timeout.min(QUERY_TIMEOUT), ..limits }
    }

    fn cooldown(&self) -> &Cooldown {
        &self.cooldown
    }

    fn embed_query<'a>(&'a self, text: &'a str) -> EmbedFuture<'a, Vec<f32>> {
        Box::pin(async move {
            match &self.source {
                RemoteSource::Client(client) => client.embed_query(text).await,
                RemoteSource::LlamaServer(server) => server.embed_query(text).await,
            }
        })
    }

    fn embed_batch<'a>(&'a self, texts: &'a [String]) -> EmbedFuture<'a, Vec<Vec<f32>>> {
        Box::pin(async move {
            match &self.source {
                RemoteSource::Client(client) => client.embed_batch(texts).await,
                RemoteSource::LlamaServer(server) => server.embed_batch(texts).await,
            }
        })
    }
}

/// A hint for people without a provider: what they can do.
pub(super) const ADVICE: &str = "Keyword search works. For search by meaning set OPENAI_API_KEY, GEMINI_API_KEY or VOYAGE_API_KEY, or \
                                 agents.defaults.memorySearch.remote.baseUrl to a local server with its model in \
                                 memorySearch.model, or memorySearch.local.modelPath to a model directory.";
