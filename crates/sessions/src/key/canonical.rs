//! Canonicalisation: from the `sessionKey` that a client sends to the canonical key (spec
//! `sessions.md` §1.4, with its "Better" rules).

use openclaw_protocol::AgentId;
use openclaw_protocol::session_key::{canonical_parts, check_printable, trimmed};

use super::{KeyError, KeyShape, SessionKey};
use openclaw_protocol::SessionScope;

/// Settings that canonicalisation depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRules {
    /// The agent of keys that name none.
    pub default_agent: AgentId,
    /// Name of the main bucket, canonical; `main` unless configured.
    pub main_key: String,
    /// Session scope: one bucket for each sender, or one that everybody shares.
    pub scope: SessionScope,
}

impl Default for KeyRules {
    fn default() -> Self {
        Self::new(AgentId::default(), "main", SessionScope::PerSender)
    }
}

impl KeyRules {
    /// Rules with `main_key` normalised: it is what follows the agent in a canonical key.
    pub fn new(default_agent: AgentId, main_key: &str, scope: SessionScope) -> Self {
        let main_key = SessionKey::main(&default_agent, main_key).rest().to_owned();
        Self { default_agent, main_key, scope }
    }

    /// The canonical key of any text accepted on an API or tool input: full keys, `main`, the main key, bare names.
    ///
    /// # Errors
    /// [`KeyError`] for a text that can't be one.
    pub fn canonical(&self, text: &str) -> Result<SessionKey, KeyError> {
        let text = trimmed(text)?;
        check_printable(text)?;
        self.canonical_for(text, &self.default_agent)
    }

    /// The same for a text found in the context of `agent`, such as a row of that agent's store.
    pub fn canonical_for(&self, text: &str, agent: &AgentId) -> Result<SessionKey, KeyError> {
        let text = trimmed(text)?;
        let shape = KeyShape::of(text);
        let key = match shape {
            KeyShape::Missing => return Err(KeyError::Missing),
            // Nothing but colons and blanks: it must not come to mean the main session.
            KeyShape::LegacyOrAlias if canonical_parts(text).is_empty() => return Err(KeyError::Missing),
            // The spelling of the key says nothing of the spelling of its row.
            KeyShape::MalformedAgent | KeyShape::Agent => SessionKey::parse(text)?.spelled_anew(),
            KeyShape::LegacyOrAlias => self.alias(text, agent),
        };
        self.fold_main(key).bounded()
    }

    /// The main bucket of an agent: `global` when the scope is.
    pub fn main(&self, agent: &AgentId) -> SessionKey {
        match self.scope {
            SessionScope::Global => SessionKey::global(),
            SessionScope::PerSender => SessionKey::main(agent, &self.main_key),
        }
    }

    /// True if a canonical key is the main bucket of its agent.
    pub fn is_main(&self, key: &SessionKey) -> bool {
        match key.agent() {
            Some(agent) => key.rest() == self.main_key || key == &self.main(&agent),
            None => key.is_global() && self.scope == SessionScope::Global,
        }
    }

    /// True if a stored text is the name that OpenClaw 2026.2.9 gives to a main session (it always
    /// says `main`) while another name is configured. If the store has no row under the configured
    /// name, this row is the main session, and stays where it is, so that either program finds it
    /// (decision 47).
    pub fn is_former_main(&self, stored: &str) -> bool {
        let rest = || stored.strip_prefix("agent:")?.split_once(':').map(|(_, rest)| rest);
        self.scope == SessionScope::PerSender && self.main_key != "main" && rest() == Some("main")
    }

    /// The agent whose store holds the key.
    pub fn agent_of(&self, key: &SessionKey) -> AgentId {
        key.agent_or(&self.default_agent)
    }

    fn alias(&self, text: &str, agent: &AgentId) -> SessionKey {
        match canonical_parts(text).as_str() {
            "global" => SessionKey::global(),
            "unknown" => SessionKey::unknown(),
            "main" => self.main(agent),
            name => SessionKey::named(agent, name),
        }
    }

    fn fold_main(&self, key: SessionKey) -> SessionKey {
        match key.agent() {
            Some(agent) if key.rest() == "main" || key.rest() == self.main_key => self.main(&agent),
            Some(_) | None => key,
        }
    }
}
