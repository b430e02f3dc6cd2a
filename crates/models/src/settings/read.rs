//! The settings as the typed view of the file has them.

use std::time::Duration;

use openclaw_config::profile::Instance;
use openclaw_config::settings as config;
use openclaw_config::settings::Config;
use openclaw_protocol::AgentId;
use serde_json::Value;

use super::{BedrockDiscovery, CooldownRules, HOUR, ListedModel, ModelSettings};
use crate::api::Api;
use crate::cache_retention::CacheRetention;
use crate::provider_entry::{Compat, ModelEntry, ProviderEntry, whole};

impl From<&Config> for ModelSettings {
    fn from(config: &Config) -> Self {
        let defaults = &config.agents.defaults;
        Self {
            default_agent: config.default_agent(),
            default_model: defaults.model.clone().unwrap_or_default(),
            image_model: defaults.image_model.clone().unwrap_or_default(),
            agent_models: config
                .agents
                .list
                .iter()
                .filter_map(|agent| Some((AgentId::normalize(&agent.id), agent.model.clone()?)))
                .collect(),
            listed: defaults.models.iter().map(|(key, entry)| listed(key, entry)).collect(),
            context_tokens: defaults.context_tokens,
            thinking_default: defaults.thinking_default.as_deref().and_then(|level| level.parse().ok()),
            catalog_mode: config.models.mode,
            providers: config
                .models
                .providers
                .iter()
                .map(|(id, provider)| (id.clone(), provider_entry(provider)))
                .collect(),
            bedrock: bedrock_discovery(&config.models.bedrock_discovery),
            auth_order: config.auth.order.clone(),
            cooldowns: CooldownRules::from(&config.auth.cooldowns),
            auth_profiles: config.auth.profiles.clone(),
            cache_trace: config.diagnostics.cache_trace.clone(),
            instance: Instance::of(config.environment()),
        }
    }
}

fn listed(key: &str, entry: &config::ModelEntry) -> ListedModel {
    let param = |name: &str| entry.params.get(name);
    let cache = param("cacheRetention").and_then(Value::as_str).and_then(|word| match word {
        "none" => Some(CacheRetention::None),
        "short" => Some(CacheRetention::Short),
        "long" => Some(CacheRetention::Long),
        _ => None,
    });
    let older = param("cacheControlTtl").and_then(Value::as_str).and_then(|word| match word {
        "5m" => Some(CacheRetention::Short),
        "1h" => Some(CacheRetention::Long),
        _ => None,
    });
    ListedModel {
        key: key.to_owned(),
        alias: entry.alias.clone(),
        max_tokens: param("maxTokens").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()),
        temperature: param("temperature").and_then(Value::as_f64),
        cache: cache.or(older),
        streaming: entry.streaming.or_else(|| param("streaming").and_then(Value::as_bool)),
    }
}

fn provider_entry(provider: &config::Provider) -> ProviderEntry {
    ProviderEntry {
        base_url: Some(provider.base_url.clone()),
        api_key: provider.api_key.clone(),
        auth: provider.auth,
        api: provider.api.map(|api| Api::from(api.as_str())),
        headers: provider.headers.clone(),
        auth_header: provider.auth_header,
        models: provider.models.iter().map(model_entry).collect(),
        ..ProviderEntry::default()
    }
}

fn model_entry(model: &config::CustomModel) -> ModelEntry {
    ModelEntry {
        id: model.id.clone(),
        name: Some(model.name.clone()),
        api: model.api.map(|api| Api::from(api.as_str())),
        reasoning: Some(model.reasoning),
        input: Some(model.input.clone()).filter(|input| !input.is_empty()),
        cost: Some(model.cost),
        context_window: model.context_window.and_then(whole),
        max_tokens: model.max_tokens.and_then(whole),
        headers: model.headers.clone(),
        compat: Compat {
            supports_store: model.compat.supports_store,
            supports_developer_role: model.compat.supports_developer_role,
            supports_reasoning_effort: model.compat.supports_reasoning_effort,
            max_tokens_field: model.compat.max_tokens_field.clone(),
            ..Compat::default()
        },
        ..ModelEntry::default()
    }
}

fn bedrock_discovery(config: &config::BedrockDiscovery) -> BedrockDiscovery {
    let default = BedrockDiscovery::default();
    BedrockDiscovery {
        enabled: config.enabled,
        region: config.region.clone().filter(|region| !region.trim().is_empty()),
        providers: config.provider_filter.clone(),
        refresh: config.refresh_interval.map_or(default.refresh, Duration::from_secs),
        context_window: config.default_context_window.unwrap_or(default.context_window),
        max_tokens: config.default_max_tokens.unwrap_or(default.max_tokens),
        address: None,
    }
}

impl From<&config::AuthCooldowns> for CooldownRules {
    fn from(config: &config::AuthCooldowns) -> Self {
        let default = Self::default();
        let by_provider = config.billing_backoff_hours_by_provider.iter();
        Self {
            billing_first: config.billing_backoff_hours.and_then(hours).unwrap_or(default.billing_first),
            billing_first_by_provider: by_provider
                .filter_map(|(provider, count)| Some((provider.clone(), hours(*count)?)))
                .collect(),
            billing_longest: config.billing_max_hours.and_then(hours).unwrap_or(default.billing_longest),
            window: config.failure_window_hours.and_then(hours).unwrap_or(default.window),
        }
    }
}

/// Hours in milliseconds; nothing for what is no positive number.
fn hours(count: f64) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "milliseconds; as saturates"
    )]
    (count.is_finite() && count > 0.0).then_some((count * HOUR as f64) as i64)
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;

    use super::*;
    use crate::thinking::ThinkingLevel;

    fn settings(text: &str) -> ModelSettings {
        let environment = Environment::new([("HOME", "/h")], "/h");
        ModelSettings::from(&*Config::from_json5(text, &environment).unwrap())
    }

    #[test]
    fn settings_are_taken_from_the_file_in_its_order() {
        let found = settings(
            r#"{
            agents: {
              defaults: {
                model: {primary: "b/x", fallbacks: ["a/y"]},
                models: {"z/1": {alias: "last", streaming: false}, "a/2": {params: {temperature: 0.5, maxTokens: 99, cacheControlTtl: "1h"}}},
                contextTokens: 50000, thinkingDefault: "high" },
              list: [{id: "Main", model: "c/z"}, {id: "other"}] },
            models: {mode: "replace", bedrockDiscovery: {enabled: true, region: "eu-west-1", providerFilter: ["meta"], refreshInterval: 60, defaultMaxTokens: 9}, providers: {
              zed: {baseUrl: "http://z", apiKey: "k", api: "anthropic-messages", headers: {"x-a": "b"}, models: [
                {id: "m", name: "M", contextWindow: 4096, maxTokens: 10, compat: {supportsStore: false}}]},
              abc: {baseUrl: "http://a", models: []}}},
            auth: {profiles: {"p:1": {provider: "p", mode: "oauth"}}, order: {p: ["p:1"]}}}"#,
        );
        assert_eq!(found.default_model.primary.as_deref(), Some("b/x"));
        assert_eq!(found.agent_models.len(), 1);
        let listed: Vec<_> = found.listed.iter().map(|l| l.key.as_str()).collect();
        assert_eq!(listed, ["z/1", "a/2"]);
        let last = &found.listed[1];
        assert_eq!(
            (last.temperature, last.max_tokens, last.cache),
            (Some(0.5), Some(99), Some(CacheRetention::Long))
        );
        assert_eq!(found.listed[0].streaming, Some(false));
        assert_eq!((found.context_tokens, found.thinking_default), (Some(50_000), Some(ThinkingLevel::High)));
        assert_eq!(found.catalog_mode, config::ModelsMode::Replace);
        let ids: Vec<_> = found.providers.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["zed", "abc"]);
        let bedrock = BedrockDiscovery {
            enabled: Some(true),
            region: Some("eu-west-1".to_owned()),
            providers: vec!["meta".to_owned()],
            refresh: Duration::from_secs(60),
            max_tokens: 9,
            ..BedrockDiscovery::default()
        };
        assert_eq!(found.bedrock, bedrock);
        let model = &found.providers[0].1.models[0];
        assert_eq!((model.context_window, model.compat.supports_store), (Some(4096), Some(false)));
        assert_eq!(found.auth_profiles["p:1"].mode, config::AuthMode::Oauth);
        assert_eq!(found.auth_order["p"], ["p:1"]);
    }
}
