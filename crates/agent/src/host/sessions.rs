//! Requests of tools about other sessions (spec `sessions.md` §8). The gateway decides which of
//! them an agent may see.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::HostFuture;

/// The sessions of this gateway, as the session of the run that asks may see them. An answer that says that something can't be had is an
/// answer like others; [`super::HostError`] is for what a tool throws.
pub trait SessionsHost: Send + Sync {
    /// Lists sessions, newest first.
    fn list<'a>(&'a self, wish: &'a ListWish) -> HostFuture<'a, Value>;

    /// Returns the messages of a session.
    fn history<'a>(&'a self, wish: &'a HistoryWish) -> HostFuture<'a, Value>;

    /// Sends a message to a session. The same call of the same run is made once.
    fn send<'a>(&'a self, wish: &'a SendWish, call: SendCall<'a>) -> HostFuture<'a, Value>;

    /// Lists the agents.
    fn agents(&self) -> HostFuture<'_, Value>;

    /// Returns the status of a session; changes its model first if asked to.
    fn status<'a>(&'a self, wish: &'a StatusWish) -> HostFuture<'a, StatusAnswer>;
}

/// Parameters of `sessions_list`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListWish {
    /// Filter by kind: unknown kinds are ignored, and an empty list selects all.
    pub kinds: Vec<String>,
    /// Rows at most.
    pub limit: Option<usize>,
    /// Filter: only sessions that were used within this many minutes.
    pub active_minutes: Option<u64>,
    /// The last so many messages of each.
    pub message_limit: usize,
}

/// Parameters of `sessions_history`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryWish {
    /// The session, by key or transcript id.
    pub session: String,
    /// Messages at most.
    pub limit: Option<usize>,
    /// True if tool results are included.
    pub with_tools: bool,
}

/// Parameters of `sessions_send`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SendWish {
    /// The session, by key or transcript id.
    pub session: Option<String>,
    /// The session, by its label.
    pub label: Option<String>,
    /// The agent whose label that is.
    pub agent: Option<String>,
    /// Text of the message.
    pub message: String,
    /// Seconds to wait for the answer; 0 does not wait.
    pub timeout_seconds: u64,
}

/// The call that asks.
#[derive(Debug, Clone, Copy)]
pub struct SendCall<'a> {
    /// The model's id of it.
    pub call_id: &'a str,
    /// Arguments as the model wrote them.
    pub args: &'a Value,
    /// Ends the wait for an answer; what was said stays said.
    pub cancel: &'a CancellationToken,
}

/// Parameters of `session_status`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusWish {
    /// The session, by key or transcript id; absent is the one of the run.
    pub session: Option<String>,
    /// The model it shall go on with; blank or `default` is the agent's own.
    pub model: Option<String>,
}

/// Status of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusAnswer {
    /// The card, for people.
    pub text: String,
    /// Status as structured data for programs.
    pub details: Value,
}
