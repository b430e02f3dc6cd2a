//! Asks servers which models they have: programs for local models on this machine, Bedrock, Venice (spec `models.md` §2.3,
//! §2.4).
//!
//! No server is asked before its models are needed: for a list of models, for a run with a model of
//! that server, or for a run for which nothing else is connected. Answers are cached; an old one is
//! used while it is renewed. See `docs/models.md` for the permitted uses of a server that nobody
//! configured.

mod address;
mod ask;
mod embedding_servers;
mod inquiry;
mod llama_cpp;
mod lm_studio;
mod ollama;
mod server;
mod slots;
mod venice;
mod vllm;

use std::time::Duration;

pub use embedding_servers::LocalEmbeddingServer;
pub(crate) use embedding_servers::embedding_servers;
pub(crate) use inquiry::{Inquiry, inquiries};
pub(crate) use slots::Discovery;

/// The longest a run or a list waits for servers that have not answered yet. A server on this machine answers within
/// milliseconds or refuses; this is for one that hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
