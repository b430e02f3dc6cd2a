//! `agents.defaults.memorySearch` as far as it is about embeddings, as plain values.

use std::collections::BTreeMap;

use secrecy::SecretString;

use super::provider::EmbeddingProvider;

/// Provider, model and address of embeddings.
#[derive(Debug, Clone, Default)]
pub struct EmbeddingSettings {
    /// `provider`; absent takes the first one that can be used.
    pub provider: Option<EmbeddingProvider>,
    /// `model`; blank takes the provider's own.
    pub model: String,
    /// `fallback`: provider to ask if the first one can't be used.
    pub fallback: Option<EmbeddingProvider>,
    /// `remote`
    pub remote: RemoteEmbeddings,
    /// `local`
    pub local: LocalEmbeddings,
}

/// `memorySearch.remote`; blank texts count as absent.
#[derive(Debug, Clone, Default)]
pub struct RemoteEmbeddings {
    /// Address of the API, such as `http://127.0.0.1:11434/v1`.
    pub base_url: Option<String>,
    /// Key of the API.
    pub api_key: Option<SecretString>,
    /// Headers of every request.
    pub headers: BTreeMap<String, SecretString>,
}

/// `memorySearch.local`
#[derive(Debug, Clone, Default)]
pub struct LocalEmbeddings {
    /// A GGUF file, a model directory, or the `hf:` name of a file.
    pub model_path: Option<String>,
    /// Directory in which files with `hf:` names lie.
    pub cache_dir: Option<String>,
}

impl RemoteEmbeddings {
    pub(super) fn base_url(&self) -> Option<&str> {
        self.base_url.as_deref().map(str::trim).filter(|url| !url.is_empty())
    }
}

impl LocalEmbeddings {
    pub(super) fn model_path(&self) -> Option<&str> {
        self.model_path.as_deref().map(str::trim).filter(|path| !path.is_empty())
    }
}
