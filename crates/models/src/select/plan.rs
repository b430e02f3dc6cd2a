//! Which models a run may use, in order: pure, before anything is bound (spec `models.md` §1.2, §9.3).

use openclaw_protocol::AgentId;

use super::primary::{Origin, Primary};
use super::{Ask, SelectError};
use crate::catalog::Catalog;
use crate::offline;
use crate::reference::{DEFAULT_PROVIDER, ModelNames, ModelRef, default_model};
use crate::settings::ModelSettings;

/// The models of a run, primary first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) references: Vec<ModelRef>,
    pub(super) warnings: Vec<String>,
    pub(super) override_ignored: bool,
}

/// Plans a run.
pub(super) fn candidates_of(
    settings: &ModelSettings,
    catalog: &Catalog,
    primary: &Primary,
    ask: &Ask<'_>,
) -> Result<Plan, SelectError> {
    let names = ModelNames::new(&settings.listed);
    let mut plan =
        Plan { references: Vec::new(), warnings: primary.warnings.clone(), override_ignored: false };
    match ask.model.map(|text| switch(settings, catalog, &names, ask.agent, text)) {
        Some(Ok(wanted)) => plan.references.push(wanted),
        Some(Err(SelectError::NotAllowed(model))) => {
            plan.warnings.push(format!("model {model} is not allowed any more; the default is used"));
            plan.override_ignored = true;
        }
        Some(Err(error)) => return Err(error),
        None => {}
    }
    if plan.references.is_empty() {
        plan.references.push(primary.reference.clone());
        if primary.origin == Origin::Offline {
            return Ok(plan);
        }
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
    if own.is_none() && primary.origin == Origin::Configured {
        plan.references.push(primary.reference.clone());
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
    let own = settings.agent_models.get(agent);
    let is_default = default_model(own, &settings.default_model, names).reference == model;
    let guide = model.provider.as_str() == offline::PROVIDER;
    if is_default || guide || is_allowed(&model, catalog, names) {
        Ok(model)
    } else {
        Err(SelectError::NotAllowed(model))
    }
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
