//! The port through which texts become vectors.

pub use openclaw_embedding::{BatchLimits, Cooldown, EmbedError, EmbedFuture, Embedder, EmbedderIdentity};
