//! Logs in memory alone, for tests of code that uses [`Transcripts`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use super::format::Entry;
use super::storage::{
    FileVersion, HeldLock, KeepsOthersOut, OpenMode, TranscriptLog, TranscriptLogs, TranscriptRef, WriteLog,
};
use super::transcripts::Transcripts;
use crate::layout::Layout;

/// [`TranscriptLogs`] in memory. Clones are the same logs.
#[derive(Debug, Clone)]
pub struct MemoryLogs {
    /// Tells the names of one's transcripts from another's: locks go by name.
    number: u64,
    state: Arc<Mutex<StoredLogs>>,
}

#[derive(Debug, Clone, Default)]
struct StoredLogs {
    names: BTreeMap<TranscriptRef, NamedLog>,
    /// Content by number. That of a log that has lost its name stays, as somebody may have it open.
    contents: Vec<LogContent>,
}

/// Content and lock under a name.
#[derive(Debug, Clone, Default)]
struct NamedLog {
    /// Number of the content; `None` where only the lock is there.
    content: Option<usize>,
    /// The process that has the lock.
    holder: Option<u32>,
}

#[derive(Debug, Clone, Default)]
struct LogContent {
    bytes: Vec<u8>,
    changes: u64,
}

impl StoredLogs {
    /// Number of the content under a name.
    fn number(&self, log: &TranscriptRef) -> io::Result<usize> {
        let number = self.names.get(log).and_then(|named| named.content);
        number.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn content(&self, number: usize) -> io::Result<&LogContent> {
        self.contents.get(number).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn version(&self, number: usize) -> io::Result<FileVersion> {
        let content = self.content(number)?;
        let modified = SystemTime::UNIX_EPOCH + Duration::from_millis(content.changes);
        Ok(FileVersion::new(number as u64, content.bytes.len() as u64, modified))
    }

    /// Puts a new content under a name.
    fn put(&mut self, log: &TranscriptRef, bytes: Vec<u8>) -> usize {
        let number = self.contents.len();
        self.contents.push(LogContent { bytes, changes: 0 });
        self.names.entry(log.clone()).or_default().content = Some(number);
        number
    }

    fn change(&mut self, number: usize, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let content = self.contents.get_mut(number).ok_or(io::ErrorKind::NotFound)?;
        change(&mut content.bytes);
        content.changes += 1;
        Ok(())
    }
}

impl Default for MemoryLogs {
    fn default() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Self { number: NUMBER.fetch_add(1, Ordering::Relaxed), state: Arc::default() }
    }
}

impl MemoryLogs {
    /// The transcripts in these logs.
    pub fn transcripts(&self) -> Transcripts {
        Transcripts::new(Layout::new(self.root(), "/", None), Arc::new(self.clone()))
    }

    /// Puts bytes in the place of a log.
    pub fn put(&self, log: &TranscriptRef, bytes: impl Into<Vec<u8>>) {
        self.state.lock().put(log, bytes.into());
    }

    /// Says that a process has a transcript, or none.
    pub fn hold(&self, transcript: &TranscriptRef, holder: Option<u32>) {
        self.state.lock().names.entry(transcript.clone()).or_default().holder = holder;
    }

    /// The same logs once more, as a crash would leave them to another process. Nothing is written while `copy_rest`
    /// copies whatever else that process finds.
    #[must_use]
    pub fn copied(&self, copy_rest: impl FnOnce()) -> Self {
        let state = self.state.lock();
        copy_rest();
        let copy = Self::default();
        let moved = |(name, named): (&TranscriptRef, &NamedLog)| {
            let rest = name.path().strip_prefix(self.root()).unwrap_or(name.path());
            let name = TranscriptRef::new(copy.root().join(rest));
            (name, NamedLog { content: named.content, holder: None })
        };
        let (names, contents) = (state.names.iter().map(moved).collect(), state.contents.clone());
        *copy.state.lock() = StoredLogs { names, contents };
        copy
    }

    /// All transcripts with all their entries, those of other branches too.
    pub fn all(&self) -> Vec<(TranscriptRef, Vec<Entry>)> {
        let state = self.state.lock();
        let entries = |(name, named): (&TranscriptRef, &NamedLog)| {
            let lines = state.contents.get(named.content?)?.bytes.split(|byte| *byte == b'\n');
            // The header is no entry.
            Some((name.clone(), lines.skip(1).filter_map(Entry::parse).collect()))
        };
        state.names.iter().filter_map(entries).collect()
    }

    /// A log without a name.
    #[cfg(test)]
    pub(crate) fn log_of(bytes: &[u8]) -> Box<dyn TranscriptLog> {
        Self::default().create(&TranscriptRef::new("/log"), bytes).unwrap()
    }

    fn root(&self) -> PathBuf {
        format!("/memory/{}", self.number).into()
    }

    fn opened(&self, number: usize) -> Box<dyn TranscriptLog> {
        Box::new(MemoryLog { state: Arc::clone(&self.state), number })
    }
}

impl TranscriptLogs for MemoryLogs {
    fn version(&self, log: &TranscriptRef) -> io::Result<Option<FileVersion>> {
        let state = self.state.lock();
        state.number(log).ok().map(|number| state.version(number)).transpose()
    }

    fn has_place(&self, log: &TranscriptRef) -> bool {
        log.path().starts_with(self.root())
    }

    fn names_beside(&self, log: &TranscriptRef) -> io::Result<Vec<OsString>> {
        let state = self.state.lock();
        let stored = state.names.iter().filter(|(_, named)| named.content.is_some()).map(|(name, _)| name);
        let beside = stored.filter(|name| name.path().parent() == log.path().parent());
        Ok(beside.map(|name| name.file_name().to_owned()).collect())
    }

    fn open(&self, log: &TranscriptRef, _mode: OpenMode) -> io::Result<Box<dyn TranscriptLog>> {
        let number = self.state.lock().number(log)?;
        Ok(self.opened(number))
    }

    fn create(&self, log: &TranscriptRef, beginning: &[u8]) -> io::Result<Box<dyn TranscriptLog>> {
        let mut state = self.state.lock();
        if state.number(log).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let number = state.put(log, beginning.to_vec());
        drop(state);
        Ok(self.opened(number))
    }

    fn replace(
        &self,
        log: &TranscriptRef,
        kept: Option<&TranscriptRef>,
        write: &mut WriteLog<'_>,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        let mut state = self.state.lock();
        if let Some(kept) = kept {
            let old = state.number(log)?;
            state.names.entry(kept.clone()).or_default().content = Some(old);
        }
        state.put(log, bytes);
        Ok(())
    }

    fn rename(&self, from: &TranscriptRef, to: &TranscriptRef) -> io::Result<()> {
        let mut state = self.state.lock();
        let number = state.number(from)?;
        state.names.entry(from.clone()).or_default().content = None;
        state.names.entry(to.clone()).or_default().content = Some(number);
        Ok(())
    }

    fn try_lock(&self, log: &TranscriptRef) -> io::Result<Result<HeldLock, Option<u32>>> {
        let mut state = self.state.lock();
        let holder = &mut state.names.entry(log.clone()).or_default().holder;
        if let Some(pid) = *holder {
            return Ok(Err(Some(pid)));
        }
        *holder = Some(std::process::id());
        Ok(Ok(Box::new(MemoryLock { state: Arc::clone(&self.state), transcript: log.clone() })))
    }

    fn is_locked(&self, log: &TranscriptRef) -> io::Result<bool> {
        Ok(self.state.lock().names.get(log).is_some_and(|named| named.holder.is_some()))
    }

    fn for_many(&self) -> Arc<dyn TranscriptLogs> {
        Arc::new(self.clone())
    }
}

struct MemoryLock {
    state: Arc<Mutex<StoredLogs>>,
    transcript: TranscriptRef,
}

impl KeepsOthersOut for MemoryLock {
    fn is_in_place(&self) -> bool {
        let holder = self.state.lock().names.get(&self.transcript).and_then(|named| named.holder);
        holder == Some(std::process::id())
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.state.lock().names.entry(self.transcript.clone()).or_default().holder = None;
    }
}

#[derive(Debug)]
struct MemoryLog {
    state: Arc<Mutex<StoredLogs>>,
    number: usize,
}

impl TranscriptLog for MemoryLog {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.state.lock();
        let all = &state.content(self.number)?.bytes;
        let from = all.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        let count = from.len().min(bytes.len());
        bytes.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        Ok(count)
    }

    fn version(&self) -> io::Result<FileVersion> {
        self.state.lock().version(self.number)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.state.lock().change(self.number, |all| all.extend_from_slice(bytes))
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.state.lock().change(self.number, |all| all.truncate(len))
    }

    fn sync(&mut self) -> io::Result<FileVersion> {
        self.version()
    }
}
