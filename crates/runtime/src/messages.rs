//! Actions on chat platforms that are asked for on purpose, such as sending: by the `message` tool
//! of a run, by the command line and by other clients (spec `channels.md` §6, `tools.md` §7.1). All
//! of them use the same actions with the same arguments, and get the same result.
//!
//! [`actions`] is the table of actions. [`place`] finds the place of one, [`guard`] decides if a
//! run may do it there, [`files`] which files it may send. Actions that make a message of their own
//! are stored in the outbox and awaited by [`send`]; the rest is asked of the platform by
//! [`perform`]. [`turn`] records what one run has sent so far.

pub mod actions;
mod arguments;
mod broadcast;
pub mod files;
mod guard;
pub mod mirror;
mod perform;
pub mod place;
mod route;
mod send;
pub mod turn;

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_channels::{Address, Platforms};
use openclaw_config::Config;
use openclaw_delivery::outbox::{Enqueued, Outbox, OutboxError};
use openclaw_journal::api::DispatchError;
use openclaw_journal::delivery::Delivery;
use openclaw_sessions::SessionKey;

pub use files::ClientFiles;
pub use perform::MessageRequest;
pub use perform::{perform_for_operator, perform_for_run};
pub use route::{RouteWish, Routed, route};

/// The gateway as actions see it.
pub trait MessageHost: Send + Sync {
    /// Returns the configuration in force.
    fn config(&self) -> Arc<Config>;

    /// Returns the state directory.
    fn state_dir(&self) -> &Path;

    /// Returns the chat platforms there are.
    fn platforms(&self) -> &Platforms;

    /// Returns the deliveries to chat platforms.
    fn outbox(&self) -> &Outbox;

    /// Returns the conversation that a session's answers go to by themselves.
    fn route_of<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Option<Address>>;

    /// Hands a session's delivery over, if the session may send now. Hooks may change its words or keep it back.
    ///
    /// # Errors
    ///
    /// The session may not send, or the outbox refused the delivery.
    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Result<Enqueued, DeliverError>>;
}

/// Reasons for which a delivery of a session was not handed over.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DeliverError {
    /// The session may not send, or its row can't be read.
    #[error(transparent)]
    Session(#[from] DispatchError),
    /// The outbox did not take it.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
}

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
