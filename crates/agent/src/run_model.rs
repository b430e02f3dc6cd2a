//! Candidate models of a run.

use openclaw_models::thinking::uses_tags;
use openclaw_models::{CacheRetention, Candidate, Model, ThinkingLevel};

/// Candidate of a run: a model and the client that calls it.
#[derive(Clone, Copy)]
pub struct RunModel<'a> {
    /// Provider, credential and wire protocol, bound.
    pub model: &'a dyn Model,
    /// The credential it is called with, where it has a name. A failure that bars the credential
    /// rules it out for other models too.
    pub credential: Option<&'a str>,
    /// Thinking level to ask for; a model that cannot reason is asked for none.
    pub thinking: ThinkingLevel,
    /// Output cap in tokens.
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Prompt caching.
    pub cache: CacheRetention,
    /// True if the provider needs `<think>`/`<final>` tags: only text inside `<final>` is then
    /// shown (spec `streaming.md` §6).
    pub reasoning_tags: bool,
    /// True if the model client itself repeats a failed call as long as nothing of the answer was
    /// received. The run then repeats only answers that broke off, so that nothing is tried twice
    /// for one failure.
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
