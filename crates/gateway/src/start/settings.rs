//! The config in the shapes the crates below want it.

use std::sync::Arc;

use openclaw_config::settings::SessionScope;
use openclaw_config::{Config, unmet_protections};
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
        unmet: unmet_protections(config).into(),
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

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;
    use openclaw_sessions::key::{Peer, PeerKind};
    use openclaw_sessions::routing::{Inbound, resolve};
    use serde_json::json;

    use super::*;

    fn read(session: &Value) -> SessionSettings {
        let environment = Environment::new([("HOME", "/home/user")], "/");
        let document = json!({"session": session}).to_string();
        session_settings(&Config::from_json5(&document, &environment).unwrap()).unwrap()
    }

    /// Rules of `sessions.md` §1.3.
    #[test]
    fn a_direct_chat_gets_the_key_the_section_says() {
        let linked = |links| json!({"dmScope": "per-peer", "identityLinks": links});
        let rows = [
            (json!({}), "agent:main:main"),
            (json!({"dmScope": "per-channel-peer"}), "agent:main:telegram:dm:111"),
            // The first of the file, not of the alphabet.
            (linked(json!({"Zoe": ["111"], "Alice": ["telegram:111"]})), "agent:main:dm:zoe"),
            (linked(json!({"Alice": ["telegram:111"], "Zoe": ["111"]})), "agent:main:dm:alice"),
            (json!({"scope": "global"}), "global"),
            (json!({"mainKey": "work"}), "agent:main:main"),
        ];
        let peer = Some(Peer::new(PeerKind::Direct, "111"));
        let inbound = Inbound { channel: "telegram".into(), peer, ..Inbound::default() };
        for (session, expect) in rows {
            let route = resolve(&read(&session), &inbound).unwrap();
            assert_eq!(route.session_key.as_str(), expect, "{session}");
        }
    }

    /// Rule of `sessions.md` §5.3.
    #[test]
    fn reset_triggers_are_those_of_the_file_or_the_usual_ones() {
        let rows: [(Value, &[&str]); 4] = [
            (json!({}), &["/new", "/reset"]),
            (json!({"resetTriggers": ["Los geht's"]}), &["Los geht's"]),
            (json!({"resetTriggers": []}), &["/new", "/reset"]),
            (json!({"resetTriggers": [" "]}), &["/new", "/reset"]),
        ];
        for (session, expect) in rows {
            assert_eq!(read(&session).triggers(), expect, "{session}");
        }
    }
}
