//! Instance lock: only one gateway per config and per state directory (spec `gateway-protocol.md`
//! §1.1, `config.md` §12).
//!
//! Two files are held: the one OpenClaw 2026.2.9 uses, `gateway.<hash of the config path>.lock` in
//! the lock directory, and `gateway.lock` in the state directory. Both hold JSON that names their
//! owner, and an operating system lock that a crash releases. Locks left by a crash go over to the
//! next gateway: by their `instance` it recognises the locks of its predecessors as its own.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_config::private_file;
use openclaw_config::shared_place::OwnDir;
use openclaw_sessions::process::{self, ProcessIdentity};
use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use sha1::{Digest, Sha1};
use tokio::time::Instant;
use uuid::Uuid;

use super::process::{Liveness, liveness};
use crate::clock::now_ms;

/// Time for which a second gateway waits for the first to go away.
const WAIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(100);
/// A lock of an owner that nothing is known of is broken after this long.
const STALE_MS: i64 = 30_000;

/// Reason why the lock could not be had.
#[derive(Debug, thiserror::Error)]
pub enum InstanceLockError {
    /// Another gateway runs; the operator stops it.
    #[error("gateway already running{}; lock timeout after {}ms ({})", pid_text(*pid), WAIT.as_millis(), path.display())]
    Held {
        /// Process id of the holder, when known.
        pid: Option<u32>,
        /// The file that says so.
        path: PathBuf,
    },
    /// The file can't be made or locked; the operator looks at its directory.
    #[error("cannot lock {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Error from the system.
        source: io::Error,
    },
}

fn pid_text(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (pid {pid})"))
}

/// Owner of a lock, as its file names it. OpenClaw 2026.2.9 reads and writes `pid`, `createdAt`,
/// `configPath` and `startTime`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LockOwner {
    #[serde(flatten)]
    process: ProcessIdentity,
    /// ISO 8601.
    created_at: String,
    config_path: String,
    /// The same for all gateways that took over from each other after a crash.
    instance: Option<String>,
    /// Port it listens on, once it does. Ours alone.
    port: Option<u16>,
}

/// The locks of a running gateway; dropping lets go of them.
#[derive(Debug)]
pub(crate) struct InstanceLock {
    held: Vec<LockHandle>,
    instance: String,
}

#[derive(Debug)]
struct LockHandle {
    file: File,
    path: PathBuf,
    /// Text to leave in the file when the lock is released; without it the file is removed.
    legacy: Option<Vec<u8>>,
}

impl Drop for LockHandle {
    fn drop(&mut self) {
        // Done while still locked, so that nobody takes a file that is about to go. A file that can't be removed is stale
        // from here on, which the next gateway sees.
        let _ = match &self.legacy {
            Some(text) => rewrite(&mut self.file, text),
            None => std::fs::remove_file(&self.path),
        };
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
    /// Takes the locks, waiting for a gateway that is about to stop. The first is that of the state directory.
    pub(crate) async fn acquire(paths: &[PathBuf], config_path: &Path) -> Result<Self, InstanceLockError> {
        let deadline = Instant::now() + WAIT;
        let mut taking = Taking::new(paths, config_path);
        loop {
            match taking.advance()? {
                LockProgress::Done(lock) => return Ok(lock),
                LockProgress::Busy(_) if Instant::now() < deadline => tokio::time::sleep(POLL).await,
                LockProgress::Busy(held) => return Err(held),
            }
        }
    }

    /// Takes the locks, or says at once who has one of them.
    pub(crate) fn try_acquire(paths: &[PathBuf], config_path: &Path) -> Result<Self, InstanceLockError> {
        match Taking::new(paths, config_path).advance()? {
            LockProgress::Done(lock) => Ok(lock),
            LockProgress::Busy(held) => Err(held),
        }
    }

    /// Says that runs begin: from here on locks of sessions are made in the name of [`Self::instance`], and a crash leaves
    /// them to the next gateway.
    pub(crate) fn begin_runs(&mut self) {
        process::set_instance(&self.instance);
        for held in &mut self.held {
            held.legacy = read(&mut held.file).ok();
        }
    }

    /// Says that no run was left in the middle: nothing of this gateway is left to the next.
    pub(crate) fn ended_cleanly(mut self) {
        for held in &mut self.held {
            held.legacy = None;
        }
    }

    /// Says in the files where the gateway listens, for commands that look elsewhere.
    pub(crate) fn announce(&mut self, port: u16) -> io::Result<()> {
        self.held.iter_mut().try_for_each(|held| {
            let Some(owner) = owner(&mut held.file) else { return Ok(()) };
            rewrite(&mut held.file, &serde_json::to_vec(&LockOwner { port: Some(port), ..owner })?)
        })
    }
}

/// Locks on the way to being held.
struct Taking<'a> {
    left: std::slice::Iter<'a, PathBuf>,
    next: Option<&'a PathBuf>,
    config_path: &'a Path,
    held: Vec<LockHandle>,
    instance: Option<String>,
}

enum LockProgress {
    Done(InstanceLock),
    Busy(InstanceLockError),
}

impl<'a> Taking<'a> {
    fn new(paths: &'a [PathBuf], config_path: &'a Path) -> Self {
        let mut left = paths.iter();
        let next = left.next();
        Self { left, next, config_path, held: Vec::new(), instance: None }
    }

    fn advance(&mut self) -> Result<LockProgress, InstanceLockError> {
        while let Some(path) = self.next {
            match self.attempt(path).map_err(|source| InstanceLockError::Io { path: path.clone(), source })? {
                LockAttempt::Taken(held) => {
                    self.held.push(held);
                    self.next = self.left.next();
                }
                LockAttempt::Retry => {}
                LockAttempt::Busy(pid) => {
                    return Ok(LockProgress::Busy(InstanceLockError::Held { pid, path: path.clone() }));
                }
            }
        }
        let instance = self.instance.take().unwrap_or_else(new_instance);
        Ok(LockProgress::Done(InstanceLock { held: std::mem::take(&mut self.held), instance }))
    }

    fn attempt(&mut self, path: &Path) -> io::Result<LockAttempt> {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        };
        private_file::make_dir(dir)?;
        let dir = OwnDir::open(dir)?;
        dir.close_to_others()?;
        let mut file = dir.open_file(name)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Ok(LockAttempt::Busy(owner(&mut file).map(|it| it.process.pid)));
            }
            Err(TryLockError::Error(source)) => return Err(source),
        }
        if !is_same_file(&file, path) {
            return Ok(LockAttempt::Retry);
        }
        let found = owner(&mut file);
        if let Some(pid) = found.as_ref().and_then(foreign_owner) {
            return Ok(LockAttempt::Busy(Some(pid)));
        }
        let former = found.and_then(|owner| owner.instance);
        let legacy = former.as_ref().and_then(|_| read(&mut file).ok());
        // The state directory's counts: the other file may be that of a config which moved to another directory.
        let instance = self.instance.get_or_insert_with(|| former.unwrap_or_else(new_instance));
        write_owner(&mut file, self.config_path, instance)?;
        Ok(LockAttempt::Taken(LockHandle { file, path: path.to_owned(), legacy }))
    }
}

enum LockAttempt {
    Taken(LockHandle),
    Busy(Option<u32>),
    /// The file was replaced under our hands.
    Retry,
}

fn new_instance() -> String {
    Uuid::new_v4().to_string()
}

/// A gateway that has the state directory or the config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningGateway {
    /// Process id, when known.
    pub pid: Option<u32>,
    /// Port it listens on, if the file says so.
    pub port: Option<u16>,
}

/// Gateway that holds a lock, if any does. Changes nothing.
pub(crate) fn holder(path: &Path) -> Option<RunningGateway> {
    let mut file = OwnDir::open(path.parent()?).ok()?.read_file(path.file_name()?).ok()?;
    let owner = owner(&mut file);
    let port = owner.as_ref().and_then(|owner| owner.port);
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            Some(RunningGateway { pid: owner.map(|owner| owner.process.pid), port })
        }
        Err(TryLockError::Error(_)) | Ok(()) => {
            foreign_owner(&owner?).map(|pid| RunningGateway { pid: Some(pid), port })
        }
    }
}

/// The owner that a lock file names.
fn owner(file: &mut File) -> Option<LockOwner> {
    serde_json::from_slice(&read(file).ok()?).ok()
}

/// A gateway that holds the file without an operating system lock, as OpenClaw 2026.2.9 does.
fn foreign_owner(owner: &LockOwner) -> Option<u32> {
    let ProcessIdentity { pid, start_time, .. } = owner.process;
    if owner.instance.is_some() || pid == std::process::id() {
        // Ours hold the system's lock while they live, and nobody has it. Our number was used before.
        return None;
    }
    let is_alive = match liveness(pid, start_time) {
        Liveness::Gone => false,
        Liveness::Gateway => true,
        Liveness::Unknown => !is_stale(&owner.created_at),
    };
    is_alive.then_some(pid)
}

fn is_stale(created_at: &str) -> bool {
    let created = created_at.parse::<jiff::Timestamp>().map_or(0, |at| at.as_millisecond());
    now_ms().saturating_sub(created) > STALE_MS
}

fn write_owner(file: &mut File, config_path: &Path, instance: &str) -> io::Result<()> {
    let owner = LockOwner {
        process: process::current().clone(),
        created_at: jiff::Timestamp::now().to_string(),
        config_path: config_path.display().to_string(),
        instance: Some(instance.to_owned()),
        port: None,
    };
    rewrite(file, &serde_json::to_vec(&owner)?)
}

fn read(file: &mut File) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    Ok(text)
}

/// Writes a text in one write and never makes the file shorter than it has to be: others read it
/// meanwhile.
fn rewrite(file: &mut File, text: &[u8]) -> io::Result<()> {
    file.rewind()?;
    file.write_all(text)?;
    file.set_len(u64::try_from(text.len()).unwrap_or(u64::MAX))?;
    file.flush()
}

fn is_same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(ours), Ok(theirs)) => identity(ours) == identity(theirs),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    async fn acquire(path: &Path) -> Result<InstanceLock, InstanceLockError> {
        InstanceLock::acquire(&[path.to_owned()], Path::new("/home/user/.openclaw/openclaw.json")).await
    }

    fn owner_of(path: &Path) -> LockOwner {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
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
            assert_eq!(owner_of(&path).process.pid, me, "{text}");
            drop(lock);
        }
    }

    /// A command that has the directory in between does not break the chain, nor does a start that fails.
    #[tokio::test]
    async fn what_a_crash_leaves_goes_over_to_the_next_gateway() {
        let dir = tempfile::tempdir().unwrap();
        let path = state_lock_path(dir.path());
        let mut first = acquire(&path).await.unwrap();
        let instance = first.instance.clone();
        first.begin_runs();
        let left = std::fs::read(&path).unwrap();
        drop(first);
        assert_eq!(std::fs::read(&path).unwrap(), left);
        assert_eq!(holder(&path), None);
        let failed = acquire(&path).await.unwrap();
        assert_eq!(failed.instance, instance);
        drop(failed);
        let second = acquire(&path).await.unwrap();
        assert_eq!(
            (second.instance.as_str(), owner_of(&path).instance.as_deref()),
            (&*instance, Some(&*instance))
        );
        second.ended_cleanly();
        assert!(!path.exists());
        assert_ne!(acquire(&path).await.unwrap().instance, instance);
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let path = file.join("gateway.lock");
        let error = acquire(&path).await.unwrap_err();
        assert!(matches!(&error, InstanceLockError::Io { path: named, .. } if *named == path), "{error}");
    }
}
