//! Guessing the secret of a listener that an account has of its own is slowed down as it is everywhere: there is one count for all
//! surfaces of the gateway, by the address that somebody really has.

use std::net::SocketAddr;
use std::time::Duration;

use axum::http::HeaderMap;

/// A request to a listener of an account.
#[derive(Debug, Clone, Copy)]
pub struct Knock<'r> {
    /// The other end of its connection, which may be a proxy.
    pub peer: SocketAddr,
    /// Ours.
    pub local: SocketAddr,
    /// What a proxy says of who is behind it.
    pub headers: &'r HeaderMap,
}

/// What a request gave as its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretGiven {
    /// The right one.
    Right,
    /// Another one: a guess.
    Wrong,
    /// None.
    Nothing,
}

/// Counts guesses.
pub trait GuessThrottle: Send + Sync {
    /// Counts what a request gave.
    ///
    /// # Errors
    /// How long whoever asks is refused still, whatever they give: nothing is counted then.
    fn count(&self, knock: Knock<'_>, given: SecretGiven) -> Result<(), Duration>;
}
