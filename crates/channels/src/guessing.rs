//! Guessing the secret of a listener that an account has of its own is slowed down as it is everywhere: there is one count for all
//! surfaces of the gateway, by the address that somebody really has.

use std::net::SocketAddr;
use std::time::Duration;

use axum::http::HeaderMap;

/// A request to a listener of an account.
#[derive(Debug, Clone, Copy)]
pub struct Knock<'r> {
    /// Other end of the connection, which may be a proxy.
    pub peer: SocketAddr,
    /// Our end of the connection.
    pub local: SocketAddr,
    /// Headers in which a proxy names the client behind it.
    pub headers: &'r HeaderMap,
}

/// Secret that a request presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretGiven {
    /// The right one.
    Right,
    /// The request gave another secret: a guess.
    Wrong,
    /// The request gave no secret.
    Nothing,
}

/// Counts guesses.
pub trait GuessThrottle: Send + Sync {
    /// Counts what a request gave.
    ///
    /// # Errors
    /// Returns the time for which the client is still refused, whatever it presents: nothing is
    /// counted then.
    fn count(&self, knock: Knock<'_>, given: SecretGiven) -> Result<(), Duration>;
}
