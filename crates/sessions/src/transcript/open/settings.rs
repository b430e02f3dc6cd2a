//! The entries that note which model and thinking level apply (spec `sessions.md` §4.2).

use serde_json::{Value, json};

use super::OpenTranscript;
use crate::time::now_ms;
use crate::transcript::TranscriptError;
use crate::transcript::context::Context;
use crate::transcript::format::{Body, CACHE_TTL, MODEL_SNAPSHOT};

/// The model and thinking level of a run, as transcripts note them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSettings {
    /// Provider id.
    pub provider: String,
    /// Model id.
    pub model_id: String,
    /// Wire protocol.
    pub api: String,
    /// `off` to `xhigh`.
    pub thinking_level: String,
    /// True if the run's calls refresh a cache of the provider's by which old tool results are
    /// pruned: then each refresh is noted, as OpenClaw does.
    pub touches_cache: bool,
}

impl ModelSettings {
    /// The entries that say them, but for those that a branch with this context and this last model snapshot says already.
    fn not_in(&self, current: &Context, snapshot: Option<&Value>) -> impl Iterator<Item = Body> + use<> {
        let Self { provider, model_id, api, thinking_level, touches_cache } = self.clone();
        let data = json!({"timestamp": now_ms(), "provider": provider, "modelId": model_id});
        let touch = Body::Custom { custom_type: CACHE_TTL.to_owned(), data: Some(data) };
        let is = |name: &str, value: &str| snapshot.and_then(|said| said.get(name)?.as_str()) == Some(value);
        let has_snapshot = is("provider", &provider) && is("modelApi", &api) && is("modelId", &model_id);
        let has_model = current.model.as_ref().is_some_and(|(p, m)| *p == provider && *m == model_id);
        let has_level = current.thinking_level.as_deref() == Some(&thinking_level);
        let data = json!({"timestamp": now_ms(), "provider": provider, "modelApi": api, "modelId": model_id});
        let snapshot = Body::Custom { custom_type: MODEL_SNAPSHOT.to_owned(), data: Some(data) };
        let model = Body::ModelChange { provider, model_id };
        let level = Body::ThinkingLevelChange { thinking_level };
        let all = [(has_model, model), (has_level, level), (has_snapshot, snapshot), (!touches_cache, touch)];
        all.into_iter().filter_map(|(is_said, body)| (!is_said).then_some(body))
    }
}

impl OpenTranscript {
    /// Appends the entries that say which model and thinking level apply, as far as the branch does not say it.
    /// In a long transcript only the end counts: earlier settings are noted again.
    ///
    /// # Errors
    /// When it can't be read or written.
    pub fn note_settings(&mut self, settings: &ModelSettings) -> Result<(), TranscriptError> {
        let branch = self.tail.index.path(self.leaf).path;
        let current = self.context_settings(&branch)?;
        let snapshot = self.model_snapshot(&branch)?;
        settings.not_in(&current, snapshot.as_ref()).try_for_each(|body| self.append(body, None).map(drop))
    }
}
