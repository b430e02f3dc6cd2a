//! Writing `models.json`: the configured providers and those a credential connects, beside what is there already.

use openclaw_config::settings::ModelsMode;
use openclaw_config::settings::ProviderAuth;
use std::path::Path;

use openclaw_config::private_file::{self, Durability};
use secrecy::ExposeSecret;
use serde_json::{Map, Number, Value, json};

use super::marker::{CONFIG, NONE, is_marker, profile};
use super::read::{providers_of, text};
use super::{FILE, check, set_models_file_aside};
use crate::bedrock::{self, credentials as aws};
use crate::catalog::{BUILT_IN, NEW_CONTEXT_WINDOW, NEW_MAX_TOKENS, ServerReport, key_variables};
use crate::credentials::{Connections, Secret, profile_order};
use crate::provider_entry::{ModelEntry, ProviderEntry};
use crate::reference::ProviderId;
use openclaw_config::clock::now_ms;

/// Parts of the names of variables that hold keys.
const KEY_WORDS: [&str; 3] = ["KEY", "TOKEN", "SECRET"];

/// Content that a run wants `models.json` to have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Writing {
    mode: ModelsMode,
    /// Providers by id as the owner writes them.
    providers: Vec<(String, Value)>,
}

impl Writing {
    /// Derives the content from the configuration, the credentials and the servers that answered;
    /// `None` if there is none. A local server that nobody connected is not written down: when it
    /// is gone, so are its models.
    pub(crate) fn of(connections: &Connections<'_>, found: &[ServerReport]) -> Option<Self> {
        let settings = connections.settings;
        let mut providers: Vec<(String, Value)> = Vec::new();
        for (written, entry) in &settings.providers {
            let id = ProviderId::normalize(written);
            let entry = &with_found(&id, entry, connections, found);
            providers
                .extend(provider(&id, entry, connections).map(|value| (written.trim().to_owned(), value)));
        }
        if settings.catalog_mode == ModelsMode::Merge {
            for (id, base) in BUILT_IN.iter() {
                if connections.catalog.is_configured(id) {
                    continue;
                }
                if let Some(entry) = implied(id, base, connections, found) {
                    providers.extend(provider(id, &entry, connections).map(|value| (id.to_string(), value)));
                }
            }
        }
        (!providers.is_empty()).then_some(Self { mode: settings.catalog_mode, providers })
    }

    /// Brings the file up to date; says whether it was changed. One that is no JSON is kept beside
    /// it. Blocks.
    ///
    /// # Errors
    /// Fails if the file that is there is JSON and makes no sense, which is left as it is, or if the file system refuses.
    pub(crate) fn apply(&self, agent_dir: &Path) -> Result<bool, String> {
        let path = agent_dir.join(FILE);
        let aside = set_models_file_aside(agent_dir)
            .map_err(|error| format!("cannot move {} aside: {error}", path.display()))?;
        if let Some(kept) = aside {
            let (file, kept) = (path.display(), kept.display());
            tracing::warn!(%file, %kept, "the file is no JSON: it is kept, and made anew");
        }
        let there = text(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let new = self
            .over(there.as_deref())
            .map_err(|problem| format!("{} is left as it is: {problem}", path.display()))?;
        if there.as_deref() == Some(&new) {
            return Ok(false);
        }
        private_file::replace(&path, new.as_bytes(), Durability::Whole)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(true)
    }

    /// The text of the file, from the one that is there.
    fn over(&self, there: Option<&str>) -> Result<String, String> {
        let mut document: Map<String, Value> = match there.map(serde_json::from_str) {
            Some(Ok(Value::Object(document))) => document,
            Some(Ok(_)) => return Err("it is no JSON object".to_owned()),
            Some(Err(error)) => return Err(error.to_string()),
            None => Map::new(),
        };
        if let Err(problem) = providers_of(&Value::Object(document.clone()))
            && !document.is_empty()
        {
            return Err(problem.to_string());
        }
        let mut providers = match (self.mode, document.remove("providers")) {
            (ModelsMode::Merge, Some(Value::Object(kept))) => kept,
            (ModelsMode::Merge | ModelsMode::Replace, _) => Map::new(),
        };
        providers.extend(self.providers.iter().cloned());
        let mut whole = Map::new();
        whole.insert("providers".to_owned(), Value::Object(providers));
        whole.extend(document);
        Ok(format!("{:#}\n", Value::Object(whole)))
    }
}

/// A configured provider with the models its credential connects.
fn with_found(
    id: &ProviderId,
    entry: &ProviderEntry,
    connections: &Connections<'_>,
    found: &[ServerReport],
) -> ProviderEntry {
    let base = BUILT_IN.get(id.as_str()).filter(|_| connections.settings.catalog_mode == ModelsMode::Merge);
    let implied = base.and_then(|base| implied(id, base, connections, found));
    let mut entry = entry.clone();
    let others = implied.map(|implied| implied.models).unwrap_or_default();
    let new = others.into_iter().filter(|model| !entry.models.iter().any(|own| own.id == model.id));
    let new: Vec<ModelEntry> = new.collect();
    entry.models.extend(new);
    entry
}

/// A provider that exists by its credential. GitHub Copilot is none of them: its address follows from the token of the
/// moment, and the built-in list has its models.
fn implied(
    id: &ProviderId,
    base: &ProviderEntry,
    connections: &Connections<'_>,
    found: &[ServerReport],
) -> Option<ProviderEntry> {
    let answer = found.iter().find(|found| found.provider == *id && found.answered);
    if id.as_str() == bedrock::PROVIDER {
        let answer = answer?.entry.as_ref().clone();
        let base_url = answer.models.first().and_then(|model| model.base_url.clone());
        let here = |model| ModelEntry { base_url: None, ..model };
        let models = answer.models.into_iter().map(here).collect();
        return Some(ProviderEntry {
            base_url,
            models,
            api: answer.api.or_else(|| base.api.clone()),
            ..answer
        });
    }
    let is_connected = base.implicit && connections.has_own_credential(id);
    let entry = connections.catalog.provider(id).filter(|_| is_connected)?.clone();
    (!entry.models.is_empty()).then_some(ProviderEntry { api_key: None, ..entry })
}

/// A provider as the file has it; nothing where the file would be worthless with it.
fn provider(id: &ProviderId, entry: &ProviderEntry, connections: &Connections<'_>) -> Option<Value> {
    let mut out = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(name.to_owned(), value);
        }
    };
    // A model that is elsewhere than its provider can't be said here.
    let models: Vec<Value> = entry.models.iter().filter(|m| m.base_url.is_none()).map(model).collect();
    let key = key(id, entry, connections);
    // Without models the key would only take precedence over others.
    let key = key.filter(|key| !models.is_empty() || !is_marker(id.as_str(), key));
    set("baseUrl", entry.base_url.clone().map(Value::from));
    set("apiKey", key.map(Value::from));
    set("auth", entry.auth.and_then(|auth| serde_json::to_value(auth).ok()));
    set("api", entry.api.as_ref().map(|api| api.as_str().into()));
    set("authHeader", entry.auth_header.map(Value::from));
    set("models", Some(Value::from(models)));
    let value = Value::Object(out);
    match check::check(&json!({"providers": {id.as_str(): &value}})) {
        Ok(()) => Some(value),
        Err(problem) => {
            tracing::debug!(provider = %id, %problem, "a provider is left out of models.json");
            None
        }
    }
}

/// Headers are left out: they may be secrets, and the configuration has them.
fn model(entry: &ModelEntry) -> Value {
    let mut out = Map::new();
    let window = entry.context_window.unwrap_or(NEW_CONTEXT_WINDOW);
    let price = entry.cost.unwrap_or_default();
    let input = entry.input.clone().unwrap_or_else(|| vec!["text".to_owned()]);
    out.insert("id".to_owned(), entry.id.clone().into());
    out.insert("name".to_owned(), entry.name.clone().unwrap_or_else(|| entry.id.clone()).into());
    if let Some(api) = &entry.api {
        out.insert("api".to_owned(), api.as_str().into());
    }
    out.insert("reasoning".to_owned(), entry.reasoning.unwrap_or(false).into());
    out.insert("input".to_owned(), input.into());
    let cost = json!({"input": number(price.input), "output": number(price.output),
        "cacheRead": number(price.cache_read), "cacheWrite": number(price.cache_write)});
    out.insert("cost".to_owned(), cost);
    out.insert("contextWindow".to_owned(), window.into());
    out.insert("maxTokens".to_owned(), entry.max_tokens.unwrap_or(NEW_MAX_TOKENS).min(window).into());
    match serde_json::to_value(&entry.compat) {
        Ok(Value::Object(compat)) if !compat.is_empty() => out.insert("compat".to_owned(), compat.into()),
        Ok(_) | Err(_) => None,
    };
    if let Some(streaming) = entry.streaming {
        out.insert("params".to_owned(), json!({"streaming": streaming}));
    }
    Value::Object(out)
}

/// A number as JavaScript writes it: without a fraction where there is none.
fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "whole and small")]
    let whole = (value.fract() == 0.0 && value.abs() < 1e15).then_some(value as i64);
    whole.map_or_else(|| Number::from_f64(value).map_or(Value::Null, Value::Number), Value::from)
}

/// Returns the placeholder for the key of a provider.
fn key(id: &ProviderId, entry: &ProviderEntry, connections: &Connections<'_>) -> Option<String> {
    let stated = entry.api_key.as_ref().map(|key| key.expose_secret().trim()).filter(|key| !key.is_empty());
    if let Some(stated) = stated {
        return Some(reference_to(id, stated, connections));
    }
    if entry.models.is_empty() {
        return None;
    }
    let variables = connections.variables;
    let signs = entry.auth == Some(ProviderAuth::AwsSdk);
    if signs {
        return Some(aws::variable(variables).unwrap_or(aws::PROFILE).to_owned());
    }
    if let Some((name, _)) = variables.first(key_variables(id)) {
        return Some(name.to_owned());
    }
    if let Some(placeholder) = BUILT_IN.get(id.as_str()).and_then(|base| base.placeholder.clone()) {
        return Some(placeholder);
    }
    let is_plain = |profile: &String| {
        let stored = connections.store.get(profile).map(|credential| &credential.secret);
        matches!(stored, Some(Secret::ApiKey(_) | Secret::Token { .. }))
    };
    let profiles = profile_order(id, connections.store, connections.settings, None, now_ms());
    Some(profiles.into_iter().find(is_plain).map_or_else(|| NONE.to_owned(), |id| profile(&id)))
}

/// The name of the variable that holds a configured key, a command as it is, or a reference to the configuration.
fn reference_to(id: &ProviderId, stated: &str, connections: &Connections<'_>) -> String {
    let variables = connections.variables;
    let name = stated.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap_or(stated);
    if stated.starts_with('!') || name != stated || variables.get(name).is_some() {
        return name.to_owned();
    }
    let own = key_variables(id).filter(|name| variables.get(name) == Some(stated)).map(str::to_owned).next();
    own.or_else(|| {
        let holds_it = |(name, value): &(&str, &str)| {
            value.trim() == stated && KEY_WORDS.iter().any(|word| name.to_uppercase().contains(word))
        };
        variables.iter().find(holds_it).map(|(name, _)| name.to_owned())
    })
    .unwrap_or_else(|| CONFIG.to_owned())
}
