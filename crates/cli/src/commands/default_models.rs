//! The models of the agents and their windows, found without asking a gateway: by the same rules as a run's.

use std::collections::BTreeMap;

use openclaw_config::{Config, Environment};
use openclaw_models::catalog::Catalog;
use openclaw_models::credentials::{AuthStore, Connections};
use openclaw_models::select::{Primary, context_window, image_choice};
use openclaw_models::{ModelRef, ModelSettings, Variables};
use openclaw_protocol::AgentId;
use openclaw_sessions::SessionEntry;

use super::sessions::StoredSession;
use crate::args::given;

/// Models that sessions use without a choice of their own.
pub(super) struct DefaultModels {
    settings: ModelSettings,
    catalog: Catalog,
    by_agent: BTreeMap<AgentId, Own>,
}

/// Models of an agent.
struct Own {
    model: ModelRef,
    /// True if a model can be asked about images.
    has_eyes: bool,
}

impl DefaultModels {
    /// Reads the agents' credentials; a store that can't be read counts as empty.
    pub(super) fn load(config: &Config, env: &Environment) -> Self {
        let settings = ModelSettings::from(config);
        let catalog = Catalog::new(&settings);
        let variables = Variables::from(env);
        let primary = |id: &AgentId| {
            let store = AuthStore::load(&config.agent(id).agent_dir).unwrap_or_default();
            let connections =
                Connections { store: &store, settings: &settings, catalog: &catalog, variables: &variables };
            let model = Primary::find(&connections, id).reference;
            let has_eyes = image_choice(&connections, &model).is_some();
            Own { model, has_eyes }
        };
        let by_agent = config.agent_ids().into_iter().map(|id| (id.clone(), primary(&id))).collect();
        Self { settings, catalog, by_agent }
    }

    /// The model of an agent; that of one that is not configured is the product's default.
    pub(super) fn of(&self, agent: &AgentId) -> ModelRef {
        self.by_agent.get(agent).map(|own| own.model.clone()).unwrap_or_default()
    }

    /// True if a model can be asked about images for an agent.
    pub(super) fn have_eyes(&self, agent: &AgentId) -> bool {
        self.by_agent.get(agent).is_some_and(|own| own.has_eyes)
    }

    /// The window of a model, in tokens.
    pub(super) fn window(&self, model: &ModelRef) -> u64 {
        context_window(&self.settings, &self.catalog, model).tokens
    }

    /// Model that the next run of a session would use.
    pub(super) fn next_of(&self, agent: &AgentId, entry: &SessionEntry) -> ModelRef {
        let default = self.of(agent);
        let provider = given(entry.provider_override.as_deref()).unwrap_or(default.provider.as_str());
        match given(entry.model_override.as_deref()) {
            Some(model) => ModelRef::new(provider, model),
            None => default,
        }
    }

    /// Model that a session used, or would use.
    pub(super) fn of_session(&self, agent: &AgentId, session: &StoredSession) -> ModelInUse {
        let default = self.of(agent);
        let entry = &session.entry;
        let named = |provider: Option<&str>, model: Option<&str>| {
            Some(ModelRef::new(given(provider).unwrap_or(default.provider.as_str()), given(model)?))
        };
        let reference = named(entry.model_provider.as_deref(), entry.model.as_deref())
            .or_else(|| named(entry.provider_override.as_deref(), entry.model_override.as_deref()))
            .unwrap_or_else(|| default.clone());
        let window = entry.context_tokens.unwrap_or_else(|| self.window(&reference));
        ModelInUse { model: reference.model, window }
    }
}

/// A session's model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelInUse {
    /// Model id, without the provider.
    pub(super) model: String,
    /// Context window in tokens.
    pub(super) window: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found(config: &str, vars: &[(&str, &str)], entry: Value) -> (String, u64) {
        let mut env = Environment::new([("HOME", "/nowhere")], "/nowhere");
        vars.iter().for_each(|(name, value)| env.set(*name, *value));
        let config = Config::from_json5(config, &env).unwrap();
        let entry = serde_json::from_value(entry).unwrap();
        let session = StoredSession { key: "agent:main:main".to_owned(), entry };
        let used = DefaultModels::load(&config, &env).of_session(&config.default_agent(), &session);
        (used.model, used.window)
    }

    #[test]
    fn a_session_shows_what_a_run_would_use() {
        const LOCAL: &str = "{ models: { providers: { local: { baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'k',
            api: 'openai-completions', models: [{ id: 'm', name: 'M', contextWindow: 32000 }] } } } }";
        let capped = "{ agents: { defaults: { contextTokens: 50000 } } }";
        let key = [("OPENAI_API_KEY", "k")];
        let rows = [
            ("{}", &[][..], json!({}), ("guide", 200_000)),
            (capped, &[], json!({}), ("guide", 50_000)),
            ("{}", &key, json!({}), ("gpt-5.2", 400_000)),
            ("{}", &[("ANTHROPIC_API_KEY", "k")], json!({}), ("claude-opus-4-6", 200_000)),
            (LOCAL, &key, json!({}), ("m", 32_000)),
            (LOCAL, &key, json!({ "modelProvider": "openai", "model": "gpt-5.2" }), ("gpt-5.2", 400_000)),
            (
                LOCAL,
                &key,
                json!({ "providerOverride": "openai", "modelOverride": "gpt-5-mini" }),
                ("gpt-5-mini", 400_000),
            ),
            (LOCAL, &key, json!({ "model": "x", "contextTokens": 9 }), ("x", 9)),
        ];
        for (config, vars, entry, (model, window)) in rows {
            assert_eq!(found(config, vars, entry.clone()), (model.to_owned(), window), "{config} {entry}");
        }
    }
}
