//! Lock files as OpenClaw makes them: created exclusively, holding the owner's process id.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::Deserialize;

use crate::disk::{self, Claim, SharedDisk, Stamp};

/// When a lock that is there no longer counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Staleness {
    /// Age of a lock whose owner can't be told.
    pub(crate) after: Duration,
    /// Whether a dead owner makes a lock stale at any age.
    pub(crate) dead_holder_is_enough: bool,
}

/// Age after which a lock that is still empty counts as left behind, whatever the rule: its maker was stopped between making
/// and writing it, which takes a millisecond.
const EMPTY_FOR: Duration = Duration::from_secs(2);

/// A lock file of ours, removed on drop.
#[derive(Debug)]
pub(crate) struct LockFile {
    disk: SharedDisk,
    claim: Claim,
    /// What the file was when we had written it; another one is not ours.
    stamp: Option<Stamp>,
}

/// The outcome of one attempt.
#[derive(Debug)]
pub(crate) enum Acquired {
    /// It is ours.
    Yes(LockFile),
    /// Another process has it, or another part of this one.
    HeldBy(Option<u32>),
}

#[derive(Deserialize)]
struct Content {
    pid: u32,
}

impl LockFile {
    /// Tries once. A lock left behind is removed and taken over; that of a living process never is.
    pub(crate) fn try_acquire(
        disk: &SharedDisk,
        path: &Path,
        content: &str,
        rule: Staleness,
    ) -> io::Result<Acquired> {
        let Some(claim) = Claim::new(path) else { return Ok(Acquired::HeldBy(Some(std::process::id()))) };
        sweep(disk, path, rule, &claim)?;
        let mut file = match disk.create_new(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                disk::create_parent_on(&**disk, path)?;
                disk.create_new(path)?
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Ok(Acquired::HeldBy(holder_of(disk, path)));
            }
            other => other?,
        };
        let mut lock = Self { disk: SharedDisk::clone(disk), claim, stamp: None };
        file.write_all(content.as_bytes())?;
        lock.stamp = Some(file.stamp()?);
        Ok(Acquired::Yes(lock))
    }

    /// Whether a lock that is there was left behind.
    pub(crate) fn is_left_behind(disk: &SharedDisk, path: &Path, rule: Staleness) -> io::Result<bool> {
        let is_ours = Claim::exists(path);
        let there = if is_ours { None } else { disk.stamp(path)? };
        Ok(there.is_some_and(|stamp| is_stale(&stamp, holder_of(disk, path), rule)))
    }

    /// Removes a lock that was left behind.
    pub(crate) fn sweep(disk: &SharedDisk, path: &Path, rule: Staleness) -> io::Result<()> {
        match Claim::new(path) {
            Some(claim) => sweep(disk, path, rule, &claim),
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

/// `_claim` says that no other part of this process uses the lock: one with our process id was left by a former process.
fn sweep(disk: &SharedDisk, path: &Path, rule: Staleness, _claim: &Claim) -> io::Result<()> {
    let Some(stamp) = disk.stamp(path)? else { return Ok(()) };
    let holder = holder_of(disk, path);
    // Looked at twice: what is removed must be what was judged.
    if is_stale(&stamp, holder, rule) && disk.stamp(path)? == Some(stamp) {
        disk.remove(path)?;
        tracing::warn!(lock = %path.display(), pid = holder, "removed a lock that was left behind");
    }
    Ok(())
}

fn holder_of(disk: &SharedDisk, path: &Path) -> Option<u32> {
    serde_json::from_slice::<Content>(&disk.read(path).ok()?).ok().map(|content| content.pid)
}

fn is_stale(stamp: &Stamp, holder: Option<u32>, rule: Staleness) -> bool {
    match holder {
        Some(pid) if pid == std::process::id() => true,
        Some(pid) if is_alive(pid) => false,
        Some(_) if rule.dead_holder_is_enough => true,
        Some(_) | None => {
            // A time to come is as wrong as one long past: a clock was set back meanwhile.
            let off = |modified| match SystemTime::now().duration_since(modified) {
                Ok(age) => age,
                Err(ahead) => ahead.duration(),
            };
            let after = if stamp.len() == 0 { EMPTY_FOR.min(rule.after) } else { rule.after };
            stamp.modified().is_some_and(|modified| off(modified) > after)
        }
    }
}

/// Whether a process exists; unknown counts as alive.
pub(crate) fn is_alive(pid: u32) -> bool {
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

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};

    use super::*;

    const RULE: Staleness = Staleness { after: Duration::from_secs(30), dead_holder_is_enough: true };

    /// What comes of trying for a lock that holds `content` and was made so long ago (negative: ahead).
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
        let outcome = LockFile::try_acquire(&disk::real(), &path, "{\"pid\":1}", RULE).unwrap();
        let is_there = path.exists();
        match outcome {
            Acquired::Yes(lock) => {
                drop(lock);
                assert!(!path.exists(), "a lock of ours is removed");
                "ours"
            }
            Acquired::HeldBy(pid) => {
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
        let alive = format!("{{\"pid\":{},\"startedAt\":1}}", nix::unistd::getppid());
        let former_self = format!("{{\"pid\":{},\"startedAt\":1}}", std::process::id());
        let day = 24 * 60 * 60;
        let rows = [
            (alive.as_str(), 0, "held"),
            // OpenClaw 2026.2.9 steals such a one after 30 seconds.
            (&alive, 31, "held"),
            (&alive, day, "held"),
            (&alive, -day, "held"),
            ("{\"pid\":2147483646,\"startedAt\":1}", 0, "ours"),
            (&former_self, 0, "ours"),
            ("", 0, "held by whom?"),
            ("", 3, "ours"),
            ("{\"pid\":", 3, "held by whom?"),
            ("{\"pid\":", 31, "ours"),
            // A clock that was set back a day.
            ("{\"pid\":", -day, "ours"),
            ("", -day, "ours"),
        ];
        for (content, age, expect) in rows {
            assert_eq!(found(content, age), expect, "{content:?}, {age} s old");
        }
    }

    #[test]
    fn a_lock_that_was_taken_away_is_not_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json.lock");
        let Acquired::Yes(lock) = LockFile::try_acquire(&disk::real(), &path, "{\"pid\":1}", RULE).unwrap()
        else {
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
        let take = || {
            let content = format!("{{\"pid\":{}}}", std::process::id());
            LockFile::try_acquire(&disk::real(), &path, &content, RULE).unwrap()
        };
        let first = take();
        assert!(matches!(&first, Acquired::Yes(_)));
        assert!(matches!(take(), Acquired::HeldBy(Some(pid)) if pid == std::process::id()));
        drop(first);
        assert!(matches!(take(), Acquired::Yes(_)));
    }
}
