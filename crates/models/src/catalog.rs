//! Catalog of models: the built-in list, additions from an agent's `models.json`, the owner's
//! configuration and answers of servers, and the look-up of a reference in it (spec `models.md`
//! §2).

mod assemble;
mod forward;
mod lookup;
mod not_listed;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use assemble::{Layers, ServerReport};
pub use lookup::LookupError;
pub(crate) use lookup::{NEW_CONTEXT_WINDOW, NEW_MAX_TOKENS};
pub use not_listed::NotListed;

pub use crate::model_spec::ModelSpec;
pub use crate::provider_entry::ProviderEntry;

use crate::net::is_local_url;
use crate::provider_entry::{Asks, ModelEntry};
use crate::reference::ProviderId;
use crate::settings::ModelSettings;
use crate::variables::Variables;

/// The built-in list. A test checks that it parses.
pub(crate) static BUILT_IN: LazyLock<BTreeMap<ProviderId, ProviderEntry>> = LazyLock::new(|| {
    let listed: BTreeMap<String, ProviderEntry> =
        serde_json::from_str(include_str!("catalog/builtin.json")).unwrap_or_default();
    listed.into_iter().map(|(id, entry)| (ProviderId::normalize(&id), entry)).collect()
});

/// The models of one installation, as one agent sees them. Cheap to make: what is built in is not copied.
#[derive(Debug, Clone)]
pub struct Catalog {
    providers: Vec<CatalogProvider>,
}

#[derive(Debug, Clone)]
struct CatalogProvider {
    id: ProviderId,
    entry: Cow<'static, ProviderEntry>,
    source: CatalogSource,
    /// Number of models configured by the owner; they come first.
    own_models: usize,
    /// True if the provider's server answered: these are then exactly its models.
    answered: bool,
}

/// Origin of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CatalogSource {
    /// `models.providers`
    Config,
    /// `models.json`
    File,
    BuiltIn,
}

/// Row of `models.list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRow {
    /// Id on the wire.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Provider id.
    pub provider: String,
    /// Tokens, where known.
    pub context_window: Option<u64>,
    /// True if the model reasons.
    pub reasoning: bool,
    /// `text`, `image`.
    pub input: Vec<String>,
}

impl Catalog {
    /// Builds the catalog from the configuration and the built-in list.
    pub fn new(settings: &ModelSettings) -> Self {
        Self::assemble(&Layers { settings, file: &[], found: &[] })
    }

    /// The entry of a provider.
    pub fn provider(&self, id: &ProviderId) -> Option<&ProviderEntry> {
        self.find(id).map(|provider| provider.entry.as_ref())
    }

    /// Returns true if the owner wrote the provider into `models.providers`.
    pub fn is_configured(&self, id: &ProviderId) -> bool {
        self.find(id).is_some_and(|provider| provider.source == CatalogSource::Config)
    }

    /// Returns true if a provider can be called without a key: a server on this machine that the
    /// owner configured, or a program for local models, wherever it runs.
    pub fn needs_no_key(&self, id: &ProviderId) -> bool {
        self.find(id).is_some_and(|provider| {
            let on_this_machine = || provider.entry.base_url.as_deref().is_some_and(is_local_url);
            provider.entry.asks.is_some_and(Asks::is_local)
                || (provider.source == CatalogSource::Config && on_this_machine())
        })
    }

    /// The models that servers on this machine have said they have, in a fixed order of programs. Only these may be used
    /// without anybody having named them: the conversation does not leave the machine.
    pub fn on_this_machine(&self) -> impl Iterator<Item = (&ProviderId, &ModelEntry)> {
        let is_one = |provider: &&CatalogProvider| {
            provider.answered
                && provider.entry.asks.is_some_and(Asks::is_local)
                && provider.entry.base_url.as_deref().is_some_and(is_local_url)
        };
        let mut local: Vec<&CatalogProvider> = self.providers.iter().filter(is_one).collect();
        local.sort_by_key(|provider| provider.entry.asks);
        local.into_iter().flat_map(|provider| provider.entry.models.iter().map(|model| (&provider.id, model)))
    }

    /// The rows of `models.list`: the owner's providers in their order, then the others by name. Providers that exist by
    /// credential are listed when `has_credential` says so, or when their server answered.
    pub fn rows(&self, has_credential: impl Fn(&ProviderId) -> bool) -> Vec<ModelRow> {
        self.providers
            .iter()
            .filter(|provider| {
                provider.source != CatalogSource::BuiltIn
                    || !provider.entry.implicit
                    || provider.answered
                    || has_credential(&provider.id)
            })
            .flat_map(|provider| {
                provider.entry.models.iter().map(|model| ModelRow {
                    id: model.id.clone(),
                    name: model.name.clone().unwrap_or_else(|| model.id.clone()),
                    provider: provider.id.as_str().to_owned(),
                    context_window: Some(model.context_window.unwrap_or(NEW_CONTEXT_WINDOW)),
                    reasoning: model.reasoning.unwrap_or(false),
                    input: model.input.clone().unwrap_or_else(|| vec!["text".to_owned()]),
                })
            })
            .collect()
    }

    /// Every provider there is.
    pub(crate) fn providers(&self) -> impl Iterator<Item = (&ProviderId, &ProviderEntry)> {
        self.providers.iter().map(|provider| (&provider.id, provider.entry.as_ref()))
    }

    fn find(&self, id: &ProviderId) -> Option<&CatalogProvider> {
        self.providers.iter().find(|provider| provider.id == *id)
    }
}

/// Variables with the keys of providers that have no models here, only embeddings.
const EMBEDDING_KEYS: &[(&str, &str)] = &[("voyage", "VOYAGE_API_KEY")];

fn embedding_key_variable(provider: &ProviderId) -> impl Iterator<Item = &'static str> {
    EMBEDDING_KEYS.iter().filter(|(id, _)| *id == provider.as_str()).map(|(_, name)| *name)
}

/// The names of the variables that may hold a provider's key, in order.
pub fn key_variables(provider: &ProviderId) -> impl Iterator<Item = &'static str> {
    let entry = BUILT_IN.get(provider.as_str());
    let of_models =
        entry.into_iter().flat_map(|entry| entry.env.iter().chain(&entry.ambient_env)).map(String::as_str);
    of_models.chain(embedding_key_variable(provider))
}

/// Returns true if this version knows a provider without any configuration, with its models.
pub fn is_built_in(provider: &ProviderId) -> bool {
    BUILT_IN.contains_key(provider.as_str())
}

/// Returns the same variables without those that are often set for other reasons.
pub fn own_key_variables(provider: &ProviderId) -> impl Iterator<Item = &'static str> {
    let of_models = BUILT_IN.get(provider.as_str()).into_iter().flat_map(|entry| &entry.env);
    of_models.map(String::as_str).chain(embedding_key_variable(provider))
}

/// All variables that hold a key of a provider and nothing else. Variables that are often set for
/// other reasons, as `GITHUB_TOKEN`, are not among them.
pub fn credential_variables() -> impl Iterator<Item = &'static str> {
    let own = BUILT_IN.values().flat_map(|entry| &entry.env).map(String::as_str);
    let of_embeddings = EMBEDDING_KEYS.iter().map(|(_, name)| *name);
    own.chain(of_embeddings).chain([crate::bedrock::credentials::BEARER])
}

/// The built-in providers whose key is in the environment. Variables that are often set for other reasons do not count.
pub fn providers_with_key(variables: &Variables) -> Vec<ProviderId> {
    let keyed = |entry: &ProviderEntry| variables.first(entry.env.iter().map(String::as_str)).is_some();
    BUILT_IN.iter().filter(|(_, entry)| keyed(entry)).map(|(id, _)| id.clone()).collect()
}

#[cfg(test)]
mod tests;
