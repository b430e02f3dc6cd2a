//! One gateway per config and per state directory (spec `gateway-protocol.md` §1.1, `config.md` §12).
//!
//! Two files are held: the one OpenClaw 2026.2.9 uses, `gateway.<hash of the config path>.lock` in the lock directory,
//! and `gateway.lock` in the state directory. Both hold JSON that names their owner, and an operating system lock that a
//! crash releases.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_config::private_file;
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};
use tokio::time::Instant;

use super::process::{self, Liveness};
use crate::clock::now_ms;

/// How long a second gateway waits for the first to go away.
const WAIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(100);
/// A lock of an owner that nothing is known of is broken after this long.
const STALE_MS: i64 = 30_000;

/// Why the lock was not had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another gateway runs; the operator stops it.
    #[error("gateway already running{}; lock timeout after {}ms ({})", pid_text(*pid), WAIT.as_millis(), path.display())]
    Held {
        /// Its process, when known.
        pid: Option<u32>,
        /// The file that says so.
        path: PathBuf,
    },
    /// The file can't be made or locked; the operator looks at its directory.
    #[error("cannot lock {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

fn pid_text(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (pid {pid})"))
}

/// Who holds a lock. Same keys as OpenClaw 2026.2.9 writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Owner {
    pub(crate) pid: u32,
    /// ISO 8601.
    created_at: String,
    config_path: String,
    /// Field 22 of `/proc/<pid>/stat`: tells a process from a later one with its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_time: Option<u64>,
    /// Where it listens, once it does. Ours alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<u16>,
}

/// The locks of a running gateway; dropping lets go of them.
#[derive(Debug)]
pub(crate) struct InstanceLock {
    held: Vec<Held>,
}

#[derive(Debug)]
struct Held {
    file: File,
    path: PathBuf,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Removed while still locked, so that nobody takes a file that is about to go. A file that can't be removed
        // is stale from here on, which the next gateway sees.
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// The file OpenClaw 2026.2.9 uses for a config.
pub(crate) fn config_lock_path(lock_dir: &Path, config_path: &Path) -> PathBuf {
    let hash = Sha1::digest(config_path.to_string_lossy().as_bytes());
    let short: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    lock_dir.join(format!("gateway.{short}.lock"))
}

/// The file of a state directory.
pub(crate) fn state_lock_path(state_dir: &Path) -> PathBuf {
    state_dir.join("gateway.lock")
}

impl InstanceLock {
    /// Takes the locks, waiting for a gateway that is about to stop.
    pub(crate) async fn acquire(paths: &[PathBuf], config_path: &Path) -> Result<Self, LockError> {
        let deadline = Instant::now() + WAIT;
        let mut held = Vec::new();
        for path in paths {
            loop {
                match try_acquire(path, config_path)? {
                    Attempt::Taken(lock) => break held.push(lock),
                    Attempt::Retry => {}
                    Attempt::Busy(pid) if Instant::now() >= deadline => {
                        return Err(LockError::Held { pid, path: path.clone() });
                    }
                    Attempt::Busy(_) => tokio::time::sleep(POLL).await,
                }
            }
        }
        Ok(Self { held })
    }
}

impl InstanceLock {
    /// Takes the locks, or says at once who has one of them.
    pub(crate) fn try_acquire(paths: &[PathBuf], config_path: &Path) -> Result<Self, LockError> {
        let mut held = Vec::new();
        for path in paths {
            loop {
                match try_acquire(path, config_path)? {
                    Attempt::Taken(lock) => break held.push(lock),
                    Attempt::Retry => {}
                    Attempt::Busy(pid) => return Err(LockError::Held { pid, path: path.clone() }),
                }
            }
        }
        Ok(Self { held })
    }

    /// Says in the files where the gateway listens, for commands that look elsewhere.
    pub(crate) fn announce(&mut self, port: u16) -> io::Result<()> {
        self.held.iter_mut().try_for_each(|held| {
            let Some(owner) = read_owner(&held.path) else { return Ok(()) };
            replace(&mut held.file, &Owner { port: Some(port), ..owner })
        })
    }
}

/// Whether a lock is held, and by which process where that can be told. Changes nothing.
pub(crate) fn is_held(path: &Path) -> Option<Option<u32>> {
    let mut file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(read_owner(path).map(|owner| owner.pid)),
        Err(TryLockError::Error(_)) | Ok(()) => foreign_owner(&mut file).ok().flatten().map(Some),
    }
}

enum Attempt {
    Taken(Held),
    Busy(Option<u32>),
    /// The file was replaced under our hands.
    Retry,
}

fn try_acquire(path: &Path, config_path: &Path) -> Result<Attempt, LockError> {
    let failed = |source| LockError::Io { path: path.to_owned(), source };
    if let Some(dir) = path.parent() {
        private_file::make_dir(dir).map_err(failed)?;
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Attempt::Busy(read_owner(path).map(|owner| owner.pid))),
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    if !is_same_file(&file, path) {
        return Ok(Attempt::Retry);
    }
    if let Some(pid) = foreign_owner(&mut file).map_err(failed)? {
        return Ok(Attempt::Busy(Some(pid)));
    }
    write_owner(&mut file, config_path).map_err(failed)?;
    Ok(Attempt::Taken(Held { file, path: path.to_owned() }))
}

/// The owner that a lock file names.
pub(crate) fn read_owner(path: &Path) -> Option<Owner> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// A gateway that holds the file without an operating system lock, as OpenClaw 2026.2.9 does.
fn foreign_owner(file: &mut File) -> io::Result<Option<u32>> {
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let Ok(owner) = serde_json::from_slice::<Owner>(&text) else { return Ok(None) };
    if owner.pid == std::process::id() {
        // We hold the system's lock, so this is what a process with our number left behind.
        return Ok(None);
    }
    let is_alive = match process::liveness(owner.pid, owner.start_time) {
        Liveness::Gone => false,
        Liveness::Gateway => true,
        Liveness::Unknown => !is_stale(&owner.created_at),
    };
    Ok(is_alive.then_some(owner.pid))
}

fn is_stale(created_at: &str) -> bool {
    let created = created_at.parse::<jiff::Timestamp>().map_or(0, |at| at.as_millisecond());
    now_ms().saturating_sub(created) > STALE_MS
}

fn write_owner(file: &mut File, config_path: &Path) -> io::Result<()> {
    let pid = std::process::id();
    let owner = Owner {
        pid,
        created_at: jiff::Timestamp::now().to_string(),
        config_path: config_path.display().to_string(),
        start_time: process::start_time(pid),
        port: None,
    };
    replace(file, &owner)
}

/// In one write and never shorter than it has to be: others read the file meanwhile.
fn replace(file: &mut File, owner: &Owner) -> io::Result<()> {
    let text = serde_json::to_vec(owner)?;
    file.rewind()?;
    file.write_all(&text)?;
    file.set_len(u64::try_from(text.len()).unwrap_or(u64::MAX))?;
    file.flush()
}

#[cfg(unix)]
fn is_same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(ours), Ok(theirs)) => identity(ours) == identity(theirs),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_same_file(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    async fn acquire(path: &Path) -> Result<InstanceLock, LockError> {
        InstanceLock::acquire(&[path.to_owned()], Path::new("/home/user/.openclaw/openclaw.json")).await
    }

    #[test]
    fn the_lock_file_is_named_as_openclaw_names_it() {
        let path = config_lock_path(
            Path::new("/tmp/openclaw-1000"),
            Path::new("/home/user/.openclaw/openclaw.json"),
        );
        // sha1 of the path begins with these eight digits.
        let digest = Sha1::digest(b"/home/user/.openclaw/openclaw.json");
        let start = format!("{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3]);
        assert_eq!(path, Path::new("/tmp/openclaw-1000").join(format!("gateway.{start}.lock")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_gateway_is_told_who_holds_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = state_lock_path(&dir.path().join("state"));
        let first = acquire(&path).await.unwrap();
        let error = acquire(&path).await.unwrap_err().to_string();
        let pid = std::process::id();
        assert!(
            error.starts_with(&format!("gateway already running (pid {pid}); lock timeout after 5000ms")),
            "{error}"
        );
        drop(first);
        assert!(!path.exists());
        acquire(&path).await.unwrap();
    }

    /// Vectors of `config.md` §12: files that OpenClaw 2026.2.9 left behind.
    #[tokio::test]
    async fn stale_files_are_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway.lock");
        let (me, gone) = (std::process::id(), 4_000_000_u32);
        let left = [
            json!({"pid": gone, "createdAt": "2026-02-09T10:00:00.000Z", "configPath": "x"}).to_string(),
            json!({"pid": me, "createdAt": "2026-02-09T10:00:00.000Z", "configPath": "x", "startTime": 111})
                .to_string(),
            "{\"pid\":".to_owned(),
            String::new(),
        ];
        for text in left {
            std::fs::write(&path, &text).unwrap();
            let lock = acquire(&path).await.unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(read_owner(&path).unwrap().pid, me, "{text}");
            drop(lock);
        }
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let path = file.join("gateway.lock");
        let error = acquire(&path).await.unwrap_err();
        assert!(matches!(&error, LockError::Io { path: named, .. } if *named == path), "{error}");
    }
}
