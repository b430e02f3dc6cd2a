//! From settings and what a session asks for to models that can be called.

mod bind;
mod plan;
mod primary;

use std::path::Path;

use openclaw_protocol::AgentId;
use openclaw_protocol::message::Message;

use self::bind::{Bound, Run, describe_offline, level_of, soften, window_of};
use self::plan::candidates_of;
pub use self::primary::{Origin, Primary};
use crate::catalog::{Catalog, LookupError, ModelRow, key_variables};
use crate::client::now_ms;
use crate::context_window::{ContextWindow, WindowTooSmall};
use crate::credentials::{
    AuthLabel, AuthStore, Connections, CredentialError, KeyCommands, Logins, StoreError, Surroundings,
};
use crate::net::Http;
use crate::oauth::LoginServers;
use crate::offline;
use crate::reference::{ModelNames, ModelRef, ProviderId};
use crate::request::{CacheRetention, ModelRequest, ThinkingLevel, ToolSpec};
use crate::retry::RateLimits;
use crate::settings::ModelSettings;
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
    logins: Logins,
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
    /// The session's credential profile (`authProfileOverride`): the only one the first model is called with. One that is
    /// gone or another provider's is passed over.
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
    /// The same of the profile asked for.
    pub profile_ignored: bool,
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
    #[error(transparent)]
    Credential(#[from] CredentialError),
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
        let logins = Logins::new(http.clone(), LoginServers::from(&variables));
        Self { http, variables, commands: KeyCommands::default(), logins }
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
            profile_ignored: false,
        };
        let profile = ask.profile.filter(|id| {
            run.plan.references.first().is_some_and(|first| run.has_profile(&first.provider, id))
        });
        if let (Some(gone), None) = (ask.profile, profile) {
            selected.warnings.push(format!(
                "auth profile \"{gone}\" can't be used with this model; the usual order is used"
            ));
            selected.profile_ignored = true;
        }
        let mut bound: Vec<Bound> = Vec::new();
        for (at, reference) in run.plan.references.iter().enumerate() {
            // Only the first model may be picky about the level: fallbacks take what they have.
            let thinking = if at == 0 { ask.thinking } else { soften(ask.thinking) };
            match run.bind(reference, thinking, profile.filter(|_| at == 0)).await {
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
        let profile = ask.profile.filter(|id| run.has_profile(&reference.provider, id));
        let auth = run.keyring().label(&reference.provider, profile).await;
        Ok(Described {
            window: window_of(&spec, settings),
            thinking: level_of(&spec, settings, soften(ask.thinking)).unwrap_or_default(),
            name: spec.name,
            api: spec.api.as_str().to_owned(),
            reasons: spec.reasoning,
            sees: spec.images,
            auth,
            reference,
        })
    }

    /// The model an agent runs with while its session names none. Reads the agent's credentials.
    pub async fn primary(&self, settings: &ModelSettings, agent: &AgentId, agent_dir: &Path) -> Primary {
        let catalog = Catalog::new(settings);
        let (store, _) = load_store(agent_dir, &self.variables).await;
        let connections =
            Connections { store: &store, settings, catalog: &catalog, variables: &self.variables };
        Primary::find(&connections, agent)
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
        let (store, damage) = load_store(ask.agent_dir, &self.variables).await;
        let connections =
            Connections { store: &store, settings, catalog: &catalog, variables: &self.variables };
        let primary = Primary::find(&connections, ask.agent);
        let mut plan = candidates_of(settings, &catalog, &primary, ask)?;
        let is_offline = primary.origin == Origin::Offline && plan.references == [primary.reference];
        match damage {
            Some(damage) if is_offline => return Err(SelectError::Store(damage)),
            Some(damage) => plan.warnings.push(damage),
            None => {}
        }
        Ok(Run { models: self, settings, catalog, store, plan, agent_dir: ask.agent_dir })
    }
}

/// The store, and what is wrong with it; a damaged one counts as empty.
async fn load_store(agent_dir: &Path, variables: &Variables) -> (AuthStore, Option<String>) {
    let (dir, around) = (agent_dir.to_path_buf(), Surroundings::of(variables, agent_dir));
    let loaded = tokio::task::spawn_blocking(move || AuthStore::load_with(&dir, &around, now_ms())).await;
    match loaded {
        Ok(Ok(store)) => (store, None),
        Ok(Err(
            error @ (StoreError::Read { .. } | StoreError::Damaged { .. } | StoreError::Write { .. }),
        )) => (AuthStore::default(), Some(error.to_string())),
        Err(_) => (AuthStore::default(), Some("reading the credentials was interrupted".to_owned())),
    }
}

/// The context window a run with a model has; a model nobody knows counts as one about which nothing is said.
pub fn context_window(settings: &ModelSettings, catalog: &Catalog, model: &ModelRef) -> ContextWindow {
    match catalog.lookup(model) {
        Ok(spec) => window_of(&spec, settings),
        Err(_) => ContextWindow::resolve(None, None, settings.context_tokens),
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
