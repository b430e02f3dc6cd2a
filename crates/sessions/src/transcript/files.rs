//! Transcripts in OpenClaw's files. Paths, lock files and JSONL are known here and below alone.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use openclaw_config::shared_place::{self, CheckedDir};
use openclaw_protocol::{AgentId, SessionId};

use super::backward::{first_entries, is_transcript, walk_branch};
use super::file::{NewTranscript, TranscriptFile};
use super::storage::{
    HeldLock, KeepsOthersOut, Locked, Opened, Part, Readers, TranscriptReader, TranscriptRef, Transcripts,
    Visit,
};
use super::{LinesCompacted, TranscriptError, fork, truncate};
use crate::disk;
use crate::entry::SessionEntry;
use crate::layout::{ArchiveReason, BadSessionId, Layout, archive_path, transcript_name};
use crate::lockfile::{LockFile, LockKind};
use crate::time::now_ms;

/// [`Transcripts`] in the files of a state directory.
#[derive(Debug, Clone)]
pub struct FileTranscripts {
    layout: Layout,
}

impl FileTranscripts {
    /// Transcripts where a layout has them.
    pub fn new(layout: Layout) -> Self {
        Self { layout }
    }

    /// Removes the locks that processes of ours left behind when they died: in a conversation that nobody uses again each would stay for
    /// good. Looks where these agents have their transcripts, and all that have a directory. Blocking.
    pub fn sweep_locks(&self, agents: &[AgentId]) {
        let on_disk = self.layout.agents_on_disk();
        let dirs: BTreeSet<PathBuf> =
            agents.iter().chain(&on_disk).map(|agent| self.layout.sessions_dir(agent)).collect();
        let disk = disk::real();
        let mut removed = 0;
        for dir in dirs {
            let swept = disk.list(&dir).and_then(|names| {
                let is_lock = |name: &OsString| name.as_encoded_bytes().ends_with(b".jsonl.lock");
                names.into_iter().filter(is_lock).try_for_each(|name| {
                    removed += usize::from(LockFile::sweep_ours(&disk, &dir.join(name))?);
                    Ok(())
                })
            });
            if let Err(error) = swept {
                tracing::warn!(dir = %dir.display(), %error, "cannot look for locks that were left behind");
            }
        }
        if removed > 0 {
            tracing::warn!(locks = removed, "removed locks of conversations that were left behind");
        }
    }
}

impl KeepsOthersOut for LockFile {
    fn is_in_place(&self) -> bool {
        self.is_in_place()
    }
}

fn lock_path(transcript: &TranscriptRef) -> PathBuf {
    disk::beside(transcript.path(), "lock")
}

impl Transcripts for FileTranscripts {
    fn of_new(&self, agent: &AgentId, id: &SessionId) -> Result<TranscriptRef, BadSessionId> {
        self.layout.transcript_path(agent, id, None).map(TranscriptRef::new)
    }

    fn of_topic(&self, agent: &AgentId, id: &SessionId, topic: &str) -> Result<TranscriptRef, BadSessionId> {
        self.layout.transcript_path(agent, id, Some(topic)).map(TranscriptRef::new)
    }

    fn find(&self, agent: &AgentId, row: &SessionEntry) -> Option<TranscriptRef> {
        self.layout.find_transcript(agent, row).map(TranscriptRef::new)
    }

    fn to_write(&self, agent: &AgentId, row: &SessionEntry) -> Result<Option<TranscriptRef>, BadSessionId> {
        Ok(self.layout.transcript_to_write(agent, row)?.map(TranscriptRef::new))
    }

    /// A row that came with a copied directory names the original's.
    fn is_named_by(&self, transcript: &TranscriptRef, agent: &AgentId, row: &SessionEntry) -> bool {
        let named = self.layout.transcript_of(agent, row).ok().flatten();
        row.session_file.is_some() && named.as_deref() == Some(transcript.path())
    }

    fn exists(&self, transcript: &TranscriptRef) -> bool {
        transcript.path().exists()
    }

    /// A path that a row names elsewhere counts only if a transcript is there.
    fn all_of(&self, agent: &AgentId, row: &SessionEntry) -> Vec<TranscriptRef> {
        let mut files = self.layout.transcript_candidates(agent, row);
        let dir = self.layout.sessions_dir(agent);
        files.retain(|file| file.is_file() && (file.parent() == Some(&dir) || is_transcript(file)));
        let name = row.session_id.as_ref().and_then(|id| transcript_name(id, None).ok());
        let prefix = name.and_then(|name| Some(format!("{}-topic-", name.strip_suffix(".jsonl")?)));
        if let Some(prefix) = prefix {
            let is_topic = |file: &PathBuf| {
                let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                name.starts_with(&prefix) && name.ends_with(".jsonl")
            };
            let beside = std::fs::read_dir(dir).into_iter().flatten();
            let mut topics: Vec<PathBuf> =
                beside.filter_map(|entry| Some(entry.ok()?.path())).filter(is_topic).collect();
            topics.retain(|topic| !files.contains(topic));
            topics.sort();
            files.extend(topics);
        }
        files.into_iter().map(TranscriptRef::new).collect()
    }

    fn of_fork(&self, parent: &TranscriptRef, id: &SessionId, at: i64) -> TranscriptRef {
        TranscriptRef::new(fork::fork_path(parent.path(), id, at))
    }

    fn reader(&self, transcript: &TranscriptRef) -> Box<dyn TranscriptReader> {
        Box::new(FileReader::new(transcript.path()))
    }

    fn readers(&self) -> Readers {
        let mut dirs: HashMap<PathBuf, Option<Arc<CheckedDir>>> = HashMap::new();
        Box::new(move |transcript| {
            let path = transcript.path();
            let dir = path.parent().and_then(|parent| {
                // The error of a directory that can't be opened is reported by whoever opens a file
                // in it.
                let checked = || CheckedDir::open(parent).ok().map(Arc::new);
                dirs.entry(parent.to_owned()).or_insert_with(checked).clone()
            });
            Box::new(FileReader { dir, ..FileReader::new(path) })
        })
    }

    fn try_lock(&self, transcript: &TranscriptRef) -> io::Result<Result<HeldLock, Option<u32>>> {
        let lock = LockFile::try_acquire(&disk::real(), &lock_path(transcript), LockKind::Transcript)?;
        Ok(lock.map(|file| Box::new(file) as HeldLock))
    }

    fn is_locked(&self, transcript: &TranscriptRef) -> io::Result<bool> {
        LockFile::is_held(&disk::real(), &lock_path(transcript))
    }

    fn open(&self, lock: Locked<'_>) -> Opened {
        Ok(Box::new(TranscriptFile::open(lock.transcript().path())?))
    }

    fn open_or_create(&self, lock: Locked<'_>, new: &NewTranscript) -> Opened {
        Ok(Box::new(TranscriptFile::open_or_create(lock.transcript().path(), new)?))
    }

    fn fork(
        &self,
        parent: Locked<'_>,
        child: &TranscriptRef,
        new: NewTranscript,
    ) -> Result<(), TranscriptError> {
        fork::fork_to(parent.transcript().path(), child.path(), new)
    }

    fn truncate(&self, lock: Locked<'_>, most: NonZeroUsize) -> Result<LinesCompacted, TranscriptError> {
        truncate::truncate_file(lock.transcript().path(), most)
    }

    fn archive(&self, transcript: &TranscriptRef) -> io::Result<String> {
        let archive = archive_path(transcript.path(), ArchiveReason::Deleted, now_ms());
        std::fs::rename(transcript.path(), &archive)?;
        Ok(archive.display().to_string())
    }
}

/// Reads one file, the same one at each visit.
#[derive(Debug)]
pub struct FileReader {
    path: PathBuf,
    /// Directory of the transcript, if it was checked already.
    dir: Option<Arc<CheckedDir>>,
    file: OnceCell<File>,
}

impl FileReader {
    /// Opens nothing yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), dir: None, file: OnceCell::new() }
    }

    fn file(&self) -> io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = match (&self.dir, self.path.file_name()) {
            (Some(dir), Some(name)) => dir.open_file(name)?,
            _ => shared_place::open(&self.path)?,
        };
        Ok(self.file.get_or_init(|| file))
    }
}

impl TranscriptReader for FileReader {
    fn visit(&self, part: Part, visit: &mut Visit<'_>) -> io::Result<()> {
        let file = self.file()?;
        match part {
            Part::Branch => walk_branch(file, u64::MAX, visit),
            Part::End { bytes } => walk_branch(file, bytes, visit),
            Part::Beginning { lines, bytes } => first_entries(file, lines, bytes, visit),
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::transcript::{LockError, Transcript, TranscriptLock};

    /// Transcripts by path alone.
    pub(crate) fn anywhere() -> Arc<dyn Transcripts> {
        Arc::new(FileTranscripts::new(Layout::new("/", "/", None)))
    }

    /// Takes the lock of a file, if no other process has it.
    pub(crate) async fn lock(path: &Path) -> Result<TranscriptLock, LockError> {
        TranscriptLock::acquire_now(&anywhere(), &TranscriptRef::new(path)).await
    }

    pub(crate) async fn opened(path: &Path, new: NewTranscript) -> Transcript {
        lock(path).await.unwrap().reopen(None, new).await.unwrap()
    }
}
