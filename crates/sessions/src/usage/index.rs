//! Cache of earlier counts, by file.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::UsageError;
use super::digest::Digest;
use super::scan::{Scanned, scan};
use crate::disk::FileVersion;
use crate::layout::Layout;

/// Files that are remembered; each takes about half a KiB.
const MOST_FILES: usize = 100_000;

/// Counts what transcripts used, and remembers it. Clones are the same index.
#[derive(Clone)]
pub struct UsageIndex {
    /// Layout of the files.
    layout: Layout,
    files: Arc<Mutex<HashMap<PathBuf, Arc<Scanned>>>>,
    /// Permit to count, one task at a time: a second task finds what the first one counted.
    turn: Arc<Semaphore>,
    /// Permits of single-transcript reads, which don't wait for a task that counts all.
    readers: Arc<Semaphore>,
    #[cfg(test)]
    scans: Arc<std::sync::atomic::AtomicUsize>,
}

/// Single transcripts that are read at a time.
const READERS: usize = 4;

impl UsageIndex {
    /// Creates a cache that has counted nothing yet.
    pub fn new(layout: Layout) -> Self {
        let (turn, readers) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(READERS)));
        Self {
            layout,
            files: Arc::default(),
            turn,
            readers,
            #[cfg(test)]
            scans: Arc::default(),
        }
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }
}

impl std::fmt::Debug for UsageIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UsageIndex").field("files", &self.files.lock().len()).finish_non_exhaustive()
    }
}

impl UsageIndex {
    /// Runs work that counts transcripts on the blocking pool, one after the other. Work that was
    /// begun goes on when nobody waits for it any more: its counts are remembered.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, UsageError> {
        let index = self.clone();
        in_turn(&self.turn, move || work(&index)).await
    }

    /// Runs work that reads one transcript on the blocking pool.
    pub(super) async fn look_at_one<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, UsageError> {
        in_turn(&self.readers, work).await
    }

    /// Usage of a transcript; reads only what changed since the last call. Blocking.
    pub(super) fn digest(&self, path: &Path) -> io::Result<Arc<Scanned>> {
        let known = self.files.lock().get(path).cloned();
        if let Some(known) = &known
            && FileVersion::of(path)?.as_ref() == Some(&known.stamp)
        {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(scan(path, known.as_deref())?);
        #[cfg(test)]
        self.scans.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut files = self.files.lock();
        if files.len() < MOST_FILES || files.contains_key(path) {
            files.insert(path.to_path_buf(), Arc::clone(&read));
        }
        Ok(read)
    }

    /// Number of times that a file was read.
    #[cfg(test)]
    pub(super) fn scans(&self) -> usize {
        self.scans.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Forgets files that are gone.
    pub(super) fn retain(&self, present: &HashSet<&Path>) {
        self.files.lock().retain(|path, _| present.contains(path.as_path()));
    }
}

async fn in_turn<T: Send + 'static>(
    turns: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, UsageError> {
    let Ok(turn) = Arc::clone(turns).acquire_owned().await else { return Err(UsageError::Interrupted) };
    let done = tokio::task::spawn_blocking(move || {
        let found = work();
        drop(turn);
        found
    });
    done.await.map_err(|_| UsageError::Interrupted)
}

impl Scanned {
    /// Counted usage.
    pub(super) fn digest(&self) -> &Digest {
        &self.counting.digest
    }
}
