//! Binds planned models to their credentials and settings.

use std::collections::BTreeMap;
use std::path::Path;

use super::plan::Plan;
use super::{AskedThinking, Candidate, Described, Models, SelectError};
use crate::api::Api;
use crate::catalog::{Catalog, Compat, ModelSpec, Price};
use crate::client::{HttpModel, now_ms};
use crate::context_window::ContextWindow;
use crate::credentials::{AuthStore, Key, Keyring, profile_order};
use crate::net::Http;
use crate::offline::{self, OfflineGuide};
use crate::reference::{DEFAULT_PROVIDER, ModelRef, ProviderId};
use crate::request::{CacheRetention, ThinkingLevel};
use crate::retry::{RateLimits, Retrying};
use crate::settings::{ListedModel, ModelSettings};
use crate::stream::Model;
use crate::thinking;

/// One selection under way.
pub(super) struct Run<'a> {
    pub(super) models: &'a Models,
    pub(super) settings: &'a ModelSettings,
    pub(super) catalog: Catalog,
    pub(super) store: AuthStore,
    pub(super) plan: Plan,
    pub(super) agent_dir: &'a Path,
}

/// A model with one of its keys.
pub(super) struct Bound {
    spec: ModelSpec,
    key: Key,
    window: ContextWindow,
    thinking: ThinkingLevel,
    params: ListedModel,
}

impl Run<'_> {
    pub(super) fn keyring(&self) -> Keyring<'_> {
        Keyring {
            store: &self.store,
            settings: self.settings,
            catalog: &self.catalog,
            variables: &self.models.variables,
            commands: &self.models.commands,
            logins: &self.models.logins,
            agent_dir: self.agent_dir,
            now: now_ms(),
        }
    }

    /// Whether a session's profile can still be used with a provider (spec `models.md` §8.6).
    pub(super) fn has_profile(&self, provider: &ProviderId, profile: &str) -> bool {
        let order = profile_order(provider, &self.store, self.settings, None, now_ms());
        order.iter().any(|id| id == profile)
    }

    /// Binds a model to each of its keys.
    pub(super) async fn bind(
        &self,
        reference: &ModelRef,
        thinking: AskedThinking,
        profile: Option<&str>,
    ) -> Result<Vec<Bound>, SelectError> {
        let spec = self.spec(reference)?;
        let window = window_of(&spec, self.settings).check()?;
        let thinking = level_of(&spec, self.settings, thinking)?;
        let params = self.params(reference);
        let keys = if spec.api == Api::Offline {
            vec![Key::none()]
        } else {
            self.keyring().keys(&reference.provider, profile).await?
        };
        let bound = |key| Bound { spec: spec.clone(), key, window, thinking, params: params.clone() };
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

impl Bound {
    pub(super) fn candidate(
        self,
        http: &Http,
        limits: RateLimits,
    ) -> Result<Candidate, Box<(ModelRef, SelectError)>> {
        let Self { mut spec, key, window, thinking, params } = self;
        if let Some(base_url) = key.base_url {
            spec.base_url = base_url;
        }
        let (reference, name) = (spec.reference.clone(), spec.name.clone());
        let long = spec.provider() == "anthropic" && key.label.mode == "api-key";
        let model: Box<dyn Model> = if spec.api == Api::Offline {
            Box::new(OfflineGuide::new(window.tokens))
        } else {
            let (provider, api) = (spec.provider().to_owned(), spec.api.as_str().to_owned());
            match HttpModel::bind(spec, key.secret, http.clone(), window) {
                Ok(model) => {
                    let first_wait = model.first_wait();
                    Box::new(Retrying::new(model, limits, first_wait))
                }
                Err(_) => return Err(Box::new((reference, SelectError::Unsupported { provider, api }))),
            }
        };
        let default_cache = if long { CacheRetention::Long } else { CacheRetention::Short };
        Ok(Candidate {
            reference,
            name,
            model,
            thinking,
            max_tokens: params.max_tokens,
            temperature: params.temperature,
            cache: params.cache.unwrap_or(default_cache),
            window,
            auth: key.label,
        })
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
        price: Price::default(),
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
