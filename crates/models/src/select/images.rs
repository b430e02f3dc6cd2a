//! The models that look at images, found and bound as those of a run are (spec `models.md` §10).

use std::path::Path;

use openclaw_config::settings::ModelChoice;
use openclaw_protocol::AgentId;

use super::bind::Run;
use super::look::ModelsView;
use super::plan::CandidatePlan;
use super::{Allowlist, AskedThinking, Candidate, Models, Primary, SelectError, Skipped};
use crate::catalog::Catalog;
use crate::credentials::{AgentFlag, Connections, ProfileWish};
use crate::image_model::{NoImageModel, image_models};
use crate::reference::{DEFAULT_PROVIDER, ModelNames, ModelRef};
use crate::retry::Patience;
use crate::settings::ModelSettings;
use crate::thinking::ThinkingLevel;

impl Run<'_> {
    /// The agent's choice.
    pub(super) fn images(&self) -> Option<ModelChoice> {
        let Self { settings, catalog, store, .. } = self;
        image_choice(
            &Connections { store, settings, catalog, variables: &self.models.variables },
            &self.primary,
        )
    }
}

/// Returns the configured image model, or else the one that goes with an agent's own model, if it
/// can be called.
pub fn image_choice(connections: &Connections<'_>, primary: &ModelRef) -> Option<ModelChoice> {
    image_models(connections.settings, primary, |provider| connections.is_connected(provider))
}

/// The models to ask, in order: the one asked for, or else the first choice; then the fallbacks
/// that are allowed. Invalid references are passed over.
///
/// # Errors
/// Fails if none is left.
pub fn image_candidates(
    settings: &ModelSettings,
    choice: &ModelChoice,
    asked: Option<&str>,
) -> Result<Vec<ModelRef>, NoImageModel> {
    let names = ModelNames::new(&settings.listed);
    let allowlist = Allowlist::new(&Catalog::new(settings), &names);
    let asked = asked.map(str::trim).filter(|text| !text.is_empty());
    let mut models: Vec<ModelRef> = Vec::new();
    let first = asked.or(choice.primary.as_deref()).and_then(|text| names.resolve(text, DEFAULT_PROVIDER));
    let fallbacks = choice.fallbacks.iter().flatten();
    let fallbacks = fallbacks
        .filter_map(|text| names.resolve(text, DEFAULT_PROVIDER))
        .filter(|model| allowlist.allows(model));
    for model in first.into_iter().chain(fallbacks) {
        if !models.contains(&model) {
            models.push(model);
        }
    }
    if models.is_empty() { Err(NoImageModel) } else { Ok(models) }
}

/// A model with one of its keys, or why it is not asked.
pub type ImageCandidate = Result<Candidate, Box<Skipped>>;

impl Models {
    /// The models that look at images for an agent, without asking a server; nothing where none can be asked.
    pub async fn image_choice(
        &self,
        settings: &ModelSettings,
        agent: &AgentId,
        agent_dir: &Path,
    ) -> Option<ModelChoice> {
        let look = ModelsView::at(self, settings, agent_dir).await;
        let connections = look.connections();
        image_choice(&connections, &Primary::find(&connections, agent).reference)
    }

    /// Binds these models to their keys, in order. They do not think: the answer is short.
    pub async fn bind_image_models(
        &self,
        settings: &ModelSettings,
        agent: &AgentId,
        agent_dir: &Path,
        references: Vec<ModelRef>,
    ) -> Vec<ImageCandidate> {
        let mut look = ModelsView::at(self, settings, agent_dir).await;
        let providers: Vec<_> = references.iter().map(|model| &model.provider).collect();
        look.ask_for(&providers, false).await;
        let now = self.clock.now_ms();
        let ModelsView { catalog, store, .. } = look;
        let plan = CandidatePlan { references, warnings: Vec::new(), override_ignored: false };
        let (primary, agent) = (ModelRef::default(), AgentFlag::of(settings, agent));
        let chosen_at = None;
        let run =
            Run { models: self, settings, catalog, store, primary, plan, agent, agent_dir, now, chosen_at };
        let mut bound = Vec::new();
        for reference in &run.plan.references {
            let off = AskedThinking::Stored(ThinkingLevel::Off);
            match run.bind(reference, off, ProfileWish::Any).await {
                Ok(found) => bound.extend(found.into_iter().map(Ok)),
                Err(error) => bound.push(Err(Box::new(Skipped { model: reference.clone(), error }))),
            }
        }
        let last = bound.len().saturating_sub(1);
        let candidates = bound.into_iter().enumerate().map(|(at, bound)| {
            let bound = bound?;
            let model = bound.spec.reference.clone();
            if !bound.spec.images {
                return Err(Box::new(Skipped { error: SelectError::Blind(model.clone()), model }));
            }
            let patience = if at < last { Patience::Short } else { Patience::Full };
            run.candidate(bound, patience)
        });
        candidates.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ListedModel;

    fn choice(primary: Option<&str>, fallbacks: &[&str]) -> ModelChoice {
        let fallbacks = fallbacks.iter().map(|text| (*text).to_owned()).collect();
        ModelChoice { primary: primary.map(str::to_owned), fallbacks: Some(fallbacks) }
    }

    #[test]
    fn the_allowlist_holds_for_fallbacks_alone() {
        let listed = |key: &str| ListedModel { key: key.to_owned(), ..ListedModel::default() };
        let settings = ModelSettings {
            listed: vec![listed("anthropic/claude-opus-4-6"), listed("openai/gpt-5.2")],
            ..ModelSettings::default()
        };
        let candidates = |choice: ModelChoice, asked: Option<&str>| {
            image_candidates(&settings, &choice, asked)
                .map(|models| models.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
                .map_err(|error| error.to_string())
        };
        let both = || choice(Some("openai/gpt-5-mini"), &["opus", "openai/gpt-5-mini", "google/x", "opus"]);
        let rows = [
            (both(), None, Ok("openai/gpt-5-mini anthropic/claude-opus-4-6")),
            (both(), Some("google/y"), Ok("google/y anthropic/claude-opus-4-6")),
            (both(), Some(" "), Ok("openai/gpt-5-mini anthropic/claude-opus-4-6")),
            (choice(Some("x/"), &["opus"]), None, Ok("anthropic/claude-opus-4-6")),
            (
                choice(None, &["google/x"]),
                None,
                Err("No image model configured. Set agents.defaults.imageModel.primary or \
                     agents.defaults.imageModel.fallbacks."),
            ),
        ];
        for (choice, asked, expect) in rows {
            let expect = expect.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(candidates(choice, asked), expect);
        }
    }
}
