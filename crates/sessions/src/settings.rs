//! Settings that this crate reads from the configuration.

use openclaw_config::Config;
use openclaw_config::settings::{Binding, Session};
use openclaw_protocol::AgentId;

use crate::key::KeyRules;

/// The `session` section, the agents and the bindings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionSettings {
    /// `session`
    pub section: Session,
    /// `agents.list`, ids and default marks.
    pub agents: Vec<AgentRef>,
    /// `bindings`, in the order of the file.
    pub bindings: Vec<Binding>,
}

/// Entry of `agents.list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRef {
    /// Id, canonical.
    pub id: AgentId,
    /// `default: true`
    pub default: bool,
}

impl From<&Config> for SessionSettings {
    fn from(config: &Config) -> Self {
        let agents = config.agents.list.iter();
        Self {
            section: config.session.clone(),
            agents: agents
                .map(|entry| AgentRef { id: AgentId::normalize(&entry.id), default: entry.default })
                .collect(),
            bindings: config.bindings.clone(),
        }
    }
}

impl SessionSettings {
    /// The agent that answers when nothing else is said: first with `default: true`, else the first, else `main`
    /// (spec `sessions.md` §2.1).
    pub fn default_agent(&self) -> AgentId {
        let marked = self.agents.iter().find(|agent| agent.default);
        marked.or(self.agents.first()).map(|agent| agent.id.clone()).unwrap_or_default()
    }

    /// The rules for reading keys.
    pub fn key_rules(&self) -> KeyRules {
        KeyRules::new(self.default_agent(), &self.section.main_key(), self.section.scope)
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;
    use openclaw_protocol::{Peer, PeerKind};
    use serde_json::{Value, json};

    use super::*;
    use crate::routing::{Inbound, resolve};

    fn read(session: &Value) -> SessionSettings {
        let environment = Environment::new([("HOME", "/home/user")], "/");
        let document = json!({"session": session}).to_string();
        SessionSettings::from(Config::from_json5(&document, &environment).unwrap().as_ref())
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
            (json!({"mainKey": "Work"}), "agent:main:work"),
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
    fn reset_triggers_are_the_usual_ones_and_those_of_the_file() {
        let rows: [(Value, &[&str]); 4] = [
            (json!({}), &["/new", "/reset"]),
            (json!({"resetTriggers": ["Los geht's", "/New"]}), &["/new", "/reset", "Los geht's"]),
            (json!({"resetTriggers": []}), &["/new", "/reset"]),
            (json!({"resetTriggers": [" "]}), &["/new", "/reset"]),
        ];
        for (session, expect) in rows {
            assert_eq!(read(&session).section.triggers(), expect, "{session}");
        }
    }
}
