//! Access rules for session tools (spec `sessions.md` §8): the one decision on which sessions a
//! session may read and write to, asked by every session tool and by `POST /tools/invoke`.
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

/// Session that asks: the one whose run calls a tool, or that a client calls one for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Viewer {
    /// The agent that asks.
    pub agent: AgentId,
    /// Key of the asking session.
    pub key: SessionKey,
    /// Reach of its view of other sessions.
    pub sight: Sight,
}

/// Set of sessions that a viewer can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Every session, as far as agents may talk to each other.
    Full,
    /// Only those that it has spawned itself: it is held in a sandbox, and the sandbox may be left by no tool.
    OwnChildren,
}

/// Reason why a session may not be viewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// The viewer runs in a sandbox and did not spawn the session.
    Hidden,
    /// The session belongs to another agent.
    Foreign(Denied),
}

impl Viewer {
    /// Succeeds if the viewer may look at a session. `entry` is its row, if there is one.
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

    /// Agent that owns the session. The session that everybody shares belongs to the agent of
    /// whoever talks in it.
    pub fn owner(&self, key: &SessionKey, rules: &KeyRules) -> AgentId {
        if *key == self.key { self.agent.clone() } else { rules.agent_of(key) }
    }

    /// True if the session is a child of the viewer, however its row spells the parent's key.
    fn has_spawned(&self, entry: Option<&SessionEntry>, rules: &KeyRules) -> bool {
        let parent = entry.and_then(|entry| entry.spawned_by.as_deref());
        parent.is_some_and(|parent| {
            rules.canonical_for(parent, &self.agent).is_ok_and(|parent| parent == self.key)
        })
    }

    /// The key as the tools of this session show it: its own agent's main session is `main`, and `global` is never shown.
    pub fn shown<'a>(&self, key: &'a SessionKey, rules: &KeyRules) -> &'a str {
        let is_own_main = rules.is_main(key) && self.owner(key, rules) == self.agent;
        if is_own_main { "main" } else { key.shown() }
    }
}

#[cfg(test)]
mod tests;
