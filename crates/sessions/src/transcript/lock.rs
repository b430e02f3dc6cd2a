//! OpenClaw's write lock on a transcript (spec `sessions.md` §4.7): `<transcript>.lock`, held for a whole run. It keeps
//! other processes out; within this one those who want it take turns, so that a transcript has one run at a time
//! (spec `agent-runtime.md` §2.2) whatever session keys lead to it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use crate::disk;
use crate::lockfile::{Acquired, LockFile, LockKind};

/// How long to wait for another process.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Why the lock could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("session file locked (timeout {}ms): pid={} {}", .waited.as_millis(), holder.map_or("unknown".to_owned(), |pid| pid.to_string()), path.display())]
    Held {
        /// How long we waited.
        waited: Duration,
        /// Who holds it.
        holder: Option<u32>,
        /// The lock file.
        path: PathBuf,
    },
    /// The disk refused.
    #[error("cannot lock {path}: {source}")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// The lock, given back on drop.
#[derive(Debug)]
pub struct TranscriptLock {
    // In this order: the file is gone before the next one in this process has its turn.
    _file: LockFile,
    _turn: OwnedMutexGuard<()>,
}

/// A turn belongs to nothing but the file: first come, first served.
type Turn = tokio::sync::Mutex<()>;

static TURNS: Mutex<Option<HashMap<PathBuf, Weak<Turn>>>> = Mutex::new(None);

fn turn_of(path: &Path) -> Arc<Turn> {
    let mut guard = TURNS.lock();
    let turns = guard.get_or_insert_with(HashMap::new);
    if let Some(turn) = turns.get(path).and_then(Weak::upgrade) {
        return turn;
    }
    turns.retain(|_, turn| turn.strong_count() > 0);
    let turn = Arc::new(Turn::default());
    turns.insert(path.to_path_buf(), Arc::downgrade(&turn));
    turn
}

impl TranscriptLock {
    /// Takes the lock of a transcript. Waits its turn for as long as it takes where this process holds it, and then up to
    /// [`LOCK_TIMEOUT`] for another process. Dropping the future gives up the place in the row.
    pub async fn acquire(transcript: &Path) -> Result<Self, LockError> {
        Self::acquire_within(transcript, LOCK_TIMEOUT).await
    }

    /// [`Self::acquire`] with another patience.
    pub async fn acquire_within(transcript: &Path, patience: Duration) -> Result<Self, LockError> {
        let path = disk::beside(transcript, "lock");
        let turn = turn_of(&path).lock_owned().await;
        Self::acquire_file(path, turn, patience).await
    }

    /// [`Self::acquire_within`] that waits no longer than `patience` for this process either.
    pub async fn acquire_soon(transcript: &Path, patience: Duration) -> Result<Self, LockError> {
        let path = disk::beside(transcript, "lock");
        let Ok(turn) = tokio::time::timeout(patience, turn_of(&path).lock_owned()).await else {
            return Err(LockError::Held { waited: patience, holder: Some(std::process::id()), path });
        };
        Self::acquire_file(path, turn, patience).await
    }

    /// Takes the lock if no other process has it. Waits its turn where this process does.
    pub async fn acquire_now(transcript: &Path) -> Result<Self, LockError> {
        Self::acquire_within(transcript, Duration::ZERO).await
    }

    /// Waits until no process holds a lock file, however long that takes. Another one may have it before it is taken.
    pub async fn until_free(lock: &Path) {
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause + FIRST_PAUSE).min(LONGEST_PAUSE);
            let at = lock.to_path_buf();
            let is_held = tokio::task::spawn_blocking(move || LockFile::is_held(&disk::real(), &at)).await;
            // Why it can't be told is what the next attempt to take it says.
            if !matches!(is_held, Ok(Ok(true))) {
                return;
            }
        }
    }

    async fn acquire_file(
        path: PathBuf,
        turn: OwnedMutexGuard<()>,
        patience: Duration,
    ) -> Result<Self, LockError> {
        let begun = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let at = path.clone();
            let attempt = tokio::task::spawn_blocking(move || Self::try_acquire(&at)).await;
            let attempt = attempt.unwrap_or_else(|_| Err(std::io::Error::other("interrupted")));
            let holder = match attempt {
                Ok(Ok(file)) => return Ok(Self { _file: file, _turn: turn }),
                Ok(Err(holder)) => holder,
                Err(source) => return Err(LockError::Io { path, source }),
            };
            if begun.elapsed() + pause > patience {
                return Err(LockError::Held { waited: patience, holder, path });
            }
            tokio::time::sleep(pause).await;
            pause = (pause + FIRST_PAUSE).min(LONGEST_PAUSE);
        }
    }

    /// One attempt: the lock file, or who holds it.
    fn try_acquire(path: &Path) -> std::io::Result<Result<LockFile, Option<u32>>> {
        match LockFile::try_acquire(&disk::real(), path, LockKind::Transcript)? {
            Acquired::Yes(file) => Ok(Ok(file)),
            Acquired::HeldBy(pid) => Ok(Err(pid)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock_path(transcript: &Path) -> PathBuf {
        disk::beside(transcript, "lock")
    }

    #[tokio::test]
    async fn the_lock_is_had_by_one_after_the_other_and_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let transcript = dir.path().join("a.jsonl");
        let first = TranscriptLock::acquire(&transcript).await.unwrap();
        let content: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(lock_path(&transcript)).unwrap()).unwrap();
        assert_eq!(content["pid"], std::process::id());
        assert!(crate::time::parse_iso(content["createdAt"].as_str().unwrap()).is_some());
        let order = Mutex::new(Vec::new());
        let next = |name: &'static str| {
            let (transcript, order) = (&transcript, &order);
            async move {
                let lock = TranscriptLock::acquire(transcript).await.unwrap();
                order.lock().push(name);
                drop(lock);
            }
        };
        let (mut gives_up, mut second, mut third) =
            (Box::pin(next("gave up")), Box::pin(next("second")), Box::pin(next("third")));
        for waiting in [&mut gives_up, &mut second, &mut third] {
            let now = tokio::time::timeout(Duration::ZERO, waiting).await;
            assert!(now.is_err(), "the lock is held");
        }
        drop(gives_up);
        drop(first);
        tokio::join!(third, second);
        assert_eq!(*order.lock(), ["second", "third"]);
        assert!(!lock_path(&transcript).exists());
        let _other = TranscriptLock::acquire(&dir.path().join("b.jsonl")).await.unwrap();
    }

    #[tokio::test]
    async fn a_living_holder_is_waited_for_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let transcript = dir.path().join("a.jsonl");
        // The parent process lives as long as this test.
        let parent = nix::unistd::getppid();
        std::fs::write(lock_path(&transcript), format!("{{\"pid\":{parent},\"createdAt\":\"x\"}}")).unwrap();
        let error = TranscriptLock::acquire_within(&transcript, Duration::ZERO).await.unwrap_err();
        let expect =
            format!("session file locked (timeout 0ms): pid={parent} {}", lock_path(&transcript).display());
        assert_eq!(error.to_string(), expect);
        assert!(lock_path(&transcript).exists());
    }

    #[tokio::test]
    async fn locks_of_the_dead_and_of_a_former_self_are_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let transcript = dir.path().join("a.jsonl");
        let before = std::time::SystemTime::now() - Duration::from_secs(24 * 60 * 60);
        for content in ["{\"pid\":2147483646}", &format!("{{\"pid\":{}}}", std::process::id())] {
            std::fs::write(lock_path(&transcript), content).unwrap();
            let file = std::fs::File::options().write(true).open(lock_path(&transcript)).unwrap();
            file.set_modified(before).unwrap();
            let lock = TranscriptLock::acquire_now(&transcript).await;
            assert!(lock.is_ok(), "{content} {lock:?}");
        }
    }

    #[tokio::test]
    async fn a_lock_of_another_process_is_free_once_it_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let transcript = dir.path().join("a.jsonl");
        let lock = lock_path(&transcript);
        std::fs::write(&lock, format!("{{\"pid\":{}}}", nix::unistd::getppid())).unwrap();
        let waiting = tokio::spawn(async move { TranscriptLock::until_free(&lock).await });
        let held = TranscriptLock::acquire_now(&transcript).await;
        assert!(matches!(held, Err(LockError::Held { .. })), "{held:?}");
        assert!(!waiting.is_finished());
        std::fs::remove_file(lock_path(&transcript)).unwrap();
        waiting.await.unwrap();
        assert!(TranscriptLock::acquire_now(&transcript).await.is_ok());
    }

    /// Values of `sessions.md` §4.7.
    #[test]
    fn the_lock_is_waited_for_as_openclaw_waits() {
        assert_eq!(
            (LOCK_TIMEOUT.as_millis(), LockKind::Transcript.untold_for().as_secs()),
            (10_000, 30 * 60)
        );
        assert_eq!((FIRST_PAUSE.as_millis(), LONGEST_PAUSE.as_millis()), (50, 1_000));
        let held = LockError::Held { waited: LOCK_TIMEOUT, holder: Some(7), path: "/d/a.jsonl.lock".into() };
        assert_eq!(held.to_string(), "session file locked (timeout 10000ms): pid=7 /d/a.jsonl.lock");
    }

    #[tokio::test]
    async fn a_lock_that_names_nobody_counts_for_half_an_hour() {
        let dir = tempfile::tempdir().unwrap();
        let transcript = dir.path().join("a.jsonl");
        for (minutes, is_held) in [(29, true), (31, false)] {
            std::fs::write(lock_path(&transcript), "{\"createdAt\":\"x\"}").unwrap();
            let made = std::time::SystemTime::now() - Duration::from_secs(minutes * 60);
            let file = std::fs::File::options().write(true).open(lock_path(&transcript)).unwrap();
            file.set_modified(made).unwrap();
            let lock = TranscriptLock::acquire_within(&transcript, Duration::ZERO).await;
            let held = matches!(lock, Err(LockError::Held { holder: None, .. }));
            assert_eq!((held, lock.is_ok()), (is_held, !is_held), "{minutes} {lock:?}");
        }
    }
}
