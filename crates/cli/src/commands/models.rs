//! `openclaw models list|status` (spec `cli.md` §4.2).

mod auth;
mod list;
mod status;

use openclaw_config::ResolvedAgent;
use openclaw_models::catalog::Catalog;
use openclaw_models::reference::{DEFAULT_PROVIDER, ModelNames, default_model};
use openclaw_models::{ModelRef, ModelSettings};
use openclaw_protocol::AgentId;

use crate::args::{ModelsArgs, ModelsCommand};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use auth::Credentials;

/// The model that answers when there is no other.
const OFFLINE: (&str, &str) = ("offline", "guide");

pub(super) fn run(args: ModelsArgs, context: &Context) -> Outcome {
    match args.command {
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

/// The models as one agent sees them.
struct View {
    agent: ResolvedAgent,
    names: ModelNames,
    catalog: Catalog,
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
        let credentials = Credentials::load(config, &agent, context.env())?;
        let chosen = default_model(settings.agent_models.get(&id), &settings.default_model, &names);
        let provider_is_usable = credentials.is_usable(&chosen.reference.provider);
        let primary = if chosen.configured || provider_is_usable {
            chosen.reference
        } else {
            ModelRef::new(OFFLINE.0, OFFLINE.1)
        };
        let resolve = |text: &String| names.resolve(text, DEFAULT_PROVIDER);
        let image = config.agents.defaults.image_model.clone().unwrap_or_default();
        let image_names = image.primary.into_iter().chain(image.fallbacks.unwrap_or_default());
        Ok(Self {
            fallbacks: agent.model_fallbacks.iter().filter_map(resolve).collect(),
            image: image_names.filter_map(|text| resolve(&text)).collect(),
            written: agent.model_primary.clone(),
            catalog: Catalog::new(&settings),
            credentials,
            primary,
            names,
            agent,
        })
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
