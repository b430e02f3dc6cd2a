//! Which transcripts there are, and the session each stands for. Blocking.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use openclaw_protocol::AgentId;

use super::scan::unix_ms;
use crate::key::{KeyRules, SessionKey};
use crate::layout::Layout;
use crate::store::Row;

/// A transcript and whose it is.
#[derive(Debug, Clone)]
pub(super) struct TranscriptOf {
    pub(super) path: PathBuf,
    /// The session's key; `agent:<id>:<file name>` when none stands for it any more.
    pub(super) key: String,
    pub(super) agent: AgentId,
    pub(super) session_id: String,
    /// The session's row.
    pub(super) row: Option<Row>,
    /// When the session was last used, Unix milliseconds.
    pub(super) updated_at: i64,
    /// When the file was last written, Unix milliseconds.
    pub(super) modified_at: i64,
}

/// Where to look.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) layout: Layout,
    pub(super) rules: KeyRules,
    /// The configured agents.
    pub(super) agents: Vec<AgentId>,
}

impl Places {
    /// Every transcript, by path. Where several rows stand for one, as those of a job and of its run do, the one used
    /// last has it, and among equals the more particular one.
    pub(super) fn all(&self, rows: Vec<Row>) -> Vec<TranscriptOf> {
        let mut by_path: HashMap<PathBuf, Row> = HashMap::new();
        for row in rows {
            let agent = self.rules.agent_of(&row.key);
            let Ok(Some(path)) = self.layout.transcript_of(&agent, &row.entry) else { continue };
            let rank = |row: &Row| (row.entry.updated_at_ms(), row.key.clone());
            if by_path.get(&path).is_none_or(|known| rank(known) < rank(&row)) {
                by_path.insert(path, row);
            }
        }
        let mut found: HashMap<PathBuf, TranscriptOf> = HashMap::new();
        for (agent, dir) in self.directories() {
            for (path, modified_at) in transcripts_in(&dir) {
                let row = by_path.remove(&path);
                if !found.contains_key(&path) {
                    found.insert(path.clone(), self.transcript(path, &agent, row, modified_at));
                }
            }
        }
        // Files elsewhere, as rows name them.
        for row in by_path.into_values() {
            let agent = self.rules.agent_of(&row.key);
            let Some(path) = self.layout.find_transcript(&agent, &row.entry) else { continue };
            let Some(modified_at) = modified(&path) else { continue };
            if found.get(&path).is_none_or(|known| known.row.is_none()) {
                found.insert(path.clone(), self.transcript(path, &agent, Some(row), modified_at));
            }
        }
        let mut all: Vec<TranscriptOf> = found.into_values().collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    /// The transcript of one session: its row's, or the file that its key names.
    pub(super) fn one(&self, text: &str, key: &SessionKey, row: Option<Row>) -> Option<TranscriptOf> {
        if let Some(row) = row {
            let agent = self.rules.agent_of(key);
            let path = self.layout.find_transcript(&agent, &row.entry)?;
            let modified_at = modified(&path)?;
            return Some(self.transcript(path, &agent, Some(row), modified_at));
        }
        // File names have capitals, canonical keys have not.
        let (agent, name) = text.trim().strip_prefix("agent:")?.split_once(':')?;
        let mut parts = Path::new(name).components();
        if !matches!((parts.next(), parts.next()), (Some(Component::Normal(only)), None) if only == name) {
            return None;
        }
        let agent = AgentId::normalize(agent);
        self.directories_of(&agent).into_iter().find_map(|dir| {
            let path = dir.join(format!("{name}.jsonl"));
            let modified_at = modified(&path)?;
            Some(self.transcript(path, &agent, None, modified_at))
        })
    }

    fn transcript(&self, path: PathBuf, agent: &AgentId, row: Option<Row>, modified_at: i64) -> TranscriptOf {
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let agent = row.as_ref().map_or_else(|| agent.clone(), |row| self.rules.agent_of(&row.key));
        let key = row.as_ref().map_or_else(|| format!("agent:{agent}:{name}"), |row| row.key.to_string());
        let id = row.as_ref().and_then(|row| row.entry.session_id.as_ref());
        let session_id = id.map_or(name, |id| id.as_str().to_owned());
        let updated_at = row.as_ref().and_then(|row| row.entry.updated_at).unwrap_or(modified_at);
        TranscriptOf { path, key, agent, session_id, row, updated_at, modified_at }
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

/// When a file was last written; nothing when it is none.
fn modified(path: &Path) -> Option<i64> {
    let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some(unix_ms(meta.modified().ok()))
}
