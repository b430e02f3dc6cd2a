//! Lock files as OpenClaw makes them: created exclusively, naming their holder.

mod holder;

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::disk::{self, Claim, FileVersion, SharedDisk};
use crate::process;
use crate::time::{iso, now_ms, parse_iso};
use holder::{FoundLock, Holder};

/// Kind of file that a lock file locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockKind {
    /// `sessions.json` (spec `sessions.md` §3.4).
    Store,
    /// A transcript (spec `sessions.md` §4.7).
    Transcript,
}

impl LockKind {
    /// Kind of lock, by the name of the lock file.
    pub(crate) fn of(lock: &Path) -> Self {
        let is_transcript = lock.to_str().is_some_and(|path| path.ends_with(".jsonl.lock"));
        if is_transcript { Self::Transcript } else { Self::Store }
    }

    /// Age up to which a lock counts of whose holder nothing is known.
    pub(crate) fn counts_unheld_for(self) -> Duration {
        match self {
            Self::Store => Duration::from_secs(30),
            Self::Transcript => Duration::from_secs(30 * 60),
        }
    }

    /// Content of a lock file that we write.
    fn content(self) -> serde_json::Result<Vec<u8>> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct OfOurs {
            #[serde(flatten)]
            holder: Holder,
            #[serde(skip_serializing_if = "Option::is_none")]
            started_at: Option<i64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            created_at: Option<String>,
        }
        let (started_at, created_at) = match self {
            Self::Store => (Some(now_ms()), None),
            Self::Transcript => (None, Some(iso(now_ms()))),
        };
        serde_json::to_vec(&OfOurs { holder: Holder::current(), started_at, created_at })
    }
}

/// A lock file of ours, removed on drop.
#[derive(Debug)]
pub(crate) struct LockFile {
    disk: SharedDisk,
    claim: Claim,
    /// Stamp of the file as we wrote it; a different stamp means that the file is not ours.
    stamp: Option<FileVersion>,
}

impl LockFile {
    /// Tries once. A lock left behind is removed and taken over. If another process, or another
    /// part of this one, holds it, the result is the id of that process, where it is known.
    pub(crate) fn try_acquire(
        disk: &SharedDisk,
        path: &Path,
        kind: LockKind,
    ) -> io::Result<Result<Self, Option<u32>>> {
        let Some(claim) = Claim::new(path) else { return Ok(Err(Some(std::process::id()))) };
        sweep(disk, path, kind, &claim)?;
        let mut file = match disk.create_new(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                disk::create_parent(&**disk, path)?;
                disk.create_new(path)?
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Ok(Err(holder_of(disk, path).map(|holder| holder.process.pid)));
            }
            other => other?,
        };
        let mut lock = Self { disk: SharedDisk::clone(disk), claim, stamp: None };
        file.write_all(&kind.content()?)?;
        lock.stamp = Some(file.stamp()?);
        Ok(Ok(lock))
    }

    /// True if the lock file is still there and still ours.
    pub(crate) fn is_in_place(&self) -> bool {
        self.stamp.is_some() && self.disk.stamp(self.claim.path()).is_ok_and(|there| there == self.stamp)
    }

    /// True if there is a valid lock, of whatever process.
    pub(crate) fn is_held(disk: &SharedDisk, path: &Path) -> io::Result<bool> {
        Ok(Claim::exists(path) || is_stale_now(disk, path)? == Some(false))
    }

    /// True if the lock at this path is stale: left behind by its process.
    pub(crate) fn is_left_behind(disk: &SharedDisk, path: &Path) -> io::Result<bool> {
        Ok(!Claim::exists(path) && is_stale_now(disk, path)? == Some(true))
    }

    /// Removes a lock that a process of ours has left behind; true if there was one. The caller
    /// tells of it.
    pub(crate) fn sweep_ours(disk: &SharedDisk, path: &Path) -> io::Result<bool> {
        let is_ours = holder_of(disk, path).is_some_and(|holder| holder.is_one_of_ours());
        match Claim::new(path).filter(|_| is_ours) {
            Some(claim) => Ok(remove_stale(disk, path, LockKind::of(path), &claim)?.is_some()),
            None => Ok(false),
        }
    }

    /// Removes a lock that was left behind.
    pub(crate) fn sweep(disk: &SharedDisk, path: &Path) -> io::Result<()> {
        match Claim::new(path) {
            Some(claim) => sweep(disk, path, LockKind::of(path), &claim),
            None => Ok(()),
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let path = self.claim.path();
        let theirs = match (self.disk.stamp(path), self.stamp) {
            (Ok(there), Some(ours)) => there.is_some_and(|there| there != ours),
            _ => false,
        };
        if theirs {
            tracing::warn!(lock = %path.display(), "our lock was taken away by another process");
        } else if let Err(error) = self.disk.remove(path) {
            tracing::warn!(lock = %path.display(), %error, "cannot remove our lock");
        }
    }
}

/// Removes a stale lock, and tells of it.
fn sweep(disk: &SharedDisk, path: &Path, kind: LockKind, claim: &Claim) -> io::Result<()> {
    match remove_stale(disk, path, kind, claim)? {
        Some(Removed { pid: Some(pid) }) => {
            tracing::warn!(lock = %path.display(), pid, "removed a lock that was left behind");
        }
        Some(Removed { pid: None }) => {
            tracing::warn!(lock = %path.display(), "removed a lock that names no process: it is torn, or was left behind");
        }
        None => {}
    }
    Ok(())
}

/// Lock that was removed.
struct Removed {
    /// Process that it named.
    pid: Option<u32>,
}

/// Removes a stale lock, if it is one. `_claim` says
/// that no other part of this process uses the lock: one that names us was lost sight of.
fn remove_stale(
    disk: &SharedDisk,
    path: &Path,
    kind: LockKind,
    _claim: &Claim,
) -> io::Result<Option<Removed>> {
    let Some(stamp) = disk.stamp(path)? else { return Ok(None) };
    // Looked at twice: what is removed must be what was judged.
    if is_stale(disk, path, &stamp, kind) && disk.stamp(path)? == Some(stamp) {
        let pid = holder_of(disk, path).map(|holder| holder.process.pid);
        disk.remove(path)?;
        return Ok(Some(Removed { pid }));
    }
    Ok(None)
}

/// `Some(true)` if a lock that no part of this process uses is stale; `None` if there is no lock.
fn is_stale_now(disk: &SharedDisk, path: &Path) -> io::Result<Option<bool>> {
    let stamp = disk.stamp(path)?;
    Ok(stamp.map(|stamp| is_stale(disk, path, &stamp, LockKind::of(path))))
}

/// Content of a lock file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LockContent {
    #[serde(flatten)]
    holder: Holder,
    /// Unix milliseconds in the lock of a store.
    #[serde(default)]
    started_at: Option<serde_json::Value>,
    /// ISO 8601 in the lock of a transcript.
    #[serde(default)]
    created_at: Option<serde_json::Value>,
}

impl LockContent {
    /// Time of creation according to the holder, Unix milliseconds.
    fn made_ms(&self) -> Option<i64> {
        let created = || self.created_at.as_ref().and_then(|at| parse_iso(at.as_str()?));
        self.started_at.as_ref().and_then(serde_json::Value::as_i64).or_else(created)
    }
}

fn holder_of(disk: &SharedDisk, path: &Path) -> Option<Holder> {
    serde_json::from_slice(&disk.read(path).ok()?).ok()
}

fn is_stale(disk: &SharedDisk, path: &Path, stamp: &FileVersion, kind: LockKind) -> bool {
    let bytes = disk.read(path).unwrap_or_default();
    let content: Option<LockContent> = serde_json::from_slice(&bytes).ok();
    let is_torn = content.is_none() && serde_json::from_slice::<IgnoredAny>(&bytes).is_err();
    let written = stamp.modified().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let written_ms = written.and_then(|at| i64::try_from(at.as_millis()).ok());
    let told_ms = content.as_ref().and_then(LockContent::made_ms);
    // A copied directory has new file times, so the earlier of both counts.
    let made_ms = written_ms.into_iter().chain(told_ms).min();
    let holder = content.as_ref().map(|content| &content.holder);
    let found = FoundLock { kind, holder, is_torn, made_ms };
    let counts_for = found.counts_for(&Holder::current(), process::look);
    if counts_for == Duration::ZERO {
        return true;
    }
    // A time to come is as wrong as one long past: a clock was set back meanwhile.
    let age = |made: i64| Duration::from_millis(now_ms().abs_diff(made));
    made_ms.is_some_and(|made| age(made) > counts_for)
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};
    use std::time::SystemTime;

    use super::*;
    use crate::process::{ProcessIdentity, Sighting};

    /// Result of trying for a lock that holds `content` and was made so long ago (negative: in the
    /// future).
    fn found(content: &str, age_s: i64) -> &'static str {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json.lock");
        std::fs::write(&path, content).unwrap();
        let by = Duration::from_secs(age_s.unsigned_abs());
        let at = if age_s < 0 { SystemTime::now() + by } else { SystemTime::now() - by };
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_times(FileTimes::new().set_modified(at))
            .unwrap();
        let outcome = LockFile::try_acquire(&disk::real(), &path, LockKind::Store).unwrap();
        let is_there = path.exists();
        match outcome {
            Ok(lock) => {
                drop(lock);
                assert!(!path.exists(), "a lock of ours is removed");
                "ours"
            }
            Err(pid) => {
                assert!(
                    is_there && std::fs::read_to_string(&path).unwrap() == content,
                    "theirs is left alone"
                );
                if pid.is_some() { "held" } else { "held by whom?" }
            }
        }
    }

    #[test]
    fn a_lock_is_taken_over_only_from_who_is_gone() {
        let (minute, day) = (60, 24 * 60 * 60);
        let me = std::process::id();
        // The first process has been there for longer than this test's build took.
        let first = 1;
        let foreign = |pid: u32| format!("{{\"pid\":{pid},\"startedAt\":\"?\"}}");
        let of_ours =
            |process: ProcessIdentity| serde_json::to_string(&Holder { process, instance: None }).unwrap();
        let current = process::current().clone();
        let Sighting::Alive(started) = process::look(first) else { panic!("the first process lives") };
        let living = ProcessIdentity { pid: first, start_time: started.ticks, ..current.clone() };
        let reused = ProcessIdentity { start_time: Some(1), ..living.clone() };
        let elsewhere = ProcessIdentity { pid_scope: Some("boot pid:[1]".to_owned()), ..current };
        let mut rows = vec![
            (foreign(first), 0, "held"),
            // OpenClaw 2026.2.9 steals such a one after 30 seconds.
            (foreign(first), 31, "held"),
            (foreign(first), 31 * minute, "ours"),
            (foreign(2_147_483_646), 0, "ours"),
            // In a directory that was copied: the file is new, what it says is old.
            (format!("{{\"pid\":{first},\"startedAt\":1}}"), 0, "ours"),
            (format!("{{\"pid\":{first},\"createdAt\":\"2026-01-01T00:00:00.000Z\"}}"), 0, "ours"),
            // Made before this process was, or by another container's.
            (foreign(me), day, "ours"),
            (foreign(me), 0, "held"),
            (String::new(), 0, "held by whom?"),
            (String::new(), 3, "ours"),
            ("{\"pid\":".to_owned(), 0, "held by whom?"),
            ("{\"pid\":".to_owned(), 3, "ours"),
            // File left by a machine that stopped before the content was on disk.
            ("\0".repeat(60), 3, "ours"),
            // A clock that was set back a day.
            ("{\"pid\":".to_owned(), -day, "ours"),
            (String::new(), -day, "ours"),
        ];
        if current.pid_scope.is_some() {
            rows.extend([
                (of_ours(living.clone()), 0, "held"),
                (of_ours(living), day, "held"),
                (of_ours(reused), 0, "ours"),
                (of_ours(current), 0, "ours"),
                (of_ours(elsewhere.clone()), 0, "held"),
                (of_ours(elsewhere), 31, "ours"),
            ]);
        }
        for (content, age, expect) in rows {
            assert_eq!(found(&content, age), expect, "{content:?}, {age} s old");
        }
    }

    #[test]
    fn a_lock_that_was_taken_away_is_not_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json.lock");
        let Ok(lock) = LockFile::try_acquire(&disk::real(), &path, LockKind::Store).unwrap() else {
            panic!("nobody has it");
        };
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "{\"pid\":12345678}").unwrap();
        drop(lock);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"pid\":12345678}");
    }

    #[test]
    fn two_in_one_process_have_it_one_after_the_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json.lock");
        let take = || LockFile::try_acquire(&disk::real(), &path, LockKind::Store).unwrap();
        let first = take();
        assert!(first.is_ok());
        assert!(matches!(take(), Err(Some(pid)) if pid == std::process::id()));
        drop(first);
        assert!(take().is_ok());
    }
}
