//! The port through which texts become vectors (spec `memory.md` §12).
//!
//! Clients of model servers and local encoders implement [`Embedder`]. The index of memory hands them texts, keeps what
//! they answer, and goes on with keywords alone while they fail. Neither knows the other: both know this crate.

mod cooldown;
mod error;
mod identity;
mod limits;

use std::future::Future;
use std::pin::Pin;

pub use cooldown::Cooldown;
pub use error::EmbedError;
pub use identity::EmbedderIdentity;
pub use limits::BatchLimits;

/// The future that a call of an [`Embedder`] returns.
pub type EmbedFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, EmbedError>> + Send + 'a>>;

/// Turns texts into vectors. One value is shared by all searches and syncs, and may be shared by several agents.
///
/// A call is dropped when its deadline has passed; an implementation must bear that. The vectors may have any length
/// and need not be normalised, but all of one embedder have the same number of dimensions. What is answered is checked
/// by the index: another number of vectors than of texts, differing dimensions and values that are not finite are
/// treated as [`EmbedError::Invalid`].
pub trait Embedder: Send + Sync + 'static {
    /// Names the provider, the model and the endpoint. Vectors of another identity are never compared with these.
    fn identity(&self) -> &EmbedderIdentity;

    /// Returns how much one call of [`Embedder::embed_batch`] may carry.
    fn limits(&self) -> BatchLimits;

    /// Returns the cooldown that all users of this provider share.
    fn cooldown(&self) -> &Cooldown;

    /// Embeds what a person or a model searches for.
    fn embed_query<'a>(&'a self, text: &'a str) -> EmbedFuture<'a, Vec<f32>>;

    /// Embeds texts that are to be found, and answers in the same order. `texts` keeps to [`Embedder::limits`], but a
    /// single text that is larger than the limit comes alone.
    fn embed_batch<'a>(&'a self, texts: &'a [String]) -> EmbedFuture<'a, Vec<Vec<f32>>>;
}
