//! Probes a model with a tiny question: which credential works, how fast, and if it fails, why.
//!
//! A probe takes the path of every call, without retries and without recording anything: it does
//! not put a profile in cooldown.

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use openclaw_protocol::message::{AssistantMessage, Message, StopReason, UserMessage};
use tokio_util::sync::CancellationToken;

use crate::access::SharedKey;
use crate::api::Api;
use crate::catalog::Catalog;
use crate::client::HttpModel;
use crate::context_window::ContextWindow;
use crate::credentials::{AgentFlag, Keyring, ProfileWish};
use crate::model_spec::ModelSpec;
use crate::request::ModelRequest;
use crate::select::Models;
use crate::settings::ModelSettings;
use crate::stream::{FailureKind, Model as _, ModelEvent, ModelFailure};
use openclaw_config::clock::now_ms;

/// Prompt of a credential probe.
const PROMPT: &str = "Reply with OK. Do not use tools.";
/// OpenAI's Responses refuse a smaller cap on the answer.
const LEAST_RESPONSES_TOKENS: u32 = 16;

/// Parameters of a probe.
#[derive(Debug)]
pub struct Probe<'a> {
    /// Directory of the agent whose credentials are used.
    pub agent_dir: &'a Path,
    /// Flag of the agent, for advice.
    pub agent: AgentFlag,
    /// The model.
    pub spec: ModelSpec,
    /// The profile; without one the first credential that a run would take.
    pub profile: Option<&'a str>,
    /// The question.
    pub request: ModelRequest,
    /// Time limit for the whole answer.
    pub deadline: Duration,
}

/// Result of a probe.
#[derive(Debug)]
pub struct Probed {
    /// The answer.
    pub answer: Result<AssistantMessage, ProbeError>,
    /// Duration in milliseconds.
    pub latency_ms: u64,
}

/// Error of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeError {
    /// The kind of failure.
    pub kind: ProbeFailure,
    /// Message for people; contains no secret.
    pub message: String,
}

/// Kinds of failures of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeFailure {
    /// The credential is missing, expired or refused.
    Auth,
    /// Too much was asked of the account.
    RateLimit,
    /// The account has to pay.
    Billing,
    /// No answer came in time.
    Timeout,
    /// The provider does not like the question.
    Format,
    /// The provider is down or can't be reached.
    Unavailable,
    /// The answer has nothing in it.
    Empty,
    /// Any other failure.
    Unknown,
}

impl ProbeFailure {
    /// The word OpenClaw 2026.2.9 uses. It has none for a provider that is down, nor for an empty answer: `unavailable` and `empty` are
    /// ours.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::RateLimit => "rate_limit",
            Self::Billing => "billing",
            Self::Timeout => "timeout",
            Self::Format => "format",
            Self::Unavailable => "unavailable",
            Self::Empty => "empty",
            Self::Unknown => "unknown",
        }
    }
}

impl From<FailureKind> for ProbeFailure {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Auth => Self::Auth,
            FailureKind::RateLimit => Self::RateLimit,
            FailureKind::Billing | FailureKind::Unaffordable => Self::Billing,
            FailureKind::Timeout => Self::Timeout,
            FailureKind::Format | FailureKind::ContextOverflow => Self::Format,
            FailureKind::Transient => Self::Unavailable,
            FailureKind::Empty => Self::Empty,
            FailureKind::Gone | FailureKind::Other => Self::Unknown,
        }
    }
}

impl From<ModelFailure> for ProbeError {
    fn from(failure: ModelFailure) -> Self {
        Self { kind: failure.kind.into(), message: failure.message }
    }
}

/// A question that costs next to nothing. `max_tokens` caps the answer.
pub fn tiny_question(spec: &ModelSpec, max_tokens: u32) -> ModelRequest {
    let least = match spec.api {
        Api::OpenAiResponses | Api::AzureOpenAiResponses => LEAST_RESPONSES_TOKENS,
        _ => 1,
    };
    ModelRequest {
        messages: vec![Message::User(UserMessage::text(PROMPT, now_ms())).into()].into(),
        max_tokens: Some(max_tokens.max(least)),
        ..ModelRequest::default()
    }
}

/// True if an answer has nothing in it. One that the cap on its length ended may have been thinking until then.
fn is_empty(answer: &AssistantMessage) -> bool {
    answer.stop_reason != StopReason::Length
        && answer.text().trim().is_empty()
        && answer.tool_calls().next().is_none()
}

impl Models {
    /// Asks once. Reads the agent's credentials, may renew a login; remembers nothing of the outcome.
    pub async fn probe(&self, settings: &ModelSettings, probe: Probe<'_>) -> Probed {
        let started = Instant::now();
        let stop = CancellationToken::new();
        let deadline = probe.deadline;
        let asked = tokio::time::timeout(deadline, self.asked(settings, probe, &stop));
        let answer = asked.await.unwrap_or_else(|_| {
            let message = format!("no answer within {} ms", deadline.as_millis());
            Err(ProbeError { kind: ProbeFailure::Timeout, message })
        });
        stop.cancel();
        let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Probed { answer, latency_ms }
    }

    async fn asked(
        &self,
        settings: &ModelSettings,
        probe: Probe<'_>,
        stop: &CancellationToken,
    ) -> Result<AssistantMessage, ProbeError> {
        let Probe { agent_dir, agent, mut spec, profile, request, .. } = probe;
        let refused = |message: String| ProbeError { kind: ProbeFailure::Auth, message };
        let (store, damage) = self.credentials(agent_dir).await;
        if let Some(damage) = damage {
            return Err(refused(damage));
        }
        let catalog = Catalog::new(settings);
        let keyring = Keyring { agent, ..self.keyring(settings, &catalog, &store, agent_dir) };
        let keys =
            keyring.keys(&spec.reference.provider, profile.map_or(ProfileWish::Any, ProfileWish::Only)).await;
        let key = match keys.map(|keys| keys.into_iter().next()) {
            Ok(Some(key)) => key,
            Ok(None) => return Err(refused("there is no credential".to_owned())),
            Err(error) => return Err(refused(error.to_string())),
        };
        if let Some(base_url) = key.base_url.clone() {
            spec.base_url = base_url;
        }
        let api = spec.api.as_str().to_owned();
        let window = ContextWindow::resolve(None, spec.context_window, None);
        let model = HttpModel::bind(spec, SharedKey::new(key), self.http.clone(), window).map_err(|_| {
            ProbeError { kind: ProbeFailure::Unknown, message: format!("{api} is not supported yet") }
        })?;
        let mut events = model.stream(request, stop.clone());
        while let Some(event) = events.next().await {
            match event {
                ModelEvent::Done { failure: Some(failure), .. } => return Err(failure.into()),
                ModelEvent::Done { message, failure: None } if is_empty(&message) => {
                    let message = "the model's answer was empty".to_owned();
                    return Err(ProbeError { kind: ProbeFailure::Empty, message });
                }
                ModelEvent::Done { message, failure: None } => return Ok(message),
                ModelEvent::Start
                | ModelEvent::Retry { .. }
                | ModelEvent::TextDelta { .. }
                | ModelEvent::ThinkingDelta { .. }
                | ModelEvent::ToolCallStart { .. } => {}
            }
        }
        Err(ProbeError { kind: ProbeFailure::Unavailable, message: "the answer has no end".to_owned() })
    }
}
