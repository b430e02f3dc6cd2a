//! Actions on chat platforms that are asked for on purpose, such as sending: by the `message` tool
//! of a run, by the command line and by other clients (spec `channels.md` §6, `tools.md` §7.1). All
//! of them use the same actions with the same arguments, and get the same result.
//!
//! [`actions`] is the table of actions. [`place`] finds the place of one, [`guard`] decides if a
//! run may do it there, [`files`] which files it may send. Actions that make a message of their own
//! are stored in the outbox and awaited by [`send`]; the rest is asked of the platform by
//! [`perform`]. [`turn`] records what one run has sent so far.

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

/// Reasons for which an action was not done, or only in part. People and models are told this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The action is not possible in this way, or not allowed.
    #[error("{0}")]
    Invalid(String),
    /// The platform or the disk refused the action.
    #[error("{0}")]
    Failed(String),
    /// The caller does not wait any more. Stored parts are sent.
    #[error("Aborted")]
    Stopped,
}
