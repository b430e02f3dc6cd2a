//! Selects the provider of embeddings (spec `memory.md` §12.1).

use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};

use super::client::{ClientParts, EmbeddingClient};
use super::cooldown::EmbeddingCooldowns;
use super::endpoint::EndpointAddress;
use super::llama_server::{LlamaServer, LocalModel, local_model};
use super::provider::{EmbeddingProvider, RemoteFacts};
use super::settings::EmbeddingSettings;
use crate::credentials::CredentialError;
use crate::discovery::{LocalEmbeddingServer, embedding_servers};
use crate::reference::ProviderId;
use crate::select::Models;
use crate::settings::ModelSettings;
use crate::variables::Variables;

/// Values of `remote.apiKey` that name a variable, for Gemini alone.
const GEMINI_VARIABLES: [&str; 2] = ["GOOGLE_API_KEY", "GEMINI_API_KEY"];

/// Source of vectors.
#[derive(Debug, Clone)]
pub enum EmbeddingSource {
    /// A server that is asked over HTTP.
    Client(EmbeddingClient),
    /// A model directory on this machine, for a local encoder.
    Directory(PathBuf),
    /// A GGUF file on this machine, run by `llama-server`.
    LlamaServer(LlamaServer),
}

/// The provider that is used.
#[derive(Debug, Clone)]
pub struct EmbeddingSelection {
    /// Source of vectors.
    pub source: EmbeddingSource,
    /// The provider.
    pub provider: EmbeddingProvider,
    /// The provider that was asked for and can't be used, if this is the one behind it.
    pub fallback: Option<EmbeddingFallback>,
}

/// A provider in whose place another one is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingFallback {
    /// The provider that was asked for.
    pub from: EmbeddingProvider,
    /// Reason why it can't be used.
    pub reason: String,
}

/// No provider can be used: memory is searched by words alone. The text is for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NoEmbeddings {
    message: String,
    /// Only a key is missing: the next provider may be tried.
    lacks_key: bool,
}

impl NoEmbeddings {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), lacks_key: false }
    }

    /// Returns true if nothing else is missing than a key.
    pub fn lacks_key(&self) -> bool {
        self.lacks_key
    }
}

impl From<CredentialError> for NoEmbeddings {
    fn from(error: CredentialError) -> Self {
        let lacks_key = matches!(error, CredentialError::NoKey { .. } | CredentialError::CodexInstead);
        Self { message: error.to_string(), lacks_key }
    }
}

/// Selects providers of embeddings. There is one in a process: all clients that it makes for one
/// key share a cooldown. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Embeddings {
    models: Models,
    cooldowns: EmbeddingCooldowns,
}

impl Embeddings {
    /// Uses connections, environment and credentials of the models.
    pub fn new(models: Models) -> Self {
        Self { models, cooldowns: EmbeddingCooldowns::default() }
    }

    /// Asks the programs for local models on this machine which of their models embed texts: for a
    /// person who wants to know, within two seconds. Finds nothing where `OPENCLAW_LOCAL_MODELS` is
    /// `off`.
    pub async fn local_servers(&self) -> Vec<LocalEmbeddingServer> {
        embedding_servers(&self.models.http, &self.models.variables).await
    }

    /// Selects the provider of an agent. Asks no server and starts nothing.
    ///
    /// # Errors
    /// When no provider can be used.
    pub async fn select(
        &self,
        settings: &ModelSettings,
        agent_dir: &Path,
        wanted: &EmbeddingSettings,
    ) -> Result<EmbeddingSelection, NoEmbeddings> {
        let Some(provider) = wanted.provider else {
            return self.first(settings, agent_dir, wanted).await;
        };
        let error = match self.bind(settings, agent_dir, wanted, provider).await {
            Ok(source) => return Ok(EmbeddingSelection { source, provider, fallback: None }),
            Err(error) => error,
        };
        let Some(second) = wanted.fallback.filter(|second| *second != provider) else { return Err(error) };
        // The model that is named is the first provider's.
        let wanted = EmbeddingSettings { model: String::new(), ..wanted.clone() };
        match self.bind(settings, agent_dir, &wanted, second).await {
            Ok(source) => {
                let fallback = Some(EmbeddingFallback { from: provider, reason: error.message });
                Ok(EmbeddingSelection { source, provider: second, fallback })
            }
            Err(other) => {
                let message =
                    format!("{}\n\nFallback to {} failed: {}", error.message, second.id(), other.message);
                Err(NoEmbeddings::new(message))
            }
        }
    }

    /// Binds one provider, whichever is named in the settings: for the fallback after a failure.
    ///
    /// # Errors
    /// When it can't be used.
    pub async fn bind(
        &self,
        settings: &ModelSettings,
        agent_dir: &Path,
        wanted: &EmbeddingSettings,
        provider: EmbeddingProvider,
    ) -> Result<EmbeddingSource, NoEmbeddings> {
        match provider.facts() {
            Some(facts) => {
                let client = self.client(settings, agent_dir, wanted, (provider, facts)).await?;
                Ok(EmbeddingSource::Client(client))
            }
            None => self.local(wanted),
        }
    }

    /// The first provider that can be used. One that lacks a key is passed over, other errors stand.
    async fn first(
        &self,
        settings: &ModelSettings,
        agent_dir: &Path,
        wanted: &EmbeddingSettings,
    ) -> Result<EmbeddingSelection, NoEmbeddings> {
        let selected = |provider, source| EmbeddingSelection { source, provider, fallback: None };
        if is_on_this_machine(wanted, &self.models.variables) {
            return Ok(selected(EmbeddingProvider::Local, self.local(wanted)?));
        }
        let mut missing = Vec::new();
        for provider in EmbeddingProvider::REMOTE {
            match self.bind(settings, agent_dir, wanted, provider).await {
                Ok(source) => return Ok(selected(provider, source)),
                Err(error) if error.lacks_key => missing.push(error.message),
                Err(error) => return Err(error),
            }
        }
        Err(NoEmbeddings { message: missing.join("\n\n"), lacks_key: true })
    }

    async fn client(
        &self,
        settings: &ModelSettings,
        agent_dir: &Path,
        wanted: &EmbeddingSettings,
        (provider, facts): (EmbeddingProvider, &'static RemoteFacts),
    ) -> Result<EmbeddingClient, NoEmbeddings> {
        let id = ProviderId::normalize(facts.credentials);
        let configured = settings.providers.iter().find(|(name, _)| ProviderId::normalize(name) == id);
        let configured = configured.map(|(_, entry)| entry);
        let address = EndpointAddress::of(provider, facts, wanted, configured);
        if let Some(fault) = wanted.remote.base_url().and_then(crate::net::address_fault) {
            return Err(NoEmbeddings::new(fault.to_string()));
        }
        let own = own_key(provider, wanted, &self.models.variables);
        let takes_stored = address.takes_stored_key();
        let key = match own {
            Some(key) => Some(key),
            None if takes_stored => self.stored_key(settings, agent_dir, &id).await?,
            // Who leaves the provider open did not mean to send one provider's texts to another.
            None if wanted.provider.is_none() && address.is_of_another_provider() => {
                let message = format!("remote.baseUrl is not the address of {}", provider.id());
                return Err(NoEmbeddings { message, lacks_key: true });
            }
            None => None,
        };
        let keeps_key = key.is_none() && !takes_stored;
        let model = facts.model_named(&wanted.model);
        let (endpoint, identity) = address.with_key(key, &model);
        let cooldown = self.cooldowns.of(&endpoint.root, endpoint.key.as_ref().map(|key| key.expose()));
        let http = self.models.http.clone();
        Ok(EmbeddingClient::new(ClientParts { endpoint, model, identity, http, cooldown, keeps_key }))
    }

    /// The stored key of a provider. A cooldown that its models earned does not count here.
    async fn stored_key(
        &self,
        settings: &ModelSettings,
        agent_dir: &Path,
        provider: &ProviderId,
    ) -> Result<Option<SecretString>, NoEmbeddings> {
        let keys = self.models.keys_whatever_their_cooldown(settings, agent_dir, provider).await?;
        Ok(keys.into_iter().next().and_then(|key| key.secret))
    }

    fn local(&self, wanted: &EmbeddingSettings) -> Result<EmbeddingSource, NoEmbeddings> {
        match local_model(&wanted.local, &self.models.variables)? {
            LocalModel::Directory(dir) => Ok(EmbeddingSource::Directory(dir)),
            LocalModel::Gguf { file, named } => {
                let server = LlamaServer::of(file, &named, self.models.http.clone(), &self.models.variables)?;
                Ok(EmbeddingSource::LlamaServer(server))
            }
        }
    }
}

/// True if `local.modelPath` names a file or a model directory that is there.
fn is_on_this_machine(wanted: &EmbeddingSettings, variables: &Variables) -> bool {
    wanted.local.model_path().is_some()
        && local_model(&wanted.local, variables).is_ok_and(|model| model.is_plain())
}

/// `remote.apiKey`, for whatever server it is meant.
fn own_key(
    provider: EmbeddingProvider,
    wanted: &EmbeddingSettings,
    variables: &Variables,
) -> Option<SecretString> {
    let written = wanted.remote.api_key.as_ref()?.expose_secret().trim();
    if written.is_empty() {
        return None;
    }
    let names_variable = provider == EmbeddingProvider::Gemini && GEMINI_VARIABLES.contains(&written);
    let value = if names_variable { variables.get(written)? } else { written };
    Some(SecretString::from(value))
}
