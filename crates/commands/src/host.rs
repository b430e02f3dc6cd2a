//! The gateway as commands see it: what needs its runs or its sub-agents. Everything else a command has in its
//! [`CommandContext`].

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_agent::prompt::SystemPromptReport;
use openclaw_journal::api::{DispatchError, Waited};
use openclaw_journal::child_run::ChildRun;
use openclaw_journal::origin::MessageOrigin;
use openclaw_journal::request::RunRequest;
use openclaw_protocol::message::Message;
use openclaw_protocol::{AgentId, RunId, SessionKey};
use openclaw_runtime::setup::Settings;
use openclaw_tools::ExecSettings;

use crate::CommandContext;

/// Work that a command asks the gateway for. Errors are texts for a chat.
pub trait CommandHost: Send + Sync {
    /// Returns a text without the secrets that the gateway knows.
    ///
    /// # Errors
    ///
    /// The secrets can't be read.
    fn redacted(&self, settings: &Arc<Settings>, text: &str) -> Result<String, String>;

    /// Returns the settings of a command that a person runs by hand.
    ///
    /// # Errors
    ///
    /// The secrets that its output must not show can't be read.
    fn exec_of_person(&self, context: &CommandContext<'_>) -> Result<ExecSettings, String>;

    /// True if an answer in the conversation is shown as a draft while it is written.
    fn has_drafts(&self, origin: &MessageOrigin, agent: &AgentId) -> bool;

    /// Returns the newest messages of a session, at most `limit`, the oldest first.
    fn messages_of<'a>(&'a self, key: &'a SessionKey, limit: usize) -> BoxFuture<'a, Vec<Message>>;

    /// Returns the parts that the system prompt of a run would be made of now.
    ///
    /// # Errors
    ///
    /// The run could not begin.
    fn estimate<'a>(
        &'a self,
        context: &'a CommandContext<'_>,
    ) -> BoxFuture<'a, Result<SystemPromptReport, String>>;

    /// Returns the sub-agents that a session has started.
    fn subagents_of(&self, key: &SessionKey) -> Vec<ChildRun>;

    /// Returns the control over running sub-agents; `None` while the gateway shuts down.
    fn subagents(&self) -> Option<Box<dyn SubagentControl>>;
}

/// Control over running sub-agents.
pub trait SubagentControl: Send + Sync {
    /// Stops all that a session has started, and returns how many were running.
    fn stop_all<'a>(&'a self, requester: &'a SessionKey) -> BoxFuture<'a, usize>;

    /// Stops one. Returns true if it was running.
    fn stop<'a>(&'a self, run: &'a ChildRun) -> BoxFuture<'a, bool>;

    /// Sends a message to the session of one.
    ///
    /// # Errors
    ///
    /// The message was not accepted.
    fn send<'a>(
        &'a self,
        run_id: RunId,
        key: &'a SessionKey,
        request: RunRequest,
    ) -> BoxFuture<'a, Result<(), DispatchError>>;

    /// Waits for the end of a run.
    fn wait<'a>(&'a self, run_id: &'a RunId, patience: Duration) -> BoxFuture<'a, Waited>;
}
