//! Plans the models that a run may use, in order: pure, before anything is bound (spec `models.md`
//! §1.2, §9.3).

use openclaw_protocol::AgentId;

use super::primary::{Primary, PrimaryOrigin};
use super::{Allowlist, Ask, SelectError};
use crate::catalog::Catalog;
use crate::reference::{DEFAULT_PROVIDER, ModelNames, ModelRef};
use crate::settings::ModelSettings;

/// The models of a run, primary first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CandidatePlan {
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
) -> Result<CandidatePlan, SelectError> {
    let names = ModelNames::new(&settings.listed);
    let allowlist = Allowlist::new(catalog, &names);
    let mut plan =
        CandidatePlan { references: Vec::new(), warnings: primary.warnings.clone(), override_ignored: false };
    match ask.model.map(|text| allowlist.switch(&names, &primary.reference, text)) {
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
        if primary.origin == PrimaryOrigin::Offline {
            return Ok(plan);
        }
    }
    let more = stand_ins(settings, &names, &allowlist, primary, ask.agent, &mut plan.warnings);
    plan.references.extend(more);
    let mut seen = std::collections::HashSet::new();
    plan.references.retain(|model| seen.insert(model.clone()));
    Ok(plan)
}

/// The models that are tried after the first: the fallbacks in order, then the primary that is configured. An agent with fallbacks of its
/// own has those alone.
pub(crate) fn stand_ins(
    settings: &ModelSettings,
    names: &ModelNames,
    allowlist: &Allowlist,
    primary: &Primary,
    agent: &AgentId,
    warnings: &mut Vec<String>,
) -> Vec<ModelRef> {
    let mut found = Vec::new();
    let own = settings.agent_models.get(agent).and_then(|choice| choice.fallbacks.as_ref());
    for text in own.or(settings.default_model.fallbacks.as_ref()).into_iter().flatten() {
        match fallback(names, allowlist, text) {
            Ok(model) => found.push(model),
            Err(warning) => warnings.push(warning),
        }
    }
    if own.is_none() && primary.origin == PrimaryOrigin::Configured {
        found.push(primary.reference.clone());
    }
    found
}

/// A fallback as it is configured, or why it is left out.
fn fallback(names: &ModelNames, allowlist: &Allowlist, text: &str) -> Result<ModelRef, String> {
    match names.resolve(text, DEFAULT_PROVIDER) {
        Some(model) if allowlist.allows(&model) => Ok(model),
        Some(model) => Err(format!(
            "fallback {model} is not in agents.defaults.models and is left out; add it there to have it asked"
        )),
        None => Err(format!("fallback \"{text}\" is not of the form provider/model and is left out")),
    }
}

/// The configured fallbacks, of whatever agent, that are never asked, each with the reason. For whoever starts the gateway or asks how it stands.
pub fn fallbacks_left_out(settings: &ModelSettings, catalog: &Catalog) -> Vec<String> {
    let names = ModelNames::new(&settings.listed);
    let allowlist = Allowlist::new(catalog, &names);
    let choices = settings.agent_models.values().chain([&settings.default_model]);
    let configured = choices.filter_map(|choice| choice.fallbacks.as_ref()).flatten();
    let mut left_out: Vec<String> =
        configured.filter_map(|text| fallback(&names, &allowlist, text).err()).collect();
    left_out.sort();
    left_out.dedup();
    left_out
}
