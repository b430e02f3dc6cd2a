//! The config in the shapes the crates below want it.

use std::sync::Arc;

use openclaw_config::Config;
use openclaw_config::settings::SessionScope;
use openclaw_dispatch::Settings;
use openclaw_models::ModelSettings;
use openclaw_protocol::AgentId;
use openclaw_sessions::SessionSettings;
use openclaw_sessions::settings::{AgentRef, Scope};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A section of the config does not have the shape that its use needs.
#[derive(Debug, thiserror::Error)]
#[error("{path} in the config cannot be used: {source}")]
pub struct UnusableSection {
    path: &'static str,
    source: serde_json::Error,
}

/// Reads the settings of a config.
///
/// # Errors
/// Names the section that can't be used. A checked config has none.
pub(crate) fn settings(config: &Arc<Config>) -> Result<Settings, UnusableSection> {
    Ok(Settings {
        config: Arc::clone(config),
        sessions: Arc::new(session_settings(config)?),
        models: Arc::new(ModelSettings::from(config.as_ref())),
    })
}

/// What sessions are named, routed and reset by.
///
/// # Errors
/// Names the section that can't be used. A checked config has none.
pub fn session_settings(config: &Config) -> Result<SessionSettings, UnusableSection> {
    let document = config.document();
    let section = document.get("session").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    let agent = |entry: &openclaw_config::settings::AgentEntry| AgentRef {
        id: AgentId::normalize(&entry.id),
        default: entry.default,
    };
    Ok(SessionSettings {
        scope: match config.session.scope {
            SessionScope::PerSender => Scope::PerSender,
            SessionScope::Global => Scope::Global,
        },
        main_key: config.session.main_key().to_owned(),
        dm_scope: part(section.get("dmScope"), "session.dmScope")?.unwrap_or_default(),
        identity_links: identity_links(section.get("identityLinks"))?,
        store: config.session.store.clone(),
        reset_triggers: config.session.reset_triggers(),
        send_policy: part(section.get("sendPolicy"), "session.sendPolicy")?,
        reset: part(Some(&section), "session.reset")?.unwrap_or_default(),
        agents: config.agents.list.iter().map(agent).collect(),
        bindings: part(document.get("bindings"), "bindings")?.unwrap_or_default(),
    })
}

fn part<T: DeserializeOwned>(
    value: Option<&Value>,
    path: &'static str,
) -> Result<Option<T>, UnusableSection> {
    let value = value.filter(|value| !value.is_null()).cloned();
    value.map(serde_json::from_value).transpose().map_err(|source| UnusableSection { path, source })
}

/// Links in the order of the file.
fn identity_links(value: Option<&Value>) -> Result<Vec<(String, Vec<String>)>, UnusableSection> {
    let links: Map<String, Value> = part(value, "session.identityLinks")?.unwrap_or_default();
    let ids = |(name, ids): (String, Value)| {
        Ok((name, part(Some(&ids), "session.identityLinks")?.unwrap_or_default()))
    };
    links.into_iter().map(ids).collect()
}
