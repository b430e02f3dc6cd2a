//! Model providers: catalog, credentials, one client a wire protocol, failover, usage.
//!
//! The rest of the product sees [`Model`], [`ModelRequest`] and [`ModelEvent`] and never a provider's JSON. This crate
//! knows nothing of sessions or agents.

pub mod api;
pub mod catalog;
pub mod context_window;
pub mod net;
pub mod reference;
pub mod request;
pub mod select;
pub mod settings;
pub mod stream;
pub mod variables;

pub use net::Http;
pub use reference::{ModelRef, ProviderId};
pub use request::{CacheRetention, ModelRequest, ThinkingLevel, ToolSpec};
pub use select::{Ask, AskedThinking, Candidate, Models, SelectError, Selected};
pub use settings::ModelSettings;
pub use stream::{FailureKind, Model, ModelEvent, ModelFailure, ModelStream};
pub use variables::Variables;
