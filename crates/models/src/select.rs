//! From settings and what a session asks for to models that can be called.

use std::path::Path;

use openclaw_protocol::AgentId;
use openclaw_protocol::message::Message;

use crate::context_window::ContextWindow;
use crate::net::Http;
use crate::reference::ModelRef;
use crate::request::{CacheRetention, ModelRequest, ThinkingLevel, ToolSpec};
use crate::settings::ModelSettings;
use crate::stream::Model;
use crate::variables::Variables;

/// Everything that outlives one selection: the HTTP connections, the environment, answers of key commands. One for the
/// whole gateway; cheap to clone.
#[derive(Debug, Clone)]
pub struct Models {
    #[expect(dead_code, reason = "provisional")]
    http: Http,
    #[expect(dead_code, reason = "provisional")]
    variables: Variables,
}

/// What one run asks for.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// The agent that runs.
    pub agent: &'a AgentId,
    /// Its directory (`agents/<id>/agent`), where `auth-profiles.json` is.
    pub agent_dir: &'a Path,
    /// The session's or the request's own model: reference or alias. Fallbacks still apply.
    pub model: Option<&'a str>,
    /// The session's credential profile (`authProfileOverride`).
    pub profile: Option<&'a str>,
    /// Thinking level.
    pub thinking: AskedThinking,
}

/// Where a wish for a thinking level comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AskedThinking {
    /// Nobody asked: `agents.defaults.thinkingDefault`, else `low` where the model reasons.
    #[default]
    Default,
    /// Kept in the session: becomes the nearest the model has.
    Stored(ThinkingLevel),
    /// Asked for in this very message: refused where the model does not have it.
    Explicit(ThinkingLevel),
}

/// The models of one run.
pub struct Selected {
    /// Primary first, then fallbacks in order; never empty. Each retries by itself what can be retried before anything was
    /// streamed (spec `agent-runtime.md` §2.8): the caller goes to the next one on failure, and never calls one twice for
    /// the same failure.
    pub candidates: Vec<Candidate>,
    /// Models that could not be bound, with the reason; the log should say so.
    pub skipped: Vec<(ModelRef, SelectError)>,
    /// What to tell the owner about the configuration.
    pub warnings: Vec<String>,
}

impl Selected {
    /// Whether the offline guide answers because no model is connected.
    pub fn is_offline(&self) -> bool {
        false
    }
}

/// A model bound to its credential, with the settings of this run.
pub struct Candidate {
    /// Which one.
    pub reference: ModelRef,
    /// Its name for people.
    pub name: String,
    /// What to call.
    pub model: Box<dyn Model>,
    /// Level to ask for, already clamped to what the model has.
    pub thinking: ThinkingLevel,
    /// Output cap from `agents.defaults.models.<key>.params`.
    pub max_tokens: Option<u32>,
    /// Temperature from the same place.
    pub temperature: Option<f64>,
    /// Prompt caching.
    pub cache: CacheRetention,
    /// Tokens this run may use.
    pub window: ContextWindow,
    /// Where the key comes from.
    pub auth: AuthLabel,
}

impl Candidate {
    /// A request with this candidate's settings.
    pub fn request(
        &self,
        system: String,
        messages: Vec<Message>,
        tools: Vec<ToolSpec>,
        session_id: Option<String>,
    ) -> ModelRequest {
        ModelRequest {
            system,
            messages,
            tools,
            thinking: self.thinking,
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            cache: self.cache,
            session_id,
        }
    }
}

/// Where a credential comes from, for status cards; holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthLabel {
    /// `api-key`, `oauth`, `token` or `none`.
    pub mode: &'static str,
    /// `profile:<id>`, `env: NAME`, `models.json`, or empty.
    pub source: String,
    /// First and last characters of the key, as in `sk-mock-...89abcdef`; empty without a key.
    pub masked: String,
    /// The profile, where it is one.
    pub profile: Option<String>,
}

/// Why there is no model to call. The texts are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The reference is empty or of no known form.
    #[error("invalid model: {0}")]
    Invalid(String),
    /// Not among `agents.defaults.models`.
    #[error("model not allowed: {0}")]
    NotAllowed(ModelRef),
    /// Nobody knows it.
    #[error("Unknown model: {0}")]
    Unknown(ModelRef),
    /// It speaks a protocol this version does not.
    #[error("provider {provider} speaks {api}, which is not supported yet")]
    Unsupported {
        /// The provider.
        provider: String,
        /// The protocol.
        api: String,
    },
}

impl Models {
    /// Opens nothing yet: connections are made by the first call.
    pub fn new(variables: Variables, http: Http) -> Self {
        Self { http, variables }
    }

    /// Chooses and binds the models of a run. Reads the agent's credentials, may run a key command.
    ///
    /// # Errors
    /// When not even one candidate can be bound: the primary's error.
    #[expect(clippy::unused_async, reason = "provisional")]
    pub async fn select(&self, settings: &ModelSettings, ask: &Ask<'_>) -> Result<Selected, SelectError> {
        let _ = (settings, ask);
        Err(SelectError::Invalid("empty".to_owned()))
    }

    /// What the agent would run with, nothing bound and no network used: for `sessions.list` defaults and status.
    ///
    /// # Errors
    /// As [`Models::select`].
    #[expect(clippy::unused_async, reason = "provisional")]
    pub async fn describe(&self, settings: &ModelSettings, ask: &Ask<'_>) -> Result<Described, SelectError> {
        let _ = (settings, ask);
        Err(SelectError::Invalid("empty".to_owned()))
    }

    /// The rows of `models.list`, configured providers first.
    pub fn rows(&self, settings: &ModelSettings) -> Vec<ModelRow> {
        let _ = settings;
        Vec::new()
    }
}

/// What [`Models::describe`] finds.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// Which model.
    pub reference: ModelRef,
    /// Its protocol.
    pub api: String,
    /// Tokens a run may use.
    pub window: ContextWindow,
    /// Whether it reasons.
    pub reasons: bool,
    /// Whether it takes images.
    pub sees: bool,
    /// Level a run would ask for.
    pub thinking: ThinkingLevel,
}

/// One row of `models.list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRow {
    /// Id on the wire.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Provider id.
    pub provider: String,
    /// Tokens, where known.
    pub context_window: Option<u64>,
    /// Whether it reasons.
    pub reasoning: bool,
    /// `text`, `image`.
    pub input: Vec<String>,
}
