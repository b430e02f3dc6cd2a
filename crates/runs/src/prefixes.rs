//! Values for a prefix of answers: the model that answered, or else the one that would (spec
//! `messages.md` §10.3).

use std::sync::Arc;

use openclaw_delivery::reply::prefix::PrefixContext;
use openclaw_delivery::reply::settings::prefix_of;
use openclaw_journal::api::RunOutcome;
use openclaw_journal::run_result::RunResult;
use openclaw_models::{Candidate, ModelRef};
use openclaw_runtime::session_model::SessionModels;
use openclaw_runtime::setup::LiveSettings;
use openclaw_sessions::{SessionEntry, SessionKey};

use crate::rows::SessionRows;
use crate::said::Destination;

/// Parts for making the prefixes of answers.
pub(crate) struct Prefixes {
    settings: LiveSettings,
    rows: Arc<SessionRows>,
    models: Arc<SessionModels>,
}

impl Prefixes {
    pub(crate) fn new(settings: LiveSettings, rows: Arc<SessionRows>, models: Arc<SessionModels>) -> Self {
        Self { settings, rows, models }
    }

    /// Values for the prefix of an answer: the model that the run reports, or, for a command and a
    /// run that failed before it had one, the one that the session would use.
    pub(super) async fn prefix_context(
        &self,
        key: &SessionKey,
        to: &Destination,
        outcome: &RunOutcome,
        thinking: Option<String>,
    ) -> PrefixContext {
        let result = outcome.result();
        let provider = result.and_then(RunResult::provider).map(str::to_owned);
        let model = result.and_then(RunResult::model).map(str::to_owned);
        if model.is_none() {
            return self.prefix_of_session(key, to).await;
        }
        PrefixContext { provider, model, thinking, identity: self.identity_of(key) }
    }

    /// Values for the prefix of a run that begins.
    pub(super) fn prefix_of(&self, key: &SessionKey, first: Option<&Candidate>) -> PrefixContext {
        PrefixContext {
            provider: first.map(|first| first.model.provider().to_owned()),
            model: first.map(|first| first.model.id().to_owned()),
            thinking: first.map(|first| first.thinking.as_str().to_owned()),
            identity: self.identity_of(key),
        }
    }

    /// Values for the prefix of a message without a run. The model is looked up if the prefix may
    /// name it.
    pub(super) async fn prefix_of_session(&self, key: &SessionKey, to: &Destination) -> PrefixContext {
        let identity = self.identity_of(key);
        let settings = self.settings.now();
        let has_variables = prefix_of(&settings.config, to.surface()).is_some_and(|text| text.contains('{'));
        if !has_variables {
            return PrefixContext { identity, ..PrefixContext::default() };
        }
        let agent = settings.config.agent(&key.agent_or(&settings.sessions.default_agent()));
        let entry = self.rows.entry_or_none(key).await;
        let entry = entry.map_or_else(SessionEntry::default, Arc::unwrap_or_clone);
        let selected = self.models.next(&settings.models, &agent, key, &entry).await.ok();
        if let Some(first) = selected.as_ref().and_then(|selected| selected.candidates.first()) {
            return PrefixContext {
                provider: Some(first.model.provider().to_owned()),
                model: Some(first.model.id().to_owned()),
                thinking: Some(first.thinking.as_str().to_owned()),
                identity,
            };
        }
        // No run could begin, without a credential say; what it would be asked for is known.
        let choices = self.models.all.choices(&settings.models, &agent.id, &agent.agent_dir).await;
        let ModelRef { provider, model } = choices.default_model().clone();
        PrefixContext { provider: Some(provider.to_string()), model: Some(model), thinking: None, identity }
    }

    /// Returns the name of a session's agent, as people are shown it.
    fn identity_of(&self, key: &SessionKey) -> Option<String> {
        let settings = self.settings.now();
        settings.config.agent(&key.agent_or(&settings.sessions.default_agent())).identity.name
    }
}
