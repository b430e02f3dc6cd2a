//! From an accepted message to a delivered reply.
//!
//! [`Dispatch`] is the only door: the gateway hands it messages ([`api::ChatMessage`], [`api::AgentMessage`]) and reads
//! [`api::Broadcast`]s. Behind it: a durable inbox, one lane a session, the run, and the record of how each run ended.

pub mod api;
mod handle;

pub use api::*;
pub use handle::{
    AbortReason, AbortTarget, ActiveRun, Deps, Dispatch, Events, InjectError, InjectMessage, Injected, Receipt,
    RunOfOtherSession, RunPhase, StartError, StillActive,
};
