//! The model of an agent whose session names none: the one answer for runs, lists and the command line.

use openclaw_protocol::AgentId;

use crate::catalog::{Catalog, providers_with_key};
use crate::context_window::MINIMUM;
use crate::credentials::Connections;
use crate::offline;
use crate::protocols::protocol;
use crate::provider_entry::{ModelEntry, ProviderEntry};
use crate::reference::{DEFAULT_MODEL, DEFAULT_PROVIDER, ModelNames, ModelRef, ProviderId, default_model};
use crate::settings::ModelSettings;

/// Connected providers in the order in which they are taken when nobody chose a model, each with the model it is asked
/// for. Anthropic, the product's default (spec `models.md` §1.2), stands first by itself.
const CHOICES: &[(&str, &str)] = &[
    ("openai", "gpt-5.2"),
    ("google", "gemini-3-pro-preview"),
    ("openrouter", "openrouter/auto"),
    ("vercel-ai-gateway", "anthropic/claude-opus-4.6"),
    ("xai", "grok-4"),
    ("zai", "glm-4.7"),
    ("moonshot", "kimi-k2.5"),
    ("kimi-coding", "k2p5"),
    ("minimax", "MiniMax-M2.1"),
    ("minimax-cn", "MiniMax-M2.1"),
    ("minimax-portal", "MiniMax-M2.1"),
    ("mistral", "mistral-large-latest"),
    ("groq", "openai/gpt-oss-120b"),
    ("cerebras", "gpt-oss-120b"),
    ("opencode", "glm-4.7"),
    ("qwen-portal", "coder-model"),
    ("xiaomi", "mimo-v2-flash"),
    ("qianfan", "deepseek-v3.2"),
];

/// The model an agent runs with while its session names none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Primary {
    /// Reference of the model.
    pub reference: ModelRef,
    /// Origin of the choice.
    pub origin: PrimaryOrigin,
    /// Warnings for the owner about the choice.
    pub warnings: Vec<String>,
}

/// Origin of the choice of a [`Primary`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrimaryOrigin {
    /// The owner, in `agents.list[].model` or `agents.defaults.model`.
    Configured,
    /// Chosen automatically: a model that can be called with what is connected.
    Connected,
    /// Chosen automatically: nothing is connected, but a program for local models answered on this
    /// machine.
    OnThisMachine,
    /// Chosen automatically: none of the configured providers can be called; a run reports the
    /// reason.
    Unusable,
    /// Chosen automatically: the offline guide, because nothing is connected.
    Offline,
}

impl Primary {
    /// Finds the primary model of an agent: the configured one; else the product's default if Anthropic is connected; else
    /// the first that is connected and whose protocol is spoken, in the order of `agents.defaults.models`, then of
    /// `models.providers`, then of a fixed list; else what a program for local models has on this machine; else the offline
    /// guide.
    pub fn find(connections: &Connections<'_>, agent: &AgentId) -> Self {
        let (settings, catalog) = (connections.settings, connections.catalog);
        let names = ModelNames::new(&settings.listed);
        let written = default_model(settings.agent_models.get(agent), &settings.default_model, &names);
        let mut warnings: Vec<String> = written.warning.into_iter().collect();
        if written.configured {
            return Self { reference: written.reference, origin: PrimaryOrigin::Configured, warnings };
        }
        let usable = |model: &ModelRef| speaks(catalog, model) && connections.is_connected(&model.provider);
        let configured = |model: &ModelRef| speaks(catalog, model) && connections.can_call(&model.provider);
        let fixed = || CHOICES.iter().map(|(provider, model)| ModelRef::new(provider, model));
        let connected = Some(ModelRef::default())
            .filter(usable)
            .or_else(|| names.listed().find(|model| configured(model)).cloned())
            .or_else(|| first_models(settings, catalog).into_iter().find(configured))
            .or_else(|| fixed().find(usable));
        if let Some(reference) = connected {
            return Self { reference, origin: PrimaryOrigin::Connected, warnings };
        }
        if let Some(reference) = first_models(settings, catalog).into_iter().next() {
            return Self { reference, origin: PrimaryOrigin::Unusable, warnings };
        }
        if let Some((reference, warning)) = on_this_machine(catalog) {
            warnings.push(warning);
            return Self { reference, origin: PrimaryOrigin::OnThisMachine, warnings };
        }
        warnings.extend(not_spoken(connections));
        Self {
            reference: ModelRef::new(offline::PROVIDER, offline::MODEL),
            origin: PrimaryOrigin::Offline,
            warnings,
        }
    }
}

/// Returns the rank of a provider among those that have a model of the same id: makers before
/// resellers.
pub(crate) fn standing(provider: &ProviderId) -> usize {
    let place = CHOICES.iter().position(|(id, _)| *id == provider.as_str());
    if provider.as_str() == DEFAULT_PROVIDER { 0 } else { 1 + place.unwrap_or(CHOICES.len()) }
}

/// Returns true if a model exists and its protocol is supported.
fn speaks(catalog: &Catalog, model: &ModelRef) -> bool {
    catalog.lookup(model).is_ok_and(|spec| protocol(&spec.api).is_some())
}

/// The model to take of each of the owner's providers, in the order of the file: the first the owner lists; of a built-in
/// provider that is only redirected, its usual one.
fn first_models(settings: &ModelSettings, catalog: &Catalog) -> Vec<ModelRef> {
    let usual = |id: &ProviderId| {
        let fixed = CHOICES.iter().find(|(provider, _)| *provider == id.as_str()).map(|(_, model)| *model);
        let built_in = || catalog.provider(id)?.models.first().map(|model| model.id.as_str());
        if id.as_str() == DEFAULT_PROVIDER { Some(DEFAULT_MODEL) } else { fixed.or_else(built_in) }
    };
    let of_provider = |(id, entry): &(String, ProviderEntry)| {
        let id = ProviderId::normalize(id);
        let listed = entry.models.first().map(|model| model.id.as_str());
        Some(ModelRef::new(id.as_str(), listed.or_else(|| usual(&id))?))
    };
    settings.providers.iter().filter_map(of_provider).collect()
}

/// The first model of a program for local models that an agent can work with. The conversation stays on this machine, and
/// the owner is told.
fn on_this_machine(catalog: &Catalog) -> Option<(ModelRef, String)> {
    let is_fit = |(_, model): &(&ProviderId, &ModelEntry)| {
        !model.lacks_tools && model.context_window.is_none_or(|tokens| tokens >= MINIMUM)
    };
    let (provider, model) = catalog.on_this_machine().find(is_fit)?;
    let reference = ModelRef::new(provider.as_str(), &model.id);
    let warning = format!(
        "no model is configured: {reference} answers, which runs on this machine; set \
         agents.defaults.model.primary to choose, or OPENCLAW_LOCAL_MODELS=off to leave local models alone"
    );
    Some((reference, warning))
}

/// Returns a hint that names the connected providers which can't be called by default; `None` if
/// nothing is connected.
fn not_spoken(connections: &Connections<'_>) -> Option<String> {
    let profiles = connections.store.profiles().map(|(_, credential)| credential.provider.clone());
    let mut connected: Vec<ProviderId> =
        providers_with_key(connections.variables).into_iter().chain(profiles).collect();
    connected.sort();
    connected.dedup();
    let connected: Vec<String> = connected.iter().map(ToString::to_string).collect();
    (!connected.is_empty()).then(|| {
        format!(
            "there are credentials for {}, but none of them can be used without a choice; set \
             agents.defaults.model.primary to <provider>/<model>. Until then the offline guide answers",
            connected.join(", ")
        )
    })
}

#[cfg(test)]
mod tests;
