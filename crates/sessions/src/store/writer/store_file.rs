//! One store file: what is on disk, what memory has beyond it, and when to write it.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tokio::sync::mpsc;

use super::snapshot::{Finished, Job, Outcome};
use super::{SharedRows, Target, io_error};
use crate::disk::{self, Stamp};
use crate::entry::SessionEntry;
use crate::lockfile::{Acquired, LockFile, Staleness};
use crate::store::StoreError;
use crate::store::document::{self, Document, Rows, Stored};
use crate::store::file::{FileStoreOptions, Published};
use crate::store::journal::Journal;
use crate::store::table::Table;
use crate::time::now_ms;

/// Rows that changed since the file was written, with what they were then.
type Pending = HashMap<Arc<str>, Option<Arc<SessionEntry>>>;

/// Age after which a lock whose owner can't be told is taken over (spec `sessions.md` §3.4).
const LOCK_STALE_AFTER: Duration = Duration::from_secs(30);
/// Pause before the lock is tried again.
const LOCK_PAUSE: Duration = Duration::from_millis(25);
/// How long the lock is waited for before that is worth a warning (spec `sessions.md` §3.4).
const LOCK_REPORT_AFTER: Duration = Duration::from_secs(10);
/// Pause after a failed snapshot.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);
/// A store is at least this many times longer at rest than being written.
const REST_RATIO: u32 = 20;

/// A store file and its journal.
pub(super) struct StoreFile {
    path: PathBuf,
    shared: SharedRows,
    journal: Journal,
    pending: Pending,
    /// Set while a snapshot is being written.
    writing: Option<Writing>,
    /// When the first of the pending changes was made.
    dirty_since: Option<Instant>,
    due: Option<Instant>,
    rest: Duration,
    options: (Duration, Duration, u64),
    /// A broken file that is already kept in a copy.
    kept_copy_of: Option<Option<Stamp>>,
    /// A version of the file that someone else broke.
    unreadable: Option<Stamp>,
    failure: Option<Arc<io::Error>>,
    lock_wait: Option<LockWait>,
}

struct LockWait {
    since: Instant,
    reported: bool,
}

struct Writing {
    thread: Option<JoinHandle<()>>,
    pending: Pending,
    segments: Option<u64>,
}

impl StoreFile {
    /// Reads file and journal.
    pub(super) fn load(target: &Target, options: &FileStoreOptions) -> Result<Self, StoreError> {
        let path = target.path.clone();
        let fail = |source| io_error("read", &path, source);
        let (stamp, mut document) = read_document(&path).map_err(fail)?;
        let journal = Journal::open(&path).map_err(fail)?;
        let kept_copy_of = match &document.damage {
            Some(damage) => {
                let kept = keep_copy(&path).map_err(fail)?;
                let (store, kept) = (path.display(), kept.display());
                let rows = document.rows.len();
                tracing::warn!(%store, %kept, %damage, rows, "the session store is damaged, going on with what could be read");
                Some(stamp)
            }
            None => None,
        };
        let before = if journal.is_empty() { None } else { Some(document.rows.clone()) };
        journal.replay(&mut document.rows).map_err(fail)?;
        let pending = before.map(|before| differences(&before, &document.rows)).unwrap_or_default();
        let table = Table::new(document.rows, target.agent.clone(), options.rules.clone());
        let mut file = Self {
            path,
            shared: Arc::new(RwLock::new(Published { table, stamp })),
            journal,
            pending,
            writing: None,
            dirty_since: None,
            due: None,
            rest: Duration::ZERO,
            options: (options.quiet, options.at_most, options.journal_limit),
            kept_copy_of,
            unreadable: None,
            failure: None,
            lock_wait: None,
        };
        if file.is_behind() {
            file.schedule();
        }
        Ok(file)
    }

    pub(super) fn published(&self) -> SharedRows {
        Arc::clone(&self.shared)
    }

    /// Whether the file on disk lacks something.
    pub(super) fn is_behind(&self) -> bool {
        self.writing.is_some() || !self.pending.is_empty() || !self.journal.is_empty()
    }

    /// Takes in what someone else did to the file. What was changed here since it was written is put on top, field by
    /// field; a row that someone removed stays removed.
    pub(super) fn take_in_edits(&mut self) -> Result<(), StoreError> {
        if self.writing.is_some() {
            return Ok(());
        }
        let known = self.shared.read().stamp;
        let stamp = Stamp::of(&self.path).map_err(|source| io_error("read", &self.path, source))?;
        if stamp == known || (stamp.is_some() && stamp == self.unreadable) {
            return Ok(());
        }
        let (stamp, document) =
            read_document(&self.path).map_err(|source| io_error("read", &self.path, source))?;
        if let Some(damage) = &document.damage {
            // Perhaps only half written yet: memory stays as it is until the file can be read again.
            tracing::warn!(store = %self.path.display(), %damage, "the session store was changed and can't be read");
            self.unreadable = stamp;
            return Ok(());
        }
        let mut guard = self.shared.write();
        let mut rows = document.rows;
        self.pending = merge(std::mem::take(&mut self.pending), guard.table.rows(), &mut rows);
        guard.table.reload(rows);
        guard.stamp = stamp;
        drop(guard);
        tracing::info!(store = %self.path.display(), "took in changes made to the session store by someone else");
        Ok(())
    }

    /// Makes changes durable. `touched` names the rows and what they were.
    pub(super) fn journal(
        &mut self,
        lines: &[u8],
        touched: Vec<(Arc<str>, Option<Arc<SessionEntry>>)>,
    ) -> io::Result<()> {
        self.journal.append(lines)?;
        for (stored, old) in touched {
            self.pending.entry(stored).or_insert(old);
        }
        self.schedule();
        Ok(())
    }

    /// When the file wants to be written.
    pub(super) fn due(&self, flushing: bool, now: Instant) -> Option<Instant> {
        if self.writing.is_some() || !self.is_behind() {
            None
        } else if flushing && self.lock_wait.is_none() && self.failure.is_none() {
            Some(now)
        } else {
            self.due
        }
    }

    pub(super) fn wants_snapshot(&self, flushing: bool, now: Instant) -> bool {
        self.due(flushing, now).is_some_and(|due| due <= now)
    }

    /// Begins to write the file, if its lock can be had.
    pub(super) fn start_snapshot(&mut self, done: mpsc::Sender<Finished>) {
        self.failure = None;
        if let Err(error) = self.try_snapshot(done) {
            self.fail(error);
        }
    }

    /// Lets the next attempt be made at once.
    pub(super) fn forget_failure(&mut self) {
        if self.failure.take().is_some() {
            self.due = Some(Instant::now());
        }
    }

    fn try_snapshot(&mut self, done: mpsc::Sender<Finished>) -> io::Result<()> {
        let lock = disk::beside(&self.path, "lock");
        let content = format!("{{\"pid\":{},\"startedAt\":{}}}", std::process::id(), now_ms());
        let rule = Staleness { after: LOCK_STALE_AFTER, dead_holder_is_enough: true };
        let lock = match LockFile::try_acquire(&lock, &content, rule)? {
            Acquired::Yes(lock) => lock,
            Acquired::HeldBy(pid) => {
                self.wait_for_lock(pid);
                return Ok(());
            }
        };
        self.lock_wait = None;
        if let Err(StoreError::Io { source, .. }) = self.take_in_edits() {
            return Err(io::Error::new(source.kind(), source.to_string()));
        }
        let expected = self.keep_what_cannot_be_read()?;
        let rows = self.shared.read().table.rows().iter().map(|(k, v)| (Arc::clone(k), v.clone())).collect();
        let job = Job { path: self.path.clone(), rows, expected, lock };
        let segments = self.journal.rotate();
        let thread = Some(job.start(done)?);
        let pending = std::mem::take(&mut self.pending);
        self.writing = Some(Writing { thread, pending, segments });
        Ok(())
    }

    fn wait_for_lock(&mut self, holder: Option<u32>) {
        let now = Instant::now();
        let wait = self.lock_wait.get_or_insert(LockWait { since: now, reported: false });
        if !wait.reported && now.duration_since(wait.since) >= LOCK_REPORT_AFTER {
            wait.reported = true;
            let store = self.path.display();
            tracing::warn!(%store, pid = holder, "another process holds the lock of the session store, still waiting");
        }
        self.due = Some(now + LOCK_PAUSE);
    }

    /// The version of the file about to be replaced. One that can't be read is kept in a copy first.
    fn keep_what_cannot_be_read(&mut self) -> io::Result<Option<Stamp>> {
        let stamp = Stamp::of(&self.path)?;
        if stamp != self.shared.read().stamp && self.kept_copy_of != Some(stamp) {
            let kept = keep_copy(&self.path)?;
            let (store, kept) = (self.path.display(), kept.display());
            tracing::warn!(%store, %kept, "the session store was damaged by someone else, writing it anew");
            self.kept_copy_of = Some(stamp);
        }
        Ok(stamp)
    }

    /// Takes note of how a snapshot ended.
    pub(super) fn on_snapshot(&mut self, outcome: Outcome) {
        self.join_snapshot();
        let Some(writing) = self.writing.take() else { return };
        match outcome {
            Outcome::Written { stamp, took } => {
                self.shared.write().stamp = Some(stamp);
                if let Some(last) = writing.segments {
                    self.journal.remove_through(last);
                }
                self.rest = took * REST_RATIO;
                self.dirty_since = None;
                self.due = None;
                self.failure = None;
                if self.is_behind() {
                    self.schedule();
                }
            }
            Outcome::Overtaken => {
                self.take_back(writing.pending);
                self.due = Some(Instant::now());
            }
            Outcome::Failed(error) => {
                self.take_back(writing.pending);
                self.fail(error);
            }
        }
    }

    /// The older of two notes about a row is the one that says what the file has.
    fn take_back(&mut self, older: Pending) {
        self.pending.extend(older);
    }

    fn fail(&mut self, error: io::Error) {
        let store = self.path.display();
        tracing::error!(%store, %error, "cannot write the session store, its journal keeps what is new");
        self.failure = Some(Arc::new(error));
        self.due = Some(Instant::now() + FAILURE_PAUSE);
    }

    pub(super) fn join_snapshot(&mut self) {
        if let Some(thread) = self.writing.as_mut().and_then(|writing| writing.thread.take()) {
            let _ = thread.join();
        }
    }

    /// Why the last snapshot failed, if it did.
    pub(super) fn failure(&self) -> Option<StoreError> {
        let source = self.failure.clone()?;
        Some(StoreError::Io { what: "write", path: self.path.clone(), source })
    }

    /// What a flush answers that could not get the lock in time.
    pub(super) fn lock_timeout(&self) -> StoreError {
        let lock = disk::beside(&self.path, "lock");
        let text = format!("timeout acquiring session store lock: {}", lock.display());
        io_error("write", &self.path, io::Error::new(io::ErrorKind::TimedOut, text))
    }

    fn schedule(&mut self) {
        let now = Instant::now();
        let (quiet, at_most, journal_limit) = self.options;
        let since = *self.dirty_since.get_or_insert(now);
        let due = (now + quiet.max(self.rest)).min(since + at_most.max(self.rest));
        let full = self.journal.current_len() > journal_limit;
        if self.failure.is_none() && self.lock_wait.is_none() {
            self.due = Some(if full { now } else { due });
        }
    }
}

/// The file and its stamp; the stamp is taken before reading, so that a change in between is noticed later.
fn read_document(path: &Path) -> io::Result<(Option<Stamp>, Document)> {
    let stamp = Stamp::of(path)?;
    match std::fs::read(path) {
        Ok(bytes) => Ok((stamp, document::read(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok((None, Document { rows: Rows::new(), damage: None }))
        }
        Err(error) => Err(error),
    }
}

/// Copies a damaged file to `<file>.damaged-<ms of its last change>`; once for each version of it.
fn keep_copy(path: &Path) -> io::Result<PathBuf> {
    let modified = std::fs::metadata(path)?.modified()?;
    let ms = modified.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_millis();
    let copy = disk::beside(path, &format!("damaged-{ms}"));
    if !copy.exists() {
        std::fs::copy(path, &copy)?;
    }
    Ok(copy)
}

/// Rows that differ, with what they were.
fn differences(before: &Rows, after: &Rows) -> Pending {
    let row = |rows: &Rows, key: &Arc<str>| match rows.get(key) {
        Some(Stored::Row(entry)) => Some(Arc::clone(entry)),
        Some(Stored::Opaque(_)) | None => None,
    };
    let mut keys: Vec<&Arc<str>> = before.keys().chain(after.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
        .filter(|key| row(before, key) != row(after, key))
        .map(|key| (Arc::clone(key), row(before, key)))
        .collect()
}

/// Puts what changed here (`pending`, from what it was to what `ours` has) on top of `theirs`. Returns what is pending
/// against `theirs`.
fn merge(pending: Pending, ours: &Rows, theirs: &mut Rows) -> Pending {
    let mut rebased = Pending::new();
    for (key, old) in pending {
        let now = match ours.get(&key) {
            Some(Stored::Row(entry)) => Some(Arc::clone(entry)),
            Some(Stored::Opaque(_)) | None => None,
        };
        let there = match theirs.get(&key) {
            Some(Stored::Row(entry)) => Some(Arc::clone(entry)),
            Some(Stored::Opaque(_)) | None => None,
        };
        let merged = match (&old, &now, &there) {
            (_, None, _) => None,
            (Some(_), Some(_), None) => None,
            (None, Some(now), None) => Some(Arc::clone(now)),
            (old, Some(now), Some(there)) => {
                let nothing = SessionEntry::default();
                let mut entry = (**there).clone();
                entry.apply(&old.as_deref().unwrap_or(&nothing).changes_to(now));
                Some(Arc::new(entry))
            }
        };
        match merged {
            Some(entry) => {
                theirs.insert(Arc::clone(&key), Stored::Row(entry));
            }
            None => {
                theirs.shift_remove(&key);
            }
        }
        rebased.insert(key, there);
    }
    rebased
}
