//! What tools may ask of the gateway: one small trait a family, all reached through [`Host`]. A tool's context carries it; the
//! gateway answers in its own process.

use std::future::Future;
use std::pin::Pin;

use openclaw_protocol::SessionKey;
use openclaw_protocol::message::Message;
use openclaw_sessions::Row;
use openclaw_sessions::store::Query;

/// What comes of asking.
pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, HostError>> + Send + 'a>>;

/// The families.
pub trait Host: Send + Sync {
    /// The sessions of this gateway.
    fn sessions(&self) -> &dyn SessionsHost;
}

/// Looks at sessions. Which of them an agent may see is decided by who asks.
pub trait SessionsHost: Send + Sync {
    /// The rows that meet every condition, newest first.
    fn list<'a>(&'a self, query: &'a Query) -> HostFuture<'a, Vec<Row>>;

    /// The last messages of a session as people see them, oldest first, `limit` entries at most.
    fn history<'a>(&'a self, key: &'a SessionKey, limit: usize) -> HostFuture<'a, Vec<Message>>;
}

/// Why the gateway does not answer. The model is told in these words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// There is no such session; the model may ask for another.
    #[error("no session {0}")]
    UnknownSession(SessionKey),
    /// It can't be read now.
    #[error("{0}")]
    Unavailable(String),
}
