//! What tools may ask of the gateway: one small trait a family, all reached through [`Host`]. A tool's context carries it; the
//! gateway answers in its own process.

mod sessions;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use openclaw_protocol::message::ImageBlock;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use sessions::{HistoryWish, ListWish, SendCall, SendWish, SessionsHost, StatusAnswer, StatusWish};

/// What comes of asking.
pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, HostError>> + Send + 'a>>;

/// The families.
pub trait Host: Send + Sync {
    /// The sessions of this gateway; `None` where there is none.
    fn sessions(&self) -> Option<&dyn SessionsHost> {
        None
    }

    /// What goes to chat platforms; `None` where nothing does.
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
    /// Its arguments, as they came.
    pub args: &'a Value,
    /// What is to be done.
    pub task: &'a str,
    /// What people call it.
    pub label: Option<&'a str>,
    /// The agent that is to do it; absent is the one that asks.
    pub agent_id: Option<&'a str>,
    /// The model that it is to use.
    pub model: Option<&'a str>,
    /// How much that is to think.
    pub thinking: Option<&'a str>,
    /// Seconds after which it is stopped; `None` is as configured for the agent.
    pub timeout_seconds: Option<u64>,
    /// What becomes of its session once its end is told.
    pub cleanup: Cleanup,
    /// Ends the call: what it has started by then is stopped.
    pub cancel: &'a CancellationToken,
}

/// What becomes of the session of a sub-agent once its end is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cleanup {
    /// It is deleted.
    Delete,
    /// It stays until it is archived.
    #[default]
    Keep,
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

/// Asks other models about images.
pub trait ImagesHost: Send + Sync {
    /// Asks the image models in turn until one answers.
    fn look<'a>(&'a self, question: ImageQuestion<'a>) -> HostFuture<'a, ImageAnswer>;
}

/// A question about an image.
#[derive(Debug, Clone)]
pub struct ImageQuestion<'a> {
    /// What is asked.
    pub prompt: &'a str,
    /// The image, small enough to be sent.
    pub image: ImageBlock,
    /// The model to ask first in place of the configured one: reference or alias.
    pub model: Option<&'a str>,
    /// Ends the call.
    pub cancel: &'a CancellationToken,
}

/// What a model says of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageAnswer {
    /// Its words.
    pub text: String,
    /// `provider/model`.
    pub model: String,
    /// Those that were asked before it, in vain.
    pub attempts: Vec<ImageAttempt>,
}

/// A model that gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageAttempt {
    /// Its provider.
    pub provider: String,
    /// Its id.
    pub model: String,
    /// Why.
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
    /// What is asked.
    pub ask: ControlAsk,
    /// What is told after a restart, should there be one.
    pub notice: RestartNotice,
}

/// What can be asked of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlAsk {
    /// It starts again.
    Restart {
        /// Why, for the log.
        reason: Option<String>,
    },
    /// The configuration, secrets taken out.
    ConfigGet,
    /// Its schema.
    ConfigSchema,
    /// A whole new one.
    ConfigApply(ConfigText),
    /// A merge patch of it.
    ConfigPatch(ConfigText),
    /// It starts again with the program that was installed meanwhile.
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

/// Who is told of a restart, and when it begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestartNotice {
    /// The session, in place of the one that asks.
    pub session: Option<String>,
    /// What it is told.
    pub note: Option<String>,
    /// Time until then.
    pub delay: Option<Duration>,
}

/// Why the gateway does not answer. The model is told in these words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
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
