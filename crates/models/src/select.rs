//! Selects the models that can be called from the settings and a session's wishes.

mod allowlist;
mod bind;
mod images;
mod look;
mod plan;
mod primary;
mod provider_card;
mod told;

use std::path::Path;
use std::sync::Arc;

use openclaw_config::settings::ModelChoice;
use openclaw_protocol::AgentId;
use openclaw_protocol::message::Message;
use openclaw_protocol::printable::one_line;
use secrecy::SecretString;

pub(crate) use self::allowlist::Allowlist;
use self::bind::{Run, describe_offline, level_of, soften, window_of};
pub use self::images::{ImageCandidate, image_candidates, image_choice};
use self::look::ModelsView;
pub use self::plan::fallbacks_left_out;
pub(crate) use self::plan::stand_ins;
use self::plan::{CandidatePlan, candidates_of};
pub(crate) use self::primary::standing;
pub use self::primary::{Primary, PrimaryOrigin};
pub use self::provider_card::ProviderCard;
use self::told::{ToldWarnings, small_windows};
use crate::background::Background;
use crate::cache_retention::CacheRetention;
use crate::catalog::{Catalog, LookupError, ModelRow};
use crate::clock::Clock;
use crate::context_window::{ContextWindow, WindowTooSmall};
use crate::credentials::{
    AgentFlag, AuthLabel, AuthStore, CredentialError, KeyCommands, Keyring, Ledger, Logins, Pin, PinSource,
    ProfileWish, ResolvedKey, SessionState,
};
use crate::debug_log::DebugLogs;
use crate::discovery::Discovery;
use crate::kept_request::KeptRequest;
use crate::models_file::FileKeeper;
use crate::net::Http;
use crate::oauth::LoginServers;
use crate::offline;
use crate::reference::{ModelRef, ProviderId};
use crate::reporting::Reporter;
use crate::request::{ModelRequest, ToolSpec};
use crate::retry::Patience;
use crate::settings::ModelSettings;
use crate::stream::{FailureKind, Model};
use crate::thinking;
use crate::thinking::ThinkingLevel;
use crate::variables::Variables;

/// State that outlives one selection: the HTTP connections, the environment, cached outputs of key
/// commands. Shared by the whole gateway; cheap to clone.
#[derive(Debug, Clone)]
pub struct Models {
    pub(crate) http: Http,
    pub(crate) variables: Variables,
    commands: KeyCommands,
    pub(crate) logins: Logins,
    debug: DebugLogs,
    ledger: Ledger,
    clock: Clock,
    files: FileKeeper,
    discovery: Discovery,
    writes: Background,
    told: ToldWarnings,
}

/// Permission to ask servers for their models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AskPermission {
    /// Asks the servers on which this selection depends.
    Servers,
    /// Asks no server: cached knowledge is used.
    Nobody,
}

/// Knowledge about models; see [`Models::known`].
pub(crate) struct KnownModels {
    pub(crate) catalog: Catalog,
    pub(crate) rows: Vec<ModelRow>,
    pub(crate) primary: Primary,
    /// Providers that want a credential and have none.
    pub(crate) without_credential: Vec<ProviderId>,
}

/// Largest number of candidates of a run: with the requests that each may take (see
/// [`crate::retry`]) this bounds what one answer can cost.
pub const MAX_CANDIDATES: usize = 16;

/// Request of a run for a model.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// The agent that runs.
    pub agent: &'a AgentId,
    /// Directory of the agent (`agents/<id>/agent`), where `auth-profiles.json` is.
    pub agent_dir: &'a Path,
    /// The session's or the request's own model: reference or alias. Fallbacks still apply.
    pub model: Option<&'a str>,
    /// The session's credential profile (`authProfileOverride`). A person's is the only one the
    /// first model's provider is called with, one chosen by itself goes first. A profile that is
    /// gone or another provider's is passed over.
    pub pin: Option<&'a Pin>,
    /// State of the session.
    pub session: SessionState,
    /// Thinking level.
    pub thinking: AskedThinking,
    /// Time at which a person chose the model, in Unix milliseconds: the first model is tried once, even with credentials that failed
    /// before.
    pub chosen_at: Option<i64>,
}

impl<'a> Ask<'a> {
    /// Creates the request of an agent whose session has no settings of its own.
    pub fn new(agent: &'a AgentId, agent_dir: &'a Path) -> Self {
        Self {
            agent,
            agent_dir,
            model: None,
            pin: None,
            session: SessionState::default(),
            thinking: AskedThinking::Default,
            chosen_at: None,
        }
    }
}

/// Origin of a requested thinking level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AskedThinking {
    /// No level was requested: uses `agents.defaults.thinkingDefault`, else `low` where the model
    /// reasons.
    #[default]
    Default,
    /// Stored in the session: becomes the nearest level that the model has.
    Stored(ThinkingLevel),
    /// Requested in this very message: refused if the model does not have the level.
    Explicit(ThinkingLevel),
}

/// The models of one run.
pub struct Selected {
    /// Primary first, then fallbacks in order; never empty and at most [`MAX_CANDIDATES`]. A model appears once for each of
    /// its credential profiles, in their order. Each retries by itself what can be retried before anything was heard (spec `agent-runtime.md` §2.8):
    /// on failure the caller goes to the next candidate if [`crate::FailureKind::falls_over`], and never calls one twice
    /// for the same failure.
    pub candidates: Vec<Candidate>,
    /// Models that could not be bound, with the reason; the log should say so.
    pub skipped: Vec<Skipped>,
    /// Profile to which the session is pinned from now on; `None` if the first model's provider has
    /// no profiles.
    pub pin: Option<Pin>,
    /// Warnings for the owner about the configuration.
    pub warnings: Vec<String>,
    /// The model asked for is not allowed any more and was passed over: a stored override should be cleared.
    pub override_ignored: bool,
    /// True if the requested profile was passed over: a stored override should be cleared.
    pub profile_ignored: bool,
    /// The models that look at images for the agent; nothing where none can be asked.
    pub images: Option<ModelChoice>,
    /// The credentials that came to light: the agent's profiles and what the candidates are called with. Keys from variables
    /// are not among them, which [`crate::catalog::credential_variables`] names.
    pub secrets: Vec<SecretString>,
}

/// A model of the plan that is not called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Model that was left out.
    pub model: ModelRef,
    /// Reason why it is not called.
    pub error: SelectError,
}

impl std::fmt::Display for Skipped {
    /// Formats the model as in the list of all that failed: `provider/model: why (reason)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.error {
            SelectError::Credential(CredentialError::AllCoolingDown { provider, .. }) => write!(
                f,
                "{}: Provider {provider} is in cooldown (all profiles unavailable) (rate_limit)",
                self.model
            ),
            error @ SelectError::Credential(_) => write!(f, "{}: {error} (auth)", self.model),
            error => write!(f, "{}: {error}", self.model),
        }
    }
}

impl Selected {
    /// Returns true if the offline guide answers.
    pub fn is_offline(&self) -> bool {
        self.candidates
            .first()
            .is_some_and(|candidate| candidate.reference.provider.as_str() == offline::PROVIDER)
    }
}

/// A model bound to its credential, with the settings of this run.
pub struct Candidate {
    /// Reference of the model.
    pub reference: ModelRef,
    /// Display name of the model.
    pub name: String,
    /// Model client to call.
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
    /// Origin of the key.
    pub auth: AuthLabel,
    /// True if the model accepts images.
    pub sees: bool,
    /// Reports the outcome of calls for the profile; `None` if the key is not from a profile.
    reporter: Option<Reporter>,
}

impl Candidate {
    /// Reports that a call got no answer in the time of its run. Failures that a call notices
    /// itself are reported without this.
    pub fn ran_out_of_time(&self) {
        if let Some(reporter) = &self.reporter {
            reporter.failed(FailureKind::Timeout);
        }
    }

    /// A request with this candidate's settings.
    pub fn request(
        &self,
        system: String,
        messages: Vec<Arc<Message>>,
        tools: Vec<ToolSpec>,
        session_id: Option<String>,
    ) -> ModelRequest {
        ModelRequest {
            system: system.into(),
            messages: messages.into(),
            tools: tools.into(),
            thinking: self.thinking,
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            cache: self.cache,
            session_id,
            kept: KeptRequest::default(),
        }
    }
}

/// Reason why there is no model to call. The texts are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The reference is empty or of no known form.
    #[error("invalid model: {0}")]
    Invalid(String),
    /// The model is not among `agents.defaults.models`.
    #[error("model not allowed: {0}")]
    NotAllowed(ModelRef),
    /// The catalog has no such model, or not enough about it.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The model needs a protocol that this version does not support.
    #[error("provider {provider} speaks {api}, which is not supported yet")]
    Unsupported {
        /// The provider.
        provider: String,
        /// The protocol.
        api: String,
    },
    /// The model takes no images, but the request contains one.
    #[error("Model does not support images: {0}")]
    Blind(ModelRef),
    /// The model's provider has no usable key.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The agent's credentials can't be read, and nothing else is configured.
    #[error("{0}")]
    Store(String),
    /// The context window is too small to work in.
    #[error(transparent)]
    Window(#[from] WindowTooSmall),
    /// The level asked for in this message does not exist for it.
    #[error("thinking level \"xhigh\" is only supported for {}", thinking::xhigh_models())]
    NoXHigh,
    /// Several models were tried, and none can be called.
    #[error("All models failed ({}): {}\n{AFTER_ALL}", .0.len(), listed(.0))]
    All(Vec<Skipped>),
}

/// Next step when none of several models can be called.
const AFTER_ALL: &str = "`openclaw models status` shows what each of them lacks, or until when it rests.";

fn listed(skipped: &[Skipped]) -> String {
    skipped.iter().map(|skipped| one_line(&skipped.to_string()).into_owned()).collect::<Vec<_>>().join(" | ")
}

/// Result of [`Models::describe`].
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// Reference of the model.
    pub reference: ModelRef,
    /// Display name of the model.
    pub name: String,
    /// Protocol of the model.
    pub api: String,
    /// Tokens a run may use.
    pub window: ContextWindow,
    /// True if the model reasons.
    pub reasons: bool,
    /// True if the model accepts images.
    pub sees: bool,
    /// Level a run would ask for.
    pub thinking: ThinkingLevel,
    /// Origin of the key; absent if there is none.
    pub auth: Option<AuthLabel>,
}

impl Models {
    /// Opens nothing yet: connections are made by the first call.
    pub fn new(variables: Variables, http: Http) -> Self {
        let logins = Logins::new(http.clone(), LoginServers::from(&variables));
        let debug = DebugLogs::from(&variables);
        let clock = Clock::default();
        let ledger = Ledger::new(clock.clone());
        let discovery = Discovery::new(http.clone(), variables.clone());
        let (commands, files, writes, told) = Default::default();
        Self { http, variables, commands, logins, debug, ledger, clock, files, discovery, writes, told }
    }

    /// Uses another clock, by which cooldowns end and credentials expire.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { ledger: Ledger::new(clock.clone()), clock, ..self }
    }

    /// [`fallbacks_left_out`], each once in the life of the process: no run warns of it again. Asks no server.
    pub async fn warn_of_fallbacks(&self, settings: &ModelSettings, agent_dir: &Path) -> Vec<String> {
        let look = ModelsView::at(self, settings, agent_dir).await;
        self.told.news(fallbacks_left_out(settings, &look.catalog))
    }

    /// Writes what is not written yet: how credentials did, `models.json`. For the end of the process, after the last call.
    pub async fn settle(&self) {
        self.ledger.settle().await;
        self.writes.settle().await;
    }

    /// Waits until all servers that were asked have answered or been given up.
    #[cfg(test)]
    pub(crate) async fn all_answered(&self) {
        self.discovery.settle().await;
        self.settle().await;
    }

    /// Returns the places in which the keys of one agent are looked up; advice is for the default agent.
    pub(crate) fn keyring<'a>(
        &'a self,
        settings: &'a ModelSettings,
        catalog: &'a Catalog,
        store: &'a AuthStore,
        agent_dir: &'a Path,
    ) -> Keyring<'a> {
        let Self { variables, commands, logins, clock, .. } = self;
        let (now, agent) = (clock.now_ms(), AgentFlag::of_default(settings));
        Keyring {
            store,
            settings,
            catalog,
            variables,
            commands,
            logins,
            agent_dir,
            agent,
            now,
            chosen_at: None,
        }
    }

    /// The keys of a provider for calls that are no model's: the cooldowns that its profiles earned with models do not count.
    pub(crate) async fn keys_whatever_their_cooldown(
        &self,
        settings: &ModelSettings,
        agent_dir: &Path,
        provider: &ProviderId,
    ) -> Result<Vec<ResolvedKey>, CredentialError> {
        let look = ModelsView::at(self, settings, agent_dir).await;
        let keyring = self.keyring(settings, &look.catalog, &look.store, agent_dir);
        let chosen_at = Some(keyring.now);
        Keyring { chosen_at, ..keyring }.keys(provider, ProfileWish::Any).await
    }

    /// Chooses and binds the models of a run. Reads the agent's credentials, may run a key command.
    ///
    /// # Errors
    /// When not even one candidate can be bound: the primary's error.
    pub async fn select(&self, settings: &ModelSettings, ask: &Ask<'_>) -> Result<Selected, SelectError> {
        let run = self.prepare(settings, ask, AskPermission::Servers).await?;
        let pin = run.pin(ask);
        let mut selected = Selected {
            candidates: Vec::new(),
            skipped: Vec::new(),
            images: run.images(),
            warnings: run.plan.warnings.clone(),
            override_ignored: run.plan.override_ignored,
            profile_ignored: false,
            secrets: Vec::new(),
            pin,
        };
        if let Some(gone) = run.lost_choice(ask) {
            selected.warnings.push(format!(
                "auth profile \"{gone}\" can't be used with this model; the usual order is used"
            ));
            selected.profile_ignored = true;
        }
        let bound = run.bind_all(ask.thinking, &mut selected).await?;
        selected.secrets = run.secrets(&bound);
        let last = bound.len().min(MAX_CANDIDATES).saturating_sub(1);
        for (at, found) in bound.into_iter().take(MAX_CANDIDATES).enumerate() {
            let patience = if at < last { Patience::Short } else { Patience::Full };
            match run.candidate(found, patience) {
                Ok(candidate) => selected.candidates.push(candidate),
                Err(skipped) => selected.skipped.push(*skipped),
            }
        }
        if selected.candidates.is_empty() {
            return Err(nobody_left(selected.skipped));
        }
        selected.warnings.extend(small_windows(&selected.candidates));
        selected.warnings = self.told.news(selected.warnings);
        Ok(selected)
    }

    /// Describes the model that the agent would run with first, even if there is no key for it: for
    /// `sessions.list` defaults and status.
    ///
    /// # Errors
    /// When the model asked for does not exist.
    pub async fn describe(&self, settings: &ModelSettings, ask: &Ask<'_>) -> Result<Described, SelectError> {
        let run = self.prepare(settings, ask, AskPermission::Nobody).await?;
        let reference = run.plan.references.first().cloned().unwrap_or_default();
        if reference.provider.as_str() == offline::PROVIDER {
            return Ok(describe_offline(settings));
        }
        let spec = run.catalog.lookup(&reference)?;
        let profile = run.pin(ask).filter(|_| ask.pin.is_some()).map(|pin| pin.profile);
        let auth = run.keyring().label(&reference.provider, profile.as_deref()).await;
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

    /// The model an agent runs with while its session names none. Reads the agent's credentials; asks no server.
    pub async fn primary(&self, settings: &ModelSettings, agent: &AgentId, agent_dir: &Path) -> Primary {
        Primary::find(&ModelsView::at(self, settings, agent_dir).await.connections(), agent)
    }

    /// Returns the provider of that model if there is no credential for it here. Reads the agent's credentials; asks no server.
    pub async fn missing_credential(
        &self,
        settings: &ModelSettings,
        agent: &AgentId,
        agent_dir: &Path,
    ) -> Option<ProviderId> {
        let look = ModelsView::at(self, settings, agent_dir).await;
        let connections = look.connections();
        let provider = Primary::find(&connections, agent).reference.provider;
        (provider.as_str() != offline::PROVIDER && !connections.can_call(&provider)).then_some(provider)
    }

    /// Returns everything known about models without asking a server, in one look.
    pub(crate) async fn known(
        &self,
        settings: &ModelSettings,
        agent: &AgentId,
        agent_dir: &Path,
    ) -> KnownModels {
        let look = ModelsView::at(self, settings, agent_dir).await;
        let connections = look.connections();
        let primary = Primary::find(&connections, agent);
        let lacks = |id: &&ProviderId| id.as_str() != offline::PROVIDER && !connections.can_call(id);
        let without_credential = look.catalog.providers().map(|(id, _)| id).filter(lacks).cloned().collect();
        let rows = look.rows();
        KnownModels { rows, primary, without_credential, catalog: look.catalog }
    }

    /// The agent's credentials as they are by now, and what is wrong with them; damaged ones count as none.
    pub(crate) async fn credentials(&self, agent_dir: &Path) -> (AuthStore, Option<String>) {
        let settings = ModelSettings::default();
        let look = ModelsView::at(self, &settings, agent_dir).await;
        (look.store, look.damage)
    }

    /// The rows of `models.list`, the owner's providers first, with what servers are known to have. Asks none.
    pub async fn rows(&self, settings: &ModelSettings, agent_dir: &Path) -> Vec<ModelRow> {
        ModelsView::at(self, settings, agent_dir).await.rows()
    }

    /// Returns the rows after asking the servers for their models. Waits at most a second for those
    /// that never answered.
    pub async fn ask_for_rows(&self, settings: &ModelSettings, agent_dir: &Path) -> Vec<ModelRow> {
        self.ask_for_catalog(settings, agent_dir).await.1
    }

    /// The catalog behind [`Models::ask_for_rows`].
    pub async fn ask_for_catalog(
        &self,
        settings: &ModelSettings,
        agent_dir: &Path,
    ) -> (Catalog, Vec<ModelRow>) {
        let mut look = ModelsView::at(self, settings, agent_dir).await;
        look.ask_all().await;
        let rows = look.rows();
        (look.catalog, rows)
    }

    async fn prepare<'a>(
        &'a self,
        settings: &'a ModelSettings,
        ask: &Ask<'a>,
        asking: AskPermission,
    ) -> Result<Run<'a>, SelectError> {
        let mut look = ModelsView::at(self, settings, ask.agent_dir).await;
        let (mut primary, mut plan) = plan_of(&look, settings, ask)?;
        if asking == AskPermission::Servers {
            let providers: Vec<&ProviderId> = plan.references.iter().map(|model| &model.provider).collect();
            if look.ask_for(&providers, primary.origin == PrimaryOrigin::Offline).await {
                (primary, plan) = plan_of(&look, settings, ask)?;
            }
            look.write_file();
        }
        plan.warnings.extend(look.file_warning().cloned());
        let is_offline =
            primary.origin == PrimaryOrigin::Offline && plan.references == [primary.reference.clone()];
        match look.damage {
            Some(damage) if is_offline => return Err(SelectError::Store(damage)),
            Some(damage) => plan.warnings.push(damage),
            None => {}
        }
        let now = self.clock.now_ms();
        let ModelsView { catalog, store, .. } = look;
        let primary = primary.reference;
        let agent = AgentFlag::of(settings, ask.agent);
        let (agent_dir, chosen_at) = (ask.agent_dir, ask.chosen_at);
        Ok(Run { models: self, settings, catalog, store, primary, plan, agent, agent_dir, now, chosen_at })
    }
}

fn plan_of(
    look: &ModelsView<'_>,
    settings: &ModelSettings,
    ask: &Ask<'_>,
) -> Result<(Primary, CandidatePlan), SelectError> {
    let primary = Primary::find(&look.connections(), ask.agent);
    let plan = candidates_of(settings, &look.catalog, &primary, ask)?;
    Ok((primary, plan))
}

/// The error of a run for which no model is left: that of the only one, or all.
fn nobody_left(mut skipped: Vec<Skipped>) -> SelectError {
    match skipped.len() {
        0 => SelectError::Invalid("empty".to_owned()),
        1 => skipped.remove(0).error,
        _ => SelectError::All(skipped),
    }
}

/// The context window a run with a model has; a model nobody knows counts as one about which nothing is said.
pub fn context_window(settings: &ModelSettings, catalog: &Catalog, model: &ModelRef) -> ContextWindow {
    match catalog.lookup(model) {
        Ok(spec) => window_of(&spec, settings),
        Err(_) => ContextWindow::resolve(None, None, settings.context_tokens),
    }
}

#[cfg(test)]
mod tests;
