//! Single store file: its state on disk, the changes that only memory has, and the time of the next
//! write.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use super::pace::{LastWrite, WriteDelays};
use super::snapshot::{Job, SnapshotOutcome};
use super::{SharedRows, StoreTarget, Touched, io_error};
use crate::disk::{self, FileVersion, SharedDisk, Temporary};
use crate::entry::SessionEntry;
use crate::lockfile::{LockFile, LockKind};
use crate::store::StoreError;
use crate::store::document;
use crate::store::file::{FileStoreOptions, Published};
use crate::store::head::HeadText;
use crate::store::journal::{Journal, LineDurability, Op, line};
use crate::store::on_disk::{LOCK_PATIENCE, LOCK_PAUSE, StoreOnDisk, lock_path, lock_timeout};
use crate::store::overruled::{ChangeFacts, Overruled};
use crate::store::rows::Rows;
use crate::store::stored::{RowText, StoredValue};
use crate::store::table::RowTable;
use crate::time::now_ms;

/// Rows that changed since the file was written.
type Pending = HashMap<Arc<str>, Unwritten>;

/// A row that the file does not have as it is.
struct Unwritten {
    /// Row in the file.
    old: Option<Arc<RowText>>,
    /// Time of the last change, Unix milliseconds.
    at: i64,
}

/// Pause after a failed snapshot.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// A store file and its journal.
pub(super) struct StoreFile {
    path: PathBuf,
    disk: SharedDisk,
    shared: SharedRows,
    journal: Journal,
    pending: Pending,
    /// Rows that segments make although the file holds them, since a name could not be synced or a segment not be removed.
    /// A row that someone removes from the file has to be removed in the journal too, or a crash would
    /// bring it back.
    in_file_and_journal: HashSet<Arc<str>>,
    /// Rows that someone removed while segments may hold changes of them. Should such a row be made again and the file hold
    /// it, a replay of those would put old values into the new row.
    removed_by_others: HashSet<Arc<str>>,
    /// Set while a snapshot is being written.
    writing: Option<Writing>,
    /// Time of the first pending change.
    dirty_since: Option<Instant>,
    due: Option<Instant>,
    pace: WriteDelays,
    options: FileStoreOptions,
    /// A broken file that is already kept in a copy.
    kept_copy_of: Option<Option<FileVersion>>,
    /// A version of the file that someone else broke.
    unreadable: Option<FileVersion>,
    failure: Option<Arc<io::Error>>,
    lock_wait: Option<LockWait>,
}

struct LockWait {
    since: Instant,
    reported: bool,
}

struct Writing {
    pending: Pending,
    /// Time of the first pending change.
    dirty_since: Option<Instant>,
    /// The last segment of the journal that the snapshot holds.
    segments: Option<u64>,
}

impl StoreFile {
    /// Notes that the directories down to this one are durable.
    pub(super) fn set_rooted(&mut self, dir: &Path) {
        self.journal.set_rooted(dir.to_path_buf());
    }

    /// Reads file and journal.
    pub(super) fn load(target: &StoreTarget, options: &FileStoreOptions) -> Result<Self, StoreError> {
        let (path, disk) = (target.path.clone(), SharedDisk::clone(&options.disk));
        let fail = |source| io_error("read", &path, source);
        sweep(&disk, &path);
        let StoreOnDisk { stamp, document, journal, in_file, replayed } =
            StoreOnDisk::read_with(&disk, &path, Journal::open).map_err(fail)?;
        replayed.overruled.log(&path);
        let is_gone = |key: &String| document.rows.get(key).is_none();
        let removed_by_others = replayed.named.into_iter().filter(is_gone).map(Arc::from).collect();
        let kept_copy_of = match &document.damage {
            Some(damage) => {
                let kept = keep_copy(&disk, &path).map_err(fail)?;
                let (store, kept) = (path.display(), kept.display());
                let rows = in_file.as_ref().unwrap_or(&document.rows).len();
                tracing::warn!(%store, %kept, ?damage, rows, "the session store is damaged, going on with what could be read");
                Some(stamp)
            }
            None => None,
        };
        let pending = in_file.map(|before| differences(&before, &document.rows)).unwrap_or_default();
        let table = RowTable::new(document.rows, target.agent.clone(), options.rules.clone());
        let len = stamp.map_or(0, |stamp| stamp.len());
        let written = LastWrite { rows: table.rows().len(), len, took: Duration::ZERO };
        let pace = WriteDelays::of(options, written);
        let mut file = Self {
            path,
            disk,
            shared: Arc::new(RwLock::new(Published::new(table, stamp))),
            journal,
            pending,
            in_file_and_journal: HashSet::new(),
            removed_by_others,
            writing: None,
            dirty_since: None,
            due: None,
            pace,
            options: options.clone(),
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

    /// True if the file on disk lacks something.
    pub(super) fn is_behind(&self) -> bool {
        self.writing.is_some() || !self.pending.is_empty() || !self.journal.is_empty()
    }

    /// Takes in changes that someone else made to the file. Our changes since then are put on top,
    /// field by field, unless the row was written after it; a row that someone removed stays
    /// removed, also after a crash that has the journal replayed.
    pub(super) fn take_in_edits(&mut self) -> Result<(), StoreError> {
        if self.writing.is_some() {
            return Ok(());
        }
        let known = self.shared.read().stamp;
        let stamp = self.disk.stamp(&self.path).map_err(|source| io_error("read", &self.path, source))?;
        if stamp == known || (stamp.is_some() && stamp == self.unreadable) {
            return Ok(());
        }
        let (stamp, document) = document::load_file(&self.disk, &self.path)
            .map_err(|source| io_error("read", &self.path, source))?;
        if let Some(damage) = &document.damage {
            // Perhaps only half written yet: memory stays as it is until the file can be read again.
            tracing::warn!(store = %self.path.display(), ?damage, "the session store was changed and can't be read");
            self.unreadable = stamp;
            return Ok(());
        }
        let fail = |source| io_error("read", &self.path, source);
        let ours = self.shared.read().table.rows().clone();
        let mut rows = document.rows;
        let mut overruled = Overruled::default();
        let pending = merge(&self.pending, &ours, &mut rows, &mut overruled).map_err(fail)?;
        let now = now_ms();
        let gone: Vec<Op> = self
            .in_file_and_journal
            .iter()
            .filter(|key| rows.get(key).is_none())
            .filter_map(|key| Some(Op::delete(key, ours.row(key)?, now)))
            .collect();
        if !gone.is_empty() {
            line(&gone).and_then(|line| self.journal.append(&line)).map_err(fail)?;
        }
        self.pending = pending;
        if self.journal.has_segments() {
            let vanished = ours.iter().map(|(key, _)| key).filter(|key| rows.get(key).is_none());
            self.removed_by_others.extend(vanished.cloned());
        }
        let mut guard = self.shared.write();
        guard.table.reload(rows);
        guard.stamp = stamp;
        drop(guard);
        tracing::info!(store = %self.path.display(), "took in changes made to the session store by someone else");
        overruled.log(&self.path);
        Ok(())
    }

    /// Changes a row (`None` if there is none yet).
    pub(super) fn change(
        &self,
        stored: &str,
        old: Option<&SessionEntry>,
        new: &SessionEntry,
        now: i64,
    ) -> io::Result<Op> {
        let op = Op::update(stored, old, new, now);
        if old.is_none() && self.removed_by_others.contains(stored) {
            return Ok(op.forgetting(self.journal.fields_of(stored)?));
        }
        Ok(op)
    }

    /// Makes sure that a refused change does not come up again, now that something else is
    /// acknowledged. A request to sync that changes nothing may rest on lines that are not synced yet.
    pub(super) fn record_failure(&mut self, durability: LineDurability) -> io::Result<()> {
        let is_resting = durability == LineDurability::Synced && self.journal.is_unsynced();
        if is_resting || self.journal.has_unrecorded_failure() {
            let nothing: &[Op] = &[];
            self.journal.append(&line(nothing)?)?;
            self.schedule();
        }
        Ok(())
    }

    /// Writes changes down. `touched` names the rows and what they were.
    pub(super) fn journal(
        &mut self,
        lines: &[u8],
        durability: LineDurability,
        touched: Vec<Touched>,
    ) -> io::Result<()> {
        self.journal.write(lines, durability)?;
        for Touched { stored, old, at } in touched {
            let unwritten = self.pending.entry(stored).or_insert(Unwritten { old, at });
            unwritten.at = unwritten.at.max(at);
        }
        self.schedule();
        Ok(())
    }

    /// Time at which the file is due to be written.
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

    /// Begins to write the file, if its lock can be had. The thread that runs the job reports to
    /// [`Self::on_snapshot`].
    pub(super) fn begin_snapshot(&mut self) -> Option<Job> {
        self.failure = None;
        match self.try_snapshot() {
            Ok(job) => job,
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    /// Lets the next attempt be made at once.
    pub(super) fn forget_failure(&mut self) {
        if self.failure.take().is_some() {
            self.due = Some(Instant::now());
        }
    }

    fn try_snapshot(&mut self) -> io::Result<Option<Job>> {
        let lock = match LockFile::try_acquire(&self.disk, &lock_path(&self.path), LockKind::Store)? {
            Ok(lock) => lock,
            Err(pid) => {
                self.wait_for_lock(pid);
                return Ok(None);
            }
        };
        self.lock_wait = None;
        if let Err(StoreError::Io { source, .. }) = self.take_in_edits() {
            return Err(io::Error::new(source.kind(), source.to_string()));
        }
        let expected = self.keep_what_cannot_be_read()?;
        let rows = self.shared.read().table.rows().clone();
        let segments = self.journal.rotate();
        let pending = std::mem::take(&mut self.pending);
        let dirty_since = self.dirty_since.take();
        self.writing = Some(Writing { pending, dirty_since, segments: segments.last().copied() });
        let (disk, path) = (SharedDisk::clone(&self.disk), self.path.clone());
        Ok(Some(Job { disk, path, rows, expected, segments, lock }))
    }

    fn wait_for_lock(&mut self, holder: Option<u32>) {
        let now = Instant::now();
        let wait = self.lock_wait.get_or_insert(LockWait { since: now, reported: false });
        if !wait.reported && now.duration_since(wait.since) >= LOCK_PATIENCE {
            wait.reported = true;
            let store = self.path.display();
            tracing::warn!(%store, pid = holder, "another process holds the lock of the session store, still waiting");
        }
        self.due = Some(now + LOCK_PAUSE);
    }

    /// The version of the file about to be replaced. A file that can't be read is kept in a copy
    /// first.
    fn keep_what_cannot_be_read(&mut self) -> io::Result<Option<FileVersion>> {
        let stamp = self.disk.stamp(&self.path)?;
        if stamp != self.shared.read().stamp && self.kept_copy_of != Some(stamp) {
            let kept = keep_copy(&self.disk, &self.path)?;
            let (store, kept) = (self.path.display(), kept.display());
            tracing::warn!(%store, %kept, "the session store was damaged by someone else, writing it anew");
            self.kept_copy_of = Some(stamp);
        }
        Ok(stamp)
    }

    /// Takes note of how a snapshot ended.
    pub(super) fn on_snapshot(&mut self, outcome: SnapshotOutcome) {
        let Some(writing) = self.writing.take() else { return };
        match outcome {
            SnapshotOutcome::Written { stamp, took, removed } => {
                self.shared.write().stamp = Some(stamp);
                let rows = self.shared.read().table.rows().len();
                self.pace = WriteDelays::of(&self.options, LastWrite { rows, len: stamp.len(), took });
                let made = writing.pending.into_iter().filter(|(_, row)| row.old.is_none());
                self.in_file_and_journal.extend(made.map(|(key, _)| key));
                match removed {
                    Ok(removed) => self.journal.on_snapshot(writing.segments, &removed),
                    Err(error) => return self.fail(error),
                }
                if !self.journal.is_stale() {
                    self.in_file_and_journal.clear();
                    self.removed_by_others.clear();
                }
                self.due = None;
                self.failure = None;
                if self.is_behind() {
                    self.schedule();
                }
            }
            SnapshotOutcome::Overtaken => {
                self.take_back(writing);
                self.due = Some(Instant::now());
            }
            SnapshotOutcome::Failed(error) => {
                self.take_back(writing);
                self.fail(error);
            }
        }
    }

    /// The older of two notes about a row is the one that says what the file has.
    fn take_back(&mut self, older: Writing) {
        self.dirty_since = older.dirty_since.or(self.dirty_since);
        for (stored, Unwritten { old, at }) in older.pending {
            let at = self.pending.get(&stored).map_or(at, |newer| newer.at.max(at));
            self.pending.insert(stored, Unwritten { old, at });
        }
    }

    fn fail(&mut self, error: io::Error) {
        let store = self.path.display();
        tracing::error!(%store, %error, "cannot write the session store, its journal keeps what is new");
        self.failure = Some(Arc::new(error));
        self.due = Some(Instant::now() + FAILURE_PAUSE);
    }

    /// Error of the last snapshot, if it failed.
    pub(super) fn failure(&self) -> Option<StoreError> {
        let source = self.failure.clone()?;
        Some(StoreError::Io { what: "write", path: self.path.clone(), source })
    }

    /// Error of a flush that could not get the lock in time.
    pub(super) fn lock_timeout(&self) -> StoreError {
        io_error("write", &self.path, lock_timeout(&self.path, None))
    }

    fn schedule(&mut self) {
        let now = Instant::now();
        let since = *self.dirty_since.get_or_insert(now);
        let due = (now + self.pace.quiet).min(since + self.pace.at_most);
        let full = self.journal.current_len() > self.pace.journal_limit;
        if self.failure.is_none() && self.lock_wait.is_none() {
            self.due = Some(if full { now } else { due });
        }
    }
}

/// Removes leftovers of a dead process beside the store. A failure to remove them keeps nobody from
/// reading.
fn sweep(disk: &SharedDisk, store: &Path) {
    let swept =
        disk::sweep_temporaries(&**disk, store).and_then(|()| LockFile::sweep(disk, &lock_path(store)));
    if let Err(error) = swept {
        tracing::warn!(store = %store.display(), %error, "cannot clean up beside the session store");
    }
}

/// Copies a damaged file to `<file>.damaged-<ms of its last change>`, whole or not at all; once for each version of it.
fn keep_copy(disk: &SharedDisk, path: &Path) -> io::Result<PathBuf> {
    let modified = disk.stamp(path)?.and_then(|stamp| stamp.modified()).unwrap_or(std::time::UNIX_EPOCH);
    let ms = modified.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_millis();
    let copy = disk::beside(path, &format!("damaged-{ms}"));
    if disk.stamp(&copy)?.is_none() {
        let bytes = disk.read(path)?;
        Temporary::write(&**disk, &copy, |file| file.write_all(&bytes))?.persist(&copy)?;
    }
    Ok(copy)
}

/// Rows that differ, with their old state. Values that nobody touched are the very same objects.
fn differences(before: &Rows, after: &Rows) -> Pending {
    let now = now_ms();
    let unwritten = |old: Option<&Arc<RowText>>, new: Option<&Arc<RowText>>| {
        let at = [old, new].into_iter().flatten().map(|row| row.updated_at_ms()).fold(now, i64::max);
        Unwritten { old: old.cloned(), at }
    };
    let changed = after.iter().filter_map(|(key, value)| {
        let old = before.row(key);
        let is_same = match (old, value) {
            (Some(old), StoredValue::Row(row)) => {
                Arc::ptr_eq(old, row) || old == row || old.entry() == row.entry()
            }
            (None, StoredValue::Opaque(_)) => true,
            (Some(_), StoredValue::Opaque(_)) | (None, StoredValue::Row(_)) => false,
        };
        (!is_same).then(|| (Arc::clone(key), unwritten(old, value.row())))
    });
    let gone = before.iter().filter_map(|(key, value)| {
        let row = value.row().filter(|_| after.get(key).is_none())?;
        Some((Arc::clone(key), unwritten(Some(row), None)))
    });
    changed.chain(gone).collect()
}

/// Puts our changes (`pending` has the old state, `ours` the new) on top of `theirs`, where they
/// still count. Returns the changes that are pending against `theirs`.
fn merge(
    pending: &Pending,
    ours: &Rows,
    theirs: &mut Rows,
    overruled: &mut Overruled,
) -> io::Result<Pending> {
    let mut rebased = Pending::new();
    for (key, Unwritten { old, at }) in pending {
        let there = theirs.row(key).cloned();
        let now = ours.row(key);
        if let Some(there) = &there
            && is_overruled(old.as_deref(), now.map(|row| &**row), *at, there)
        {
            match now {
                None => overruled.note_removal(key),
                Some(now) => {
                    let changes = entry_of(old.as_deref()).changes_to(&now.entry());
                    overruled.note(key, changes.set.keys().chain(&changes.unset));
                }
            }
            continue;
        }
        match (old, now, &there) {
            (_, None, _) | (Some(_), Some(_), None) => {
                theirs.remove(key);
            }
            (None, Some(now), None) => {
                theirs.insert(Arc::clone(key), StoredValue::Row(Arc::clone(now)));
            }
            (old, Some(now), Some(there)) => {
                let mut entry = there.entry();
                entry.apply(&entry_of(old.as_deref()).changes_to(&now.entry()));
                theirs.put(Arc::clone(key), &entry)?;
            }
        }
        rebased.insert(Arc::clone(key), Unwritten { old: there, at: *at });
    }
    Ok(rebased)
}

fn entry_of(row: Option<&RowText>) -> SessionEntry {
    row.map(RowText::entry).unwrap_or_default()
}

/// True if the file's version of a row counts, though the row was changed here.
fn is_overruled(old: Option<&RowText>, now: Option<&RowText>, at: i64, there: &RowText) -> bool {
    let id = |row: Option<&RowText>| row.and_then(|row| row.text(HeadText::SessionId)).map(Cow::into_owned);
    let (before, after) = (id(old), id(now));
    ChangeFacts { sessions: [before.as_deref(), after.as_deref()], at }.is_overruled_by(there)
}
