//! The catalog out of its sources, later ones over earlier ones (spec `models.md` §2.1).

use openclaw_config::settings::ModelCost;
use openclaw_config::settings::ModelsMode;
use std::borrow::Cow;
use std::sync::Arc;

use super::{BUILT_IN, Catalog, CatalogProvider, CatalogSource};
use crate::provider_entry::{ModelEntry, ModelOverride, ProviderEntry};
use crate::reference::ProviderId;
use crate::settings::ModelSettings;

/// Layers of a catalog besides the built-in list.
#[derive(Debug, Clone, Copy)]
pub struct Layers<'a> {
    /// The configuration.
    pub settings: &'a ModelSettings,
    /// The providers of the agent's `models.json`. Its entries for configured providers do not
    /// count.
    pub file: &'a [(ProviderId, ProviderEntry)],
    /// Models that servers reported.
    pub found: &'a [ServerReport],
}

/// Report of a server.
#[derive(Debug, Clone)]
pub struct ServerReport {
    /// Provider of the server.
    pub provider: ProviderId,
    /// Models of the server, and its address.
    pub entry: Arc<ProviderEntry>,
    /// True if the server answered. A server that did not answer has only an address, which is not
    /// the built-in one.
    pub answered: bool,
}

impl Catalog {
    /// The configured providers in their order, those only `models.json` knows, then the built-in ones by name.
    pub fn assemble(layers: &Layers<'_>) -> Self {
        let merges = layers.settings.catalog_mode == ModelsMode::Merge;
        let mut catalog = Self { providers: Vec::new() };
        for (id, entry) in &layers.settings.providers {
            let id = ProviderId::normalize(id);
            let base = BUILT_IN.get(id.as_str()).filter(|_| merges);
            catalog.providers.retain(|known| known.id != id);
            catalog.providers.push(CatalogProvider::stated(id, base, entry, CatalogSource::Config));
        }
        if merges {
            catalog.add_unconfigured(layers.file);
        }
        for found in layers.found {
            if let Some(provider) = catalog.providers.iter_mut().find(|known| known.id == found.provider) {
                provider.answer(found);
            }
        }
        catalog
    }

    fn add_unconfigured(&mut self, stated: &[(ProviderId, ProviderEntry)]) {
        let is_new =
            |catalog: &Self, id: &str| !catalog.providers.iter().any(|known| known.id.as_str() == id);
        for (id, entry) in stated {
            if is_new(self, id.as_str()) && !BUILT_IN.contains_key(id.as_str()) {
                self.providers.push(CatalogProvider::stated(id.clone(), None, entry, CatalogSource::File));
            }
        }
        let configured = self.providers.len();
        for (id, base) in BUILT_IN.iter() {
            if self.providers.iter().take(configured).any(|known| known.id == *id) {
                continue;
            }
            let stated = stated.iter().find(|(known, _)| known == id).map(|(_, entry)| entry);
            self.providers.push(match stated {
                Some(entry) => CatalogProvider::stated(id.clone(), Some(base), entry, CatalogSource::File),
                None => CatalogProvider::built_in(id.clone(), base),
            });
        }
    }
}

impl CatalogProvider {
    fn built_in(id: ProviderId, entry: &'static ProviderEntry) -> Self {
        let entry = Cow::Borrowed(entry);
        Self { id, entry, source: CatalogSource::BuiltIn, own_models: 0, answered: false }
    }

    /// A provider as somebody wrote it down, over what is built in.
    fn stated(
        id: ProviderId,
        base: Option<&'static ProviderEntry>,
        entry: &ProviderEntry,
        source: CatalogSource,
    ) -> Self {
        let mut merged = base.map_or_else(|| entry.clone(), |base| merge(base, entry));
        for model in &mut merged.models {
            if let Some(change) = entry.model_overrides.get(&model.id) {
                change.apply(model);
            }
        }
        let own_models = if source == CatalogSource::Config { entry.models.len() } else { 0 };
        Self { id, entry: Cow::Owned(merged), source, own_models, answered: false }
    }

    /// Adds what its server said. Configured facts about a model take precedence over what a server
    /// says of it.
    fn answer(&mut self, found: &ServerReport) {
        self.answered = found.answered;
        let is_stated = self.source != CatalogSource::BuiltIn;
        let entry = self.entry.to_mut();
        // An address that nobody wrote down gives way to the one that was asked.
        let stated = entry.base_url.take();
        let (first, second) = (found.entry.base_url.clone(), stated);
        entry.base_url = if is_stated || entry.asks.is_none() { second.or(first) } else { first.or(second) };
        entry.auth = entry.auth.or(found.entry.auth);
        if !found.answered {
            return;
        }
        let mut listed = std::mem::take(&mut entry.models);
        let described = listed.split_off(self.own_models.min(listed.len()));
        entry.models = listed;
        let known = |models: &[ModelEntry], id: &str| models.iter().any(|model| model.id == id);
        let template = entry.new_model.clone().unwrap_or_default();
        for model in &found.entry.models {
            if known(&entry.models, &model.id) {
                continue;
            }
            let better = described.iter().find(|listed| listed.id == model.id);
            let mut new = better.unwrap_or(model).like(&template);
            // If the owner gives the provider's address, all of its models are there.
            new.base_url = new.base_url.or_else(|| model.base_url.clone()).filter(|_| !is_stated);
            entry.models.push(new);
        }
        // Models that a server does not list are not there; Bedrock lists only what it has in one
        // region.
        if entry.asks.is_none() {
            let missing: Vec<ModelEntry> =
                described.into_iter().filter(|model| !known(&entry.models, &model.id)).collect();
            entry.models.extend(missing);
        }
    }
}

/// Explicit fields win; explicit models come first, built-in ones with other ids follow. An explicit address is that of
/// all of them.
fn merge(base: &ProviderEntry, own: &ProviderEntry) -> ProviderEntry {
    let mut headers = base.headers.clone();
    headers.extend(own.headers.clone());
    let others = base.models.iter().filter(|model| !own.models.iter().any(|o| o.id == model.id));
    let moved = |model: &ModelEntry| {
        let base_url = model.base_url.clone().filter(|_| own.base_url.is_none());
        ModelEntry { base_url, ..model.clone() }
    };
    ProviderEntry {
        base_url: own.base_url.clone().or_else(|| base.base_url.clone()),
        api_key: own.api_key.clone().or_else(|| base.api_key.clone()),
        auth: own.auth.or(base.auth),
        api: own.api.clone().or_else(|| base.api.clone()),
        headers,
        auth_header: own.auth_header.or(base.auth_header),
        models: own.models.iter().cloned().chain(others.map(moved)).collect(),
        model_overrides: own.model_overrides.clone(),
        ..base.clone()
    }
}

impl ModelEntry {
    /// The model, with what it does not say as another one has it.
    fn like(&self, template: &Self) -> Self {
        Self {
            context_window: self.context_window.or(template.context_window),
            max_tokens: self.max_tokens.or(template.max_tokens),
            compat: self.compat.over(&template.compat),
            streaming: self.streaming.or(template.streaming),
            ..self.clone()
        }
    }
}

impl ModelOverride {
    /// Changes a model.
    fn apply(&self, model: &mut ModelEntry) {
        let said = self.clone();
        model.name = said.name.or(model.name.take());
        model.reasoning = said.reasoning.or(model.reasoning);
        model.input = said.input.or(model.input.take());
        model.context_window = said.context_window.or(model.context_window);
        model.max_tokens = said.max_tokens.or(model.max_tokens);
        model.headers.extend(said.headers);
        model.compat = said.compat.over(&model.compat);
        let (old, new) = (model.cost.unwrap_or_default(), said.cost);
        let price = ModelCost {
            input: new.input.unwrap_or(old.input),
            output: new.output.unwrap_or(old.output),
            cache_read: new.cache_read.unwrap_or(old.cache_read),
            cache_write: new.cache_write.unwrap_or(old.cache_write),
        };
        model.cost = model.cost.or((price != old).then_some(price)).map(|_| price);
    }
}
