//! Logs of transcripts in OpenClaw's files. Lock files, temporary files and directories are known here
//! and below alone.

mod unsynced;

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_config::shared_place::{self, CheckedDir};
use openclaw_protocol::AgentId;
use parking_lot::Mutex;

use super::storage::{
    HeldLock, KeepsOthersOut, OpenMode, TranscriptLog, TranscriptLogs, TranscriptRef, WriteLog,
};
use crate::disk::{self, FileVersion, RealDisk, SharedDisk};
use crate::layout::Layout;
use crate::lockfile::{LockFile, LockKind};

/// [`TranscriptLogs`] in files, each at the path that is its name.
#[derive(Debug)]
pub struct FileLogs {
    disk: SharedDisk,
    /// Directories that were checked already, where many files are read; `None` for one that can't be opened.
    dirs: Option<Mutex<CheckedDirs>>,
}

type CheckedDirs = HashMap<PathBuf, Option<Arc<CheckedDir>>>;

impl Default for FileLogs {
    fn default() -> Self {
        Self { disk: disk::real(), dirs: None }
    }
}

impl FileLogs {
    /// The directory of a file, where such are looked at once. The error of one that can't be opened is
    /// reported by whoever opens a file in it.
    fn checked_dir(&self, path: &Path) -> Option<Arc<CheckedDir>> {
        let (dirs, parent) = (self.dirs.as_ref()?, path.parent()?);
        let open = || CheckedDir::open(parent).ok().map(Arc::new);
        dirs.lock().entry(parent.to_owned()).or_insert_with(open).clone()
    }
}

impl TranscriptLogs for FileLogs {
    fn version(&self, log: &TranscriptRef) -> io::Result<Option<FileVersion>> {
        FileVersion::of_regular(log.path())
    }

    fn has_place(&self, log: &TranscriptRef) -> bool {
        log.path().parent().is_some_and(Path::is_dir)
    }

    fn names_beside(&self, log: &TranscriptRef) -> io::Result<Vec<OsString>> {
        self.disk.list(log.path().parent().unwrap_or(log.path()))
    }

    fn open(&self, log: &TranscriptRef, mode: OpenMode) -> io::Result<Box<dyn TranscriptLog>> {
        let path = log.path();
        let file = match (mode, self.checked_dir(path), path.file_name()) {
            (OpenMode::Read, Some(dir), Some(name)) => dir.open_file(name)?,
            (OpenMode::Read, ..) => shared_place::open(path)?,
            (OpenMode::Append, ..) => {
                shared_place::open_with(path, OpenOptions::new().read(true).append(true))?
            }
        };
        Ok(Box::new(FileLog::new(file, log)))
    }

    fn create(&self, log: &TranscriptRef, beginning: &[u8]) -> io::Result<Box<dyn TranscriptLog>> {
        let path = log.path();
        disk::create_parent(&RealDisk, path)?;
        let mut file =
            disk::private(OpenOptions::new().read(true).append(true).create_new(true)).open(path)?;
        let written = file
            .write_all(beginning)
            .and_then(|()| file.sync_data())
            .and_then(|()| disk::sync_parent(&RealDisk, path));
        if let Err(error) = written {
            // Half a beginning is no log; without it the next attempt starts clean.
            let _ = std::fs::remove_file(path);
            return Err(error);
        }
        Ok(Box::new(FileLog { durable: beginning.len() as u64, ..FileLog::new(file, log) }))
    }

    fn replace(
        &self,
        log: &TranscriptRef,
        kept: Option<&TranscriptRef>,
        write: &mut WriteLog<'_>,
    ) -> io::Result<()> {
        let new = disk::Temporary::write(&RealDisk, log.path(), |out| write(out))?;
        if let Some(kept) = kept {
            keep_old(log.path(), kept.path())?;
        }
        if let Err(error) = new.rename(log.path()) {
            if let Some(kept) = kept {
                let _ = std::fs::remove_file(kept.path());
            }
            return Err(error);
        }
        // From here on the old content has no other name than `kept`.
        disk::sync_parent(&RealDisk, log.path())
    }

    fn rename(&self, from: &TranscriptRef, to: &TranscriptRef) -> io::Result<()> {
        self.disk.rename(from.path(), to.path())
    }

    fn try_lock(&self, log: &TranscriptRef) -> io::Result<Result<HeldLock, Option<u32>>> {
        let lock = LockFile::try_acquire(&self.disk, &lock_path(log), LockKind::Transcript)?;
        Ok(lock.map(|file| Box::new(file) as HeldLock))
    }

    fn is_locked(&self, log: &TranscriptRef) -> io::Result<bool> {
        LockFile::is_held(&self.disk, &lock_path(log))
    }

    fn for_many(&self) -> Arc<dyn TranscriptLogs> {
        Arc::new(Self { disk: SharedDisk::clone(&self.disk), dirs: Some(Mutex::default()) })
    }
}

/// Leaves the old file under a second name: a program that has it open writes into the copy at worst,
/// and finds the new file at the next look. File systems without hard links get a copy instead.
fn keep_old(path: &Path, kept: &Path) -> io::Result<()> {
    if std::fs::hard_link(path, kept).is_ok() {
        return Ok(());
    }
    let copied = std::fs::copy(path, kept).and_then(|_| File::open(kept)?.sync_all());
    if copied.is_err() {
        let _ = std::fs::remove_file(kept);
    }
    copied
}

impl KeepsOthersOut for LockFile {
    fn is_in_place(&self) -> bool {
        self.is_in_place()
    }
}

fn lock_path(transcript: &TranscriptRef) -> PathBuf {
    disk::beside(transcript.path(), "lock")
}

/// An open file.
#[derive(Debug)]
struct FileLog {
    file: File,
    name: TranscriptRef,
    /// Bytes from its beginning that a sync is known to have made durable.
    durable: u64,
    /// True after a failed sync: the system may take data for written that is not on the disk, and
    /// the next sync for done.
    is_in_doubt: bool,
}

impl FileLog {
    fn new(file: File, name: &TranscriptRef) -> Self {
        Self { file, name: name.clone(), durable: 0, is_in_doubt: false }
    }
}

impl TranscriptLog for FileLog {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn version(&self) -> io::Result<FileVersion> {
        Ok(FileVersion::from_meta(&self.file.metadata()?))
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.durable = self.durable.min(len);
        self.file.set_len(len)
    }

    fn sync(&mut self) -> io::Result<FileVersion> {
        if std::mem::replace(&mut self.is_in_doubt, true) {
            self.write_again()?;
        }
        self.file.sync_data()?;
        let version = self.version()?;
        (self.is_in_doubt, self.durable) = (false, version.len());
        Ok(version)
    }
}

/// Removes the locks that processes of ours left behind when they died: in a conversation that nobody uses again each would stay for
/// good. Looks where these agents have their transcripts, and all that have a directory. Blocking.
pub fn sweep_locks(layout: &Layout, agents: &[AgentId]) {
    let on_disk = layout.agents_on_disk();
    let dirs: BTreeSet<PathBuf> =
        agents.iter().chain(&on_disk).map(|agent| layout.sessions_dir(agent)).collect();
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

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::transcript::{LockError, NewTranscript, Transcript, TranscriptLock, Transcripts};

    /// Transcripts by path alone.
    pub(crate) fn anywhere() -> Transcripts {
        Transcripts::in_files(Layout::new("/", "/", None))
    }

    /// Takes the lock of a file, if no other process has it.
    pub(crate) async fn lock(path: &Path) -> Result<TranscriptLock, LockError> {
        TranscriptLock::acquire_now(&anywhere(), &TranscriptRef::new(path)).await
    }

    pub(crate) async fn opened(path: &Path, new: NewTranscript) -> Transcript {
        lock(path).await.unwrap().reopen(None, new).await.unwrap()
    }
}
