//! Model providers: catalog, credentials, one client a wire protocol, failover, usage.
//!
//! The rest of the product sees [`Model`], [`ModelRequest`] and [`ModelEvent`] and never a provider's JSON. This crate
//! knows nothing of sessions or agents.

pub mod request;
pub mod stream;

pub use request::{CacheRetention, ModelRequest, ThinkingLevel, ToolSpec};
pub use stream::{FailureKind, Model, ModelEvent, ModelFailure, ModelStream};
