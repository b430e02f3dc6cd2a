//! The port below transcripts: logs of bytes by reference. An implementation knows where bytes lie and
//! how they last; what a line means, which entry follows which and what a model sees stands above it,
//! in [`super::Transcripts`] and [`super::OpenTranscript`]. [`super::FileLogs`] keeps logs in OpenClaw's
//! files. Everything here blocks.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use crate::disk::FileVersion;

/// Names a transcript: the path that OpenClaw gives it, wherever its bytes lie. Its text is for people,
/// for rows (`sessionFile`) and for the wire.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TranscriptRef(Arc<OsStr>);

impl TranscriptRef {
    /// Normalises a path, so that comparing two is comparing bytes.
    pub(crate) fn new(path: impl AsRef<Path>) -> Self {
        let path: PathBuf = path.as_ref().components().collect();
        Self(Arc::from(path.into_os_string()))
    }

    pub(crate) fn path(&self) -> &Path {
        Path::new(&*self.0)
    }

    /// The last part of its name.
    pub fn file_name(&self) -> &OsStr {
        self.path().file_name().unwrap_or_default()
    }

    /// The log of another name beside this one.
    pub(crate) fn sibling(&self, name: impl AsRef<OsStr>) -> Self {
        Self::new(self.path().with_file_name(name))
    }
}

impl fmt::Display for TranscriptRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().display().fmt(f)
    }
}

/// Purpose for which a log is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// The log is only read.
    Read,
    /// The log is read and appended to, by whoever has its lock.
    Append,
}

/// Writes the content of a log that replaces another.
pub type WriteLog<'a> = dyn FnMut(&mut dyn Write) -> io::Result<()> + 'a;

/// The lock file, or whatever keeps other processes out. Given back on drop.
pub type HeldLock = Box<dyn KeepsOthersOut>;

/// Guard that locks other processes out of a transcript while it lives.
pub trait KeepsOthersOut: Send + Sync {
    /// True if the guard still holds: a person may have removed it, or another process may have
    /// taken its place.
    fn is_in_place(&self) -> bool;
}

/// Logs of bytes by reference. Every implementation keeps the laws of the module `transcript_contract`.
pub trait TranscriptLogs: fmt::Debug + Send + Sync {
    /// Version of a log; `None` if there is none.
    ///
    /// # Errors
    /// When it can't be told.
    fn version(&self, log: &TranscriptRef) -> io::Result<Option<FileVersion>>;

    /// True if a log of this name can be created without creating a directory for it.
    fn has_place(&self, log: &TranscriptRef) -> bool;

    /// The names of the logs beside this one, in no order. There may be other names among them.
    ///
    /// # Errors
    /// When it can't be told.
    fn names_beside(&self, log: &TranscriptRef) -> io::Result<Vec<OsString>>;

    /// Opens a log.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when there is none.
    fn open(&self, log: &TranscriptRef, mode: OpenMode) -> io::Result<Box<dyn TranscriptLog>>;

    /// Creates a log that begins with these bytes, durably, and opens it to be appended to.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when there is one. After any error nothing was created.
    fn create(&self, log: &TranscriptRef, beginning: &[u8]) -> io::Result<Box<dyn TranscriptLog>>;

    /// Puts what is written in the place of a log, or where there is none, durably, at once or not at all. The log
    /// as it was stays under the name `kept`, if that is given. Whoever has the old one open keeps it.
    ///
    /// # Errors
    /// When it can't be written; the log is as it was then, or it was replaced and may not last.
    /// `kept` stays in the second case.
    fn replace(
        &self,
        log: &TranscriptRef,
        kept: Option<&TranscriptRef>,
        write: &mut WriteLog<'_>,
    ) -> io::Result<()>;

    /// Gives a log another name.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when there is none.
    fn rename(&self, from: &TranscriptRef, to: &TranscriptRef) -> io::Result<()>;

    /// Keeps other processes out of a log, if none has it; else the one that has it, where that is known. There
    /// may be no log of that name yet.
    ///
    /// # Errors
    /// When it can't be told.
    fn try_lock(&self, log: &TranscriptRef) -> io::Result<Result<HeldLock, Option<u32>>>;

    /// True if a process holds the lock of a log.
    ///
    /// # Errors
    /// When it can't be told.
    fn is_locked(&self, log: &TranscriptRef) -> io::Result<bool>;

    /// The same logs for reading many, one behind the other: what they have in common is looked at once.
    fn for_many(&self) -> Arc<dyn TranscriptLogs>;
}

/// An open log. It stays the one that was opened, whatever takes its name.
pub trait TranscriptLog: fmt::Debug + Send {
    /// Reads from an offset as much as there is at once; 0 at the end.
    ///
    /// # Errors
    /// When it can't be read.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Version of the log as it is now.
    ///
    /// # Errors
    /// When it can't be told.
    fn version(&self) -> io::Result<FileVersion>;

    /// Writes bytes behind the last one. Others see them at once; they last after [`Self::sync`].
    ///
    /// # Errors
    /// When not all of them are written. Some may be: see [`Self::cut`].
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the log to this length.
    ///
    /// # Errors
    /// When it stays longer.
    fn cut(&mut self, len: u64) -> io::Result<()>;

    /// Makes everything appended durable, also what an earlier sync failed to. Returns the version that is durable.
    ///
    /// # Errors
    /// When it is not known to be durable.
    fn sync(&mut self) -> io::Result<FileVersion>;
}

/// Reads a part of a log from its beginning to its end.
#[derive(Debug)]
pub(crate) struct LogPart<'a> {
    log: &'a dyn TranscriptLog,
    at: u64,
    end: u64,
}

impl<'a> LogPart<'a> {
    /// The bytes from `at` to `end`, or to the end of the log where that is nearer.
    pub(crate) fn new(log: &'a dyn TranscriptLog, at: u64, end: u64) -> Self {
        Self { log, at, end }
    }
}

impl Read for LogPart<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let most = bytes.len().min(left);
        let bytes = bytes.get_mut(..most).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(0);
        }
        let read = self.log.read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
