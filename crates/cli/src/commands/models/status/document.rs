//! Document of `models status`, keys in the order of the reference.

use openclaw_config::clock::now_ms;
use openclaw_config::imports_shell_env;
use openclaw_models::credentials::how_to_add;
use openclaw_models::reference::DEFAULT_PROVIDER;
use openclaw_models::{CacheRetention, ModelRef, ProviderId};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::health::OAuth;
use super::probes::Probes;
use crate::commands::models::auth::{ProviderAuth, Unusable};
use crate::commands::models::view::ModelView;
use crate::context::CliContext;

/// The whole document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelsStatus {
    config_path: String,
    pub(super) agent_dir: String,
    pub(super) default_model: String,
    pub(super) resolved_default: String,
    pub(super) fallbacks: Vec<String>,
    pub(super) image_model: Option<String>,
    pub(super) image_fallbacks: Vec<String>,
    pub(super) aliases: Map<String, Value>,
    pub(super) allowed: Vec<String>,
    pub(super) auth: Auth,
    /// Retention of the prompts of models in use in the provider's cache, by model. Ours; absent
    /// where there is no such model.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) cache_retention: Map<String, Value>,
}

/// `auth`
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Auth {
    pub(super) store_path: String,
    pub(super) shell_env_fallback: ShellEnv,
    #[serde(rename = "providersWithOAuth")]
    pub(super) providers_with_oauth: Vec<String>,
    pub(super) missing_providers_in_use: Vec<String>,
    /// Instructions for each of them, for people.
    #[serde(skip)]
    pub(super) how_to_add_missing: Vec<String>,
    pub(super) providers: Vec<ProviderAuth>,
    pub(super) unusable_profiles: Vec<Unusable>,
    pub(super) oauth: OAuth,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) probes: Option<Probes>,
}

/// Keys taken over from the login shell.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShellEnv {
    pub(super) enabled: bool,
    pub(super) applied_keys: Vec<String>,
}

impl ShellEnv {
    fn of(context: &CliContext) -> Self {
        let enabled = imports_shell_env(context.env(), &context.loaded.snapshot.parsed);
        Self { enabled, applied_keys: context.env().from_shell().map(str::to_owned).collect() }
    }
}

impl ModelsStatus {
    /// Looks at everything; asks no server.
    pub(super) fn of(view: &ModelView, context: &CliContext) -> Self {
        let names = |list: &[ModelRef]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let alias = |(alias, target): (&str, &ModelRef)| (alias.to_owned(), json!(target.to_string()));
        Self {
            config_path: context.paths().config_path().display().to_string(),
            agent_dir: view.agent.agent_dir.display().to_string(),
            default_model: view.written.clone().unwrap_or_else(|| view.primary.to_string()),
            resolved_default: view.primary.to_string(),
            fallbacks: names(&view.fallbacks),
            image_model: view.image.as_ref().map(ToString::to_string),
            image_fallbacks: names(&view.image_fallbacks),
            aliases: view.names.aliases().map(alias).collect(),
            allowed: view.names.listed().map(ToString::to_string).collect(),
            auth: Auth::of(view, context),
            cache_retention: cache_retention(view),
        }
    }
}

impl Auth {
    fn of(view: &ModelView, context: &CliContext) -> Self {
        let chosen = std::iter::once(&view.primary)
            .chain(&view.fallbacks)
            .chain(&view.image)
            .chain(&view.image_fallbacks)
            .map(|reference| &reference.provider);
        let mut missing: Vec<&ProviderId> = chosen.filter(|provider| !view.is_usable(provider)).collect();
        missing.sort();
        missing.dedup();
        let mut providers = view.providers();
        providers.extend(view.in_use().into_iter().map(|reference| reference.provider));
        providers.sort();
        providers.dedup();
        let described: Vec<ProviderAuth> =
            providers.iter().filter_map(|provider| view.describe(provider)).collect();
        Self {
            store_path: view.store_path(),
            shell_env_fallback: ShellEnv::of(context),
            providers_with_oauth: described.iter().filter_map(with_oauth).collect(),
            how_to_add_missing: missing.iter().map(|provider| how_to_add_missing(view, provider)).collect(),
            missing_providers_in_use: missing.iter().map(ToString::to_string).collect(),
            unusable_profiles: view.unusable(),
            oauth: OAuth::of(&view.store, &providers, now_ms()),
            providers: described,
            probes: None,
        }
    }
}

/// A provider that nobody knows needs more than a key.
fn how_to_add_missing(view: &ModelView, provider: &ProviderId) -> String {
    match view.catalog.provider(provider) {
        Some(_) => how_to_add(provider, &view.agent_flag()),
        None => {
            format!("Not a known provider. Add models.providers.{provider} with its baseUrl to the config.")
        }
    }
}

/// `anthropic (2)` for a provider with two logins or tokens.
fn with_oauth(provider: &ProviderAuth) -> Option<String> {
    let in_env = provider.env.as_ref().is_some_and(|env| env.is_oauth);
    let count = provider.profiles.oauth + provider.profiles.token + usize::from(in_env);
    (count > 0).then(|| format!("{} ({count})", provider.provider))
}

/// The models in use whose prompts a provider caches on request, with how long.
fn cache_retention(view: &ModelView) -> Map<String, Value> {
    let means =
        |key: &str, wanted: &ModelRef| ModelRef::parse(key, DEFAULT_PROVIDER).as_ref() == Some(wanted);
    let listed = |wanted: &ModelRef| {
        view.settings
            .listed
            .iter()
            .filter(|listed| means(&listed.key, wanted))
            .find_map(|listed| listed.cache)
    };
    view.in_use()
        .iter()
        .filter(|reference| reference.provider.as_str() == CacheRetention::PROVIDER)
        .filter_map(|reference| {
            let mode = view.mode(&reference.provider)?;
            let kept = CacheRetention::effective(listed(reference), reference.provider.as_str(), mode);
            Some((reference.to_string(), json!(kept)))
        })
        .collect()
}
