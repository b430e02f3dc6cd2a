//! Lock files as OpenClaw makes them: created exclusively, holding the owner's process id.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Deserialize;

use crate::disk;

/// When a lock that is there no longer counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Staleness {
    /// Age of a lock whose owner can't be told.
    pub(crate) after: Duration,
    /// Whether a dead owner makes a lock stale at any age.
    pub(crate) dead_holder_is_enough: bool,
}

/// A lock file of ours, removed on drop.
#[derive(Debug)]
pub(crate) struct LockFile {
    path: PathBuf,
}

/// The outcome of one attempt.
#[derive(Debug)]
pub(crate) enum Acquired {
    /// It is ours.
    Yes(LockFile),
    /// Another process has it.
    HeldBy(Option<u32>),
}

#[derive(Deserialize)]
struct Content {
    pid: u32,
}

impl LockFile {
    /// Tries once. A lock left behind is removed and taken over; that of a living process never is.
    pub(crate) fn try_acquire(path: &Path, content: &str, rule: Staleness) -> io::Result<Acquired> {
        // Twice: once for what is there, once after removing what was left behind.
        for _ in 0..2 {
            match disk::private(OpenOptions::new().write(true).create_new(true)).open(path) {
                Ok(mut file) => {
                    let lock = Self { path: path.to_path_buf() };
                    file.write_all(content.as_bytes())?;
                    return Ok(Acquired::Yes(lock));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => disk::create_parent(path)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let holder = holder_of(path);
                    if !is_stale(path, holder, rule) {
                        return Ok(Acquired::HeldBy(holder));
                    }
                    tracing::warn!(lock = %path.display(), pid = holder, "removed a lock that was left behind");
                    remove(path)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Acquired::HeldBy(holder_of(path)))
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            tracing::warn!(lock = %self.path.display(), %error, "cannot remove our lock");
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn holder_of(path: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(path).ok()?;
    serde_json::from_str::<Content>(&text).ok().map(|content| content.pid)
}

/// A lock of this very process that reaches here was left by a former process with our id: the locks we hold are known to
/// the callers, who do not ask again.
fn is_stale(path: &Path, holder: Option<u32>, rule: Staleness) -> bool {
    let age = || {
        let modified = std::fs::metadata(path).and_then(|meta| meta.modified()).ok()?;
        SystemTime::now().duration_since(modified).ok()
    };
    match holder {
        Some(pid) if pid == std::process::id() => true,
        Some(pid) if is_alive(pid) => false,
        Some(_) if rule.dead_holder_is_enough => true,
        Some(_) | None => age().is_some_and(|age| age > rule.after),
    }
}

/// Whether a process exists; unknown counts as alive.
fn is_alive(pid: u32) -> bool {
    #[cfg(unix)]
    {
        let Ok(pid) = i32::try_from(pid) else { return false };
        if pid <= 0 {
            return false;
        }
        !matches!(
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None),
            Err(nix::errno::Errno::ESRCH)
        )
    }
    #[cfg(not(unix))]
    {
        let _ = pid;
        true
    }
}
