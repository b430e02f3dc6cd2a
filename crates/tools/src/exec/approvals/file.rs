//! `exec-approvals.json` (spec `tools.md` §3.3, `operations.md` §8.4). Fields that are not known here are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use openclaw_config::settings::{ExecAsk, ExecSecurity};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::flaw::{self, FileFlaw};

/// The agent that settings without an agent belong to.
const MAIN: &str = "main";
/// Name of the main agent in older versions.
const LEGACY_MAIN: &str = "default";
/// Longest remembered command, in characters.
const MAX_COMMAND_CHARS: usize = 1000;

/// The whole file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "an object with \"version\": 1")]
pub struct ApprovalsFile {
    /// Version of the format: always 1.
    #[serde(deserialize_with = "version_one")]
    pub version: u32,
    /// Socket on which the desktop app listens.
    #[serde(default)]
    pub socket: ApprovalSocket,
    /// Policy of agents that have none of their own.
    #[serde(default)]
    pub defaults: Policy,
    /// Approvals by agent; `*` is every agent.
    #[serde(default)]
    pub agents: BTreeMap<String, AgentApprovals>,
    /// Unknown fields, kept as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Default for ApprovalsFile {
    fn default() -> Self {
        Self {
            version: 1,
            socket: ApprovalSocket::default(),
            defaults: Policy::default(),
            agents: BTreeMap::new(),
            other: Map::new(),
        }
    }
}

/// `socket`.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, expecting = "an object")]
pub struct ApprovalSocket {
    /// Path of the socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Signs what goes over it. Clients never see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Unknown fields, kept as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl std::fmt::Debug for ApprovalSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let token = self.token.as_ref().map(|_| "[redacted]");
        f.debug_struct("Socket").field("path", &self.path).field("token", &token).finish_non_exhaustive()
    }
}

/// Policy that applies unless a more specific one overrides it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object with settings")]
pub struct Policy {
    /// Security mode: which commands may run.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "word")]
    pub security: Option<ExecSecurity>,
    /// Ask mode: when a person is asked.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "word")]
    pub ask: Option<ExecAsk>,
    /// Security mode that applies if no person answers.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "word")]
    pub ask_fallback: Option<ExecSecurity>,
    /// True if programs of skills count as allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_allow_skills: Option<bool>,
    /// Unknown fields, kept as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Policy {
    /// Returns this policy, with gaps filled from `base`.
    fn over(mut self, base: Self) -> Self {
        self.security = self.security.or(base.security);
        self.ask = self.ask.or(base.ask);
        self.ask_fallback = self.ask_fallback.or(base.ask_fallback);
        self.auto_allow_skills = self.auto_allow_skills.or(base.auto_allow_skills);
        for (name, value) in base.other {
            self.other.entry(name).or_insert(value);
        }
        self
    }
}

/// Approvals of one agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, expecting = "an object with settings")]
pub struct AgentApprovals {
    /// Programs that may run unasked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowlist: Vec<AllowlistEntry>,
    /// The rest.
    #[serde(flatten)]
    pub policy: Policy,
}

/// Allowlist entry for one program, or several.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AllowlistEntry {
    /// A UUID.
    pub id: String,
    /// See [`super::pattern`].
    pub pattern: String,
    /// SHA-256 that the file must have (our own field). Without it, any content is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Time of the last use, in Unix milliseconds. A fraction is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<serde_json::Number>,
    /// Command that the entry allowed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_command: Option<String>,
    /// File that the command ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_resolved_path: Option<String>,
    /// Unknown fields, kept as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Entry that *allow-always* puts on the allowlist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered<'a> {
    /// The file.
    pub pattern: &'a str,
    /// SHA-256 that its content must have; `None`: any content.
    pub sha256: Option<&'a str>,
}

impl<'de> Deserialize<'de> for AllowlistEntry {
    /// An older form is the pattern alone.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Full {
            #[serde(default)]
            id: Option<String>,
            pattern: String,
            #[serde(default)]
            sha256: Option<String>,
            #[serde(default)]
            last_used_at: Option<serde_json::Number>,
            #[serde(default)]
            last_used_command: Option<String>,
            #[serde(default)]
            last_resolved_path: Option<String>,
            #[serde(flatten)]
            other: Map<String, Value>,
        }
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "an allowlist entry must be a pattern or an object with one")]
        enum Form {
            Pattern(String),
            Full(Full),
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Pattern(pattern) => Self { pattern, ..Self::default() },
            Form::Full(full) => Self {
                id: full.id.unwrap_or_default(),
                pattern: full.pattern,
                sha256: full.sha256,
                last_used_at: full.last_used_at,
                last_used_command: full.last_used_command,
                last_resolved_path: full.last_resolved_path,
                other: full.other,
            },
        })
    }
}

impl ApprovalsFile {
    /// Reads the text of a file and brings older forms up to date. `mint` makes ids.
    ///
    /// # Errors
    /// Describes the flaw. An empty text is an error too, because a torn write leaves one.
    pub fn parse(text: &str, mint: &mut dyn FnMut() -> String) -> Result<Self, FileFlaw> {
        if text.trim().is_empty() {
            return Err(FileFlaw::Empty);
        }
        let mut file: Self = serde_json::from_str(text)?;
        flaw::check(&file)?;
        file.normalise(mint);
        Ok(file)
    }

    /// Brings older forms up to date: the agent `default` goes into `main`, entries get the ids they lack.
    pub fn normalise(&mut self, mint: &mut dyn FnMut() -> String) {
        if let Some(legacy) = self.agents.remove(LEGACY_MAIN) {
            let main = self.agents.remove(MAIN).unwrap_or_default();
            self.agents.insert(MAIN.to_owned(), merge(main, legacy));
        }
        let entries = self.agents.values_mut().flat_map(|agent| &mut agent.allowlist);
        for entry in entries.filter(|entry| entry.id.trim().is_empty()) {
            entry.id = mint();
        }
    }

    /// The text of the file.
    ///
    /// # Errors
    /// No error occurs in practice: everything in the file is JSON.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Returns the file as clients may see it: without the socket's token.
    pub fn redacted(&self) -> Self {
        let mut shown = self.clone();
        shown.socket.token = None;
        shown
    }

    /// Returns the approvals of an agent under its own name.
    pub(super) fn agent(&self, agent: &str) -> Option<&AgentApprovals> {
        self.agents.get(agent_key(agent))
    }

    /// Adds a program to an agent's allowlist. `false` when its pattern is there already, or is none.
    pub fn allow(&mut self, agent: &str, pattern: &str, mint: &mut dyn FnMut() -> String) -> bool {
        self.remember(agent, Remembered { pattern, sha256: None }, mint)
    }

    /// Adds an entry for a program whose content may be prescribed. It takes the place of the one
    /// that was there before.
    pub fn remember(
        &mut self,
        agent: &str,
        Remembered { pattern, sha256 }: Remembered<'_>,
        mint: &mut dyn FnMut() -> String,
    ) -> bool {
        let pattern = pattern.trim();
        // Entries under the old name of the main agent become the main agent's with the next
        // reading.
        if pattern.is_empty() || agent == LEGACY_MAIN {
            return false;
        }
        let list = &mut self.agents.entry(agent_key(agent).to_owned()).or_default().allowlist;
        let sha256 = sha256.map(str::to_owned);
        match list.iter_mut().find(|entry| entry.pattern == pattern) {
            Some(entry) if entry.sha256.is_none() || entry.sha256 == sha256 => false,
            Some(entry) => {
                entry.sha256 = sha256;
                true
            }
            None => {
                let pattern = pattern.to_owned();
                list.push(AllowlistEntry { id: mint(), pattern, sha256, ..AllowlistEntry::default() });
                true
            }
        }
    }

    /// Notes that the entries with a pattern (of the agent, or of all agents) allowed a command. Not by id: an entry that has none gets
    /// another one with each reading.
    pub fn record_use(&mut self, agent: &str, pattern: &str, command: &str, resolved: &Path, now_ms: i64) {
        for name in [agent_key(agent), "*"] {
            let entries = self.agents.get_mut(name).map(|agent| &mut agent.allowlist);
            for entry in entries.into_iter().flatten().filter(|entry| entry.pattern == pattern) {
                entry.last_used_at = Some(now_ms.into());
                entry.last_used_command = Some(command.chars().take(MAX_COMMAND_CHARS).collect());
                entry.last_resolved_path = Some(resolved.display().to_string());
            }
        }
    }
}

/// Runs without an agent belong to the main one.
fn agent_key(agent: &str) -> &str {
    if agent.is_empty() { MAIN } else { agent }
}

fn merge(main: AgentApprovals, legacy: AgentApprovals) -> AgentApprovals {
    let mut seen = BTreeSet::new();
    let entries = main.allowlist.into_iter().chain(legacy.allowlist);
    let allowlist = entries.filter(|entry| seen.insert(entry.pattern.trim().to_lowercase())).collect();
    AgentApprovals { allowlist, policy: main.policy.over(legacy.policy) }
}

fn version_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        1 => Ok(1),
        other => Err(serde::de::Error::custom(format!("version {other} is not known, only 1 is"))),
    }
}

/// Settings are written in the word that the configuration uses.
trait Word: Copy {
    fn as_word(self) -> &'static str;
}

impl Word for ExecSecurity {
    fn as_word(self) -> &'static str {
        self.as_str()
    }
}

impl Word for ExecAsk {
    fn as_word(self) -> &'static str {
        self.as_str()
    }
}

fn word<T: Word, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(Word::as_word).serialize(serializer)
}

#[cfg(test)]
mod tests;
