//! What tools may ask of the gateway: one small trait a family, all reached through [`Host`]. A tool's context carries it; the
//! gateway answers in its own process.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;

use openclaw_protocol::SessionKey;
use openclaw_protocol::message::Message;
use openclaw_sessions::Row;
use openclaw_sessions::store::Query;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// What comes of asking.
pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, HostError>> + Send + 'a>>;

/// The families.
pub trait Host: Send + Sync {
    /// The sessions of this gateway.
    fn sessions(&self) -> &dyn SessionsHost;

    /// What goes to chat platforms; `None` where nothing does.
    fn messages(&self) -> Option<&dyn MessagesHost> {
        None
    }
}

/// Looks at sessions. Which of them an agent may see is decided by who asks.
pub trait SessionsHost: Send + Sync {
    /// The rows that meet every condition, newest first.
    fn list<'a>(&'a self, query: &'a Query) -> HostFuture<'a, Vec<Row>>;

    /// The last messages of a session as people see them, oldest first, `limit` entries at most.
    fn history<'a>(&'a self, key: &'a SessionKey, limit: usize) -> HostFuture<'a, Vec<Message>>;
}

/// Messages to chat platforms, and what else can be done there. It knows which run asks, and where that was asked.
pub trait MessagesHost: Send + Sync {
    /// Does an action. What it sends is stored before it is sent: the same call of the same run sends once.
    fn act<'a>(&'a self, call: MessageCall<'a>) -> HostFuture<'a, Value>;
}

/// A call of the `message` tool.
#[derive(Debug, Clone, Copy)]
pub struct MessageCall<'a> {
    /// The model's id of the call.
    pub call_id: &'a str,
    /// Its arguments.
    pub args: &'a Value,
    /// Which files it may send.
    pub files: FileReach<'a>,
    /// Ends the wait for the platform; what is stored is sent all the same.
    pub cancel: &'a CancellationToken,
}

/// Which files of this machine a tool may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileReach<'a> {
    /// Those below this directory.
    Confined(&'a Path),
    /// Those of the workspace, of the gateway's own storage of media, and temporary ones.
    Host {
        /// Where relative paths start.
        workspace: &'a Path,
    },
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
    /// It can't be done in this way, or may not be; says why.
    #[error("{0}")]
    Refused(String),
    /// The run is being stopped.
    #[error("Aborted")]
    Aborted,
}
