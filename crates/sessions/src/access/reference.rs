//! Session references in tool arguments, and the labels that tools give to sessions (spec
//! `sessions.md` §8).

use openclaw_protocol::{AgentId, SessionKey};

use crate::entry::{SessionEntry, names};
use crate::key::{KeyError, KeyRules};
use openclaw_protocol::params::sessions::SessionKind;

/// Session named by a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A session, whether there is one or not.
    Key(SessionKey),
    /// A session's name, or else the id of its transcript: whichever is found.
    KeyOrId(SessionKey),
}

/// Prefixes of session keys: a text that begins so is a key, not an id.
const OPENINGS: &[&str] = &["acp:", "agent:", "cron:", "hook:", "node-", "node:"];
/// The same, as a whole.
const WHOLE: &[&str] = &["main", "global", "unknown"];
/// The same, anywhere.
const INSIDE: &[&str] = &[":group:", ":channel:"];

impl Reference {
    /// Reads what an agent calls a session: `main` is its own main session, and a key without an agent is one of its own.
    ///
    /// # Errors
    /// [`KeyError`] for a text that can name none.
    pub fn read(text: &str, agent: &AgentId, rules: &KeyRules) -> Result<Self, KeyError> {
        let lower = text.trim().to_lowercase();
        // Both names mean the one session where everybody shares it.
        let text = if lower == "global" { "main" } else { text };
        openclaw_protocol::session_key::check_printable(text)?;
        let key = rules.canonical_for(text, agent)?;
        let is_key = WHOLE.contains(&lower.as_str())
            || lower == rules.main_key
            || OPENINGS.iter().any(|opening| lower.starts_with(opening))
            || INSIDE.iter().any(|part| lower.contains(part));
        Ok(if is_key { Self::Key(key) } else { Self::KeyOrId(key) })
    }
}

/// Kind of a session, as tools report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// An agent's main session.
    Main,
    /// A group or a room.
    Group,
    /// A scheduled job's.
    Cron,
    /// A webhook's.
    Hook,
    /// A node's.
    Node,
    /// Anything else, such as a direct chat.
    Other,
}

impl ToolKind {
    /// All of them, by name.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("main", Self::Main),
        ("group", Self::Group),
        ("cron", Self::Cron),
        ("hook", Self::Hook),
        ("node", Self::Node),
        ("other", Self::Other),
    ];

    /// Kind of a session, from its key and row.
    pub fn of(key: &SessionKey, entry: &SessionEntry, rules: &KeyRules) -> Self {
        let rest = key.rest();
        if rules.is_main(key) || key.is_global() {
            Self::Main
        } else if rest.starts_with("cron:") {
            Self::Cron
        } else if rest.starts_with("hook:") {
            Self::Hook
        } else if rest.starts_with("node-") || rest.starts_with("node:") {
            Self::Node
        } else if key.is_group() || names::kind(key, entry.chat_type) == SessionKind::Group {
            Self::Group
        } else {
            Self::Other
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.trim();
        Self::NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind)
    }

    /// Name of the kind in tool results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Group => "group",
            Self::Cron => "cron",
            Self::Hook => "hook",
            Self::Node => "node",
            Self::Other => "other",
        }
    }

    /// True if the gateway itself makes the turns there, rather than people on a channel.
    pub fn is_internal(self) -> bool {
        match self {
            Self::Cron | Self::Hook | Self::Node => true,
            Self::Main | Self::Group | Self::Other => false,
        }
    }
}
