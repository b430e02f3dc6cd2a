//! List of the transcripts, and the session each stands for. Blocking.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use openclaw_protocol::{AgentId, SessionId};

use super::scan::unix_ms;
use crate::entry::SessionEntry;
use crate::key::{AgentKey, KeyRules, SessionKey};
use crate::layout::Layout;
use crate::store::Row;

/// A session, as far as it is needed to find its transcript.
#[derive(Debug, Clone)]
pub(super) struct TranscriptOwner {
    key: SessionKey,
    session_id: Option<SessionId>,
    session_file: Option<Box<str>>,
    updated_at: Option<i64>,
}

impl TranscriptOwner {
    pub(super) fn of(row: &Row) -> Self {
        let entry = &row.entry;
        Self {
            key: row.key.clone(),
            session_id: entry.session_id.clone(),
            session_file: entry.session_file.clone(),
            updated_at: entry.updated_at,
        }
    }

    /// A row that names the same transcript.
    fn entry(&self) -> SessionEntry {
        let (session_id, session_file) = (self.session_id.clone(), self.session_file.clone());
        SessionEntry { session_id, session_file, ..SessionEntry::default() }
    }
}

/// A transcript and whose it is.
#[derive(Debug, Clone)]
pub(super) struct TranscriptOf {
    pub(super) path: PathBuf,
    /// The session's key; `agent:<id>:<file name>` when none stands for it any more.
    pub(super) key: String,
    /// The key of the session's row, where it has one.
    pub(super) row: Option<SessionKey>,
    pub(super) agent: AgentId,
    pub(super) session_id: String,
    /// Time at which the session was last used, Unix milliseconds.
    pub(super) updated_at: i64,
    /// Time at which the file was last written, Unix milliseconds.
    pub(super) modified_at: i64,
}

/// Places to look for transcripts.
#[derive(Debug, Clone)]
pub(super) struct TranscriptPlaces {
    pub(super) layout: Layout,
    pub(super) rules: KeyRules,
    /// The configured agents.
    pub(super) agents: Vec<AgentId>,
}

impl TranscriptPlaces {
    /// All transcripts, by path. If several rows stand for one transcript, as those of a job and of
    /// its run do, it belongs to the row used last, and among equals to the more particular one.
    pub(super) fn all(&self, owners: Vec<TranscriptOwner>) -> Vec<TranscriptOf> {
        let mut by_path: HashMap<PathBuf, TranscriptOwner> = HashMap::new();
        for owner in owners {
            let agent = self.rules.agent_of(&owner.key);
            let Ok(Some(path)) = self.layout.transcript_of(&agent, &owner.entry()) else { continue };
            let rank = |owner: &TranscriptOwner| (owner.updated_at.unwrap_or(0), owner.key.clone());
            if by_path.get(&path).is_none_or(|known| rank(known) < rank(&owner)) {
                by_path.insert(path, owner);
            }
        }
        let mut found: HashMap<PathBuf, TranscriptOf> = HashMap::new();
        for (agent, dir) in self.directories() {
            for (path, modified_at) in transcripts_in(&dir) {
                let owner = by_path.remove(&path);
                if !found.contains_key(&path) {
                    found.insert(path.clone(), self.transcript(path, &agent, owner, modified_at));
                }
            }
        }
        // Files elsewhere, as rows name them.
        for owner in by_path.into_values() {
            let agent = self.rules.agent_of(&owner.key);
            let Some(path) = self.layout.find_transcript(&agent, &owner.entry()) else { continue };
            let Some(modified_at) = modified(&path) else { continue };
            if found.get(&path).is_none_or(|known| known.row.is_none()) {
                found.insert(path.clone(), self.transcript(path, &agent, Some(owner), modified_at));
            }
        }
        let mut all: Vec<TranscriptOf> = found.into_values().collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    /// The transcript of one session: its row's, or the file that its key names.
    pub(super) fn one(
        &self,
        text: &str,
        key: &SessionKey,
        owner: Option<TranscriptOwner>,
    ) -> Option<TranscriptOf> {
        if let Some(owner) = owner {
            let agent = self.rules.agent_of(key);
            let path = self.layout.find_transcript(&agent, &owner.entry())?;
            let modified_at = modified(&path)?;
            return Some(self.transcript(path, &agent, Some(owner), modified_at));
        }
        // File names have capitals, canonical keys have not.
        let AgentKey { agent, rest: name } = AgentKey::parse(text)?;
        let mut parts = Path::new(&name).components();
        if !matches!((parts.next(), parts.next()), (Some(Component::Normal(only)), None) if only == name.as_str())
        {
            return None;
        }
        let agent = AgentId::normalize(&agent);
        self.directories_of(&agent).into_iter().find_map(|dir| {
            let path = dir.join(format!("{name}.jsonl"));
            let modified_at = modified(&path)?;
            Some(self.transcript(path, &agent, None, modified_at))
        })
    }

    fn transcript(
        &self,
        path: PathBuf,
        agent: &AgentId,
        owner: Option<TranscriptOwner>,
        modified_at: i64,
    ) -> TranscriptOf {
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(TranscriptOwner { key: row, session_id, updated_at, .. }) = owner else {
            let (key, agent) = (format!("agent:{agent}:{name}"), agent.clone());
            let (session_id, updated_at) = (name, modified_at);
            return TranscriptOf { path, key, row: None, agent, session_id, updated_at, modified_at };
        };
        let session_id = session_id.map_or(name, |id| id.as_str().to_owned());
        let (key, agent) = (row.to_string(), self.rules.agent_of(&row));
        let updated_at = updated_at.unwrap_or(modified_at);
        TranscriptOf { path, key, row: Some(row), agent, session_id, updated_at, modified_at }
    }

    /// The directories of all agents, each once; the default agent has those that several share.
    fn directories(&self) -> Vec<(AgentId, PathBuf)> {
        let mut agents = vec![self.rules.default_agent.clone()];
        agents.extend(self.agents.iter().cloned());
        agents.extend(self.layout.agents_on_disk());
        let mut out: Vec<(AgentId, PathBuf)> = Vec::new();
        for agent in agents {
            for dir in self.directories_of(&agent) {
                if !out.iter().any(|(_, known)| *known == dir) {
                    out.push((agent.clone(), dir));
                }
            }
        }
        out
    }

    fn directories_of(&self, agent: &AgentId) -> Vec<PathBuf> {
        let own = self.layout.sessions_dir(agent);
        let usual = self.layout.state_dir().join("agents").join(agent.as_str()).join("sessions");
        if own == usual { vec![own] } else { vec![own, usual] }
    }
}

/// The transcripts in a directory with the times they were last written; none when it is not there.
fn transcripts_in(dir: &Path) -> Vec<(PathBuf, i64)> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let transcript = |entry: std::fs::DirEntry| {
        let path = entry.path();
        let is_named = path.extension().is_some_and(|extension| extension == "jsonl");
        let modified_at = is_named.then(|| modified(&path)).flatten()?;
        Some((path, modified_at))
    };
    entries.filter_map(Result::ok).filter_map(transcript).collect()
}

/// Time of a file's last write, Unix milliseconds; `None` if it is no file.
fn modified(path: &Path) -> Option<i64> {
    let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some(unix_ms(meta.modified().ok()))
}
