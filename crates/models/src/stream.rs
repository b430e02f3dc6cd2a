//! Answer of a model: a stream of events that always ends with the whole message.

use std::pin::Pin;

use futures_util::Stream;
use openclaw_protocol::message::AssistantMessage;
use tokio_util::sync::CancellationToken;

use crate::ModelRequest;

/// Facts about a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelFacts<'a> {
    /// Provider id, such as `anthropic`.
    pub provider: &'a str,
    /// Model id, such as `claude-opus-4-6`.
    pub id: &'a str,
    /// Wire protocol, such as `anthropic-messages`.
    pub api: &'a str,
    /// Size of the context window in tokens.
    pub context_window: u64,
    /// The longest answer in tokens.
    pub max_tokens: u64,
    /// True if the model can reason.
    pub reasons: bool,
}

/// A model that can be called: provider, credentials and wire protocol are bound.
pub trait Model: Send + Sync {
    /// Facts about the model.
    fn facts(&self) -> ModelFacts<'_>;

    /// See [`ModelFacts::provider`].
    fn provider(&self) -> &str {
        self.facts().provider
    }

    /// See [`ModelFacts::id`].
    fn id(&self) -> &str {
        self.facts().id
    }

    /// See [`ModelFacts::api`].
    fn api(&self) -> &str {
        self.facts().api
    }

    /// See [`ModelFacts::context_window`].
    fn context_window(&self) -> u64 {
        self.facts().context_window
    }

    /// See [`ModelFacts::reasons`].
    fn reasons(&self) -> bool {
        self.facts().reasons
    }

    /// Calls the model. Cancelling ends the stream with [`ModelEvent::Done`] and `stopReason: aborted`, closing the
    /// connection at once. Dropping the stream closes it too.
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ModelStream;
}

/// A model's answer as it arrives.
pub type ModelStream = Pin<Box<dyn Stream<Item = ModelEvent> + Send>>;

/// Event of an answer. `block` numbers the content blocks of the message from 0.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large one is made once a call, and a box would be in everyone's way"
)]
pub enum ModelEvent {
    /// The provider accepted the request and began to answer.
    Start,
    /// The call failed before anything of the answer was heard, and is made again by itself. It may come before
    /// [`ModelEvent::Start`].
    Retry {
        /// Number of the request that comes next, counted from 1.
        attempt: u32,
        /// Requests that are made at most.
        attempts: u32,
        /// Time until that request.
        wait: std::time::Duration,
        /// Failure of the last attempt.
        failure: ModelFailure,
    },
    /// Text was added to a text block.
    TextDelta {
        /// Index of the block.
        block: usize,
        /// The new characters.
        delta: String,
    },
    /// Text was added to a thinking block.
    ThinkingDelta {
        /// Index of the block.
        block: usize,
        /// The new characters.
        delta: String,
    },
    /// A tool call began; its arguments follow silently and are whole in [`ModelEvent::Done`].
    ToolCallStart {
        /// Index of the block.
        block: usize,
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// The end, always the last event and always sent once. A failure is a message with `stopReason: error`, what
    /// arrived before it, `errorMessage`, and `failure` saying what kind it was.
    Done {
        /// The whole message, usage and cost included.
        message: AssistantMessage,
        /// Failure of the call; set exactly when `stopReason` is `error`.
        failure: Option<ModelFailure>,
    },
}

/// Failure of a call, for failover and for the message to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFailure {
    /// The class of the failure.
    pub kind: FailureKind,
    /// HTTP status, where there was one.
    pub status: Option<u16>,
    /// Backoff that the provider asked for.
    pub retry_after: Option<std::time::Duration>,
    /// The provider's own words, unredacted of nothing secret.
    pub message: String,
}

impl ModelFailure {
    /// A failure without a status, of which the provider did not say how long to wait.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, status: None, retry_after: None, message: message.into() }
    }
}

/// Classes of failure (spec `models.md` §9.1), by what the caller does about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// Slow down: cool the profile down, try the next.
    RateLimit,
    /// The provider is overloaded or unreachable (5xx, 529, refused or reset connections): retry, then fall back.
    Transient,
    /// Payment: disable the profile for hours.
    Billing,
    /// The credit is enough for a shorter answer only: ask for less, else fall back.
    Unaffordable,
    /// The key is wrong: try the next profile, tell the owner.
    Auth,
    /// No answer came in time.
    Timeout,
    /// The request's shape was refused; never cools a profile down.
    Format,
    /// The provider has no such model, or has it no longer: fall back.
    Gone,
    /// The answer holds nothing to read: ask once more, then fall back. Found by who reads it, not by the client.
    Empty,
    /// The context does not fit: compact and try again.
    ContextOverflow,
    /// Any other failure; shown to the user.
    Other,
}
