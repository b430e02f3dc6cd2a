//! The door to dispatch: a cheap handle and what goes through it.

use std::path::PathBuf;
use std::time::Duration;

use openclaw_protocol::RunId;
use openclaw_protocol::message::Message;

use crate::api::{Accepted, AgentMessage, Broadcast, ChatMessage, DispatchError, RunRecord, Waited};

/// What dispatch stands on. (The fields for configuration, sessions and models follow as those crates appear.)
pub struct Deps {
    /// The state directory; `gateway.sqlite` lies in it.
    pub state_dir: PathBuf,
}

/// Handle to the dispatcher. Cloning is cheap; all clones are the same dispatcher.
#[derive(Clone)]
pub struct Dispatch {}

/// Proof that a message was taken.
///
/// Keep it until the acknowledgement is queued to the client: the run sends its first event only after the receipt was
/// dropped, so that a client sees the acknowledgement before the events of its run.
#[must_use = "dropping the receipt lets the run begin: queue the acknowledgement first"]
#[derive(Debug)]
pub struct Receipt {
    /// What became of the message.
    pub accepted: Accepted,
}

/// Which runs of a session to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AbortTarget {
    /// All, also the queued ones.
    All,
    /// This one.
    Run(RunId),
}

/// Why runs are stopped; [`AbortReason::as_str`] is the `stopReason` on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbortReason {
    /// `chat.abort`.
    Rpc,
    /// `/stop` or a stop word.
    Stop,
    /// The deadline of the run has passed.
    Timeout,
    /// A newer message took its place (queue mode `interrupt`).
    Interrupt,
}

impl AbortReason {
    /// The `stopReason` on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rpc => "rpc",
            Self::Stop => "stop",
            Self::Timeout => "timeout",
            Self::Interrupt => "interrupt",
        }
    }
}

/// The run exists and is active, in a session other than the one named (`runId does not match sessionKey`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("runId does not match sessionKey")]
pub struct RunOfOtherSession;

/// A run that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveRun {
    /// The run.
    pub run_id: RunId,
    /// Canonical key of its session.
    pub session_key: String,
    /// Unix milliseconds of acceptance.
    pub accepted_at: i64,
    /// How far it is.
    pub phase: RunPhase,
}

/// How far a run that has not ended is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPhase {
    /// Waits for its session or for a global lane.
    Queued,
    /// Works.
    Running,
}

/// A `chat.inject`: text put into a transcript in the assistant's name.
#[derive(Debug, Clone)]
pub struct InjectMessage {
    /// Canonical session key.
    pub session_key: String,
    /// The text.
    pub text: String,
    /// Put before the text as `[label]` and a blank line.
    pub label: Option<String>,
}

/// What [`Dispatch::inject`] did.
#[derive(Debug, Clone, PartialEq)]
pub struct Injected {
    /// Id of the new transcript entry.
    pub message_id: String,
    /// The message as stored.
    pub message: Message,
}

/// Why nothing was injected.
#[derive(Debug, Clone, thiserror::Error)]
pub enum InjectError {
    /// The key has no entry or no transcript.
    #[error("session not found")]
    UnknownSession,
    /// The transcript could not be written.
    #[error("failed to write transcript: {0}")]
    Storage(String),
    /// The gateway is going down.
    #[error("gateway is shutting down")]
    ShuttingDown,
}

/// Dispatch could not start; the gateway must not.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The inbox could not be opened or read.
    #[error("cannot open {path}: {reason}")]
    Inbox {
        /// The database file.
        path: PathBuf,
        /// What the system said, and what to do.
        reason: String,
    },
}

/// The session's run did not end in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("session {0} is still active; try again in a moment")]
pub struct StillActive(pub String);

/// Receiver of [`Broadcast`]s, in order per run. Bounded: a reader that does not read holds the runs up, so read it from
/// a task that does nothing else and never waits for dispatch. Asking for the next event says that the one before was
/// handled; [`Dispatch::ended`] and [`Dispatch::abort`] answer only after that.
#[derive(Debug)]
pub struct Events {}

impl Events {
    /// The next event; `None` after shutdown.
    pub async fn recv(&mut self) -> Option<Broadcast> {
        None
    }
}

impl Dispatch {
    /// Opens the inbox and resumes every unfinished message, in order of acceptance per session.
    pub async fn start(deps: Deps) -> Result<Self, StartError> {
        let _ = deps;
        Ok(Self {})
    }

    /// Takes a `chat.send`. When this returns [`Accepted::New`] the message is on disk. A run id that is known from before
    /// gives [`Accepted::InFlight`] or [`Accepted::Finished`] and changes nothing.
    pub async fn chat(&self, message: ChatMessage) -> Result<Receipt, DispatchError> {
        let _ = message;
        Err(DispatchError::ShuttingDown)
    }

    /// Takes an `agent` request; otherwise as [`Dispatch::chat`].
    pub async fn agent(&self, message: AgentMessage) -> Result<Receipt, DispatchError> {
        let _ = message;
        Err(DispatchError::ShuttingDown)
    }

    /// Waits for the end of a run, which need not have been accepted yet. `Duration::ZERO` polls.
    pub async fn wait(&self, run_id: &RunId, timeout: Duration) -> Waited {
        let _ = (run_id, timeout);
        Waited::TimedOut
    }

    /// Waits for the end of an accepted run, after its last event was handled by every subscriber: the moment for the
    /// second response of `agent`. `None`: the run is unknown, or the gateway goes down and the run will be resumed.
    pub async fn ended(&self, run_id: &RunId) -> Option<RunRecord> {
        let _ = run_id;
        None
    }

    /// Stops runs of a session, queued ones too, and answers with their ids after `chat` `aborted` was handled by every
    /// subscriber. An unknown run is no error and gives no ids.
    pub async fn abort(
        &self,
        session_key: &str,
        target: AbortTarget,
        reason: AbortReason,
    ) -> Result<Vec<RunId>, RunOfOtherSession> {
        let _ = (session_key, target, reason);
        Ok(Vec::new())
    }

    /// Stops all runs of a session and waits until none is left: before `sessions.reset` and `sessions.delete`.
    pub async fn quiesce(&self, session_key: &str, timeout: Duration) -> Result<(), StillActive> {
        let _ = (session_key, timeout);
        Ok(())
    }

    /// The runs of a session that have not ended, oldest first.
    pub fn active_runs(&self, session_key: &str) -> Vec<ActiveRun> {
        let _ = session_key;
        Vec::new()
    }

    /// Appends to a session's transcript in the assistant's name and broadcasts the `chat` final (`chat.inject`). While
    /// a run is under way it waits for the end of it.
    pub async fn inject(&self, message: InjectMessage) -> Result<Injected, InjectError> {
        let _ = message;
        Err(InjectError::ShuttingDown)
    }

    /// Every event from now on.
    pub fn subscribe(&self) -> Events {
        Events {}
    }

    /// Takes no more messages, lets runs finish up to `deadline`, stops the rest (they are resumed at the next start) and
    /// closes the inbox. Answers with the ids of the runs that did not finish.
    pub async fn shutdown(&self, deadline: Duration) -> Vec<RunId> {
        let _ = deadline;
        Vec::new()
    }
}
