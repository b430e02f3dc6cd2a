//! What a model answers: a stream of events that always ends with the whole message.

use std::pin::Pin;

use futures_util::Stream;
use openclaw_protocol::message::AssistantMessage;
use tokio_util::sync::CancellationToken;

use crate::ModelRequest;

/// What a model is.
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
    /// Whether it reasons at all.
    pub reasons: bool,
}

/// A model that can be called: provider, credentials and wire protocol are bound.
pub trait Model: Send + Sync {
    /// What it is.
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

/// One step of an answer. `block` numbers the content blocks of the message from 0.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large one is made once a call, and a box would be in everyone's way"
)]
pub enum ModelEvent {
    /// The provider accepted the request and began to answer.
    Start,
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
        /// Set exactly when `stopReason` is `error`.
        failure: Option<ModelFailure>,
    },
}

/// Why a call failed, for failover and for what the user is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFailure {
    /// The class of the failure.
    pub kind: FailureKind,
    /// HTTP status, where there was one.
    pub status: Option<u16>,
    /// How long the provider asked us to wait.
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
    /// The key is wrong: try the next profile, tell the owner.
    Auth,
    /// Nothing came in time.
    Timeout,
    /// The request's shape was refused; never cools a profile down.
    Format,
    /// The context does not fit: compact and try again.
    ContextOverflow,
    /// Anything else; shown to the user.
    Other,
}
