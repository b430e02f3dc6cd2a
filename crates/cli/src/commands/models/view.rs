//! The models as one agent sees them.

use openclaw_config::ResolvedAgent;
use openclaw_config::clock::now_ms;
use openclaw_models::catalog::Catalog;
use openclaw_models::credentials::{AgentFlag, AuthStore, Connections, Surroundings};
use openclaw_models::offline;
use openclaw_models::reference::{DEFAULT_PROVIDER, ModelNames};
use openclaw_models::select::{Primary, fallbacks_left_out};
use openclaw_models::{Http, ModelRef, ModelSettings, Models, ProviderId, Variables};

use crate::client::block_on;
use crate::context::CliContext;
use crate::failure::CommandFailure;
use crate::output;

/// Names the fallbacks that no run asks.
pub(super) fn warn_of_fallbacks(settings: &ModelSettings, catalog: &Catalog, context: &CliContext) {
    for warning in fallbacks_left_out(settings, catalog) {
        output::error_line(&context.style.warn(&warning));
    }
}

/// The models as one agent sees them.
pub(super) struct ModelView {
    pub(super) agent: ResolvedAgent,
    pub(super) names: ModelNames,
    pub(super) settings: ModelSettings,
    pub(super) catalog: Catalog,
    pub(super) variables: Variables,
    /// `auth-profiles.json`, and what older versions and other programs keep elsewhere.
    pub(super) store: AuthStore,
    /// Primary model that a run would use.
    pub(super) primary: ModelRef,
    /// The primary as it is written.
    pub(super) written: Option<String>,
    pub(super) fallbacks: Vec<ModelRef>,
    /// The image model, if there is one.
    pub(super) image: Option<ModelRef>,
    pub(super) image_fallbacks: Vec<ModelRef>,
}

impl ModelView {
    pub(super) fn new(context: &CliContext, agent: Option<&str>) -> Result<Self, CommandFailure> {
        let config = context.config()?;
        context.print_warnings_about(&["agents", "models"]);
        let agent = config.agent(&context.agent(agent)?);
        let settings = ModelSettings::from(config.as_ref());
        let names = ModelNames::new(&settings.listed);
        let catalog = Catalog::new(&settings);
        let variables = Variables::from(context.env());
        let around = Surroundings::of(&variables, &agent.agent_dir);
        let store = AuthStore::load_with(&agent.agent_dir, &around, now_ms())
            .map_err(|error| CommandFailure::new("auth-store", error.to_string()))?;
        let resolve = |text: &String| names.resolve(text, DEFAULT_PROVIDER);
        let image = config.agents.defaults.image_model.clone().unwrap_or_default();
        let mut view = Self {
            fallbacks: agent.model_fallbacks.iter().filter_map(resolve).collect(),
            image: image.primary.as_ref().and_then(resolve),
            image_fallbacks: image.fallbacks.iter().flatten().filter_map(resolve).collect(),
            written: agent.model_primary.clone(),
            primary: ModelRef::default(),
            settings,
            catalog,
            variables,
            store,
            names,
            agent,
        };
        for warning in view.find_primary() {
            output::error_line(&context.style.warn(&warning));
        }
        warn_of_fallbacks(&view.settings, &view.catalog, context);
        Ok(view)
    }

    /// Flag with which commands mean this agent.
    pub(super) fn agent_flag(&self) -> AgentFlag {
        AgentFlag::of(&self.settings, &self.agent.id)
    }

    fn connections(&self) -> Connections<'_> {
        let Self { store, settings, catalog, variables, .. } = self;
        Connections { store, settings, catalog, variables }
    }

    /// Finds what a run would use; what there is to say of it.
    fn find_primary(&mut self) -> Vec<String> {
        let found = Primary::find(&self.connections(), &self.agent.id);
        self.primary = found.reference;
        found.warnings
    }

    /// The same with what servers on this machine, and services, say they have. Waits for them a second at most.
    pub(super) fn with_servers(mut self) -> Result<Self, CommandFailure> {
        let models = Models::new(self.variables.clone(), Http::default());
        let asked = models.ask_for_catalog(&self.settings, &self.agent.agent_dir);
        let (catalog, _) = block_on(async { Ok(asked.await) })?;
        self.catalog = catalog;
        self.find_primary();
        Ok(self)
    }

    /// True if a run could call a provider, as far as credentials go.
    pub(super) fn is_usable(&self, provider: &ProviderId) -> bool {
        provider.as_str() == offline::PROVIDER || self.connections().can_call(provider)
    }

    /// `alias` for each of a model's names.
    pub(super) fn aliases_of(&self, reference: &ModelRef) -> Vec<&str> {
        self.names.aliases().filter(|(_, target)| *target == reference).map(|(alias, _)| alias).collect()
    }

    /// The models in use: primary, fallbacks, image models, listed ones; each once.
    pub(super) fn in_use(&self) -> Vec<ModelRef> {
        let all = std::iter::once(&self.primary)
            .chain(&self.fallbacks)
            .chain(&self.image)
            .chain(&self.image_fallbacks)
            .chain(self.names.listed());
        let mut seen: Vec<ModelRef> = Vec::new();
        for reference in all {
            if !seen.contains(reference) {
                seen.push(reference.clone());
            }
        }
        seen
    }
}
