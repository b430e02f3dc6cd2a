//! Binds planned models to their credentials and settings.

use openclaw_config::settings::ModelCost;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::plan::CandidatePlan;
use super::{Ask, AskedThinking, Candidate, Described, Models, PinSource, SelectError, Selected, Skipped};
use crate::access::SharedKey;
use crate::api::Api;
use crate::cache_retention::CacheRetention;
use crate::catalog::Catalog;
use crate::client::HttpModel;
use crate::context_window::ContextWindow;
use crate::credentials::{
    AgentFlag, AuthStore, Keyring, Pin, ProfileAccount, ProfileWish, ResolvedKey, Surroundings, pin,
    profile_order,
};
use crate::debug_log::CallLog;
use crate::model_spec::ModelSpec;
use crate::offline::{self, OfflineGuide};
use crate::provider_entry::Compat;
use crate::provider_key::ProviderKey;
use crate::reference::{DEFAULT_PROVIDER, ModelRef, ProviderId};
use crate::reporting::{Reported, Reporter};
use crate::retry::{Patience, Retrying};
use crate::settings::{ListedModel, ModelSettings};
use crate::stream::Model;
use crate::thinking;
use crate::thinking::ThinkingLevel;
use secrecy::SecretString;

/// Selection under way.
pub(super) struct Run<'a> {
    pub(super) models: &'a Models,
    pub(super) settings: &'a ModelSettings,
    pub(super) catalog: Catalog,
    pub(super) store: AuthStore,
    /// The agent's own model.
    pub(super) primary: ModelRef,
    pub(super) plan: CandidatePlan,
    /// Flag of the agent, for advice.
    pub(super) agent: AgentFlag,
    pub(super) agent_dir: &'a Path,
    /// Unix milliseconds.
    pub(super) now: i64,
    /// [`Ask::chosen_at`]
    pub(super) chosen_at: Option<i64>,
}

/// A model with one of its keys.
pub(super) struct Bound {
    pub(super) spec: ModelSpec,
    key: ResolvedKey,
    window: ContextWindow,
    thinking: ThinkingLevel,
    params: ListedModel,
    log: Option<Arc<CallLog>>,
}

impl Run<'_> {
    pub(super) fn keyring(&self) -> Keyring<'_> {
        let Self { models, settings, catalog, store, agent_dir, .. } = self;
        Keyring { agent: self.agent.clone(), ..models.keyring(settings, catalog, store, agent_dir) }
    }

    /// The provider of the first model, and its profiles in order.
    fn first_order(&self) -> Option<(&ProviderId, Vec<String>)> {
        let provider = &self.plan.references.first()?.provider;
        Some((provider, profile_order(provider, &self.store, self.settings, None, self.now)))
    }

    /// The profile the session goes on with (spec `models.md` §8.6).
    pub(super) fn pin(&self, ask: &Ask<'_>) -> Option<Pin> {
        let (provider, order) = self.first_order()?;
        pin(ask.pin, ask.session, provider, &order, &self.store, self.now)
    }

    /// The profile a person chose, if it can't be used any more.
    pub(super) fn lost_choice<'a>(&self, ask: &Ask<'a>) -> Option<&'a str> {
        let chosen = ask.pin.filter(|pin| pin.source == PinSource::User)?;
        let (_, order) = self.first_order()?;
        (!order.contains(&chosen.profile)).then_some(chosen.profile.as_str())
    }

    /// The credentials of the agent's profiles, and the keys of bound models that come from elsewhere than a variable.
    pub(super) fn secrets(&self, bound: &[Bound]) -> Vec<SecretString> {
        let stored = self.store.profiles().flat_map(|(_, credential)| credential.secret.parts());
        let keys = bound.iter().map(|bound| &bound.key).filter(|key| !key.label.is_of_variable());
        let used =
            keys.filter_map(|key| key.secret.clone()).map(|key| ProviderKey::from(key).secret().clone());
        stored.cloned().chain(used).collect()
    }

    /// Binds every model of the plan to its keys; what can't be bound is noted.
    pub(super) async fn bind_all(
        &self,
        asked: AskedThinking,
        selected: &mut Selected,
    ) -> Result<Vec<Bound>, SelectError> {
        let pinned = self.plan.references.first().map(|first| &first.provider).zip(selected.pin.as_ref());
        let mut bound: Vec<Bound> = Vec::new();
        for (at, reference) in self.plan.references.iter().enumerate() {
            // Only the first model may be picky about the level: fallbacks take what they have.
            let thinking = if at == 0 { asked } else { soften(asked) };
            let wish = match pinned.filter(|(provider, _)| **provider == reference.provider) {
                Some((_, Pin { source: PinSource::User, profile, .. })) => ProfileWish::Only(profile),
                Some((_, Pin { source: PinSource::Auto, profile, .. })) => ProfileWish::First(profile),
                None => ProfileWish::Any,
            };
            match self.bind(reference, thinking, wish).await {
                Ok(found) => bound.extend(found),
                Err(error @ SelectError::NoXHigh) => return Err(error),
                Err(error) => selected.skipped.push(Skipped { model: reference.clone(), error }),
            }
        }
        Ok(bound)
    }

    /// Binds a model to each of its keys.
    pub(super) async fn bind(
        &self,
        reference: &ModelRef,
        thinking: AskedThinking,
        wish: ProfileWish<'_>,
    ) -> Result<Vec<Bound>, SelectError> {
        let spec = self.spec(reference)?;
        let window = window_of(&spec, self.settings).check()?;
        let thinking = level_of(&spec, self.settings, thinking)?;
        let params = self.params(reference);
        let keys = if spec.api == Api::Offline {
            vec![ResolvedKey::none()]
        } else {
            let chosen_at = self.chosen_at.filter(|_| self.plan.references.first() == Some(reference));
            Keyring { chosen_at, ..self.keyring() }.keys(&reference.provider, wish).await?
        };
        let log = self.models.debug.of(&spec, &self.settings.cache_trace, self.agent_dir);
        let bound = |key| Bound {
            spec: spec.clone(),
            key,
            window,
            thinking,
            params: params.clone(),
            log: log.clone(),
        };
        Ok(keys.into_iter().map(bound).collect())
    }

    fn spec(&self, reference: &ModelRef) -> Result<ModelSpec, SelectError> {
        if reference.provider.as_str() == offline::PROVIDER {
            return Ok(offline_spec());
        }
        let mut spec = self.catalog.lookup(reference)?;
        if let Api::Other(api) = &spec.api {
            return Err(SelectError::Unsupported { provider: spec.provider().to_owned(), api: api.clone() });
        }
        if let Some(streaming) = self.params(reference).streaming {
            spec.streaming = streaming;
        }
        Ok(spec)
    }

    fn params(&self, reference: &ModelRef) -> ListedModel {
        let names_it = |listed: &&ListedModel| {
            ModelRef::parse(&listed.key, DEFAULT_PROVIDER).as_ref() == Some(reference)
        };
        self.settings.listed.iter().find(names_it).cloned().unwrap_or_default()
    }
}

impl Run<'_> {
    /// Builds a candidate: the model with one key, with its own retries and a report of each
    /// outcome to the profile.
    pub(super) fn candidate(&self, bound: Bound, patience: Patience) -> Result<Candidate, Box<Skipped>> {
        let Bound { mut spec, key, window, thinking, params, log } = bound;
        if let Some(base_url) = key.base_url.clone() {
            spec.base_url = base_url;
        }
        let auth = key.label.clone();
        let (reference, name, sees) = (spec.reference.clone(), spec.name.clone(), spec.images);
        let reporter = key.label.profile.as_deref().map(|profile| self.reporter(profile));
        let cache = CacheRetention::effective(params.cache, spec.provider(), key.label.mode);
        let model: Box<dyn Model> = if spec.api == Api::Offline {
            Box::new(OfflineGuide::new(window.tokens, self.settings.instance.clone()))
        } else {
            let (provider, api) = (spec.provider().to_owned(), spec.api.as_str().to_owned());
            let Ok(model) = HttpModel::bind(spec, SharedKey::new(key), self.models.http.clone(), window)
            else {
                let error = SelectError::Unsupported { provider, api };
                return Err(Box::new(Skipped { model: reference, error }));
            };
            let first_wait = model.first_wait();
            let model = Retrying::new(model.logged(log), patience, first_wait);
            match reporter.clone() {
                Some(reporter) => Box::new(Reported { model, reporter }),
                None => Box::new(model),
            }
        };
        Ok(Candidate {
            reference,
            name,
            model,
            thinking,
            max_tokens: params.max_tokens,
            temperature: params.temperature,
            cache,
            window,
            auth,
            sees,
            reporter,
        })
    }

    fn reporter(&self, profile: &str) -> Reporter {
        let account = ProfileAccount {
            agent_dir: self.agent_dir.to_path_buf(),
            around: Surroundings::of(&self.models.variables, self.agent_dir),
            profile: profile.to_owned(),
            rules: self.settings.cooldowns.clone(),
        };
        Reporter { ledger: self.models.ledger.clone(), account }
    }
}

pub(super) fn window_of(spec: &ModelSpec, settings: &ModelSettings) -> ContextWindow {
    let (configured, catalog) =
        if spec.window_configured { (spec.context_window, None) } else { (None, spec.context_window) };
    ContextWindow::resolve(configured, catalog, settings.context_tokens)
}

pub(super) fn level_of(
    spec: &ModelSpec,
    settings: &ModelSettings,
    asked: AskedThinking,
) -> Result<ThinkingLevel, SelectError> {
    let xhigh = thinking::has_xhigh(spec.provider(), spec.id());
    let wanted = match asked {
        AskedThinking::Explicit(ThinkingLevel::XHigh) if !xhigh => return Err(SelectError::NoXHigh),
        AskedThinking::Explicit(level) | AskedThinking::Stored(level) => level,
        AskedThinking::Default => settings.thinking_default.unwrap_or(ThinkingLevel::Low),
    };
    Ok(thinking::clamp(wanted, spec.reasoning, xhigh))
}

pub(super) fn soften(asked: AskedThinking) -> AskedThinking {
    match asked {
        AskedThinking::Explicit(level) => AskedThinking::Stored(level),
        AskedThinking::Stored(_) | AskedThinking::Default => asked,
    }
}

fn offline_spec() -> ModelSpec {
    ModelSpec {
        reference: ModelRef::new(offline::PROVIDER, offline::MODEL),
        name: offline::NAME.to_owned(),
        api: Api::Offline,
        base_url: String::new(),
        reasoning: false,
        images: false,
        price: ModelCost::default(),
        context_window: None,
        window_configured: false,
        max_tokens: 8_192,
        headers: BTreeMap::new(),
        auth_header: false,
        compat: Compat::default(),
        streaming: true,
    }
}

pub(super) fn describe_offline(settings: &ModelSettings) -> Described {
    let spec = offline_spec();
    Described {
        window: window_of(&spec, settings),
        reference: spec.reference,
        name: spec.name,
        api: offline::API.to_owned(),
        reasons: false,
        sees: false,
        thinking: ThinkingLevel::Off,
        auth: None,
    }
}
