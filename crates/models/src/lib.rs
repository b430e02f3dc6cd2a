//! Model providers: catalog, credentials, one client a wire protocol, failover, usage.
//!
//! The rest of the product sees [`Model`], [`ModelRequest`] and [`ModelEvent`] and never a provider's JSON. This crate
//! knows nothing of sessions or agents.
//!
//! The way of a call: [`Models::select`] turns [`ModelSettings`] and an [`Ask`] into bound [`Candidate`]s by way of
//! [`reference`](mod@reference), [`catalog`] and [`credentials`]; which model a person means says [`choose`]. A candidate's model builds a request (one module a
//! protocol, chosen by the table in `protocols`; history made fit by [`history`]) over the [`KeptRequest`] of the conversation, posts it through [`net`], and feeds what comes back to `answer`, a
//! pure machine over [`sse`] and the protocol's decoder. `retry` tries again while nothing was heard; [`failure`] says what
//! kind a failure is and what people are told. Without any model there is [`offline`]. [`quota`] asks providers how much of
//! their quota is used; [`probe`] and [`scan`] ask models whether they answer and what they can do. [`embeddings`] turns texts
//! into vectors.

mod access;
mod answer;
mod anthropic;
pub mod api;
mod arguments;
mod assembly;
mod background;
mod bedrock;
mod body;
mod cache_retention;
pub mod catalog;
pub mod choose;
mod client;
pub mod clock;
pub mod context_window;
mod conversation;
mod copilot;
pub mod credentials;
mod debug_log;
mod discovery;
pub mod embeddings;
pub mod failure;
mod google;
mod halves;
pub mod history;
pub mod image_model;
mod json;
mod kept_request;
mod lenient;
mod model_spec;
mod models_file;
pub mod net;
pub mod oauth;
pub mod offline;
mod openai_completions;
mod openai_responses;
mod openrouter;
mod parts;
pub mod probe;
mod protocols;
mod provider_entry;
mod provider_key;
pub mod quota;
pub mod reference;
mod region_name;
pub mod replay;
mod reporting;
pub mod request;
mod result_text;
pub mod retry;
pub mod scan;
pub mod select;
pub mod settings;
pub mod sse;
pub mod stream;
pub mod thinking;
mod tool_schema;
pub mod usage;
pub mod variables;
mod wire;

pub use arguments::invalid_arguments;
pub use bedrock::discovery::DiscoveryError;
pub use cache_retention::CacheRetention;
pub use choose::{Choices, ChooseError, Chosen, ProfileError};
pub use kept_request::KeptRequest;
pub use models_file::{models_file_problem, set_models_file_aside};
pub use net::Http;
pub use reference::{ModelRef, ProviderId};
pub use request::{ModelRequest, ToolSpec};
pub use select::{Ask, AskedThinking, Candidate, Models, ProviderCard, SelectError, Selected};
pub use settings::{BedrockDiscovery, ModelSettings};
pub use stream::{FailureKind, Model, ModelEvent, ModelFacts, ModelFailure, ModelStream};
pub use thinking::ThinkingLevel;
pub use tool_schema::ToolSchema;
pub use variables::Variables;
