//! Interfaces through which tools call the gateway: one small trait for each family, all reached
//! through [`Host`]. A tool's context carries it; the gateway answers in its own process.

mod sessions;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use openclaw_protocol::message::ImageBlock;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use sessions::{HistoryWish, ListWish, SendCall, SendWish, SessionsHost, StatusAnswer, StatusWish};

/// Future result of a call to the gateway.
pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, HostError>> + Send + 'a>>;

/// The families.
pub trait Host: Send + Sync {
    /// The sessions of this gateway; `None` where there is none.
    fn sessions(&self) -> Option<&dyn SessionsHost> {
        None
    }

    /// Interface for messages to chat platforms; `None` if no platform is connected.
    fn messages(&self) -> Option<&dyn MessagesHost> {
        None
    }

    /// Models that look at images; `None` where none can be asked.
    fn images(&self) -> Option<&dyn ImagesHost> {
        None
    }

    /// The gateway itself; `None` where none runs.
    fn control(&self) -> Option<&dyn ControlHost> {
        None
    }

    /// Memory of the run's agent; `None` where there is none.
    fn memory(&self) -> Option<&dyn MemoryHost> {
        None
    }

    /// Starts sub-agents; `None` where nothing does.
    fn subagents(&self) -> Option<&dyn SubagentsHost> {
        None
    }
}

/// Starts sub-agents for the run that asks, and is answered before they begin to work.
pub trait SubagentsHost: Send + Sync {
    /// Starts one: the same call of the same run starts one. A refusal is an answer too.
    fn spawn<'a>(&'a self, call: SpawnCall<'a>) -> HostFuture<'a, Value>;
}

/// A call of the `sessions_spawn` tool.
#[derive(Debug, Clone, Copy)]
pub struct SpawnCall<'a> {
    /// The model's id of the call.
    pub call_id: &'a str,
    /// Arguments as the model wrote them, unchecked.
    pub args: &'a Value,
    /// Task for the sub-agent.
    pub task: &'a str,
    /// Display name of the task.
    pub label: Option<&'a str>,
    /// The agent that is to do it; absent is the one that asks.
    pub agent_id: Option<&'a str>,
    /// The model that it is to use.
    pub model: Option<&'a str>,
    /// Thinking level of the sub-agent.
    pub thinking: Option<&'a str>,
    /// Seconds after which it is stopped; `None` is as configured for the agent.
    pub timeout_seconds: Option<u64>,
    /// Treatment of the sub-agent's session once its result was announced.
    pub cleanup: Cleanup,
    /// Ends the call: what it has started by then is stopped.
    pub cancel: &'a CancellationToken,
}

/// Treatment of a sub-agent's session once its result was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cleanup {
    /// Deletes the session.
    Delete,
    /// Keeps the session until it is archived.
    #[default]
    Keep,
}

/// Messages to chat platforms, and what else can be done there. It knows which run asks, and where that was asked.
pub trait MessagesHost: Send + Sync {
    /// Does an action. Messages are stored before they are sent: the same call of the same run
    /// sends once.
    fn act<'a>(&'a self, call: MessageCall<'a>) -> HostFuture<'a, Value>;
}

/// A call of the `message` tool.
#[derive(Debug, Clone, Copy)]
pub struct MessageCall<'a> {
    /// The model's id of the call.
    pub call_id: &'a str,
    /// Arguments as the model wrote them.
    pub args: &'a Value,
    /// Local files that the call may send.
    pub files: FileReach<'a>,
    /// Ends the wait for the platform; what is stored is sent all the same.
    pub cancel: &'a CancellationToken,
}

/// Local files that a tool may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileReach<'a> {
    /// Files below this directory only.
    Confined(&'a Path),
    /// Files of the workspace, of the gateway's own media storage, and temporary files.
    Host {
        /// Base directory of relative paths.
        workspace: &'a Path,
    },
}

/// Memory of an agent: what was written down, and finding it. It knows which session asks.
pub trait MemoryHost: Send + Sync {
    /// Searches. A failure is an answer too, which says why.
    fn search(&self, question: MemoryQuestion) -> HostFuture<'_, Value>;

    /// Reads lines of a memory file. A failure is an answer too, which says why.
    fn lines(&self, wish: MemoryLines) -> HostFuture<'_, Value>;
}

/// A call of the `memory_search` tool.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryQuestion {
    /// Words to look for.
    pub query: String,
    /// Largest number of hits; `None` is as configured.
    pub max_results: Option<usize>,
    /// Smallest score; `None` is as configured.
    pub min_score: Option<f64>,
}

/// A call of the `memory_get` tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLines {
    /// Path relative to the workspace, or absolute.
    pub path: String,
    /// First line; `None` and 0 are the first.
    pub from: Option<i64>,
    /// Number of lines; `None` and 0 are all.
    pub lines: Option<i64>,
}

/// Asks other models about images.
pub trait ImagesHost: Send + Sync {
    /// Asks the image models in turn until one answers.
    fn look<'a>(&'a self, question: ImageQuestion<'a>) -> HostFuture<'a, ImageAnswer>;
}

/// A question about an image.
#[derive(Debug, Clone)]
pub struct ImageQuestion<'a> {
    /// Question for the model.
    pub prompt: &'a str,
    /// The image, small enough to be sent.
    pub image: ImageBlock,
    /// The model to ask first in place of the configured one: reference or alias.
    pub model: Option<&'a str>,
    /// Ends the call.
    pub cancel: &'a CancellationToken,
}

/// Answer of a model to a question about an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageAnswer {
    /// Text of the answer.
    pub text: String,
    /// `provider/model`.
    pub model: String,
    /// Models that were asked first and failed, in order.
    pub attempts: Vec<ImageAttempt>,
}

/// A model that gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageAttempt {
    /// Provider of the model.
    pub provider: String,
    /// Model id without the provider.
    pub model: String,
    /// Reason of the failure.
    pub error: String,
}

/// Reads and changes the configuration of the gateway, and has it start again. It knows which session asks.
pub trait ControlHost: Send + Sync {
    /// Does what is asked; the answer is what clients of the gateway get for the method of that name.
    fn control(&self, call: ControlCall) -> HostFuture<'_, Value>;
}

/// A call of the `gateway` tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlCall {
    /// Request to the gateway.
    pub ask: ControlAsk,
    /// Message for a session after a restart, if the request causes one.
    pub notice: RestartNotice,
}

/// Requests that a tool can make to the gateway itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlAsk {
    /// Restarts the gateway.
    Restart {
        /// Reason of the restart, for the log.
        reason: Option<String>,
    },
    /// The configuration, secrets taken out.
    ConfigGet,
    /// Returns the JSON schema of the configuration.
    ConfigSchema,
    /// A whole new one.
    ConfigApply(ConfigText),
    /// A merge patch of it.
    ConfigPatch(ConfigText),
    /// Restarts the gateway with the version that was installed in the meantime.
    Update,
}

/// A configuration, or a part of one, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigText {
    /// JSON5.
    pub raw: String,
    /// The hash of the file that it was written for; absent takes the file as it is.
    pub base_hash: Option<String>,
}

/// Session that is notified after a restart, and the delay before the restart begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestartNotice {
    /// The session, in place of the one that asks.
    pub session: Option<String>,
    /// Text for that session.
    pub note: Option<String>,
    /// Time until then.
    pub delay: Option<Duration>,
}

/// Error of a call to the gateway. The model is told in these words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The requested value can't be read now.
    #[error("{0}")]
    Unavailable(String),
    /// The request is invalid or not allowed; the text says why.
    #[error("{0}")]
    Refused(String),
    /// The run is being stopped.
    #[error("Aborted")]
    Aborted,
}
