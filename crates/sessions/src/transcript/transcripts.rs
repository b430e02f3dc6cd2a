//! Transcripts by reference: which one a row has or gets, and readers of them (spec `sessions.md` §3.1).

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;

use openclaw_protocol::{AgentId, SessionId};

use super::backward::header_of;
use super::files::FileLogs;
use super::fork;
use super::reader::TranscriptReader;
use super::storage::{OpenMode, TranscriptLogs, TranscriptRef};
use crate::entry::SessionEntry;
use crate::key::SessionKey;
use crate::layout::{ArchiveReason, BadSessionId, Layout, archive_path, topic_of, transcript_name};
use crate::time::now_ms;

/// Handle for the transcripts of a gateway; clones are the same transcripts. [`super::TranscriptLock`]
/// opens one of them.
#[derive(Debug, Clone)]
pub struct Transcripts {
    layout: Arc<Layout>,
    logs: Arc<dyn TranscriptLogs>,
}

impl Transcripts {
    /// Transcripts in the files of a state directory.
    pub fn in_files(layout: Layout) -> Self {
        Self::new(layout, Arc::new(FileLogs::default()))
    }

    /// Transcripts that have the names of a layout, in these logs.
    pub fn new(layout: Layout, logs: Arc<dyn TranscriptLogs>) -> Self {
        Self { layout: Arc::new(layout), logs }
    }

    /// Logs below these transcripts.
    pub(crate) fn logs(&self) -> &Arc<dyn TranscriptLogs> {
        &self.logs
    }

    /// True if every agent has a directory of its own.
    pub(super) fn is_per_agent(&self) -> bool {
        self.layout.is_per_agent()
    }

    /// Directory of an agent's transcripts, as the layout names it.
    pub(super) fn sessions_dir(&self, agent: &AgentId) -> std::path::PathBuf {
        self.layout.sessions_dir(agent)
    }

    /// The transcript that a new session id gets.
    ///
    /// # Errors
    /// When the id is not fit for it.
    pub fn of_new(&self, agent: &AgentId, id: &SessionId) -> Result<TranscriptRef, BadSessionId> {
        self.layout.transcript_path(agent, id, None).map(TranscriptRef::new)
    }

    /// The same for a conversation in a topic of a group.
    ///
    /// # Errors
    /// When the id is not fit for it.
    pub fn of_topic(
        &self,
        agent: &AgentId,
        id: &SessionId,
        topic: &str,
    ) -> Result<TranscriptRef, BadSessionId> {
        self.layout.transcript_path(agent, id, Some(topic)).map(TranscriptRef::new)
    }

    /// The transcript of a session's conversation that no row names, or not yet: the one that is
    /// there, under the name of its topic or, as earlier versions made it, under its id alone; else
    /// the one to be made. A transcript that a crash left behind is found this way.
    ///
    /// # Errors
    /// When the id is not fit for it.
    pub fn of_conversation(
        &self,
        agent: &AgentId,
        key: &SessionKey,
        id: &SessionId,
    ) -> Result<TranscriptRef, BadSessionId> {
        let bare = SessionEntry { session_id: Some(id.clone()), ..SessionEntry::default() };
        let Some(topic) = topic_of(key) else {
            return self.to_write(agent, &bare)?.map_or_else(|| self.of_new(agent, id), Ok);
        };
        let named = self.of_topic(agent, id, topic)?;
        if self.exists(&named) {
            return Ok(named);
        }
        Ok(self.find(agent, &bare).unwrap_or(named))
    }

    /// The transcript of a row, if there is one.
    pub fn find(&self, agent: &AgentId, row: &SessionEntry) -> Option<TranscriptRef> {
        let candidates = self.layout.transcript_candidates(agent, row).into_iter();
        candidates.map(TranscriptRef::new).find(|transcript| self.exists(transcript))
    }

    /// The transcript that a run of a row goes on in: the one that [`Self::find`] finds, else the one that the row names where
    /// there is a place for it, else one beside the store. `None` when the row names none.
    ///
    /// # Errors
    /// When the row's id is not fit for it.
    pub fn to_write(
        &self,
        agent: &AgentId,
        row: &SessionEntry,
    ) -> Result<Option<TranscriptRef>, BadSessionId> {
        if let Some(found) = self.find(agent, row) {
            return Ok(Some(found));
        }
        let best = self.layout.named_places(agent, row).into_iter().next().map(TranscriptRef::new);
        if let Some(best) = best.filter(|best| self.logs.has_place(best)) {
            return Ok(Some(best));
        }
        let named = match self.layout.named_beside_store(agent, row) {
            Some(file) => Some(file),
            None => self.layout.transcript_of(agent, row)?,
        };
        Ok(named.map(TranscriptRef::new))
    }

    /// True if a row itself says that this is its transcript. A row that came with a copied directory names the
    /// original's.
    pub fn is_named_by(&self, transcript: &TranscriptRef, agent: &AgentId, row: &SessionEntry) -> bool {
        let named = self.layout.transcript_of(agent, row).ok().flatten();
        row.session_file.is_some() && named.as_deref() == Some(transcript.path())
    }

    /// True if the transcript exists.
    pub fn exists(&self, transcript: &TranscriptRef) -> bool {
        matches!(self.logs.version(transcript), Ok(Some(_)))
    }

    /// All transcripts that go when a row is deleted: its own, and those of its topics. A path that a row names
    /// elsewhere counts only if a transcript is there.
    pub fn all_of(&self, agent: &AgentId, row: &SessionEntry) -> Vec<TranscriptRef> {
        let dir = self.layout.sessions_dir(agent);
        let candidates = self.layout.transcript_candidates(agent, row).into_iter().map(TranscriptRef::new);
        let is_own = |one: &TranscriptRef| one.path().parent() == Some(&dir) || self.has_header(one);
        let mut found: Vec<_> = candidates.filter(|one| self.exists(one) && is_own(one)).collect();
        let topics = row.session_id.as_ref().map(|id| self.topics_of(&dir, id)).unwrap_or_default();
        let topics: Vec<_> = topics.into_iter().filter(|topic| !found.contains(topic)).collect();
        found.extend(topics);
        found
    }

    /// The transcripts of an id's topics in a directory, in the order of their names.
    fn topics_of(&self, dir: &Path, id: &SessionId) -> Vec<TranscriptRef> {
        let Ok(name) = transcript_name(id, None) else { return Vec::new() };
        let prefix = format!("{}-topic-", name.strip_suffix(".jsonl").unwrap_or(&name));
        let is_topic = |name: &OsStr| {
            let name = name.to_str().unwrap_or_default();
            name.starts_with(&prefix) && name.ends_with(".jsonl")
        };
        let plain = TranscriptRef::new(dir.join(name));
        let mut names = self.logs.names_beside(&plain).unwrap_or_default();
        names.retain(|name| is_topic(name));
        names.sort();
        names.into_iter().map(|name| plain.sibling(name)).collect()
    }

    fn has_header(&self, transcript: &TranscriptRef) -> bool {
        let header = self.logs.open(transcript, OpenMode::Read).and_then(|log| header_of(&*log));
        header.is_ok_and(|header| header.is_some())
    }

    /// The transcript of a session that begins with a parent's branch at this time (Unix milliseconds).
    pub fn of_fork(&self, parent: &TranscriptRef, id: &SessionId, at: i64) -> TranscriptRef {
        parent.sibling(fork::fork_name(id, at))
    }

    /// Reader of a transcript. Opens nothing yet.
    pub fn reader(&self, transcript: &TranscriptRef) -> TranscriptReader {
        TranscriptReader::new(Arc::clone(&self.logs), transcript.clone())
    }

    /// The same transcripts for reading many, one behind the other: what they have in common is looked at once.
    #[must_use]
    pub fn for_many(&self) -> Self {
        Self { layout: Arc::clone(&self.layout), logs: self.logs.for_many() }
    }

    /// True if a process holds the transcript's lock.
    ///
    /// # Errors
    /// When it can't be told.
    pub fn is_locked(&self, transcript: &TranscriptRef) -> io::Result<bool> {
        self.logs.is_locked(transcript)
    }

    /// Puts a transcript away, for its session was deleted. Returns what it is called from now on.
    ///
    /// # Errors
    /// When it stays.
    pub fn archive(&self, transcript: &TranscriptRef) -> io::Result<String> {
        let archive = TranscriptRef::new(archive_path(transcript.path(), ArchiveReason::Deleted, now_ms()));
        self.logs.rename(transcript, &archive)?;
        Ok(archive.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_writes_where_readers_look() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path(), "/h", None);
        let transcripts = Transcripts::in_files(layout.clone());
        let agent = AgentId::default();
        let here = layout.sessions_dir(&agent);
        let elsewhere = dir.path().join("elsewhere");
        let entry = |file: &Path| -> SessionEntry {
            serde_json::from_value(serde_json::json!({"sessionId": "a", "sessionFile": file})).unwrap()
        };
        let check = |file: &Path, expect: &Path| {
            let entry = entry(file);
            let expect = TranscriptRef::new(expect);
            let place = transcripts.to_write(&agent, &entry).unwrap();
            assert_eq!(place.as_ref(), Some(&expect), "{}", file.display());
            assert!(transcripts.find(&agent, &entry).is_none_or(|found| found == expect));
        };
        let (gone, there) =
            (Path::new("/home/old/.openclaw/agents/main/sessions/t_a.jsonl"), elsewhere.join("b.jsonl"));
        std::fs::create_dir_all(&here).unwrap();
        check(gone, &here.join("t_a.jsonl"));
        check(&there, &here.join("b.jsonl"));
        std::fs::create_dir(&elsewhere).unwrap();
        check(&there, &there);
        // A directory that was copied from another home, before and after its rows name it otherwise.
        std::fs::write(here.join("a.jsonl"), "").unwrap();
        check(gone, &here.join("a.jsonl"));
        std::fs::write(here.join("t_a.jsonl"), "").unwrap();
        check(gone, &here.join("t_a.jsonl"));
        std::fs::write(&there, "").unwrap();
        check(&there, &there);
        // A directory that was copied while the original is still there.
        let original = dir.path().join("other/agents/main/sessions");
        std::fs::create_dir_all(&original).unwrap();
        let mut fresh = entry(&original.join("new.jsonl"));
        fresh.session_id = Some(SessionId::new("fresh"));
        let place = transcripts.to_write(&agent, &fresh).unwrap();
        let expect = TranscriptRef::new(here.join("new.jsonl"));
        assert_eq!(place, Some(expect), "a copy does not write into the original");
        std::fs::write(original.join("t_a.jsonl"), "").unwrap();
        check(&original.join("t_a.jsonl"), &here.join("t_a.jsonl"));
        std::fs::write(original.join("left.jsonl"), "").unwrap();
        check(&original.join("left.jsonl"), &original.join("left.jsonl"));
        let bad: SessionEntry = serde_json::from_str(r#"{"sessionId":"../x"}"#).unwrap();
        assert!(transcripts.to_write(&agent, &bad).is_err());
        assert_eq!(transcripts.to_write(&agent, &SessionEntry::default()), Ok(None));
    }
}
