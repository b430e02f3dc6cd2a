//! Where the texts of an agent's memory are embedded, behind the port of the index.

use std::sync::Arc;

use openclaw_config::settings::{EmbeddingsFrom, ResolvedMemory};
use openclaw_memory::{BatchLimits, Cooldown, EmbedError, EmbedFuture, Embedder, EmbedderIdentity};
use openclaw_models::embeddings::{
    EmbeddingClient, EmbeddingError, EmbeddingIdentity, EmbeddingLimits, EmbeddingProvider,
    EmbeddingSettings, EmbeddingSource, Embeddings, LlamaServer, LocalEmbeddings, RemoteEmbeddings,
};
use openclaw_protocol::AgentId;
use openclaw_protocol::params::memory::MemoryFallback;

use super::local_model::LocalModel;
use crate::setup::Settings;

/// Longest time for which a search waits for the vector of its query.
const QUERY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Provider of embeddings of an agent, or the reason why it has none.
pub(super) struct EmbedderChoice {
    pub(super) embedder: Option<Arc<dyn Embedder>>,
    /// Name of the provider; `none` without one.
    pub(super) provider: String,
    pub(super) model: String,
    /// The configured provider, or `auto`.
    pub(super) requested: &'static str,
    pub(super) fallback: Option<MemoryFallback>,
    /// Reason why there is none, for people.
    pub(super) reason: Option<String>,
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
        if resolved.provider == Some(EmbeddingsFrom::None) || !resolved.vectors {
            return Self::none(requested, None, resolved);
        }
        let agent_dir = settings.config.agent(agent).agent_dir;
        let wanted = wanted(settings, resolved);
        let selected = match embeddings.select(&settings.models, &agent_dir, &wanted).await {
            Ok(selected) => selected,
            Err(error) => return Self::none(requested, Some(error.to_string()), resolved),
        };
        let fallback = selected
            .fallback
            .map(|fallback| MemoryFallback { from: fallback.from.id().to_owned(), reason: fallback.reason });
        let embedder: Arc<dyn Embedder> = match selected.source {
            EmbeddingSource::Client(client) => Arc::new(Remote::new(RemoteSource::Client(client))),
            EmbeddingSource::LlamaServer(server) => Arc::new(Remote::new(RemoteSource::LlamaServer(server))),
            EmbeddingSource::Directory(dir) => match LocalModel::of(&dir) {
                Ok(model) => Arc::new(model),
                Err(error) => return Self::none(requested, Some(error), resolved),
            },
        };
        Self {
            provider: embedder.identity().provider.clone(),
            model: embedder.identity().model.clone(),
            embedder: Some(embedder),
            requested,
            fallback,
            reason: None,
        }
    }

    fn none(requested: &'static str, reason: Option<String>, resolved: &ResolvedMemory) -> Self {
        let (provider, model) = match resolved.provider {
            Some(EmbeddingsFrom::Local) => {
                ("local", resolved.local.model_path.clone().unwrap_or_else(|| resolved.model.clone()))
            }
            _ => ("none", String::new()),
        };
        Self { embedder: None, provider: provider.to_owned(), model, requested, fallback: None, reason }
    }

    /// True if both embed alike, or both have no provider for the same reason.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let identity = |choice: &Self| choice.embedder.as_ref().map(|embedder| embedder.identity().clone());
        identity(self) == identity(other) && self.reason == other.reason && self.fallback == other.fallback
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
struct Remote {
    source: RemoteSource,
    identity: EmbedderIdentity,
    cooldown: Cooldown,
}

enum RemoteSource {
    Client(EmbeddingClient),
    LlamaServer(LlamaServer),
}

impl Remote {
    fn new(source: RemoteSource) -> Self {
        let identity = match &source {
            RemoteSource::Client(client) => identity(client.identity()),
            RemoteSource::LlamaServer(server) => identity(server.identity()),
        };
        Self { source, identity, cooldown: Cooldown::default() }
    }
}

impl Embedder for Remote {
    fn identity(&self) -> &EmbedderIdentity {
        &self.identity
    }

    fn limits(&self) -> BatchLimits {
        limits(match &self.source {
            RemoteSource::Client(client) => client.limits(),
            RemoteSource::LlamaServer(server) => server.limits(),
        })
    }

    fn cooldown(&self) -> &Cooldown {
        &self.cooldown
    }

    fn embed_query<'a>(&'a self, text: &'a str) -> EmbedFuture<'a, Vec<f32>> {
        Box::pin(async move {
            let answer = match &self.source {
                RemoteSource::Client(client) => client.embed_query(text).await,
                RemoteSource::LlamaServer(server) => server.embed_query(text).await,
            };
            answer.map_err(failure)
        })
    }

    fn embed_batch<'a>(&'a self, texts: &'a [String]) -> EmbedFuture<'a, Vec<Vec<f32>>> {
        Box::pin(async move {
            let answer = match &self.source {
                RemoteSource::Client(client) => client.embed_batch(texts).await,
                RemoteSource::LlamaServer(server) => server.embed_batch(texts).await,
            };
            answer.map_err(failure)
        })
    }
}

fn identity(of: &EmbeddingIdentity) -> EmbedderIdentity {
    EmbedderIdentity {
        provider: of.provider.clone(),
        model: of.model.clone(),
        provider_key: of.provider_key.clone(),
        equivalent_keys: of.equivalent_keys.clone(),
    }
}

fn limits(of: EmbeddingLimits) -> BatchLimits {
    BatchLimits {
        texts: of.texts,
        units: of.units,
        requests: of.requests,
        batch_timeout: of.batch_timeout,
        query_timeout: of.query_timeout.min(QUERY_TIMEOUT),
    }
}

fn failure(error: EmbeddingError) -> EmbedError {
    match error {
        EmbeddingError::RateLimited { message, retry_after } => {
            EmbedError::RateLimited { message, retry_after }
        }
        EmbeddingError::Unauthorized { message } => EmbedError::Unauthorized { message },
        EmbeddingError::TooLarge { message } => EmbedError::TooLarge { message },
        EmbeddingError::Unavailable { message } => EmbedError::Unavailable { message },
        EmbeddingError::Invalid { message } => EmbedError::Invalid { message },
    }
}

/// A hint for people without a provider: what they can do.
pub(super) const ADVICE: &str = "Keyword search works. For search by meaning set OPENAI_API_KEY, GEMINI_API_KEY or VOYAGE_API_KEY, or \
                                 agents.defaults.memorySearch.remote.baseUrl to a local server with its model in \
                                 memorySearch.model, or memorySearch.local.modelPath to a model directory.";
