//! Resolves a reference to a model that can be called (spec `models.md` §2.2).

use openclaw_config::settings::ModelCost;
use secrecy::SecretString;

use super::forward::{is_edition, newcomer};
use super::{Catalog, CatalogProvider, CatalogSource};
use crate::api::Api;
use crate::copilot;
use crate::model_spec::ModelSpec;
use crate::protocols::protocol;
use crate::provider_entry::{Compat, ModelEntry, ProviderEntry};
use crate::reference::ModelRef;
use crate::wire::Protocol;

/// Window of a model that does not say (spec `models.md` §2.1).
pub(crate) const NEW_CONTEXT_WINDOW: u64 = 200_000;
/// Largest answer of a model that does not say.
pub(crate) const NEW_MAX_TOKENS: u64 = 8_192;
/// Protocol of a model of a configured provider that does not say, when the model is not listed (spec `models.md` §2.2).
const NEW_API: &str = "openai-responses";
/// Ids that are made up for tests and exist with any provider.
const MOCK_PREFIX: &str = "mock-";

/// Reason why a reference finds no model. The texts are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The provider is unknown.
    #[error(
        "Unknown model: {0} (provider {provider} is not known: add it to models.providers with its baseUrl, or choose one of \
         `openclaw models list --all`)",
        provider = .0.provider
    )]
    UnknownProvider(ModelRef),
    /// The provider is known but has no such model.
    #[error("Unknown model: {0} (`openclaw models list --all --provider {provider}` shows the known ones)", provider = .0.provider)]
    Unknown(ModelRef),
    /// The provider is known but its address is not.
    #[error("Provider {0}: \"baseUrl\" is required when defining custom models.")]
    NoAddress(String),
    /// The protocol of the model is unknown.
    #[error("Provider {provider}, model {model}: no \"api\" specified. Set at provider or model level.")]
    NoApi {
        /// The provider.
        provider: String,
        /// The model.
        model: String,
    },
}

impl Catalog {
    /// Finds the model of a reference: listed, a dated edition of a listed one, one that is known to come, or any id of a
    /// provider that has more models than are listed.
    ///
    /// # Errors
    /// See [`LookupError`].
    pub fn lookup(&self, reference: &ModelRef) -> Result<ModelSpec, LookupError> {
        let provider =
            self.find(&reference.provider).ok_or_else(|| LookupError::UnknownProvider(reference.clone()))?;
        let models = &provider.entry.models;
        if let Some(at) = models.iter().position(|model| model.id == reference.model)
            && let Some(model) = models.get(at)
        {
            return resolve(provider, model, reference, at < provider.own_models);
        }
        if let Some(model) = models.iter().find(|model| is_edition(&reference.model, &model.id)) {
            return resolve(provider, model, reference, false);
        }
        if let Some(model) = newcomer(provider.id.as_str(), &reference.model, models) {
            return resolve(provider, &model, reference, false);
        }
        let any_id = provider.source == CatalogSource::Config || provider.entry.open;
        if any_id || reference.model.starts_with(MOCK_PREFIX) {
            return resolve(provider, &unlisted(provider), reference, false);
        }
        Err(LookupError::Unknown(reference.clone()))
    }

    /// Returns the price of a model; `None` if no price is known. A dated edition costs what the
    /// listed model does.
    pub fn price(&self, reference: &ModelRef) -> Option<ModelCost> {
        let models = &self.find(&reference.provider)?.entry.models;
        let listed = models.iter().find(|model| model.id == reference.model);
        listed.or_else(|| models.iter().find(|model| is_edition(&reference.model, &model.id)))?.cost
    }
}

/// Returns the defaults for a model that is not listed: a text model like the provider's first one.
fn unlisted(provider: &CatalogProvider) -> ModelEntry {
    let entry = &provider.entry;
    if let Some(template) = &entry.new_model {
        return template.clone();
    }
    let first = entry.models.first();
    ModelEntry {
        api: entry.api.clone().or_else(|| first?.api.clone()).or_else(|| Some(Api::from(NEW_API))),
        context_window: first.and_then(|model| model.context_window),
        max_tokens: first.and_then(|model| model.max_tokens).or(Some(NEW_CONTEXT_WINDOW)),
        ..ModelEntry::default()
    }
}

fn resolve(
    provider: &CatalogProvider,
    model: &ModelEntry,
    reference: &ModelRef,
    own: bool,
) -> Result<ModelSpec, LookupError> {
    let entry = &provider.entry;
    let window = model.context_window.unwrap_or(NEW_CONTEXT_WINDOW);
    let api = model.api.clone().or_else(|| entry.api.clone()).ok_or_else(|| LookupError::NoApi {
        provider: provider.id.to_string(),
        model: reference.model.clone(),
    })?;
    let api = copilot::api_of(api, &reference.model);
    Ok(ModelSpec {
        name: model.name.clone().unwrap_or_else(|| reference.model.clone()),
        base_url: base_url(provider, model, &api)?,
        api,
        reasoning: model.reasoning.unwrap_or(false),
        images: model.input.as_ref().is_some_and(|input| input.iter().any(|kind| kind == "image")),
        price: model.cost.unwrap_or_default(),
        context_window: model.context_window,
        window_configured: own && model.context_window.is_some(),
        max_tokens: model.max_tokens.unwrap_or(NEW_MAX_TOKENS).min(window),
        headers: headers(entry, model),
        auth_header: entry.auth_header.unwrap_or(false),
        compat: post_fixed(provider, model),
        streaming: model.streaming.unwrap_or(true),
        reference: reference.clone(),
    })
}

/// The address without a trailing slash. Protocols without a client need none: they are refused by name later.
fn base_url(provider: &CatalogProvider, model: &ModelEntry, api: &Api) -> Result<String, LookupError> {
    let written = model.base_url.as_deref().or(provider.entry.base_url.as_deref());
    let written = written.map(str::trim).filter(|url| !url.is_empty());
    match written {
        Some(url) => Ok(url.trim_end_matches('/').to_owned()),
        None if protocol(api).is_some_and(Protocol::needs_address) => {
            Err(LookupError::NoAddress(provider.id.to_string()))
        }
        None => Ok(String::new()),
    }
}

/// Z.ai does not know role `developer`, also behind another provider id (spec `models.md` §2.2).
fn post_fixed(provider: &CatalogProvider, model: &ModelEntry) -> Compat {
    let address = model.base_url.as_deref().or(provider.entry.base_url.as_deref());
    let is_zai = provider.id.as_str() == "zai" || address.is_some_and(|url| url.contains("api.z.ai"));
    let mut compat = model.compat.clone();
    if is_zai {
        compat.supports_developer_role = Some(false);
    }
    compat
}

fn headers(entry: &ProviderEntry, model: &ModelEntry) -> std::collections::BTreeMap<String, SecretString> {
    let mut headers = entry.headers.clone();
    headers.extend(model.headers.clone());
    headers
}
