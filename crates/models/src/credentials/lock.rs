//! The lock of a credentials file between processes.
//!
//! Two locks in one. OpenClaw 2026.2.9 makes a directory `auth-profiles.json.lock` and takes one that was not touched for
//! 30 seconds for left behind; that is all it knows, so we make it too. Between processes of ours a lock of the operating
//! system on the agent's directory comes first: it vanishes with its holder, and under it nobody of ours ever takes a left
//! directory for stale while another one renews it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Age at which a lock directory counts as left behind (spec `models.md` §8.1).
const STALE: Duration = Duration::from_secs(30);
/// The first and the longest wait between two attempts. The reference waits longer between its ten attempts.
const WAITS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// Time to keep trying: as long as the ten attempts of the reference implementation take without
/// jitter, which is longer than a lock needs to become stale.
pub(crate) const PATIENCE: Duration = Duration::from_secs(42);
/// Longest time that a holder may keep the lock: well before others consider it stale.
pub(crate) const LONGEST_HOLD: Duration = Duration::from_secs(20);

/// The lock, held until dropped.
#[derive(Debug)]
pub(crate) struct StoreLock {
    path: PathBuf,
    stamp: Option<LockStamp>,
    /// Dropped after the directory is gone.
    _ours: Option<File>,
}

/// Values that distinguish our lock directory from another one of the same name.
type LockStamp = (u64, SystemTime);

/// Error of taking the lock.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreLockError {
    /// Another process has held the lock for too long.
    #[error("another process is changing it")]
    Held,
    /// The lock can't be created.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl StoreLock {
    /// Takes the lock of a file whose directory exists. Blocks, at most for `patience`.
    pub(crate) fn acquire(file: &Path, patience: Duration) -> Result<Self, StoreLockError> {
        let started = Instant::now();
        let mut wait = WAITS.0;
        let path = lock_path(file);
        let mut ours = None;
        loop {
            if ours.is_none() {
                ours = lock_directory(file.parent().unwrap_or(Path::new(".")))?;
            }
            if let Some(held) = ours.take() {
                if let Some(stamp) = make(&path)? {
                    return Ok(Self { path, stamp, _ours: held.file });
                }
                ours = Some(held);
            }
            if started.elapsed() >= patience {
                return Err(StoreLockError::Held);
            }
            std::thread::sleep(wait);
            wait = WAITS.1.min(wait * 2);
        }
    }

    /// Returns true if this process still owns the lock: another process may have considered it
    /// stale while this one was stopped.
    pub(crate) fn is_ours(&self) -> bool {
        stamp_of(&self.path) == self.stamp
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        if !self.is_ours() {
            tracing::warn!(lock = %self.path.display(), "our lock was taken away by another process");
        } else if let Err(error) = fs::remove_dir(&self.path) {
            tracing::warn!(lock = %self.path.display(), %error, "cannot remove our lock");
        }
    }
}

fn lock_path(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// The lock of the operating system, or the knowledge that there is none on this file system.
struct Ours {
    file: Option<File>,
}

/// Returns `None` if another process has the lock.
fn lock_directory(dir: &Path) -> io::Result<Option<Ours>> {
    let file = match File::open(dir) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
        // A directory can't be opened everywhere; then the lock directory alone must do.
        Err(_) => return Ok(Some(Ours { file: None })),
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(Ours { file: Some(file) })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(_)) => Ok(Some(Ours { file: None })),
    }
}

/// Makes the lock directory; nothing when there is one that counts.
fn make(path: &Path) -> io::Result<Option<Option<LockStamp>>> {
    match fs::create_dir(path) {
        Ok(()) => return Ok(Some(stamp_of(path))),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let Some(there) = stamp_of(path) else { return Ok(None) };
    // Looked at twice: what is removed must be what was judged.
    if is_stale(&there) && stamp_of(path) == Some(there) && fs::remove_dir(path).is_ok() {
        tracing::warn!(lock = %path.display(), "removed a lock that was left behind");
        return match fs::create_dir(path) {
            Ok(()) => Ok(Some(stamp_of(path))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(error),
        };
    }
    Ok(None)
}

/// A time to come is as wrong as one long past: a clock was set back meanwhile.
fn is_stale((_, modified): &LockStamp) -> bool {
    let off = match SystemTime::now().duration_since(*modified) {
        Ok(age) => age,
        Err(ahead) => ahead.duration(),
    };
    off > STALE
}

fn stamp_of(path: &Path) -> Option<LockStamp> {
    let metadata = fs::symlink_metadata(path).ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let inode = 0;
    Some((inode, metadata.modified().ok()?))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn file(dir: &tempfile::TempDir) -> PathBuf {
        dir.path().join("auth-profiles.json")
    }

    fn age(path: &Path, by: Duration) {
        File::open(path).unwrap().set_modified(SystemTime::now() - by).unwrap();
    }

    #[test]
    fn a_lock_is_a_directory_beside_the_file_while_it_is_held() {
        let dir = tempfile::tempdir().unwrap();
        let lock = StoreLock::acquire(&file(&dir), Duration::ZERO).unwrap();
        assert!(dir.path().join("auth-profiles.json.lock").is_dir());
        assert!(matches!(StoreLock::acquire(&file(&dir), Duration::ZERO), Err(StoreLockError::Held)));
        drop(lock);
        assert!(!dir.path().join("auth-profiles.json.lock").exists());
        StoreLock::acquire(&file(&dir), Duration::ZERO).unwrap();
    }

    #[test]
    fn the_references_lock_is_respected_until_it_is_stale() {
        let dir = tempfile::tempdir().unwrap();
        let theirs = dir.path().join("auth-profiles.json.lock");
        for (old, free) in [(0, false), (29, false), (31, true)] {
            fs::create_dir_all(&theirs).unwrap();
            age(&theirs, Duration::from_secs(old));
            let taken = StoreLock::acquire(&file(&dir), Duration::ZERO);
            assert_eq!(taken.is_ok(), free, "{old}");
        }
        fs::create_dir_all(&theirs).unwrap();
        File::open(&theirs).unwrap().set_modified(SystemTime::now() + Duration::from_secs(3_600)).unwrap();
        StoreLock::acquire(&file(&dir), Duration::ZERO).unwrap();
    }

    #[test]
    fn a_lock_that_was_taken_away_is_left_to_its_new_holder() {
        let dir = tempfile::tempdir().unwrap();
        let theirs = dir.path().join("auth-profiles.json.lock");
        let lock = StoreLock::acquire(&file(&dir), Duration::ZERO).unwrap();
        assert!(lock.is_ours());
        fs::remove_dir(&theirs).unwrap();
        fs::create_dir(&theirs).unwrap();
        age(&theirs, Duration::from_secs(1));
        assert!(!lock.is_ours());
        drop(lock);
        assert!(theirs.is_dir());
    }
}
