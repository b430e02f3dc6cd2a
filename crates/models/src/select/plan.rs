//! Which models a run may use, in order: pure, before anything is bound (spec `models.md` §1.2, §9.3).

use openclaw_protocol::AgentId;

use super::{Ask, SelectError};
use crate::catalog::Catalog;
use crate::offline;
use crate::reference::{DEFAULT_PROVIDER, DefaultModel, ModelNames, ModelRef, default_model};
use crate::settings::{ModelChoice, ModelSettings};

/// The models of a run, primary first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) references: Vec<ModelRef>,
    pub(super) warnings: Vec<String>,
    pub(super) override_ignored: bool,
    /// Nobody chose a model: neither the configuration nor the session.
    pub(super) is_default: bool,
}

/// Plans a run.
pub(super) fn candidates_of(
    settings: &ModelSettings,
    catalog: &Catalog,
    ask: &Ask<'_>,
) -> Result<Plan, SelectError> {
    let names = ModelNames::new(&settings.listed);
    let configured = configured_model(settings, &names, ask.agent);
    let mut plan = Plan {
        references: Vec::new(),
        warnings: configured.warning.into_iter().collect(),
        override_ignored: false,
        is_default: !configured.configured,
    };
    match ask.model.map(|text| switch(settings, catalog, &names, ask.agent, text)) {
        Some(Ok(wanted)) => {
            plan.references.push(wanted);
            plan.is_default = false;
        }
        Some(Err(SelectError::NotAllowed(model))) => {
            plan.warnings.push(format!("model {model} is not allowed any more; the default is used"));
            plan.override_ignored = true;
        }
        Some(Err(error)) => return Err(error),
        None => {}
    }
    if plan.references.is_empty() {
        plan.references.push(configured.reference.clone());
    }
    let own = settings.agent_models.get(ask.agent).and_then(|choice| choice.fallbacks.as_ref());
    for text in own.or(settings.default_model.fallbacks.as_ref()).into_iter().flatten() {
        match names.resolve(text, DEFAULT_PROVIDER) {
            Some(model) if !names.restricts() || is_allowed(&model, catalog, &names) => {
                plan.references.push(model)
            }
            Some(model) => plan
                .warnings
                .push(format!("fallback {model} is not in agents.defaults.models and is left out")),
            None => plan
                .warnings
                .push(format!("fallback \"{text}\" is not of the form provider/model and is left out")),
        }
    }
    if own.is_none() && configured.configured {
        plan.references.push(configured.reference);
    }
    let mut seen = std::collections::HashSet::new();
    plan.references.retain(|model| seen.insert(model.clone()));
    Ok(plan)
}

/// Resolves what a session switched to.
pub(super) fn switch(
    settings: &ModelSettings,
    catalog: &Catalog,
    names: &ModelNames,
    agent: &AgentId,
    text: &str,
) -> Result<ModelRef, SelectError> {
    if text.trim().is_empty() {
        return Err(SelectError::Invalid("empty".to_owned()));
    }
    let model =
        names.resolve(text, DEFAULT_PROVIDER).ok_or_else(|| SelectError::Invalid(text.trim().to_owned()))?;
    let is_default = configured_model(settings, names, agent).reference == model;
    let guide = model.provider.as_str() == offline::PROVIDER;
    if is_default || guide || is_allowed(&model, catalog, names) {
        Ok(model)
    } else {
        Err(SelectError::NotAllowed(model))
    }
}

fn configured_model(settings: &ModelSettings, names: &ModelNames, agent: &AgentId) -> DefaultModel {
    let own: Option<&ModelChoice> = settings.agent_models.get(agent);
    default_model(own, &settings.default_model, names)
}

/// Without a list everything is allowed; with one, its entries that exist. A list of which nothing exists restricts
/// nothing.
fn is_allowed(model: &ModelRef, catalog: &Catalog, names: &ModelNames) -> bool {
    let exists = |model: &ModelRef| catalog.lookup(model).is_ok() || catalog.is_configured(&model.provider);
    if !names.listed().any(exists) {
        return true;
    }
    names.lists(model) && exists(model)
}
