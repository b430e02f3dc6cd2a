//! One run from the user's message to the last event: parameters, limits and the entry point.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openclaw_models::thinking::uses_tags;
use openclaw_models::{CacheRetention, Candidate, KeptRequest, Model, ThinkingLevel};
use openclaw_protocol::SessionId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::compaction::CompactionSettings;
use crate::event::RunEvent;
use crate::hooks::RunHooks;
use crate::host::Host;
use crate::pruning::{PruneSettings, Pruned};
use crate::redaction::Redactor;
use crate::reply::Outcome;
use crate::sent_images::SentImages;
use crate::toolbox::Toolbox;
use crate::transcript::{Steering, Transcript};

/// Everything one run works with. The run holds no state of its own between calls.
pub struct RunParams<'a> {
    /// The transcript's id: request metadata and `meta.agentMeta.sessionId`.
    pub session_id: SessionId,
    /// Whom to call, in order of preference, never empty: the requested model with each usable credential, then the
    /// fallbacks. A failure that another candidate may not have moves on to the next (spec `models.md` §9.2, §9.3).
    pub models: &'a [RunModel<'a>],
    /// What is told of models that were left out from the start, as `provider/model: why`; for the list of all that failed.
    pub passed_over: &'a [String],
    /// The system prompt, byte-stable for the session.
    pub system_prompt: &'a Arc<str>,
    /// The tools, policy applied.
    pub tools: &'a Toolbox,
    /// What the tools may ask of the gateway.
    pub host: Arc<dyn Host>,
    /// What is told of the tools' calls, and may change them.
    pub hooks: RunHooks,
    /// Takes secrets out of what the tools say.
    pub redactor: &'a Redactor,
    /// Where history comes from and messages go. It ends with the message to answer; or, when an earlier process ended
    /// while the run was under way, with what that has written since. Unanswered tool calls are then closed with an error
    /// result, and an answer that is already there is returned without calling the model.
    pub transcript: &'a mut dyn Transcript,
    /// What was asked last behind the same transcript: the next request goes on from it.
    pub kept: KeptRequest,
    /// What the user says meanwhile.
    pub steering: &'a dyn Steering,
    /// Whether reasoning becomes a reply of its own.
    pub reasoning: ReasoningVisibility,
    /// Time, rounds, loops.
    pub limits: Limits,
    /// When messages give way to a summary, and how many stay.
    pub compaction: CompactionSettings,
    /// Tokens of the system prompt and the tools, by estimate.
    pub fixed_tokens: u64,
    /// How old tool results are pruned; `None` prunes none.
    pub pruning: Option<&'a PruneSettings>,
    /// What was pruned behind the same transcript.
    pub pruned: &'a mut Pruned,
    /// What was sent behind the same transcript in the place of images that are too large.
    pub images: &'a mut SentImages,
    /// Keep this many user turns of history (spec `agent-runtime.md` §9.5); absent keeps all.
    pub history_limit: Option<NonZeroU32>,
    /// Stops the run.
    pub cancel: CancellationToken,
    /// Where tools resolve relative paths. The process never changes its own directory.
    pub workspace: PathBuf,
    /// Takes the events in order. The receiver must be drained while the run works (the run waits for room); dropping
    /// it is allowed and loses the events only.
    pub events: mpsc::Sender<RunEvent>,
}

/// Whether reasoning is shown to the user (`/reasoning`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReasoningVisibility {
    /// Hidden.
    #[default]
    Off,
    /// As a message of its own before the answer.
    On,
    /// While it arrives, on channels that can show drafts.
    Stream,
}

impl ReasoningVisibility {
    /// The canonical name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Stream => "stream",
        }
    }
}

/// One candidate: a model and how to call it.
#[derive(Clone, Copy)]
pub struct RunModel<'a> {
    /// Provider, credential and wire protocol, bound.
    pub model: &'a dyn Model,
    /// The credential it is called with, where it has a name. What bars it is not tried with other models either.
    pub credential: Option<&'a str>,
    /// Thinking level to ask for; a model that cannot reason is asked for none.
    pub thinking: ThinkingLevel,
    /// Output cap in tokens.
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Prompt caching.
    pub cache: CacheRetention,
    /// Whether the provider needs `<think>`/`<final>` tags: only text inside `<final>` is then shown
    /// (spec `streaming.md` §6).
    pub reasoning_tags: bool,
    /// Whether the model repeats a failed call by itself as long as nothing of the answer was heard. The run then
    /// repeats only answers that broke off, so that nothing is tried twice for one failure.
    pub repeats_itself: bool,
}

impl<'a> RunModel<'a> {
    /// A model with default parameters.
    pub fn new(model: &'a dyn Model) -> Self {
        Self {
            model,
            credential: None,
            thinking: ThinkingLevel::Off,
            max_tokens: None,
            temperature: None,
            cache: CacheRetention::default(),
            reasoning_tags: uses_tags(model.provider()),
            repeats_itself: false,
        }
    }
}

impl<'a> From<&'a Candidate> for RunModel<'a> {
    fn from(candidate: &'a Candidate) -> Self {
        Self {
            thinking: candidate.thinking,
            max_tokens: candidate.max_tokens,
            temperature: candidate.temperature,
            cache: candidate.cache,
            repeats_itself: true,
            credential: candidate.auth.profile.as_deref(),
            ..Self::new(candidate.model.as_ref())
        }
    }
}

/// What bounds a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Wall time of the whole run, tools included; `None` is unlimited.
    pub timeout: Option<Duration>,
    /// Model calls that asked for tools before the run is stopped; off by default, as in the reference.
    pub max_tool_rounds: Option<NonZeroU32>,
    /// How often in a row a failed call is repeated with the same candidate, after 2, 4 and 8 s
    /// (spec `agent-runtime.md` §2.8). See also [`RunModel::repeats_itself`].
    pub retries: u32,
    /// After this many consecutive identical calls the result tells the model that it is going in circles.
    pub identical_calls_warn: u32,
    /// After this many the run is stopped.
    pub identical_calls_stop: u32,
}

impl Limits {
    /// What people are told of a run that was stopped by the clock.
    pub fn time_is_up(&self) -> String {
        let limit = self.timeout.unwrap_or_default().as_secs();
        format!(
            "The run was stopped at its time limit of {limit} s. Ask for less at once, or allow more time: with --timeout of \
             the command that asked, or in agents.defaults.timeoutSeconds."
        )
    }
}

impl Default for Limits {
    /// Spec `agent-runtime.md` §2.4 (10 and 30 identical calls). How long a run may take is the caller's to say.
    fn default() -> Self {
        Self {
            timeout: None,
            max_tool_rounds: None,
            retries: 3,
            identical_calls_warn: 10,
            identical_calls_stop: 30,
        }
    }
}

/// Works until the model is done, someone stops it, time is up, or it fails. Emits exactly one
/// [`RunEvent::Started`] first and exactly one [`RunEvent::Ended`] last, and leaves a well-formed transcript however it ends.
pub async fn run(params: RunParams<'_>) -> Outcome {
    crate::driver::drive(params).await
}
