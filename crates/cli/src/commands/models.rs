//! `openclaw models list|status` (spec `cli.md` §4.2).

mod auth;
mod list;
mod logins;
mod status;

use openclaw_config::ResolvedAgent;
use openclaw_models::catalog::Catalog;
use openclaw_models::credentials::{AuthStore, Connections};
use openclaw_models::offline;
use openclaw_models::reference::{DEFAULT_PROVIDER, ModelNames};
use openclaw_models::select::Primary;
use openclaw_models::{ModelRef, ModelSettings, ProviderId, Variables};
use openclaw_protocol::AgentId;

use crate::args::{ModelsArgs, ModelsCommand};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output;
use auth::Credentials;

pub(super) fn run(args: ModelsArgs, context: &Context) -> Outcome {
    match args.command {
        Some(ModelsCommand::Auth(auth)) => logins::run(auth, args.agent.as_deref(), context),
        Some(ModelsCommand::List { all, local, provider, json, plain }) => {
            let view = View::new(context, args.agent.as_deref())?;
            list::run(&view, &list::Filter { all, local, provider }, list::Form::of(json, plain))
        }
        Some(ModelsCommand::Status { json, plain, check, agent, probe }) => {
            if probe.probe {
                return Err(Failure::usage("models status --probe: not implemented yet in this version"));
            }
            let view = View::new(context, agent.or(args.agent).as_deref())?;
            status::run(&view, context, json, plain, check)
        }
        None => {
            let view = View::new(context, args.agent.as_deref())?;
            status::run(&view, context, args.status_json, args.status_plain, false)
        }
    }
}

fn connections<'a>(
    store: &'a AuthStore,
    settings: &'a ModelSettings,
    catalog: &'a Catalog,
    variables: &'a Variables,
) -> Connections<'a> {
    Connections { store, settings, catalog, variables }
}

/// The models as one agent sees them.
struct View {
    agent: ResolvedAgent,
    names: ModelNames,
    settings: ModelSettings,
    catalog: Catalog,
    variables: Variables,
    credentials: Credentials,
    /// What a run would use.
    primary: ModelRef,
    /// The primary as it is written.
    written: Option<String>,
    fallbacks: Vec<ModelRef>,
    image: Vec<ModelRef>,
}

impl View {
    fn new(context: &Context, agent: Option<&str>) -> Result<Self, Failure> {
        let config = context.config()?;
        context.print_warnings();
        let id = agent.map_or_else(|| config.default_agent(), AgentId::normalize);
        if !config.has_agent(&id) {
            return Err(Failure::new("unknown-agent", format!("Unknown agent id \"{id}\"."))
                .hint("Run `openclaw agents list` for the configured ones."));
        }
        let agent = config.agent(&id);
        let settings = ModelSettings::from(config.as_ref());
        let names = ModelNames::new(&settings.listed);
        let catalog = Catalog::new(&settings);
        let variables = Variables::from(context.env());
        let credentials = Credentials::load(config, &agent, context.env())?;
        let primary = Primary::find(&connections(&credentials.store, &settings, &catalog, &variables), &id);
        for warning in &primary.warnings {
            output::error_line(&context.style.warn(warning));
        }
        let resolve = |text: &String| names.resolve(text, DEFAULT_PROVIDER);
        let image = config.agents.defaults.image_model.clone().unwrap_or_default();
        let image_names = image.primary.into_iter().chain(image.fallbacks.unwrap_or_default());
        Ok(Self {
            fallbacks: agent.model_fallbacks.iter().filter_map(resolve).collect(),
            image: image_names.filter_map(|text| resolve(&text)).collect(),
            written: agent.model_primary.clone(),
            primary: primary.reference,
            settings,
            catalog,
            variables,
            credentials,
            names,
            agent,
        })
    }

    /// Whether a run could call a provider, as far as credentials go.
    fn is_usable(&self, provider: &ProviderId) -> bool {
        provider.as_str() == offline::PROVIDER
            || connections(&self.credentials.store, &self.settings, &self.catalog, &self.variables)
                .can_call(provider)
    }

    /// `alias` for each of a model's names.
    fn aliases_of(&self, reference: &ModelRef) -> Vec<&str> {
        self.names.aliases().filter(|(_, target)| *target == reference).map(|(alias, _)| alias).collect()
    }

    /// The models in use: primary, fallbacks, image models, listed ones; each once.
    fn in_use(&self) -> Vec<ModelRef> {
        let all = std::iter::once(&self.primary)
            .chain(&self.fallbacks)
            .chain(&self.image)
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
