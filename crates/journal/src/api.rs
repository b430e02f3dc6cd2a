//! Messages that the gateway hands to dispatch, and the results and events that it gets back.

use openclaw_channels::Address;
use openclaw_protocol::message::{Block, Message};
use openclaw_protocol::{AgentId, Payload, RunId, SessionKey};
use openclaw_sessions::entry::Json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::caller::CallerRights;
use crate::run_result::RunResult;

/// Text shown of a run that was stopped by the clock, if its own limit does not say more.
pub const TIME_IS_UP: &str =
    "The run timed out: it was stopped at its time limit. Ask for less at once, or allow more time.";

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
    /// Name that the client gives itself; the session is listed under it if it has no other name.
    pub sender: Option<String>,
    /// Rights of the client. One that may change the gateway speaks as the owner.
    pub rights: CallerRights,
    /// Conversation out of which this one was opened, such as the room of a thread. If this is the
    /// first message of its session, the session begins with the parent's conversation (spec
    /// `sessions.md` §5.7).
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
    /// Reason for the request.
    pub occasion: Occasion,
    /// The conversation that its answer is sent to.
    pub deliver_to: Option<Address>,
    /// Rights of the program: those of an owner for a client that may change the gateway, or a file of
    /// the owner.
    pub rights: CallerRights,
    /// Further fields of the request that the session entry keeps (label, spawnedBy, group and
    /// delivery fields).
    pub entry_patch: serde_json::Map<String, Value>,
}

/// Reason for an `agent` request, which decides how long its session lasts (spec `sessions.md`
/// §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Occasion {
    /// A request over the gateway's protocol. The session goes on, and counts as used.
    #[default]
    Request,
    /// A request at the command line, without a gateway. The session expires as configured, by the
    /// channel it was last used over.
    Command,
    /// The gateway looks after the session by itself. It goes on, and does not count as used: a heartbeat keeps no idle
    /// session alive.
    Heartbeat,
    /// A scheduled job that shares nothing with its last run: always a new conversation, whatever the request names.
    Isolated,
}

/// Result of handing in a message.
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

/// End of a run, remembered for `agent.wait` and for repeated idempotency keys, also across a
/// restart.
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
    /// Parts that the system prompt was made of. Only the caller of the run gets this; no journal
    /// keeps it.
    pub report: Option<Json>,
}

impl RunRecord {
    /// Milliseconds that the run took, as its process has measured it, which no change of the wall
    /// clock affects. For a run without such a measure, the time between its beginning and its end
    /// by the wall clock.
    pub fn took_ms(&self) -> i64 {
        let by_wall = || self.ended_at.saturating_sub(self.started_at.unwrap_or(self.ended_at)).max(0);
        self.outcome.result().and_then(RunResult::duration_ms).unwrap_or_else(by_wall)
    }

    /// Outcome in the form that the run's caller gets: with the report as
    /// `meta.systemPromptReport`.
    pub fn told(self) -> RunOutcome {
        let Self { mut outcome, report, .. } = self;
        let result = match &mut outcome {
            RunOutcome::Ok { result } => Some(result),
            RunOutcome::Error { result, .. } | RunOutcome::Aborted { result, .. } => result.as_mut(),
        };
        if let (Some(result), Some(report)) = (result, report.and_then(|report| report.read().ok())) {
            result.add_report(report);
        }
        outcome
    }
}

/// The result of a run. The inbox keeps it as JSON: fields may be added; none changes its meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "camelCase")]
pub enum RunOutcome {
    /// The run answered; `result` is the `agent` final's `result` (`{payloads, meta}`).
    Ok {
        /// Payloads and figures.
        result: RunResult,
    },
    /// The run failed; the text is for people. `result` carries the error payload and meta if a run
    /// had begun.
    Error {
        /// Error text, for people.
        message: String,
        /// Payloads and figures, if a run had begun.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<RunResult>,
    },
    /// The run was stopped; `reason` is `rpc`, `stop`, `timeout` or `shutdown`.
    Aborted {
        /// Source of the stop: `rpc`, `stop`, `timeout` or `shutdown`.
        reason: String,
        /// Payloads and figures, if a run had begun.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<RunResult>,
    },
}

impl RunOutcome {
    /// Returns payloads and figures, if a run had begun.
    pub fn result(&self) -> Option<&RunResult> {
        match self {
            Self::Ok { result } => Some(result),
            Self::Error { result, .. } | Self::Aborted { result, .. } => result.as_ref(),
        }
    }

    /// Returns the error text for people if the run failed or ran out of time; `None` if it
    /// answered or was stopped by someone.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Ok { .. } => None,
            Self::Error { message, .. } => Some(message),
            Self::Aborted { reason, result } => (reason == AbortReason::Timeout.as_str())
                .then(|| result.as_ref().and_then(RunResult::error_message).unwrap_or(TIME_IS_UP)),
        }
    }
}

/// Answer to `agent.wait`.
#[derive(Debug, Clone, PartialEq)]
pub enum Waited {
    /// The run has ended.
    Ended(RunRecord),
    /// The run had not ended in time.
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
    /// Clients that get it.
    pub audience: Audience,
    /// True if a slow client may miss it.
    pub droppable: bool,
    /// True if no `agent` event of the run comes after it.
    pub ends_run: bool,
    /// The text that it shows all of so far, by its number in the run: a later event of the same name and number contains it,
    /// and may be sent in its place.
    pub growing: Option<u64>,
}

/// Clients that get a [`Broadcast`].
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

/// Reasons for which a message is not accepted. No part of such a message is kept.
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
    /// The message was `/stop`, and the runs that it stopped may come back.
    #[error(transparent)]
    StopNotStored(#[from] StopNotStored),
    /// The gateway is going down.
    #[error("gateway is shutting down")]
    ShuttingDown,
}

/// Runs of a session that are to be stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AbortTarget {
    /// Every run, including the queued ones.
    All,
    /// Only the run with this id.
    Run(RunId),
}

/// Reason for stopping runs; [`AbortReason::as_str`] is the `stopReason` on the wire.
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

    /// True if a person wanted the run to end, with nothing else in its place.
    pub fn is_by_a_person(self) -> bool {
        match self {
            Self::Rpc | Self::Stop => true,
            Self::Timeout | Self::Interrupt => false,
        }
    }

    /// Reads a stored reason; anything unknown counts as a person's `stop`.
    pub fn parse(text: &str) -> Self {
        match text {
            "rpc" => Self::Rpc,
            "timeout" => Self::Timeout,
            "interrupt" => Self::Interrupt,
            _ => Self::Stop,
        }
    }
}

/// Runs were stopped, but the journal has no room to store that. Until it has, which is tried again
/// and again, the end of the process would undo the stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "stopped, but the stop could not be stored ({0}): if the gateway ends before it is, the next start goes on with it"
)]
pub struct StopNotStored(pub String);

/// Reasons for which a stop is not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AbortError {
    /// The run exists and is active, in a session other than the one named.
    #[error("runId does not match sessionKey")]
    OtherSession,
    /// The stop may not survive a restart, as it is not stored.
    #[error(transparent)]
    NotStored(#[from] StopNotStored),
}

/// A run that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveRun {
    /// The run.
    pub run_id: RunId,
    /// The run's session.
    pub session_key: SessionKey,
    /// Unix milliseconds of acceptance.
    pub accepted_at: i64,
    /// Current phase.
    pub phase: RunPhase,
}

/// Phase of a run that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPhase {
    /// Waits for its session or for a global lane.
    Queued,
    /// Works now.
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

/// Result of `Dispatch::inject`.
#[derive(Debug, Clone, PartialEq)]
pub struct Injected {
    /// Id of the new transcript entry.
    pub message_id: String,
    /// The message as stored.
    pub message: Message,
}

/// Reasons for which nothing was injected.
#[derive(Debug, Clone, thiserror::Error)]
pub enum InjectError {
    /// The key has no entry or no transcript.
    #[error("session not found")]
    UnknownSession,
    /// The transcript could not be written.
    #[error("failed to write transcript: {0}")]
    Storage(String),
    /// Earlier work of the session did not end in time for the injection.
    #[error(transparent)]
    StillActive(#[from] StillActive),
    /// The gateway is going down.
    #[error("gateway is shutting down")]
    ShuttingDown,
}

/// Earlier work of the session did not end in time; nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Session {0} is still active; try again in a moment.")]
pub struct StillActive(pub SessionKey);

/// Reasons for which a session was not changed. Runs that were to be stopped for the change are
/// stopped all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The runs have not ended yet.
    #[error(
        "Session {0} is still active; try again in a moment. What ran and waited in it is stopped; nothing else was done."
    )]
    StillActive(SessionKey),
    /// Work of the session that stops no runs did not get its turn in time.
    #[error(transparent)]
    NotInTime(#[from] StillActive),
    /// The stopped runs may come back after a restart.
    #[error(transparent)]
    NotStored(#[from] StopNotStored),
}
