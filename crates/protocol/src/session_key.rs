//! Session keys: one canonical text for each conversation bucket (spec `sessions.md` §1).
//!
//! In memory a key is always canonical: trimmed, lower case, its agent segment normalised, and the segment of a direct
//! chat spelled `dm`. Files of OpenClaw 2026.2.9 spell that segment `direct`; both are the same key here. The store keeps the
//! spelling a row already has, and a key remembers it for whoever is told the key (decision 1). What a key says of its
//! session is answered here and nowhere else.

pub mod form;
mod plain;

use std::borrow::Cow;
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

/// The key of the session that everybody shares.
const GLOBAL: &str = "global";
/// Its name to people and models, who are never told the other.
const GLOBAL_SHOWN: &str = "main";

/// A key as people and models read it: the session that everybody shares is `main`.
pub fn shown(key: &str) -> &str {
    if key == GLOBAL { GLOBAL_SHOWN } else { key }
}

/// The canonical key of a session: `agent:<agentId>:<rest>`, `global` or `unknown`.
///
/// Equality, order and hash are those of the canonical text ([`SessionKey::as_str`]). What is displayed and serialised is the
/// key as stored ([`SessionKey::spelled`]).
#[derive(Clone)]
pub struct SessionKey {
    text: Arc<str>,
    /// The key as its row is stored, where that spells the segment of a direct chat `direct`.
    stored: Option<Arc<str>>,
}

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
    /// Reads a complete key, and remembers how it spells a direct chat. Aliases such as `main` take the configuration to
    /// resolve.
    ///
    /// # Errors
    /// [`KeyError`] for a text that is none.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let lower = trimmed(text)?.to_lowercase();
        if lower == GLOBAL || lower == "unknown" {
            return Ok(Self::canonical(Arc::from(lower)));
        }
        match AgentKey::parse(&lower) {
            Some(parts) => {
                let rest = canonical_parts(&parts.rest);
                let key = Self::joined(&AgentId::normalize(&parts.agent), &rest).bounded()?;
                let stored = if key.rest() == rest { None } else { key.direct_spelling().map(Arc::from) };
                Ok(Self { stored, ..key })
            }
            None if lower.starts_with("agent:") => Err(KeyError::Malformed(text.trim().to_owned())),
            None => Err(KeyError::NoAgent(text.trim().to_owned())),
        }
    }

    /// `agent:<agent>:<rest>`, the rest made canonical. The caller checks its length ([`Self::bounded`]).
    pub fn named(agent: &AgentId, rest: &str) -> Self {
        Self::joined(agent, &canonical_parts(rest))
    }

    fn joined(agent: &AgentId, rest: &str) -> Self {
        Self::canonical(Arc::from(format!("agent:{agent}:{}", dm_spelling(rest))))
    }

    fn canonical(text: Arc<str>) -> Self {
        Self { text, stored: None }
    }

    /// This key in the spelling of its row. One that is stored under another text, such as an alias, is spelled canonically.
    pub fn spelled_as(self, stored: &Arc<str>) -> Self {
        let stored = self.is_direct_spelling(stored).then(|| Arc::clone(stored));
        Self { stored, ..self }
    }

    /// This key in the spelling of new rows.
    pub fn spelled_anew(self) -> Self {
        Self { stored: None, ..self }
    }

    /// The key, unless it is longer than [`MAX_KEY_BYTES`].
    ///
    /// # Errors
    /// [`KeyError::TooLong`].
    pub fn bounded(self) -> Result<Self, KeyError> {
        if self.text.len() > MAX_KEY_BYTES { Err(KeyError::TooLong(self.text.len())) } else { Ok(self) }
    }

    /// The key, unless it has a control character.
    fn printable(self) -> Result<Self, KeyError> {
        check_printable(&self.text)?;
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
        Self::canonical(Arc::from(GLOBAL))
    }

    /// The bucket of senders that could not be resolved.
    pub fn unknown() -> Self {
        Self::canonical(Arc::from("unknown"))
    }

    /// The canonical text, which identifies the session. People and clients are told [`Self::spelled`].
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The key as it was found, in a store or a text: canonical but for the `direct` of a direct chat.
    pub fn spelled(&self) -> &str {
        self.stored.as_deref().unwrap_or(&self.text)
    }

    /// The agent segment; nothing for `global` and `unknown`.
    pub fn agent(&self) -> Option<AgentId> {
        self.agent_text().map(AgentId::normalize)
    }

    /// [`Self::agent`] as text.
    pub fn agent_text(&self) -> Option<&str> {
        self.text.strip_prefix("agent:")?.split(':').next()
    }

    /// The agent segment, or the given default agent for `global` and `unknown`.
    pub fn agent_or(&self, default: &AgentId) -> AgentId {
        self.agent().unwrap_or_else(|| default.clone())
    }

    /// What follows `agent:<agentId>:`; the whole key for `global` and `unknown`.
    pub fn rest(&self) -> &str {
        match self.text.strip_prefix("agent:").and_then(|tail| tail.split_once(':')) {
            Some((_, rest)) => rest,
            None => &self.text,
        }
    }

    /// Whether this is the bucket shared by everybody.
    pub fn is_global(&self) -> bool {
        &*self.text == GLOBAL
    }

    /// The key as people and models read it; see [`shown`].
    pub fn shown(&self) -> &str {
        shown(self.spelled())
    }

    /// Whether this is the bucket of unresolved senders.
    pub fn is_unknown(&self) -> bool {
        &*self.text == "unknown"
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
        self.text.contains(":group:") || self.is_room()
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
        self.text.contains(":channel:") && !self.text.contains(":group:")
    }

    /// Whether the key names a thread or a forum topic.
    pub fn is_thread(&self) -> bool {
        self.text.contains(":thread:") || self.text.contains(":topic:")
    }

    /// The key of the conversation a thread or topic belongs to.
    pub fn thread_parent(&self) -> Option<Self> {
        let parent = thread_parent(&self.text)?;
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
        let (before, after) = self.around_dm()?;
        Some(format!("{before}{DIRECT}{after}"))
    }

    /// Whether a text is [`Self::direct_spelling`].
    pub fn is_direct_spelling(&self, text: &str) -> bool {
        // Most texts are the canonical one.
        text.len() == self.text.len() + DIRECT.len() - DM.len()
            && self.around_dm().is_some_and(|(before, after)| {
                let spelled = text.strip_prefix(before).and_then(|text| text.strip_prefix(DIRECT));
                spelled == Some(after)
            })
    }

    /// Whether the key can be spelled in more than one way: it is that of a direct chat.
    pub fn has_spellings(&self) -> bool {
        self.around_dm().is_some()
    }

    /// What stands before the segment that marks a direct chat, and behind it.
    fn around_dm(&self) -> Option<(&str, &str)> {
        self.agent_text()?;
        let at = dm_place(self.rest())? + self.text.len() - self.rest().len();
        Some((self.text.get(..at)?, self.text.get(at + DM.len()..)?))
    }
}

impl PartialEq for SessionKey {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for SessionKey {}

impl std::hash::Hash for SessionKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl PartialOrd for SessionKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SessionKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionKey").field(&self.spelled()).finish()
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spelled())
    }
}

impl Serialize for SessionKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.spelled())
    }
}

impl AsRef<str> for SessionKey {
    fn as_ref(&self) -> &str {
        &self.text
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

/// The segment that marks a direct chat, in keys of ours (decision 1).
const DM: &str = "dm";
/// The same in keys of OpenClaw 2026.2.9.
const DIRECT: &str = "direct";

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

/// Where the direct-chat segment stands in a key's rest: first, after the channel, or after channel and account. In bytes.
fn dm_place(rest: &str) -> Option<usize> {
    let mut place = 0;
    for (at, part) in rest.split(':').enumerate().take(3) {
        if part == DM || part == DIRECT {
            return (rest.len() > place + part.len()).then_some(place);
        }
        let other_room = at == 0 && (NOT_CHANNELS.contains(&part) || part.starts_with("node-"));
        if other_room || part == "group" || part == "channel" {
            return None;
        }
        place += part.len() + 1;
    }
    None
}

/// `rest` with its direct-chat segment spelled `dm`.
fn dm_spelling(rest: &str) -> Cow<'_, str> {
    let around = dm_place(rest).and_then(|at| rest.split_at_checked(at));
    match around.and_then(|(before, marked)| Some((before, marked.strip_prefix(DIRECT)?))) {
        Some((before, after)) => Cow::Owned(format!("{before}{DM}{after}")),
        None => Cow::Borrowed(rest),
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
