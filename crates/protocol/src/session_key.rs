//! Session keys: one canonical text for each conversation bucket (spec `sessions.md` §1).
//!
//! In memory a key is always canonical: trimmed, lower case, its agent segment normalised, and the segment of a direct
//! chat spelled `dm`. Files of OpenClaw 2026.2.9 spell that segment `direct`; both are the same key here, and the store
//! keeps the spelling a row already has (decision 1). What a key says of its session is answered here and nowhere else.

pub mod form;
mod plain;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::printable::{is_control, one_line};
use crate::{AgentId, SessionId};

pub use form::{KeyForm, Opener};

/// Longest canonical key in bytes. Nothing is ever cut to fit: a longer key is refused, and a file row under one is kept
/// but can't be addressed.
pub const MAX_KEY_BYTES: usize = 4096;
/// Longest text that is looked at as a key, in bytes: spellings may be longer than what they stand for.
const MAX_TEXT_BYTES: usize = 2 * MAX_KEY_BYTES;

/// The canonical key of a session: `agent:<agentId>:<rest>`, `global` or `unknown`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SessionKey(Arc<str>);

/// Why a text is no session key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Nothing but white space.
    #[error("session key is empty")]
    Missing,
    /// Starts with `agent:` but has no agent or no rest.
    #[error("session key \"{0}\" is malformed, expected agent:<agentId>:<name>")]
    Malformed(String),
    /// Neither `agent:…` nor `global` nor `unknown`: an alias that takes the configuration to resolve.
    #[error("session key \"{0}\" has no agent part")]
    NoAgent(String),
    /// Longer than [`MAX_KEY_BYTES`].
    #[error("session key of {0} bytes is too long, at most {MAX_KEY_BYTES} are allowed")]
    TooLong(usize),
    /// Has a character that does something to the text around it. Rows of a file may be named so; nobody else gets
    /// such a name into the store.
    #[error("session key \"{}\" has the control character U+{:04X}; leave it out", one_line(key), u32::from(*character))]
    Control {
        /// The text as given.
        key: String,
        /// The first such character.
        character: char,
    },
}

impl SessionKey {
    /// Reads a complete key. Aliases such as `main` take the configuration to resolve.
    ///
    /// # Errors
    /// [`KeyError`] for a text that is none.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let lower = trimmed(text)?.to_lowercase();
        if lower == "global" || lower == "unknown" {
            return Ok(Self(Arc::from(lower)));
        }
        match AgentKey::parse(&lower) {
            Some(parts) => Self::named(&AgentId::normalize(&parts.agent), &parts.rest).bounded(),
            None if lower.starts_with("agent:") => Err(KeyError::Malformed(text.trim().to_owned())),
            None => Err(KeyError::NoAgent(text.trim().to_owned())),
        }
    }

    /// `agent:<agent>:<rest>`, the rest made canonical. The caller checks its length ([`Self::bounded`]).
    pub fn named(agent: &AgentId, rest: &str) -> Self {
        Self(Arc::from(format!("agent:{agent}:{}", dm_spelling(&canonical_parts(rest)))))
    }

    /// The key, unless it is longer than [`MAX_KEY_BYTES`].
    ///
    /// # Errors
    /// [`KeyError::TooLong`].
    pub fn bounded(self) -> Result<Self, KeyError> {
        if self.0.len() > MAX_KEY_BYTES { Err(KeyError::TooLong(self.0.len())) } else { Ok(self) }
    }

    /// The key, unless it has a control character.
    fn printable(self) -> Result<Self, KeyError> {
        check_printable(&self.0)?;
        Ok(self)
    }

    /// The main bucket of an agent.
    pub fn main(agent: &AgentId, main_key: &str) -> Self {
        let name = main_key.trim();
        Self::named(agent, if name.is_empty() { "main" } else { name })
    }

    /// The bucket of a conversation that was begun by the name of its transcript alone: `agent:<agent>:explicit:<id>`.
    ///
    /// # Errors
    /// [`KeyError::TooLong`].
    pub fn of_transcript(agent: &AgentId, id: &SessionId) -> Result<Self, KeyError> {
        Self::named(agent, &format!("explicit:{id}")).bounded()
    }

    /// The one bucket of `session.scope = global`.
    pub fn global() -> Self {
        Self(Arc::from("global"))
    }

    /// The bucket of senders that could not be resolved.
    pub fn unknown() -> Self {
        Self(Arc::from("unknown"))
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The agent segment; nothing for `global` and `unknown`.
    pub fn agent(&self) -> Option<AgentId> {
        self.agent_text().map(AgentId::normalize)
    }

    /// [`Self::agent`] as text.
    pub fn agent_text(&self) -> Option<&str> {
        self.0.strip_prefix("agent:")?.split(':').next()
    }

    /// The agent segment, or the given default agent for `global` and `unknown`.
    pub fn agent_or(&self, default: &AgentId) -> AgentId {
        self.agent().unwrap_or_else(|| default.clone())
    }

    /// What follows `agent:<agentId>:`; the whole key for `global` and `unknown`.
    pub fn rest(&self) -> &str {
        match self.0.strip_prefix("agent:").and_then(|tail| tail.split_once(':')) {
            Some((_, rest)) => rest,
            None => &self.0,
        }
    }

    /// Whether this is the bucket shared by everybody.
    pub fn is_global(&self) -> bool {
        &*self.0 == "global"
    }

    /// Whether this is the bucket of unresolved senders.
    pub fn is_unknown(&self) -> bool {
        &*self.0 == "unknown"
    }

    /// Whether the session belongs to a sub-agent: `agent:<agentId>:subagent:…`. The word elsewhere in a key says nothing.
    pub fn is_subagent(&self) -> bool {
        matches!(form::form_of(self.rest()), KeyForm::Opened(Opener::Subagent, _))
    }

    /// Whether this is the alias row of one cron run (`cron:<job>:run:<id>`); lists hide it.
    pub fn is_cron_run(&self) -> bool {
        // Most keys are told by their first letters.
        self.rest().starts_with(Opener::Cron.prefix()) && matches!(self.form(), KeyForm::CronRun { .. })
    }

    /// Whether the session is private between the agent and its owner: the agent's main session or a direct chat, threads
    /// in it excepted (spec `agent-runtime.md` §4.1).
    pub fn is_private(&self, main_key: &str) -> bool {
        let is_main = self.agent_text().is_some() && self.rest().eq_ignore_ascii_case(main_key.trim());
        is_main || (matches!(self.form(), KeyForm::Direct { .. }) && !self.is_thread())
    }

    /// Whether the key names a group or a room.
    pub fn is_group(&self) -> bool {
        self.0.contains(":group:") || self.is_room()
    }

    /// Channel and id of the group or room that the key names; the id with what follows it, such as a thread.
    pub fn group(&self) -> Option<(&str, &str)> {
        match form::room(self.rest())? {
            KeyForm::Group { channel, id } | KeyForm::Channel { channel, id } => Some((channel, id)),
            KeyForm::Direct { .. } | KeyForm::CronRun { .. } | KeyForm::Opened(..) | KeyForm::Named(_) => {
                None
            }
        }
    }

    /// Whether the key names a room of a server or workspace.
    pub fn is_room(&self) -> bool {
        self.0.contains(":channel:") && !self.0.contains(":group:")
    }

    /// Whether the key names a thread or a forum topic.
    pub fn is_thread(&self) -> bool {
        self.0.contains(":thread:") || self.0.contains(":topic:")
    }

    /// The key of the conversation a thread or topic belongs to.
    pub fn thread_parent(&self) -> Option<Self> {
        let parent = thread_parent(&self.0)?;
        Self::parse(parent).ok()
    }

    /// This key with a thread suffix; a blank thread id gives the key itself (spec `sessions.md` §1.3). `global` and
    /// `unknown` have no threads.
    ///
    /// # Errors
    /// [`KeyError::TooLong`], [`KeyError::Control`].
    pub fn with_thread(&self, thread_id: &str) -> Result<Self, KeyError> {
        let id = canonical_parts(thread_id);
        match self.agent() {
            Some(agent) if !id.is_empty() => {
                Self::named(&agent, &format!("{}{}{id}", self.rest(), form::THREAD_MARK))
                    .bounded()?
                    .printable()
            }
            Some(_) | None => Ok(self.clone()),
        }
    }

    /// The other spelling of a direct chat's key, as OpenClaw 2026.2.9 writes it: `direct` instead of `dm`.
    pub fn direct_spelling(&self) -> Option<String> {
        let agent = self.agent()?;
        let rest = self.rest();
        let parts: Vec<&str> = rest.split(':').collect();
        let at = dm_position(&parts)?;
        let spelled: Vec<&str> =
            parts.iter().enumerate().map(|(i, part)| if i == at { "direct" } else { *part }).collect();
        Some(format!("agent:{agent}:{}", spelled.join(":")))
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for SessionKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for SessionKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl<'de> Deserialize<'de> for SessionKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// The parts of an `agent:` key as OpenClaw reads them: empty parts dropped, case kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentKey {
    /// Second part, as written.
    pub agent: String,
    /// Everything after it.
    pub rest: String,
}

impl AgentKey {
    /// Splits a key; nothing when it has fewer than three parts or does not start with `agent`. A part of blanks counts as
    /// empty: it would be lost when the key is trimmed.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split(':').filter(|part| !part.trim().is_empty());
        if parts.next()? != "agent" {
            return None;
        }
        let agent = parts.next()?.to_owned();
        let rest: Vec<&str> = parts.collect();
        if rest.is_empty() { None } else { Some(Self { agent, rest: rest.join(":") }) }
    }
}

/// What a text given as a session key looks like (spec `sessions.md` §1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyShape {
    /// Blank.
    Missing,
    /// `agent:<id>:<rest>`
    Agent,
    /// Starts with `agent:` but is not that; methods refuse it.
    MalformedAgent,
    /// `main`, `global`, a legacy key or a bare name.
    LegacyOrAlias,
}

impl KeyShape {
    /// Classifies a text; the case of `agent` does not matter.
    pub fn of(text: &str) -> Self {
        let lower = text.trim().to_lowercase();
        if lower.is_empty() {
            Self::Missing
        } else if AgentKey::parse(&lower).is_some() {
            Self::Agent
        } else if lower.starts_with("agent:") {
            Self::MalformedAgent
        } else {
            Self::LegacyOrAlias
        }
    }
}

/// Text before the last `:thread:` or `:topic:`; nothing when there is none or nothing before it.
fn thread_parent(key: &str) -> Option<&str> {
    let lower = key.to_ascii_lowercase();
    let at = lower.rfind(":thread:").max(lower.rfind(":topic:"))?;
    key.get(..at).map(str::trim).filter(|parent| !parent.is_empty())
}

/// Spellings of the segment that marks a direct chat; the first is written (decision 1).
const DM_SEGMENTS: [&str; 2] = ["dm", "direct"];

/// First parts of keys whose second and third parts are free text, not `dm`.
const NOT_CHANNELS: &[&str] = &[
    "subagent",
    "acp",
    "cron",
    "hook",
    "openai",
    "openai-user",
    "openresponses",
    "openresponses-user",
    "main",
];

/// Where the direct-chat segment stands: first, after the channel, or after channel and account.
fn dm_position(parts: &[&str]) -> Option<usize> {
    for (at, part) in parts.iter().enumerate().take(3) {
        if DM_SEGMENTS.contains(part) {
            return (parts.len() > at + 1).then_some(at);
        }
        let other_room = at == 0 && (NOT_CHANNELS.contains(part) || part.starts_with("node-"));
        if other_room || *part == "group" || *part == "channel" {
            return None;
        }
    }
    None
}

/// `rest` with its direct-chat segment spelled `dm`.
fn dm_spelling(rest: &str) -> String {
    let parts: Vec<&str> = rest.split(':').collect();
    match dm_position(&parts) {
        Some(at) => {
            let spelled: Vec<&str> =
                parts.iter().enumerate().map(|(i, part)| if i == at { "dm" } else { *part }).collect();
            spelled.join(":")
        }
        None => rest.to_owned(),
    }
}

/// Lower case, no blanks around a `:` part, empty parts dropped: what reading the key back would make of it.
pub fn canonical_parts(text: &str) -> String {
    let lower = text.to_lowercase();
    let parts: Vec<&str> = lower.split(':').map(str::trim).filter(|part| !part.is_empty()).collect();
    parts.join(":")
}

/// The text given as a key, trimmed, if its length is acceptable.
///
/// # Errors
/// [`KeyError::Missing`], [`KeyError::TooLong`].
pub fn trimmed(text: &str) -> Result<&str, KeyError> {
    let text = text.trim();
    match text.len() {
        0 => Err(KeyError::Missing),
        n if n > MAX_TEXT_BYTES => Err(KeyError::TooLong(n)),
        _ => Ok(text),
    }
}

/// Refuses text that a person can't be shown as it is. For keys that come from outside: stored ones are taken as they are.
///
/// # Errors
/// [`KeyError::Control`].
pub fn check_printable(text: &str) -> Result<(), KeyError> {
    match text.chars().find(|c| is_control(*c)) {
        Some(character) => Err(KeyError::Control { key: text.to_owned(), character }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
