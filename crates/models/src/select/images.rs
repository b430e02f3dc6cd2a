//! The models that look at images, found and bound as those of a run are (spec `models.md` §10).

use std::path::Path;

use openclaw_config::settings::ModelChoice;
use openclaw_protocol::AgentId;

use super::bind::Run;
use super::look::Look;
use super::plan::Plan;
use super::{AskedThinking, Candidate, Models, Primary, SelectError, Skipped};
use crate::credentials::{Connections, Wish};
use crate::image_model::image_models;
use crate::reference::ModelRef;
use crate::request::ThinkingLevel;
use crate::retry::Patience;
use crate::settings::ModelSettings;

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

/// What is configured, or else what goes with an agent's own model, where it can be asked.
pub fn image_choice(connections: &Connections<'_>, primary: &ModelRef) -> Option<ModelChoice> {
    image_models(connections.settings, primary, |provider| connections.is_connected(provider))
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
        let look = Look::at(self, settings, agent_dir).await;
        let connections = look.connections();
        image_choice(&connections, &Primary::find(&connections, agent).reference)
    }

    /// Binds these models to their keys, in order. They do not think: the answer is short.
    pub async fn bind_image_models(
        &self,
        settings: &ModelSettings,
        agent_dir: &Path,
        references: Vec<ModelRef>,
    ) -> Vec<ImageCandidate> {
        let mut look = Look::at(self, settings, agent_dir).await;
        let providers: Vec<_> = references.iter().map(|model| &model.provider).collect();
        look.ask_for(&providers, false).await;
        let now = self.clock.now_ms();
        let Look { catalog, store, .. } = look;
        let plan = Plan { references, warnings: Vec::new(), override_ignored: false };
        let primary = ModelRef::default();
        let run = Run { models: self, settings, catalog, store, primary, plan, agent_dir, now };
        let mut bound = Vec::new();
        for reference in &run.plan.references {
            let off = AskedThinking::Stored(ThinkingLevel::Off);
            match run.bind(reference, off, Wish::Any).await {
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
