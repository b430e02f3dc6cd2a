//! Which models exist: the built-in list, what the owner adds, and how a reference finds its model (spec `models.md` §2).

mod entry;
mod lookup;
mod spec;

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use entry::{Compat, ModelEntry, ModelEntryParams, Price, ProviderAuthKind, ProviderEntry};
pub use lookup::LookupError;
pub use spec::ModelSpec;

use crate::reference::ProviderId;
use crate::settings::{CatalogMode, ModelSettings};
use crate::variables::Variables;

/// The built-in list. That it parses is tested.
static BUILT_IN: LazyLock<BTreeMap<String, ProviderEntry>> =
    LazyLock::new(|| serde_json::from_str(include_str!("builtin.json")).unwrap_or_default());

/// The models of one installation.
#[derive(Debug, Clone)]
pub struct Catalog {
    providers: Vec<Provider>,
}

#[derive(Debug, Clone)]
struct Provider {
    id: ProviderId,
    entry: ProviderEntry,
    /// The owner wrote it into `models.providers`.
    configured: bool,
    /// How many of its models are the owner's; they come first.
    own_models: usize,
}

/// One row of `models.list`.
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
    /// Whether it reasons.
    pub reasoning: bool,
    /// `text`, `image`.
    pub input: Vec<String>,
}

impl Catalog {
    /// The configured providers, then the built-in ones they do not replace.
    pub fn new(settings: &ModelSettings) -> Self {
        let mut providers: Vec<Provider> = Vec::new();
        for (id, entry) in &settings.providers {
            let id = ProviderId::normalize(id);
            let built_in = BUILT_IN.get(id.as_str()).filter(|_| settings.catalog_mode == CatalogMode::Merge);
            let own_models = entry.models.len();
            let entry = built_in.map_or_else(|| entry.clone(), |base| merge(base, entry));
            providers.retain(|known| known.id != id);
            providers.push(Provider { id, entry, configured: true, own_models });
        }
        if settings.catalog_mode == CatalogMode::Merge {
            for (id, entry) in BUILT_IN.iter() {
                if !providers.iter().any(|known| known.id.as_str() == id) {
                    let id = ProviderId::normalize(id);
                    providers.push(Provider { id, entry: entry.clone(), configured: false, own_models: 0 });
                }
            }
        }
        Self { providers }
    }

    /// The entry of a provider.
    pub fn provider(&self, id: &ProviderId) -> Option<&ProviderEntry> {
        self.find(id).map(|provider| &provider.entry)
    }

    /// Whether the owner wrote a provider into `models.providers`.
    pub fn is_configured(&self, id: &ProviderId) -> bool {
        self.find(id).is_some_and(|provider| provider.configured)
    }

    /// The rows of `models.list`: the owner's providers in their order, then the others by name. Providers that exist by
    /// credential are listed when `has_credential` says so.
    pub fn rows(&self, has_credential: impl Fn(&ProviderId) -> bool) -> Vec<ModelRow> {
        self.providers
            .iter()
            .filter(|provider| {
                provider.configured || !provider.entry.implicit || has_credential(&provider.id)
            })
            .flat_map(|provider| {
                provider.entry.models.iter().map(|model| ModelRow {
                    id: model.id.clone(),
                    name: model.name.clone().unwrap_or_else(|| model.id.clone()),
                    provider: provider.id.as_str().to_owned(),
                    context_window: Some(model.context_window.unwrap_or(lookup::NEW_CONTEXT_WINDOW)),
                    reasoning: model.reasoning.unwrap_or(false),
                    input: model.input.clone().unwrap_or_else(|| vec!["text".to_owned()]),
                })
            })
            .collect()
    }

    fn find(&self, id: &ProviderId) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.id == *id)
    }
}

/// The names of the variables that may hold a provider's key, in order.
pub fn key_variables(provider: &ProviderId) -> impl Iterator<Item = &'static str> {
    let entry = BUILT_IN.get(provider.as_str());
    entry.into_iter().flat_map(|entry| entry.env.iter().chain(&entry.ambient_env)).map(String::as_str)
}

/// The same without variables that are often set for other reasons.
pub fn own_key_variables(provider: &ProviderId) -> impl Iterator<Item = &'static str> {
    BUILT_IN.get(provider.as_str()).into_iter().flat_map(|entry| &entry.env).map(String::as_str)
}

/// The built-in providers whose key is in the environment. Variables that are often set for other reasons do not count.
pub fn providers_with_key(variables: &Variables) -> Vec<ProviderId> {
    let keyed = |entry: &ProviderEntry| variables.first(entry.env.iter().map(String::as_str)).is_some();
    BUILT_IN.iter().filter(|(_, entry)| keyed(entry)).map(|(id, _)| ProviderId::normalize(id)).collect()
}

/// Explicit fields win; explicit models come first, built-in ones with other ids follow.
fn merge(base: &ProviderEntry, own: &ProviderEntry) -> ProviderEntry {
    let mut headers = base.headers.clone();
    headers.extend(own.headers.clone());
    let others = base.models.iter().filter(|model| !own.models.iter().any(|o| o.id == model.id)).cloned();
    ProviderEntry {
        base_url: own.base_url.clone().or_else(|| base.base_url.clone()),
        api_key: own.api_key.clone().or_else(|| base.api_key.clone()),
        auth: own.auth.or(base.auth),
        api: own.api.clone().or_else(|| base.api.clone()),
        headers,
        auth_header: own.auth_header.or(base.auth_header),
        models: own.models.iter().cloned().chain(others).collect(),
        ..base.clone()
    }
}

#[cfg(test)]
mod tests;
