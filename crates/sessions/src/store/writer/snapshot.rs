//! Writing `sessions.json` from a snapshot.

use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::disk::{self, FileVersion, SharedDisk, Temporary};
use crate::lockfile::LockFile;
use crate::store::document;
use crate::store::journal::remove_segments;
use crate::store::rows::Rows;

/// Input of a snapshot. It belongs to a thread of its own, so that a big store does not hold
/// updates up.
pub(super) struct Job {
    pub(super) disk: SharedDisk,
    pub(super) path: PathBuf,
    pub(super) rows: Rows,
    /// The version of the file that the rows stand on.
    pub(super) expected: Option<FileVersion>,
    /// Segments of the journal whose changes the rows hold.
    pub(super) segments: Vec<u64>,
    /// Held until the file is written and the segments are gone: who takes the lock next and changes the file must not see
    /// an old segment brought up again by a crash.
    pub(super) lock: LockFile,
}

/// Outcome of a snapshot.
pub(super) enum SnapshotOutcome {
    /// The file is written.
    Written {
        /// Stamp of the file that is there now.
        stamp: FileVersion,
        /// Duration of the write.
        took: Duration,
        /// Segments that are gone; or why the file is perhaps the old one again after a power cut, so that all are needed.
        removed: io::Result<Vec<u64>>,
    },
    /// Someone changed the file meanwhile: nothing was written.
    Overtaken,
    /// The disk refused: nothing was written.
    Failed(io::Error),
}

/// A snapshot that ended.
pub(super) struct Finished {
    pub(super) path: PathBuf,
    pub(super) outcome: SnapshotOutcome,
}

impl Job {
    /// Begins to write; the outcome is sent when it is done.
    pub(super) fn start(self, done: mpsc::Sender<Finished>) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("session-snapshot".to_owned()).spawn(move || {
            // A closed channel means that the store is gone and nobody waits.
            let _ = done.blocking_send(self.run());
        })
    }

    /// Writes.
    pub(super) fn run(self) -> Finished {
        let begun = Instant::now();
        let outcome = match write(&self.disk, &self.path, &self.rows, self.expected) {
            Ok(Some(stamp)) => {
                let removed = disk::sync_parent(&*self.disk, &self.path)
                    .map(|()| remove_segments(&self.disk, &self.path, &self.segments));
                SnapshotOutcome::Written { stamp, took: begun.elapsed(), removed }
            }
            Ok(None) => SnapshotOutcome::Overtaken,
            Err(error) => SnapshotOutcome::Failed(error),
        };
        drop(self.lock);
        Finished { path: self.path, outcome }
    }
}

fn write(
    disk: &SharedDisk,
    path: &Path,
    rows: &Rows,
    expected: Option<FileVersion>,
) -> io::Result<Option<FileVersion>> {
    let temporary = Temporary::write(&**disk, path, |file| document::write(rows, file))?;
    if disk.stamp(path)? != expected {
        return Ok(None);
    }
    let stamp = temporary.stamp();
    temporary.rename(path)?;
    Ok(Some(stamp))
}
