//! Which sessions a session may look at and write to through its tools (spec `sessions.md` §8): one decision, asked by every session
//! tool and by `POST /tools/invoke`.
//!
//! Pure: [`mod@reference`] says what a text means, [`policy`] whether two agents may talk,
//! [`Viewer::check`] puts both together with what a sandbox hides.

pub mod policy;
pub mod reference;

use openclaw_protocol::{AgentId, SessionKey};

pub use policy::{Denied, TalkPolicy};
pub use reference::{Reference, ToolKind};

use crate::entry::SessionEntry;
use crate::key::KeyRules;

/// Who asks: the session whose run calls a tool, or that a client calls one for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Viewer {
    /// The agent that asks.
    pub agent: AgentId,
    /// Its session.
    pub key: SessionKey,
    /// How much it sees.
    pub sight: Sight,
}

/// How much of the sessions somebody sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Every session, as far as agents may talk to each other.
    Full,
    /// Only those that it has spawned itself: it is held in a sandbox, and the sandbox may be left by no tool.
    OwnChildren,
}

/// Why a session is not to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// Whoever asks is held in a sandbox and has not spawned it.
    Hidden,
    /// It is another agent's.
    Foreign(Denied),
}

impl Viewer {
    /// Whether a session may be looked at. `entry` is its row, if there is one.
    ///
    /// # Errors
    /// [`Unseen`] says why not; the sandbox counts first.
    pub fn check(
        &self,
        key: &SessionKey,
        entry: Option<&SessionEntry>,
        rules: &KeyRules,
        talk: TalkPolicy<'_>,
    ) -> Result<(), Unseen> {
        match self.sight {
            Sight::OwnChildren if !self.has_spawned(entry, rules) => return Err(Unseen::Hidden),
            Sight::OwnChildren | Sight::Full => {}
        }
        talk.between(&self.agent, &self.owner(key, rules)).map_err(Unseen::Foreign)
    }

    /// The agent whose session it is. The one that everybody shares is the own one of whoever talks in it.
    pub fn owner(&self, key: &SessionKey, rules: &KeyRules) -> AgentId {
        if *key == self.key { self.agent.clone() } else { rules.agent_of(key) }
    }

    /// Whether the session is a child of this one, however the key of its parent is spelled in its row.
    fn has_spawned(&self, entry: Option<&SessionEntry>, rules: &KeyRules) -> bool {
        let parent = entry.and_then(|entry| entry.spawned_by.as_deref());
        parent.is_some_and(|parent| {
            rules.canonical_for(parent, &self.agent).is_ok_and(|parent| parent == self.key)
        })
    }

    /// The key as the tools of this session show it: its own agent's main session is `main`, and `global` is never shown.
    pub fn shown<'a>(&self, key: &'a SessionKey, rules: &KeyRules) -> &'a str {
        let is_own_main = rules.is_main(key) && self.owner(key, rules) == self.agent;
        if is_own_main || key.is_global() { "main" } else { key.as_str() }
    }
}

#[cfg(test)]
mod tests;
