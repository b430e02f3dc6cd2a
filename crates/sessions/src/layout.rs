//! Paths of stores and transcripts (spec `sessions.md` §3.1).

use std::path::{Component, Path, PathBuf};

use openclaw_protocol::{AgentId, SessionId};

use crate::entry::SessionEntry;
use crate::key::SessionKey;

/// Paths of one state directory. Nothing here touches the disk unless it says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    state_dir: PathBuf,
    home: PathBuf,
    store: Option<String>,
}

/// A session id that can't name a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("session id \"{0}\" is not usable, expected letters, digits, '-', '_' or '.', at most 128")]
pub struct BadSessionId(String);

const STORE_NAME: &str = "sessions.json";

impl Layout {
    /// Paths below `state_dir`; `store` is `session.store` of the configuration, `home` what `~` stands for.
    pub fn new(state_dir: impl Into<PathBuf>, home: impl Into<PathBuf>, store: Option<&str>) -> Self {
        let store = store.map(str::trim).filter(|store| !store.is_empty()).map(str::to_owned);
        Self { state_dir: absolute(state_dir.into()), home: home.into(), store }
    }

    /// The state directory.
    pub fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    /// True if every agent has a store of its own.
    pub fn is_per_agent(&self) -> bool {
        self.store.as_deref().is_none_or(|store| store.contains("{agentId}"))
    }

    /// Value of `path` in the answer of `sessions.list`.
    pub fn listed_path(&self, default_agent: &AgentId) -> String {
        if self.is_per_agent() {
            "(multiple)".to_owned()
        } else {
            self.store_path(default_agent).display().to_string()
        }
    }

    /// The store of an agent.
    pub fn store_path(&self, agent: &AgentId) -> PathBuf {
        match &self.store {
            None => self.state_dir.join("agents").join(agent.as_str()).join("sessions").join(STORE_NAME),
            Some(store) => {
                let path = store.replace("{agentId}", agent.as_str());
                absolute(self.expand_home(&path))
            }
        }
    }

    /// The directory of an agent's store and transcripts.
    pub fn sessions_dir(&self, agent: &AgentId) -> PathBuf {
        let store = self.store_path(agent);
        store.parent().map(Path::to_path_buf).unwrap_or_default()
    }

    /// Path for the transcript of a new session id, in a thread or not.
    pub fn transcript_path(
        &self,
        agent: &AgentId,
        id: &SessionId,
        thread: Option<&str>,
    ) -> Result<PathBuf, BadSessionId> {
        Ok(self.sessions_dir(agent).join(transcript_name(id, thread)?))
    }

    /// The transcript of a row as the row has it: its explicit file, else the path of its id. Nothing when it has no id. Does
    /// not look at the disk; who reads or writes a transcript wants
    /// [`crate::transcript::Transcripts`].
    pub fn transcript_of(
        &self,
        agent: &AgentId,
        entry: &SessionEntry,
    ) -> Result<Option<PathBuf>, BadSessionId> {
        if let Some(file) = self.named_file(agent, entry) {
            return Ok(Some(file));
        }
        match entry.session_id.as_ref() {
            Some(id) => self.transcript_path(agent, id, None).map(Some),
            None => Ok(None),
        }
    }

    /// Places a transcript may be read from, best first. The file a row names may have come here with the whole directory,
    /// from another machine or another home: then it is beside the store under its name.
    pub fn transcript_candidates(&self, agent: &AgentId, entry: &SessionEntry) -> Vec<PathBuf> {
        let mut out = self.named_places(agent, entry);
        if let Some(name) = entry.session_id.as_ref().and_then(|id| transcript_name(id, None).ok()) {
            out.push(self.sessions_dir(agent).join(&name));
            out.push(self.state_dir.join("agents").join(agent.as_str()).join("sessions").join(&name));
            out.push(self.state_dir.join("sessions").join(&name));
        }
        let mut seen = std::collections::HashSet::new();
        out.retain(|path| seen.insert(path.clone()));
        out
    }

    /// The first candidate that exists. Looks at the disk.
    pub fn find_transcript(&self, agent: &AgentId, entry: &SessionEntry) -> Option<PathBuf> {
        self.transcript_candidates(agent, entry).into_iter().find(|path| path.is_file())
    }

    /// Candidate paths for the file that a row names, best first: the named path, then the same
    /// name beside the store. The other way round when the row names the place that transcripts of
    /// its agent have below another state directory: this one is a copy of that, and a copy must
    /// not write into the original.
    pub(crate) fn named_places(&self, agent: &AgentId, entry: &SessionEntry) -> Vec<PathBuf> {
        let (Some(named), Some(beside)) =
            (self.named_file(agent, entry), self.named_beside_store(agent, entry))
        else {
            return Vec::new();
        };
        let usual = Path::new("agents").join(agent.as_str()).join("sessions");
        let is_copy = named != beside && named.parent().is_some_and(|dir| dir.ends_with(&usual));
        if is_copy { vec![beside, named] } else { vec![named, beside] }
    }

    /// The file that a row names, by its name alone, where transcripts of its agent are.
    pub(crate) fn named_beside_store(&self, agent: &AgentId, entry: &SessionEntry) -> Option<PathBuf> {
        let named = self.named_file(agent, entry)?;
        Some(self.sessions_dir(agent).join(named.file_name()?))
    }

    /// The file that a row names. Every transcript is called `*.jsonl`; a row that names anything else (its author may be
    /// anybody who can write the store) names none, so that no such file is ever renamed or written to.
    fn named_file(&self, agent: &AgentId, entry: &SessionEntry) -> Option<PathBuf> {
        let file = entry.session_file.as_deref().map(str::trim).filter(|file| file.ends_with(".jsonl"))?;
        let path = self.expand_home(file);
        Some(if path.is_absolute() { path } else { self.sessions_dir(agent).join(path) })
    }

    /// Agents with a directory below `agents/`, sorted. Looks at the disk.
    pub fn agents_on_disk(&self) -> Vec<AgentId> {
        let Ok(entries) = std::fs::read_dir(self.state_dir.join("agents")) else { return Vec::new() };
        let mut out: Vec<AgentId> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| AgentId::normalize(name).as_str() == name)
            .map(|name| AgentId::normalize(&name))
            .collect();
        out.sort();
        out
    }

    fn expand_home(&self, path: &str) -> PathBuf {
        match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with(['/', '\\']) => {
                self.home.join(rest.trim_start_matches(['/', '\\']))
            }
            Some(_) | None => PathBuf::from(path),
        }
    }
}

/// `<id>.jsonl`, or `<id>-topic-<thread>.jsonl`.
pub fn transcript_name(id: &SessionId, thread: Option<&str>) -> Result<String, BadSessionId> {
    let id = checked_id(id.as_str())?;
    Ok(match thread.map(str::trim).filter(|thread| !thread.is_empty()) {
        Some(thread) => format!("{id}-topic-{}.jsonl", percent_encode(thread)),
        None => format!("{id}.jsonl"),
    })
}

/// Topic of a session, as [`transcript_name`] takes it: `5` of
/// `agent:main:telegram:group:-100:topic:5`, and of `agent:main:telegram:dm:7:thread:5` or
/// `agent:main:main:thread:5`, as in private chats. Threads of groups and channels are not topics.
pub fn topic_of(key: &SessionKey) -> Option<&str> {
    let of_private_chat = || key.as_str().rsplit_once(":thread:").filter(|_| !key.is_group());
    let (_, topic) = key.as_str().rsplit_once(":topic:").or_else(of_private_chat)?;
    let is_id = (1..=20).contains(&topic.len()) && topic.bytes().all(|byte| byte.is_ascii_digit());
    is_id.then_some(topic)
}

/// Returns a client's session id if it may be used in a file name.
pub fn checked_id(id: &str) -> Result<&str, BadSessionId> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let fits = (1..=128).contains(&id.len())
        && id.chars().all(plain)
        && id.starts_with(|c: char| c.is_ascii_alphanumeric());
    if fits { Ok(id) } else { Err(BadSessionId(id.chars().take(160).collect())) }
}

/// `<file>.<reason>.<ISO time with '-' for ':'>`: the name of an archived transcript (spec `sessions.md` §3.5).
pub fn archive_path(file: &Path, reason: ArchiveReason, now_ms: i64) -> PathBuf {
    let stamp = crate::time::iso(now_ms).replace(':', "-");
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.{stamp}", reason.as_str()));
    PathBuf::from(name)
}

/// Reason why a transcript was archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveReason {
    /// The session was deleted.
    Deleted,
    /// The transcript was rewritten.
    Backup,
}

impl ArchiveReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Backup => "bak",
        }
    }
}

/// Encodes a text as JavaScript's `encodeURIComponent` does.
fn percent_encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Absolute, with `.` and `..` folded without looking at the disk.
fn absolute(path: PathBuf) -> PathBuf {
    let path = std::path::absolute(&path).unwrap_or(path);
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        SessionId::new(text)
    }

    #[test]
    fn stores_follow_the_template() {
        let agent = AgentId::normalize("Ops");
        let rows = [
            (None, "/s/agents/ops/sessions/sessions.json", true),
            (Some("~/x/{agentId}/{agentId}.json"), "/h/x/ops/ops.json", true),
            (Some("/all/../one.json"), "/one.json", false),
            (Some("  "), "/s/agents/ops/sessions/sessions.json", true),
        ];
        for (template, path, per_agent) in rows {
            let layout = Layout::new("/s", "/h", template);
            assert_eq!(layout.store_path(&agent), Path::new(path), "{template:?}");
            assert_eq!(layout.is_per_agent(), per_agent, "{template:?}");
        }
    }

    #[test]
    fn transcripts_are_named_by_id_and_topic() {
        assert_eq!(transcript_name(&id("sess-1"), Some("123")).unwrap(), "sess-1-topic-123.jsonl");
        assert_eq!(transcript_name(&id("sess-1"), Some("a/b c")).unwrap(), "sess-1-topic-a%2Fb%20c.jsonl");
        assert_eq!(transcript_name(&id("sess-1"), Some(" ")).unwrap(), "sess-1.jsonl");
    }

    #[test]
    fn a_topic_is_told_by_its_key() {
        let rows = [
            ("agent:main:telegram:group:-100:topic:5", Some("5")),
            ("agent:ops:telegram:group:-100:topic:1", Some("1")),
            ("agent:main:telegram:group:-100", None),
            ("agent:main:main:thread:5", Some("5")),
            ("agent:main:telegram:dm:7:thread:5", Some("5")),
            ("agent:main:telegram:acct:dm:7:thread:5", Some("5")),
            ("agent:main:telegram:dm:7", None),
            ("agent:main:slack:dm:u1:thread:1700.5", None),
            ("agent:main:slack:channel:c1:thread:1700", None),
            ("agent:main:x:group:1:thread:1700", None),
            ("agent:main:telegram:group:-100:topic:", None),
            ("agent:main:telegram:group:-100:topic:a", None),
            ("agent:main:telegram:group:-100:topic:5:x", None),
            ("agent:main:telegram:group:-100:topic:123456789012345678901", None),
        ];
        for (key, expect) in rows {
            assert_eq!(SessionKey::parse(key).ok().as_ref().and_then(topic_of), expect, "{key}");
        }
    }

    #[test]
    fn session_ids_cannot_leave_the_directory() {
        for bad in ["", "..", "../x", "a/b", "a\\b", ".hidden", "a\0", &"a".repeat(129)] {
            assert!(transcript_name(&id(bad), None).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_explicit_file_wins() {
        let layout = Layout::new("/s", "/h", None);
        let agent = AgentId::default();
        let entry: SessionEntry =
            serde_json::from_str(r#"{"sessionId":"a","sessionFile":" /else/b.jsonl "}"#).unwrap();
        assert_eq!(layout.transcript_of(&agent, &entry).unwrap(), Some(PathBuf::from("/else/b.jsonl")));
        let expect = [
            "/else/b.jsonl",
            "/s/agents/main/sessions/b.jsonl",
            "/s/agents/main/sessions/a.jsonl",
            "/s/sessions/a.jsonl",
        ]
        .map(PathBuf::from);
        assert_eq!(layout.transcript_candidates(&agent, &entry), expect);
    }

    #[test]
    fn a_row_that_names_no_transcript_has_the_one_of_its_id() {
        let layout = Layout::new("/s", "/h", None);
        let agent = AgentId::default();
        let path = |entry: &str| {
            layout
                .transcript_of(&agent, &serde_json::from_str(entry).unwrap())
                .unwrap()
                .map(|path| path.display().to_string())
        };
        let own = Some("/s/agents/main/sessions/a.jsonl".to_owned());
        for file in ["/etc/passwd", "~/.ssh/id_rsa", "a.json", "/x/a.jsonl.bak", " ", "/s/openclaw.json"] {
            assert_eq!(path(&format!(r#"{{"sessionId":"a","sessionFile":"{file}"}}"#)), own, "{file}");
            assert_eq!(path(&format!(r#"{{"sessionFile":"{file}"}}"#)), None, "{file}");
        }
        assert_eq!(path(r#"{"sessionFile":"~/b.jsonl"}"#).as_deref(), Some("/h/b.jsonl"));
        assert_eq!(path(r#"{"sessionFile":"b.jsonl"}"#).as_deref(), Some("/s/agents/main/sessions/b.jsonl"));
    }

    #[test]
    fn archives_carry_reason_and_time() {
        let path = archive_path(Path::new("/x/ab.jsonl"), ArchiveReason::Deleted, 1_770_631_932_123);
        assert_eq!(path, Path::new("/x/ab.jsonl.deleted.2026-02-09T10-12-12.123Z"));
    }
}
