//! Result of a run: reply payloads, figures, and outcome (spec `agent-runtime.md` §1.1, §2.7,
//! §2.8).

use openclaw_models::FailureKind;
use openclaw_protocol::SessionId;
use openclaw_protocol::message::Usage;
use serde::Serialize;
use serde_json::{Value, json};

/// Result of a run for the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Unix milliseconds.
    pub started_at: i64,
    /// Unix milliseconds.
    pub ended_at: i64,
    /// Outcome of the run; the same value as in the last event.
    pub end: RunEnd,
    /// The replies in order. After an abort these are the texts that were complete or partly there: the caller decides
    /// whether they are still worth delivering.
    pub payloads: Vec<ReplyPayload>,
    /// Figures for clients.
    pub meta: RunMeta,
    /// Usage of the last successful model call: what the session's `totalTokens` is computed from
    /// (spec `models.md` §7: the last call, not the sum).
    pub last_usage: Option<Usage>,
    /// Tokens of the conversation by estimate, where a compaction came after that call.
    pub tokens_after: Option<u64>,
    /// True if the conversation no longer fits the model's context window: the caller compacts it
    /// before the next run.
    pub is_full: bool,
    /// Every failed attempt in order.
    pub failures: Vec<CandidateFailure>,
    /// Index of the candidate that made the last call.
    pub candidate: usize,
    /// True if the run's time limit passed before that call gave anything.
    pub ran_out_of_time: bool,
}

impl Outcome {
    /// The `result` of an `agent` final: `{payloads, meta}`.
    pub fn to_result(&self) -> Value {
        json!({ "payloads": self.payloads, "meta": self.meta })
    }
}

/// Outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// The model was done.
    Completed,
    /// Someone stopped it.
    Aborted,
    /// The run reached its time limit.
    TimedOut,
    /// The run failed; the text is for people.
    Failed(String),
}

impl RunEnd {
    /// Returns true if the run was stopped, by someone or by its time limit.
    pub fn was_stopped(&self) -> bool {
        match self {
            Self::Aborted | Self::TimedOut => true,
            Self::Completed | Self::Failed(_) => false,
        }
    }
}

/// Reply for the sender. Only the first four fields are on the wire of the `agent` method; the rest
/// steers delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplyPayload {
    /// Text with directives removed; may be empty beside media.
    pub text: String,
    /// The first media reference, `null` without one.
    pub media_url: Option<String>,
    /// All media references.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media_urls: Vec<String>,
    /// True if the text reports a failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// True if the reply only stands in for a missing answer: it is dropped where a tool has
    /// already answered.
    #[serde(skip)]
    pub is_fallback: bool,
    /// The message to quote.
    #[serde(skip)]
    pub reply_to: Option<ReplyTo>,
    /// True if audio is sent as a voice note.
    #[serde(skip)]
    pub voice: bool,
    /// Index of the run's message that it answers: 0 is the run's own, then come the messages that were steered in, in their order.
    #[serde(skip)]
    pub said_to: usize,
}

/// Text shown to people if models were asked but none answered, or if nothing of the answer can be shown.
pub const NO_ANSWER: &str = "No response generated. Please try again.";

/// Message that a reply tag asked to quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyTo {
    /// The message that triggered the run.
    Current,
    /// The message with this platform id.
    Id(String),
}

impl ReplyTo {
    /// The platform's id, where it is known.
    pub fn into_id(self) -> Option<String> {
        match self {
            Self::Current => None,
            Self::Id(id) => Some(id),
        }
    }
}

/// `meta` of an `agent` final; what its system prompt was made of the caller knows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunMeta {
    /// Duration of the run in milliseconds, measured independently of jumps of the wall clock.
    pub duration_ms: u64,
    /// Session, model and tokens.
    pub agent_meta: AgentMeta,
    /// True if the run was stopped by someone or by its time limit.
    pub aborted: bool,
    /// `tool_calls` when a client has to run tools, `max_tool_rounds` or `tool_loop` when a limit ended the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<&'static str>,
    /// Error with which the run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
}

/// `meta.agentMeta`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentMeta {
    /// The transcript.
    pub session_id: SessionId,
    /// Provider of the candidate that made the last call.
    pub provider: String,
    /// Model id without the provider.
    pub model: String,
    /// Sum over all calls of the run; absent when nothing was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<RunUsage>,
    /// Number of compactions in this run; absent where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction_count: Option<u64>,
}

/// Token sums of a run, zero fields omitted (spec `models.md` §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunUsage {
    /// Prompt tokens that were not cached.
    #[serde(skip_serializing_if = "is_zero")]
    pub input: u64,
    /// Completion tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub output: u64,
    /// Prompt tokens read from the cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Prompt tokens written to the cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// Sum of the four.
    #[serde(skip_serializing_if = "is_zero")]
    pub total: u64,
}

impl RunUsage {
    /// Adds one call.
    pub fn add(&mut self, usage: &Usage) {
        self.input += usage.input;
        self.output += usage.output;
        self.cache_read += usage.cache_read;
        self.cache_write += usage.cache_write;
        self.total = self.input + self.output + self.cache_read + self.cache_write;
    }

    /// The sums, or nothing when no call counted a token.
    pub fn counted(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// `meta.error`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunError {
    /// The class.
    pub kind: RunErrorKind,
    /// Text for people.
    pub message: String,
}

/// Classes of `meta.error.kind`. The first four are the reference's; the others are ours and additive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunErrorKind {
    /// The context does not fit the model.
    ContextOverflow,
    /// Compaction was tried and failed.
    CompactionFailure,
    /// The provider refused the order of roles.
    RoleOrdering,
    /// An image is too large for the provider.
    ImageSize,
    /// Too many requests.
    RateLimit,
    /// Provider overloaded or unreachable.
    Unavailable,
    /// Payment.
    Billing,
    /// Bad or missing credentials.
    Auth,
    /// Out of time.
    Timeout,
    /// The provider refused the request's shape.
    Format,
    /// A limit of ours ended the run.
    Limit,
    /// The transcript could not be written.
    Storage,
    /// The gateway stops: the transcript takes nothing more, and the run goes on at the next start.
    Interrupted,
    /// Any other failure.
    Other,
}

impl From<FailureKind> for RunErrorKind {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::RateLimit => Self::RateLimit,
            FailureKind::Transient => Self::Unavailable,
            FailureKind::Billing | FailureKind::Unaffordable => Self::Billing,
            FailureKind::Auth => Self::Auth,
            FailureKind::Timeout => Self::Timeout,
            FailureKind::Format => Self::Format,
            FailureKind::ContextOverflow => Self::ContextOverflow,
            FailureKind::Gone | FailureKind::Empty | FailureKind::Other => Self::Other,
        }
    }
}

/// Failed attempt with one candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateFailure {
    /// Index into [`crate::RunParams::models`].
    pub candidate: usize,
    /// The class.
    pub kind: FailureKind,
    /// The provider's words.
    pub message: String,
}
