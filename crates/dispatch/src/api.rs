//! What the gateway says to dispatch, and what it hears.

use openclaw_channels::Address;
use openclaw_protocol::message::{Block, Message};
use openclaw_protocol::{AgentId, Payload, RunId, SessionKey};
use openclaw_sessions::entry::Json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A `chat.send`: a message of a person at a WebSocket client. Already authorised, validated and canonicalised.
#[derive(Debug, Clone)]
pub struct ChatMessage {
    /// Equals the client's idempotency key.
    pub run_id: RunId,
    /// The session.
    pub session_key: SessionKey,
    /// The text as typed.
    pub text: String,
    /// Images, decoded and checked.
    pub images: Vec<Block>,
    /// Thinking level for this message only, as the client sent it.
    pub thinking: Option<String>,
    /// Deadline of the run in milliseconds, as the client sent it; 0 and absent take the configured one.
    pub timeout_ms: Option<u64>,
    /// What the client calls itself; the session is listed under it where it has no other name.
    pub sender: Option<String>,
    /// Whether that client may decide on commands that wait for approval.
    pub may_approve: bool,
    /// Whether that client may change the gateway: it speaks as the owner.
    pub may_administer: bool,
    /// The conversation out of which this one was opened, such as the room of a thread. If this is the first
    /// message of its session, that begins with what was said there (spec `sessions.md` §5.7).
    pub parent_session_key: Option<SessionKey>,
}

/// An `agent` request. Already authorised, validated and canonicalised.
#[derive(Debug, Clone)]
pub struct AgentMessage {
    /// Equals the client's idempotency key.
    pub run_id: RunId,
    /// The agent that answers.
    pub agent_id: AgentId,
    /// The session.
    pub session_key: SessionKey,
    /// Continue this transcript instead of the row's current one.
    pub session_id: Option<String>,
    /// The text.
    pub text: String,
    /// Images, decoded and checked.
    pub images: Vec<Block>,
    /// Thinking level for this run.
    pub thinking: Option<String>,
    /// Seconds; 0 means none.
    pub timeout_seconds: Option<u64>,
    /// Global lane; absent is `main`.
    pub lane: Option<String>,
    /// Added to the system prompt.
    pub extra_system_prompt: Option<String>,
    /// Why it is made.
    pub occasion: Occasion,
    /// The conversation that its answer is sent to.
    pub deliver_to: Option<Address>,
    /// Whether the owner asks: a client that may change the gateway, or a file of the owner.
    pub may_administer: bool,
    /// Everything else of the request that the session entry keeps (label, spawnedBy, group and delivery fields).
    pub entry_patch: serde_json::Map<String, Value>,
}

/// Why an `agent` request is made: what it means for the life of its session (spec `sessions.md` §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Occasion {
    /// Somebody asks over the gateway's protocol. The session goes on, and counts as used.
    #[default]
    Request,
    /// Somebody asks at the command line, without a gateway. The session expires as configured, by the channel it was
    /// last used over.
    Command,
    /// The gateway looks after the session by itself. It goes on, and does not count as used: a heartbeat keeps no idle
    /// session alive.
    Heartbeat,
    /// A scheduled job that shares nothing with its last run: always a new conversation, whatever the request names.
    Isolated,
}

/// What became of a message that was handed in.
#[derive(Debug, Clone, PartialEq)]
pub enum Accepted {
    /// New; it is in the inbox, synced to disk, and will be answered exactly once.
    New {
        /// Unix milliseconds of acceptance.
        accepted_at: i64,
    },
    /// The same run id was accepted before and is still being worked on.
    InFlight {
        /// Unix milliseconds of acceptance.
        accepted_at: i64,
    },
    /// The same run id was accepted before and has ended.
    Finished(RunRecord),
}

/// How a run ended, remembered for `agent.wait` and for repeated idempotency keys, also across a restart.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// The run.
    pub run_id: RunId,
    /// Unix milliseconds; absent when it failed before it began.
    pub started_at: Option<i64>,
    /// Unix milliseconds.
    pub ended_at: i64,
    /// The result.
    pub outcome: RunOutcome,
    /// What its system prompt was made of. Only the caller of the run is told; no journal keeps it.
    pub report: Option<Json>,
}

impl RunRecord {
    /// Milliseconds that the run took: as its process has measured it, whatever the clock of the wall did meanwhile. Of a run that has no
    /// such measure, the time between its beginning and its end by that clock.
    pub(crate) fn took_ms(&self) -> i64 {
        let by_wall = || self.ended_at.saturating_sub(self.started_at.unwrap_or(self.ended_at)).max(0);
        self.outcome.duration_ms().unwrap_or_else(by_wall)
    }

    /// The outcome as the caller of the run is told it: with the report as `meta.systemPromptReport`.
    pub fn told(self) -> RunOutcome {
        let Self { mut outcome, report, .. } = self;
        let result = match &mut outcome {
            RunOutcome::Ok { result } => Some(result),
            RunOutcome::Error { result, .. } | RunOutcome::Aborted { result, .. } => result.as_mut(),
        };
        let meta = result.and_then(|result| result.get_mut("meta")?.as_object_mut());
        let report = report.and_then(|report| report.read().ok());
        if let (Some(meta), Some(report)) = (meta, report) {
            meta.insert("systemPromptReport".to_owned(), report);
        }
        outcome
    }
}

/// The result of a run. The inbox keeps it as JSON: fields may be added; none changes its meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "camelCase")]
pub enum RunOutcome {
    /// It answered; `result` is the `agent` final's `result` (`{payloads, meta}`).
    Ok {
        /// `{payloads:[…], meta:{…}}`
        result: Value,
    },
    /// It failed; the text is for people. `result` carries the error payload and meta where a run had begun.
    Error {
        /// What went wrong.
        message: String,
        /// `{payloads:[…], meta:{…}}`
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
    /// It was stopped; `reason` is `rpc`, `stop`, `timeout` or `shutdown`.
    Aborted {
        /// Who stopped it.
        reason: String,
        /// `{payloads:[…], meta:{…}}`
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
}

impl RunOutcome {
    /// Milliseconds that the run took, as its process has measured it.
    pub(crate) fn duration_ms(&self) -> Option<i64> {
        let result = match self {
            Self::Ok { result } => Some(result),
            Self::Error { result, .. } | Self::Aborted { result, .. } => result.as_ref(),
        };
        result?.pointer("/meta/durationMs")?.as_i64()
    }

    /// What went wrong, for people: it failed, or it ran out of time. Nothing for a run that answered or that someone
    /// stopped.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Ok { .. } => None,
            Self::Error { message, .. } => Some(message),
            Self::Aborted { reason, result } => (reason == AbortReason::Timeout.as_str()).then(|| {
                let said = result.as_ref().and_then(|result| result.pointer("/meta/error/message")?.as_str());
                said.unwrap_or("The run was stopped at its time limit.")
            }),
        }
    }
}

/// What `agent.wait` learns.
#[derive(Debug, Clone, PartialEq)]
pub enum Waited {
    /// The run has ended.
    Ended(RunRecord),
    /// It had not ended in time.
    TimedOut,
}

/// An event for WebSocket clients. Sent in order per run.
#[derive(Debug, Clone)]
pub struct Broadcast {
    /// `agent` or `chat`.
    pub name: &'static str,
    /// The payload as it goes on the wire, `seq`, `ts`, `runId` and `sessionKey` included.
    pub payload: Payload,
    /// The run it belongs to.
    pub run_id: RunId,
    /// The run's session.
    pub session_key: SessionKey,
    /// Who gets it.
    pub audience: Audience,
    /// Whether a slow client may miss it.
    pub droppable: bool,
    /// Whether no `agent` event of the run comes after it.
    pub ends_run: bool,
    /// The text that it shows all of so far, by its number in the run: a later event of the same name and number contains it,
    /// and may be sent in its place.
    pub growing: Option<u64>,
}

/// Who gets a [`Broadcast`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Every operator, and nodes subscribed to the session.
    All,
    /// Connections that started this run with cap `tool-events`, and all with cap `tool-activity`; sent without a frame
    /// `seq`.
    ToolListeners,
    /// Only connections with cap `tool-activity`; sent without a frame `seq`.
    ToolWatchers,
}

/// Why a message was not accepted. Nothing of it was kept.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DispatchError {
    /// The session's or the configured policy forbids sending.
    #[error("send blocked by session policy")]
    SendBlocked,
    /// The message could not be made durable (full disk, unwritable directory); the client may try again.
    #[error("the message could not be stored: {0}")]
    Storage(String),
    /// Too many messages of this session wait already; the client may try again later.
    #[error("too many messages wait in session {0}; try again later")]
    QueueFull(SessionKey),
    /// Too much waits already in all sessions together; the client may try again later.
    #[error("the gateway has more messages waiting than it can take; try again later")]
    Overloaded,
    /// The idempotency key belongs to another message; the client has to choose another one.
    #[error(
        "idempotencyKey \"{0}\" was used for another message (other text, session or kind of request); \
         send this one with a key of its own"
    )]
    KeyReused(RunId),
    /// It was `/stop`, and what it stopped may come back.
    #[error(transparent)]
    StopNotStored(#[from] StopNotStored),
    /// The gateway is going down.
    #[error("gateway is shutting down")]
    ShuttingDown,
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

    /// Whether somebody wanted it to end, and nothing else in its place.
    pub(crate) fn is_by_a_person(self) -> bool {
        match self {
            Self::Rpc | Self::Stop => true,
            Self::Timeout | Self::Interrupt => false,
        }
    }

    /// Reads a stored reason; anything unknown counts as a person's `stop`.
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "rpc" => Self::Rpc,
            "timeout" => Self::Timeout,
            "interrupt" => Self::Interrupt,
            _ => Self::Stop,
        }
    }
}

/// Runs were stopped, and the journal has no room to say so: until it has, which it tries again and again, the end of the
/// process would undo it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "stopped, but the stop could not be stored ({0}): if the gateway ends before it is, the next start goes on with it"
)]
pub struct StopNotStored(pub String);

/// Why a stop is not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AbortError {
    /// The run exists and is active, in a session other than the one named.
    #[error("runId does not match sessionKey")]
    OtherSession,
    /// It may not last.
    #[error(transparent)]
    NotStored(#[from] StopNotStored),
}

/// A run that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveRun {
    /// The run.
    pub run_id: RunId,
    /// Its session.
    pub session_key: SessionKey,
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
    /// The session.
    pub session_key: SessionKey,
    /// The text.
    pub text: String,
    /// Put before the text as `[label]` and a blank line.
    pub label: Option<String>,
}

/// What [`crate::Dispatch::inject`] did.
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
    /// It was not its turn in time.
    #[error(transparent)]
    StillActive(#[from] StillActive),
    /// The gateway is going down.
    #[error("gateway is shutting down")]
    ShuttingDown,
}

/// What was placed before did not end in time; nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Session {0} is still active; try again in a moment.")]
pub struct StillActive(pub SessionKey);

/// Why a session was not changed. Runs that were to be stopped for it are stopped all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The runs have not ended yet.
    #[error(
        "Session {0} is still active; try again in a moment. What ran and waited in it is stopped; nothing else was done."
    )]
    StillActive(SessionKey),
    /// What stops nothing did not have its turn in time.
    #[error(transparent)]
    NotInTime(#[from] StillActive),
    /// They may come back.
    #[error(transparent)]
    NotStored(#[from] StopNotStored),
}
