//! Which model a run is asked to use, and by whom: its message, its session, or the session its thread belongs to (spec
//! `models.md` §1.2, §8.6).

pub(crate) mod profile_pin;

use std::sync::Arc;

use openclaw_config::ResolvedAgent;
use openclaw_models::credentials::{Pin, PinSource, SessionState};
use openclaw_models::{Ask, ModelRef, ModelSettings, Models, SelectError, Selected};
use openclaw_sessions::store::Edit;
use openclaw_sessions::{SessionEntry, SessionKey, SessionStore};

use crate::clock::Clock;
use crate::runner::prepare::thinking;
use crate::system_events::SystemEvents;

/// What a message asks for its own run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestedModel {
    /// The model.
    pub(crate) model: ModelRef,
    /// The credential.
    pub(crate) profile: Option<String>,
}

/// The model and the credential a run is asked to use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct AskedModel {
    /// `provider/model`; absent is the agent's own.
    pub(crate) model: Option<String>,
    /// The credential profile it goes on with.
    pub(crate) pin: Option<Pin>,
    /// Whether the message asks for it, for its own run alone.
    pub(crate) by_message: bool,
    /// Whether the session's own row says so.
    by_row: bool,
}

/// What sessions have chosen among all models.
pub(crate) struct SessionModels {
    pub(crate) all: Models,
    store: Arc<dyn SessionStore>,
    system_events: Arc<SystemEvents>,
    clock: Clock,
}

impl SessionModels {
    pub(crate) fn new(
        all: Models,
        store: Arc<dyn SessionStore>,
        system_events: Arc<SystemEvents>,
        clock: Clock,
    ) -> Self {
        Self { all, store, system_events, clock }
    }

    /// What the next run of a session would use, for whoever only tells it.
    ///
    /// # Errors
    /// When no run could begin: without a credential, say.
    pub(crate) async fn next(
        &self,
        settings: &ModelSettings,
        agent: &ResolvedAgent,
        key: &SessionKey,
        entry: &SessionEntry,
    ) -> Result<Selected, SelectError> {
        let asked = self.asked_for(key, entry, None).await;
        let ask = Ask {
            model: asked.model.as_deref(),
            pin: asked.pin.as_ref(),
            session: SessionState { is_new: false, compactions: entry.compaction_count.unwrap_or(0) },
            thinking: thinking(None, entry),
            ..Ask::new(&agent.id, &agent.agent_dir)
        };
        self.all.select(settings, &ask).await
    }

    /// What a run of a session is asked to use.
    pub(crate) async fn asked_for(
        &self,
        key: &SessionKey,
        entry: &SessionEntry,
        requested: Option<&RequestedModel>,
    ) -> AskedModel {
        if let Some(RequestedModel { model, profile }) = requested {
            let chosen = |profile: &String| Pin {
                profile: profile.clone(),
                source: PinSource::User,
                compactions: None,
            };
            let (model, pin) = (Some(model.to_string()), profile.as_ref().map(chosen));
            return AskedModel { model, pin, by_message: true, by_row: false };
        }
        let own = override_of(entry);
        let by_row = own.is_some();
        let model = match own {
            Some(model) => Some(model),
            None => self.inherited_model(key).await,
        };
        AskedModel { model, pin: profile_pin::of(entry), by_message: false, by_row }
    }

    /// A thread goes on with the model of the conversation it belongs to.
    pub(crate) async fn inherited_model(&self, key: &SessionKey) -> Option<String> {
        let parent = key.thread_parent()?;
        match self.store.get(&parent).await {
            Ok(row) => override_of(&row?.entry),
            Err(error) => {
                tracing::warn!(session = %key, %parent, %error, "the thread begins without its parent's model");
                None
            }
        }
    }

    /// The model asked for is not allowed any more: what the row says goes, and the agent is told with its next message.
    pub(crate) async fn drop_override(&self, key: &SessionKey, asked: &AskedModel, instead: &ModelRef) {
        if !asked.by_row {
            return;
        }
        let gone = asked.model.clone();
        let change = Box::new(move |edit: Edit<'_>| {
            // Another one may have been chosen meanwhile.
            if override_of(edit.entry) == gone {
                edit.entry.switch_model(None, None);
                edit.entry.touch(edit.now);
            }
            Ok(())
        });
        match self.store.update(key, change).await {
            Ok(_) => {
                let text = format!("Model override not allowed for this agent; reverted to {instead}.");
                self.tell(key, &text, &format!("model:reset:{instead}"));
            }
            Err(error) => tracing::warn!(session = %key, %error, "a model that is not allowed stays chosen"),
        }
    }

    /// Tells the agent of a session something with its next message.
    pub(crate) fn tell(&self, key: &SessionKey, text: &str, about: &str) {
        self.system_events.enqueue(key, text, Some(about), self.clock.now_ms());
    }
}

/// Whether what is asked for may not be used any more.
pub(crate) fn is_forbidden(choices: &openclaw_models::Choices, asked: &AskedModel) -> bool {
    let wanted = asked.model.as_deref().map(|text| choices.strict(text));
    matches!(wanted, Some(Err(SelectError::NotAllowed(_))))
}

/// `provider/model` of a row's own choice.
fn override_of(entry: &SessionEntry) -> Option<String> {
    entry.model_override_ref().map(|(provider, model)| match provider {
        Some(provider) => format!("{provider}/{model}"),
        None => model.to_owned(),
    })
}
