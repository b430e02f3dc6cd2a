//! What is sent to chat platforms on purpose, and what else is done there: by the `message` tool of a run, by the command line and by other
//! clients (spec `channels.md` §6, `tools.md` §7.1). Both ask for the same actions with the same arguments, and get the same result.
//!
//! [`actions`] is the table of actions. [`place`] finds out where one is done, [`guard`] whether a run may do it there, [`files`] which
//! files it may send. What makes a message of its own is stored in the outbox and waited for by [`send`]; the rest is asked of the
//! platform by [`perform`]. [`turn`] is what one run has sent so far.

pub(crate) mod actions;
mod arguments;
mod broadcast;
pub(crate) mod files;
mod guard;
pub(crate) mod mirror;
mod perform;
pub(crate) mod place;
mod route;
mod send;
pub(crate) mod turn;

pub use files::ClientFiles;
pub use perform::MessageRequest;
pub(crate) use perform::{perform_for_operator, perform_for_run};
pub use route::{RouteWish, Routed, route};

/// Why nothing was done, or not all of it. People and models are told this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// It can't be done in this way, or may not be.
    #[error("{0}")]
    Invalid(String),
    /// It was tried, and the platform or the disk refused.
    #[error("{0}")]
    Failed(String),
    /// Whoever asked does not wait any more. What is stored is sent.
    #[error("Aborted")]
    Stopped,
}
