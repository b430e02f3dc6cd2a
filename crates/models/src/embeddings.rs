//! Embeddings: turning texts into vectors by a provider's API (spec `memory.md` §12, §13).
//!
//! [`Embeddings::select`] selects the provider from
//! [`EmbeddingSettings`], as OpenClaw 2026.2.9 does: the one that is named, else the first one for
//! which there is a credential. An [`EmbeddingClient`] is bound to its endpoint and its key. It
//! tries again by itself what may pass, and all clients of one key share a cooldown. Local models
//! in GGUF files are run by an installed `llama-server` ([`LlamaServer`]); those in model
//! directories are named only ([`EmbeddingSource::Directory`]), because this crate computes none.
//! [`BatchJobs`] has many texts embedded at once, for less money, some time later.
//!
//! Nothing here knows what the texts are, packs them or keeps their vectors.

mod answer;
mod attempts;
mod batch;
mod client;
mod cooldown;
mod endpoint;
mod error;
mod limits;
mod llama_server;
mod provider;
mod request;
mod select;
mod settings;

pub use batch::{
    BatchError, BatchHealth, BatchJobs, BatchRequest, BatchState, BatchVectors, MAX_BATCH_TEXTS,
    batch_request_id,
};
pub use client::EmbeddingClient;
pub use limits::known_dimensions;
pub use llama_server::LlamaServer;
pub use provider::EmbeddingProvider;
pub use select::{EmbeddingFallback, EmbeddingSelection, EmbeddingSource, Embeddings, NoEmbeddings};
pub use settings::{EmbeddingSettings, LocalEmbeddings, RemoteEmbeddings};

pub use crate::discovery::LocalEmbeddingServer;
