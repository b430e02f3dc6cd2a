//! What tools may ask about other sessions (spec `sessions.md` §8). Which of them an agent may see is decided by the gateway.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::HostFuture;

/// The sessions of this gateway, as the session of the run that asks may see them. An answer that says that something can't be had is an
/// answer like others; [`super::HostError`] is for what a tool throws.
pub trait SessionsHost: Send + Sync {
    /// Which sessions there are, newest first.
    fn list<'a>(&'a self, wish: &'a ListWish) -> HostFuture<'a, Value>;

    /// What was said in a session.
    fn history<'a>(&'a self, wish: &'a HistoryWish) -> HostFuture<'a, Value>;

    /// Says something to a session. The same call of the same run is made once.
    fn send<'a>(&'a self, wish: &'a SendWish, call: SendCall<'a>) -> HostFuture<'a, Value>;

    /// Which agents there are.
    fn agents(&self) -> HostFuture<'_, Value>;

    /// How a session stands; before that, its model may be changed.
    fn status<'a>(&'a self, wish: &'a StatusWish) -> HostFuture<'a, StatusAnswer>;
}

/// What `sessions_list` is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListWish {
    /// Only these kinds; those that do not exist count for nothing, and none is all.
    pub kinds: Vec<String>,
    /// Rows at most.
    pub limit: Option<usize>,
    /// Only sessions that were used in so many minutes.
    pub active_minutes: Option<u64>,
    /// The last so many messages of each.
    pub message_limit: usize,
}

/// What `sessions_history` is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryWish {
    /// The session, by key or transcript id.
    pub session: String,
    /// Messages at most.
    pub limit: Option<usize>,
    /// Whether results of tools are told too.
    pub with_tools: bool,
}

/// What `sessions_send` is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SendWish {
    /// The session, by key or transcript id.
    pub session: Option<String>,
    /// The session, by its label.
    pub label: Option<String>,
    /// The agent whose label that is.
    pub agent: Option<String>,
    /// What is said.
    pub message: String,
    /// How long the answer is waited for; 0 does not wait.
    pub timeout_seconds: u64,
}

/// The call that asks.
#[derive(Debug, Clone, Copy)]
pub struct SendCall<'a> {
    /// The model's id of it.
    pub call_id: &'a str,
    /// Its arguments.
    pub args: &'a Value,
    /// Ends the wait for an answer; what was said stays said.
    pub cancel: &'a CancellationToken,
}

/// What `session_status` is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusWish {
    /// The session, by key or transcript id; absent is the one of the run.
    pub session: Option<String>,
    /// The model it shall go on with; blank or `default` is the agent's own.
    pub model: Option<String>,
}

/// How a session stands.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusAnswer {
    /// The card, for people.
    pub text: String,
    /// The same for programs.
    pub details: Value,
}
