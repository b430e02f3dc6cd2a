//! From settings and what a session asks for to models that can be called.

mod plan;

use std::path::Path;

use openclaw_protocol::AgentId;
use openclaw_protocol::message::Message;

use self::plan::{Plan, candidates_of};
use crate::api::Api;
use crate::catalog::{Catalog, LookupError, ModelRow, ModelSpec, key_variables, providers_with_key};
use crate::client::{HttpModel, now_ms};
use crate::context_window::{ContextWindow, WindowTooSmall};
use crate::credentials::{AuthLabel, AuthStore, CredentialError, Key, KeyCommands, Keyring, StoreError};
use crate::net::Http;
use crate::offline::{self, OfflineGuide};
use crate::reference::{ModelNames, ModelRef, ProviderId};
use crate::request::{CacheRetention, ModelRequest, ThinkingLevel, ToolSpec};
use crate::retry::{RateLimits, Retrying};
use crate::settings::{ListedModel, ModelSettings};
use crate::stream::Model;
use crate::thinking;
use crate::variables::Variables;

/// Everything that outlives one selection: the HTTP connections, the environment, answers of key commands. One for the
/// whole gateway; cheap to clone.
#[derive(Debug, Clone)]
pub struct Models {
    http: Http,
    variables: Variables,
    commands: KeyCommands,
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
    /// Primary first, then fallbacks in order; never empty. A model appears once for each of its credential profiles, in
    /// their order. Each retries by itself what can be retried before anything was heard (spec `agent-runtime.md` §2.8):
    /// on failure the caller goes to the next candidate if [`crate::FailureKind::falls_over`], and never calls one twice
    /// for the same failure.
    pub candidates: Vec<Candidate>,
    /// Models that could not be bound, with the reason; the log should say so.
    pub skipped: Vec<(ModelRef, SelectError)>,
    /// What to tell the owner about the configuration.
    pub warnings: Vec<String>,
    /// The model asked for is not allowed any more and was passed over: a stored override should be cleared.
    pub override_ignored: bool,
}

impl Selected {
    /// Whether the offline guide answers.
    pub fn is_offline(&self) -> bool {
        self.candidates
            .first()
            .is_some_and(|candidate| candidate.reference.provider.as_str() == offline::PROVIDER)
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

/// Why there is no model to call. The texts are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The reference is empty or of no known form.
    #[error("invalid model: {0}")]
    Invalid(String),
    /// Not among `agents.defaults.models`.
    #[error("model not allowed: {0}")]
    NotAllowed(ModelRef),
    /// The catalog has no such model, or not enough about it.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// It speaks a protocol this version does not.
    #[error("provider {provider} speaks {api}, which is not supported yet")]
    Unsupported {
        /// The provider.
        provider: String,
        /// The protocol.
        api: String,
    },
    /// There is no key for it.
    #[error("{error}{hint}")]
    Credential {
        /// What is missing.
        error: CredentialError,
        /// What the owner may have meant; begins with a blank when there is something.
        hint: String,
    },
    /// The agent's credentials can't be read, and nothing else is configured.
    #[error("{0}")]
    Store(String),
    /// Its window is too small to work in.
    #[error(transparent)]
    Window(#[from] WindowTooSmall),
    /// The level asked for in this message does not exist for it.
    #[error("thinking level \"xhigh\" is only supported for {}", thinking::xhigh_models())]
    NoXHigh,
}

/// What [`Models::describe`] finds.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// Which model.
    pub reference: ModelRef,
    /// Its name for people.
    pub name: String,
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
    /// Where its key comes from; absent when there is none.
    pub auth: Option<AuthLabel>,
}

impl Models {
    /// Opens nothing yet: connections are made by the first call.
    pub fn new(variables: Variables, http: Http) -> Self {
        Self { http, variables, commands: KeyCommands::default() }
    }

    /// Chooses and binds the models of a run. Reads the agent's credentials, may run a key command.
    ///
    /// # Errors
    /// When not even one candidate can be bound: the primary's error.
    pub async fn select(&self, settings: &ModelSettings, ask: &Ask<'_>) -> Result<Selected, SelectError> {
        let run = self.prepare(settings, ask).await?;
        let mut selected = Selected {
            candidates: Vec::new(),
            skipped: Vec::new(),
            warnings: run.plan.warnings.clone(),
            override_ignored: run.plan.override_ignored,
        };
        let mut bound: Vec<Bound> = Vec::new();
        for (at, reference) in run.plan.references.iter().enumerate() {
            // Only the first model may be picky about the level: fallbacks take what they have.
            let thinking = if at == 0 { ask.thinking } else { soften(ask.thinking) };
            match run.bind(reference, thinking, ask.profile.filter(|_| at == 0)).await {
                Ok(found) => bound.extend(found),
                Err(error @ SelectError::NoXHigh) => return Err(error),
                Err(error) => selected.skipped.push((reference.clone(), error)),
            }
        }
        let last = bound.len().saturating_sub(1);
        for (at, found) in bound.into_iter().enumerate() {
            let limits = if at < last { RateLimits::PassOn } else { RateLimits::Wait };
            match found.candidate(&self.http, limits) {
                Ok(candidate) => selected.candidates.push(candidate),
                Err(skipped) => selected.skipped.push(*skipped),
            }
        }
        if selected.candidates.is_empty() {
            let (_, error) = selected
                .skipped
                .into_iter()
                .next()
                .unwrap_or((ModelRef::default(), SelectError::Invalid("empty".to_owned())));
            return Err(error);
        }
        Ok(selected)
    }

    /// What the agent would run with first, whether or not there is a key for it: for `sessions.list` defaults and status.
    ///
    /// # Errors
    /// When the model asked for does not exist.
    pub async fn describe(&self, settings: &ModelSettings, ask: &Ask<'_>) -> Result<Described, SelectError> {
        let run = self.prepare(settings, ask).await?;
        let reference = run.plan.references.first().cloned().unwrap_or_default();
        if reference.provider.as_str() == offline::PROVIDER {
            return Ok(describe_offline(settings));
        }
        let spec = run.catalog.lookup(&reference)?;
        let auth = run.keyring().keys(&reference.provider, ask.profile).await.ok();
        Ok(Described {
            window: window_of(&spec, settings),
            thinking: level_of(&spec, settings, soften(ask.thinking)).unwrap_or_default(),
            name: spec.name,
            api: spec.api.as_str().to_owned(),
            reasons: spec.reasoning,
            sees: spec.images,
            auth: auth.and_then(|keys| keys.into_iter().next()).map(|key| key.label),
            reference,
        })
    }

    /// The rows of `models.list`, the owner's providers first.
    pub fn rows(&self, settings: &ModelSettings) -> Vec<ModelRow> {
        let has_credential = |provider: &ProviderId| {
            self.variables.first(key_variables(provider)).is_some()
                || settings.auth_profiles.values().any(|p| ProviderId::normalize(&p.provider) == *provider)
        };
        Catalog::new(settings).rows(has_credential)
    }

    async fn prepare<'a>(
        &'a self,
        settings: &'a ModelSettings,
        ask: &Ask<'a>,
    ) -> Result<Run<'a>, SelectError> {
        let catalog = Catalog::new(settings);
        let (store, damage) = load_store(ask.agent_dir).await;
        let mut plan = candidates_of(settings, &catalog, ask)?;
        let connected = !plan.is_default
            || !settings.providers.is_empty()
            || store.profiles().next().is_some()
            || !providers_with_key(&self.variables).is_empty();
        match damage {
            Some(damage) if !connected => return Err(SelectError::Store(damage)),
            Some(damage) => plan.warnings.push(damage),
            None if !connected => plan.references = vec![ModelRef::new(offline::PROVIDER, offline::MODEL)],
            None => {}
        }
        Ok(Run { models: self, settings, catalog, store, plan, agent_dir: ask.agent_dir })
    }
}

/// One selection under way.
struct Run<'a> {
    models: &'a Models,
    settings: &'a ModelSettings,
    catalog: Catalog,
    store: AuthStore,
    plan: Plan,
    agent_dir: &'a Path,
}

/// A model with one of its keys.
struct Bound {
    spec: ModelSpec,
    key: Key,
    window: ContextWindow,
    thinking: ThinkingLevel,
    params: ListedModel,
}

impl Run<'_> {
    fn keyring(&self) -> Keyring<'_> {
        Keyring {
            store: &self.store,
            settings: self.settings,
            catalog: &self.catalog,
            variables: &self.models.variables,
            commands: &self.models.commands,
            agent_dir: self.agent_dir,
            now: now_ms(),
        }
    }

    /// Binds a model to each of its keys.
    async fn bind(
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
            let found = self.keyring().keys(&reference.provider, profile).await;
            found.map_err(|error| SelectError::Credential { hint: self.hint(&error), error })?
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
            ModelRef::parse(&listed.key, crate::reference::DEFAULT_PROVIDER).as_ref() == Some(reference)
        };
        self.settings.listed.iter().find(names_it).cloned().unwrap_or_default()
    }

    /// When nobody chose the model and its key is missing, the keys that are there say what was meant.
    fn hint(&self, error: &CredentialError) -> String {
        let found = providers_with_key(&self.models.variables);
        let configured = self.settings.providers.iter().map(|(id, _)| ProviderId::normalize(id));
        let others: Vec<String> = found.into_iter().chain(configured).map(|id| id.to_string()).collect();
        match error {
            CredentialError::NoKey { .. } if self.plan.is_default && !others.is_empty() => format!(
                " No model is configured, so the default was tried; connected: {}. Set agents.defaults.model.primary \
                 to <provider>/<model> to use one of them.",
                others.join(", ")
            ),
            _ => String::new(),
        }
    }
}

impl Bound {
    fn candidate(self, http: &Http, limits: RateLimits) -> Result<Candidate, Box<(ModelRef, SelectError)>> {
        let Self { spec, key, window, thinking, params } = self;
        let (reference, name) = (spec.reference.clone(), spec.name.clone());
        let long = spec.provider() == "anthropic" && key.label.mode == "api-key";
        let model: Box<dyn Model> = if spec.api == Api::Offline {
            Box::new(OfflineGuide::new(window.tokens))
        } else {
            let (provider, api) = (spec.provider().to_owned(), spec.api.as_str().to_owned());
            match HttpModel::bind(spec, key.secret, http.clone(), window) {
                Ok(model) => Box::new(Retrying::new(model, limits)),
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

/// The store, and what is wrong with it; a damaged one counts as empty.
async fn load_store(agent_dir: &Path) -> (AuthStore, Option<String>) {
    let dir = agent_dir.to_path_buf();
    let loaded = tokio::task::spawn_blocking(move || AuthStore::load(&dir)).await;
    match loaded {
        Ok(Ok(store)) => (store, None),
        Ok(Err(
            error @ (StoreError::Read { .. } | StoreError::Damaged { .. } | StoreError::Write { .. }),
        )) => (AuthStore::default(), Some(error.to_string())),
        Err(_) => (AuthStore::default(), Some("reading the credentials was interrupted".to_owned())),
    }
}

fn window_of(spec: &ModelSpec, settings: &ModelSettings) -> ContextWindow {
    let (configured, catalog) =
        if spec.window_configured { (spec.context_window, None) } else { (None, spec.context_window) };
    ContextWindow::resolve(configured, catalog, settings.context_tokens)
}

fn level_of(
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

fn soften(asked: AskedThinking) -> AskedThinking {
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
        price: crate::catalog::Price::default(),
        context_window: None,
        window_configured: false,
        max_tokens: 8_192,
        headers: std::collections::BTreeMap::new(),
        auth_header: false,
        compat: crate::catalog::Compat::default(),
        streaming: true,
    }
}

fn describe_offline(settings: &ModelSettings) -> Described {
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

/// Checks a model a person wants to switch a session to: resolves aliases, applies the allowlist.
///
/// # Errors
/// [`SelectError::Invalid`] or [`SelectError::NotAllowed`], whose texts clients match.
pub fn check_switch(settings: &ModelSettings, agent: &AgentId, text: &str) -> Result<ModelRef, SelectError> {
    let names = ModelNames::new(&settings.listed);
    plan::switch(settings, &Catalog::new(settings), &names, agent, text)
}

#[cfg(test)]
mod tests;
