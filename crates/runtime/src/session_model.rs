//! Model that a run is asked to use, and the source of that wish: its message, its session, or the
//! session its thread belongs to (spec `models.md` §1.2, §8.6).

pub mod profile_pin;

use std::collections::HashMap;
use std::sync::Arc;

use openclaw_config::ResolvedAgent;
use openclaw_journal::clock::Clock;
use openclaw_models::credentials::{Pin, PinSource, SessionState};
use openclaw_models::{
    Ask, AskedThinking, ModelRef, ModelSettings, Models, SelectError, Selected, ThinkingLevel,
};
use openclaw_sessions::store::Edit;
use openclaw_sessions::{SessionEntry, SessionKey, SessionStore};
use parking_lot::Mutex;

use crate::system_events::SystemEvents;

/// Model that a message asks for, for its own run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedModel {
    /// The model.
    pub model: ModelRef,
    /// The credential.
    pub profile: Option<String>,
}

/// The model and the credential a run is asked to use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AskedModel {
    /// `provider/model`; absent is the agent's own.
    pub model: Option<String>,
    /// The credential profile it goes on with.
    pub pin: Option<Pin>,
    /// True if the message asks for it, for its own run alone.
    pub by_message: bool,
    /// True if the session's own row names it.
    by_row: bool,
}

/// Models that sessions have chosen.
pub struct SessionModels {
    /// Models of all agents.
    pub all: Models,
    store: Arc<dyn SessionStore>,
    system_events: Arc<SystemEvents>,
    clock: Clock,
    /// Time at which a person chose the model of each session, in Unix milliseconds. Forgotten at a restart.
    chosen: Mutex<HashMap<SessionKey, i64>>,
}

/// Number of choices that are remembered; the oldest is forgotten first.
const MAX_CHOSEN: usize = 1_000;

impl SessionModels {
    /// Reads and writes the choices of sessions in `store`; a choice that can't be kept is told in
    /// `system_events`.
    pub fn new(
        all: Models,
        store: Arc<dyn SessionStore>,
        system_events: Arc<SystemEvents>,
        clock: Clock,
    ) -> Self {
        Self { all, store, system_events, clock, chosen: Mutex::default() }
    }

    /// Notes that a person chose the model of a session, whichever it is: it is tried once although its credentials failed before.
    pub fn chosen_by_hand(&self, key: &SessionKey) {
        let mut chosen = self.chosen.lock();
        if chosen.len() >= MAX_CHOSEN
            && let Some(oldest) = chosen.iter().min_by_key(|(_, at)| **at).map(|(key, _)| key.clone())
        {
            chosen.remove(&oldest);
        }
        chosen.insert(key.clone(), self.clock.now_ms());
    }

    /// Returns the time at which a person chose the model that a run is asked to use, in Unix milliseconds; `None` if that is not known.
    pub fn chosen_at(&self, key: &SessionKey, asked: &AskedModel) -> Option<i64> {
        if asked.by_message { Some(self.clock.now_ms()) } else { self.chosen.lock().get(key).copied() }
    }

    /// Returns the model that the next run of a session would use, for callers that only tell it.
    ///
    /// # Errors
    /// When no run could begin: without a credential, say.
    pub async fn next(
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
            chosen_at: self.chosen_at(key, &asked),
            ..Ask::new(&agent.id, &agent.agent_dir)
        };
        self.all.select(settings, &ask).await
    }

    /// Returns the model that a run of a session is asked to use.
    pub async fn asked_for(
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

    /// Returns the model of the conversation that a thread belongs to, with which the thread goes
    /// on.
    pub async fn inherited_model(&self, key: &SessionKey) -> Option<String> {
        let parent = key.thread_parent()?;
        match self.store.get(&parent).await {
            Ok(row) => override_of(&row?.entry),
            Err(error) => {
                tracing::warn!(session = %key, %parent, %error, "the thread begins without its parent's model");
                None
            }
        }
    }

    /// Drops the row's choice of a model that is not allowed any more; the agent is told with its
    /// next message.
    pub async fn drop_override(&self, key: &SessionKey, asked: &AskedModel, instead: &ModelRef) {
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
    pub fn tell(&self, key: &SessionKey, text: &str, about: &str) {
        self.system_events.enqueue(key, text, Some(about), self.clock.now_ms());
    }
}

/// True if the model asked for may not be used any more.
pub fn is_forbidden(choices: &openclaw_models::Choices, asked: &AskedModel) -> bool {
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

/// Returns the thinking level that a message asks for, or else the one of its session.
pub fn thinking(asked: Option<ThinkingLevel>, entry: &SessionEntry) -> AskedThinking {
    let stored = entry.thinking_level.as_deref().and_then(|level| level.parse().ok());
    match (asked, stored) {
        (Some(level), _) => AskedThinking::Explicit(level),
        (None, Some(level)) => AskedThinking::Stored(level),
        (None, None) => AskedThinking::Default,
    }
}
