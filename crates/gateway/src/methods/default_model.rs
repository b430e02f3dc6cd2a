//! The model that a session without an override uses, for lists and cards. Asks no provider.

use std::collections::HashMap;
use std::sync::Arc;

use openclaw_dispatch::Settings;
use openclaw_models::select::Described;
use openclaw_models::{Ask, Models};
use openclaw_protocol::AgentId;
use openclaw_sessions::methods::ModelName;

/// Model that an agent would run with, `model` being the session's own. Nothing where no model can
/// be found: the run will say why, a list need not.
pub(super) async fn describe(
    models: &Models,
    settings: &Settings,
    agent: &AgentId,
    model: Option<&str>,
) -> Option<Described> {
    let agent_dir = settings.config.agent(agent).agent_dir;
    let ask = Ask { model, ..Ask::new(agent, &agent_dir) };
    match models.describe(&settings.models, &ask).await {
        Ok(described) => Some(described),
        Err(error) => {
            tracing::debug!(%agent, %error, "no model can be found");
            None
        }
    }
}

/// The default models of the configured agents.
#[derive(Debug)]
pub(super) struct DefaultModels {
    by_agent: HashMap<AgentId, Arc<ModelName>>,
    /// Model name for agents that are not configured.
    other: Arc<ModelName>,
    /// Context window of `other`, in tokens.
    pub(super) context_tokens: Option<u64>,
}

impl DefaultModels {
    pub(super) async fn of(known: &Models, settings: &Settings) -> Self {
        let default = settings.config.default_agent();
        let mut models = Self { by_agent: HashMap::new(), other: Arc::default(), context_tokens: None };
        for agent in settings.config.agent_ids() {
            let Some(described) = describe(known, settings, &agent, None).await else { continue };
            let model = &described.reference;
            let name = Arc::new(ModelName::new(model.provider.as_str(), model.model.as_str()));
            if agent == default {
                models.other = Arc::clone(&name);
                models.context_tokens = Some(described.window.tokens);
            }
            models.by_agent.insert(agent, name);
        }
        models
    }

    /// The default model of an agent.
    pub(super) fn get(&self, agent: &AgentId) -> Arc<ModelName> {
        Arc::clone(self.by_agent.get(agent).unwrap_or(&self.other))
    }

    /// Provider of the default agent's model.
    pub(super) fn provider(&self) -> Option<String> {
        Some(self.other.provider.clone()).filter(|provider| !provider.is_empty())
    }

    /// The default agent's model.
    pub(super) fn model(&self) -> Option<String> {
        Some(self.other.model.clone()).filter(|model| !model.is_empty())
    }
}
