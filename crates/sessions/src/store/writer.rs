//! The store's own thread. It takes commands in batches: changes are made in memory, journaled with one write and, if
//! any of them is to be durable at once, one sync a file and batch, and only then acknowledged; a failed write takes them back. `sessions.json` itself is written
//! by a helper thread from a snapshot, so that a big store does not hold updates up.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use openclaw_protocol::AgentId;
use parking_lot::RwLock;
use tokio::sync::{mpsc, oneshot};

use super::file::{FileStoreOptions, Published, Shelf};
use super::journal::{LineDurability, Op, line};
use super::stored::RowText;
use super::table::Undo;
use super::{Change, Row, StoreError};
use crate::key::SessionKey;
use crate::time::now_ms;

#[cfg(test)]
mod crash;
mod pace;
mod snapshot;
mod store_file;

use snapshot::{Finished, Job, SnapshotOutcome};
use store_file::StoreFile;

/// The file a command is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoreTarget {
    pub(crate) path: PathBuf,
    /// The agent that rows without an agent part belong to.
    pub(crate) agent: AgentId,
}

type WriterReply<T> = oneshot::Sender<Result<T, StoreError>>;

/// Command for the writer thread.
pub(crate) enum WriterCommand {
    /// Read a file, again if it was changed.
    Load { target: StoreTarget, reply: WriterReply<()> },
    /// The directories down to this one are durable.
    Rooted { dir: PathBuf },
    /// Change a row.
    Update {
        target: StoreTarget,
        key: SessionKey,
        change: Change,
        durability: LineDurability,
        reply: WriterReply<Row>,
    },
    /// Remove a row.
    Delete { target: StoreTarget, key: SessionKey, reply: WriterReply<Option<Row>> },
    /// Write every file that is not up to date.
    Flush { then_close: bool, reply: WriterReply<()> },
}

/// An answer that waits for the batch's sync.
enum UnsyncedReply {
    Updated(WriterReply<Row>, Row),
    Deleted(WriterReply<Option<Row>>, Option<Row>),
}

/// Effects of a batch on one file.
#[derive(Default)]
struct Staged {
    durability: LineDurability,
    ops: Vec<Op>,
    undos: Vec<Undo>,
    touched: Vec<Touched>,
    answers: Vec<UnsyncedReply>,
}

impl Staged {
    /// A change of a row; `old` is what it was.
    fn push(&mut self, op: Op, undo: Undo, stored: Arc<str>, old: Option<Arc<RowText>>) {
        self.touched.push(Touched { stored, old, at: op.at() });
        self.undos.push(undo);
        self.ops.push(op);
    }
}

/// A row that was changed.
struct Touched {
    /// Session key, as the file spells it.
    stored: Arc<str>,
    /// Row before the change.
    old: Option<Arc<RowText>>,
    /// Time of the change, Unix milliseconds.
    at: i64,
}

struct Flush {
    reply: WriterReply<()>,
    deadline: Instant,
    then_close: bool,
}

/// Maximum number of commands in one batch.
const BATCH: usize = 256;
/// Time for which a flush waits for another process's lock (spec `sessions.md` §3.4).
const FLUSH_PATIENCE: Duration = Duration::from_secs(10);

/// State of the thread.
pub(crate) struct StoreWriter {
    options: FileStoreOptions,
    shelf: Arc<Shelf>,
    files: BTreeMap<PathBuf, StoreFile>,
    /// Directory whose name is durable, and those above it.
    rooted: Option<PathBuf>,
    flushes: Vec<Flush>,
    snapshots: HashMap<PathBuf, JoinHandle<()>>,
    finished: (mpsc::Sender<Finished>, mpsc::Receiver<Finished>),
}

impl StoreWriter {
    pub(crate) fn new(options: FileStoreOptions, shelf: Arc<Shelf>) -> Self {
        Self {
            options,
            shelf,
            files: BTreeMap::new(),
            rooted: None,
            flushes: Vec::new(),
            snapshots: HashMap::new(),
            finished: mpsc::channel(16),
        }
    }

    /// Works until every handle is gone or the store is closed.
    pub(crate) fn run(mut self, mut commands: mpsc::Receiver<WriterCommand>) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                tracing::error!(%error, "cannot start the session store");
                return;
            }
        };
        runtime.block_on(async {
            loop {
                let due = self.next_due();
                let sleep = async {
                    match due {
                        Some(due) => tokio::time::sleep_until(due.into()).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! { biased;
                    Some(finished) = self.finished.1.recv() => self.on_finished(finished),
                    command = commands.recv() => match command {
                        Some(first) => self.on_batch(first, || commands.try_recv().ok()),
                        None => break,
                    },
                    () = sleep => {}
                }
                self.start_due_snapshots();
                if self.answer_flushes(Instant::now()) {
                    break;
                }
            }
        });
        // Releases the journals for whoever opens the store next.
        self.files.clear();
        for (_, thread) in self.snapshots.drain() {
            // A thread that panicked has said so itself.
            let _ = thread.join();
        }
    }

    fn on_batch(&mut self, first: WriterCommand, mut more: impl FnMut() -> Option<WriterCommand>) {
        let mut staged: BTreeMap<PathBuf, Staged> = BTreeMap::new();
        let mut next = Some(first);
        let mut count = 0;
        while let Some(command) = next {
            self.on_command(command, &mut staged);
            count += 1;
            next = if count < BATCH { more() } else { None };
        }
        for (path, staged) in staged {
            self.commit(&path, staged);
        }
    }

    fn on_command(&mut self, command: WriterCommand, staged: &mut BTreeMap<PathBuf, Staged>) {
        match command {
            WriterCommand::Load { target, reply } => {
                let loaded = self.load(&target, staged);
                let _ = reply.send(loaded);
            }
            WriterCommand::Rooted { dir } => {
                self.files.values_mut().for_each(|file| file.set_rooted(&dir));
                self.rooted = Some(dir);
            }
            WriterCommand::Update { target, key, change, durability, reply } => {
                let outcome = self
                    .load(&target, staged)
                    .and_then(|()| self.stage_update(&target, &key, change, staged));
                match outcome {
                    Ok(row) => {
                        let staged = staged.entry(target.path).or_default();
                        staged.durability = staged.durability.max(durability);
                        staged.answers.push(UnsyncedReply::Updated(reply, row));
                    }
                    Err(error) => drop(reply.send(Err(error))),
                }
            }
            WriterCommand::Delete { target, key, reply } => {
                let outcome =
                    self.load(&target, staged).and_then(|()| self.stage_delete(&target, &key, staged));
                match outcome {
                    Ok(row) => {
                        let staged = staged.entry(target.path).or_default();
                        staged.durability = LineDurability::Synced;
                        staged.answers.push(UnsyncedReply::Deleted(reply, row));
                    }
                    Err(error) => drop(reply.send(Err(error))),
                }
            }
            WriterCommand::Flush { then_close, reply } => {
                let deadline = Instant::now() + FLUSH_PATIENCE;
                self.files.values_mut().for_each(StoreFile::forget_failure);
                self.flushes.push(Flush { reply, deadline, then_close });
            }
        }
    }

    /// Makes a file's rows those on disk, once a batch: later commands of it work on what earlier ones made.
    fn load(&mut self, target: &StoreTarget, staged: &BTreeMap<PathBuf, Staged>) -> Result<(), StoreError> {
        match self.files.get_mut(&target.path) {
            Some(_) if staged.get(&target.path).is_some_and(|staged| !staged.undos.is_empty()) => Ok(()),
            Some(file) => file.take_in_edits(),
            None => {
                let mut file = StoreFile::load(target, &self.options)?;
                if let Some(dir) = &self.rooted {
                    file.set_rooted(dir);
                }
                self.shelf.write().insert(target.path.clone(), file.published());
                self.files.insert(target.path.clone(), file);
                Ok(())
            }
        }
    }

    fn stage_update(
        &mut self,
        target: &StoreTarget,
        key: &SessionKey,
        change: Change,
        staged: &mut BTreeMap<PathBuf, Staged>,
    ) -> Result<Row, StoreError> {
        let file = self.files.get_mut(&target.path).ok_or(StoreError::Closed)?;
        let published = file.published();
        let mut guard = published.write();
        let Published { table, recent, .. } = &mut *guard;
        let recent = recent.get_mut();
        let found = table.find(key).map(|(stored, row)| (Arc::clone(stored), Arc::clone(row)));
        let old = found.as_ref().map(|(_, row)| recent.entry(row));
        let new = Arc::new(table.changed(old.as_deref(), change)?);
        let spelling = table.spelling_for_write(key);
        if old.as_ref() == Some(&new) && found.as_ref().is_some_and(|(stored, _)| *stored == spelling) {
            return Ok(Row { key: key.clone().spelled_as(&spelling), entry: new });
        }
        let in_place = table.row(&spelling).cloned();
        // The row at the new place is nearly always the one that was found.
        let before = match &found {
            Some((stored, _)) if *stored == spelling => old,
            Some(_) | None => in_place.as_ref().map(|row| recent.entry(row)),
        };
        let fail = |source| io_error("write", &target.path, source);
        let now = now_ms();
        let op = file.change(&spelling, before.as_deref(), &new, now).map_err(fail)?;
        let row = table.made(&new, in_place.as_deref()).map_err(|error| fail(error.into()))?;
        recent.replace(in_place.as_ref(), Arc::clone(&row), Arc::clone(&new));
        let staged = staged.entry(target.path.clone()).or_default();
        staged.push(op, table.put(&spelling, row), Arc::clone(&spelling), in_place);
        if let Some((stored, old)) = found
            && stored != spelling
        {
            // A row of an old version moves to its canonical key.
            staged.push(Op::delete(&stored, &old, now), table.remove(&stored), stored, Some(old));
        }
        Ok(Row { key: key.clone().spelled_as(&spelling), entry: new })
    }

    fn stage_delete(
        &mut self,
        target: &StoreTarget,
        key: &SessionKey,
        staged: &mut BTreeMap<PathBuf, Staged>,
    ) -> Result<Option<Row>, StoreError> {
        let file = self.files.get_mut(&target.path).ok_or(StoreError::Closed)?;
        let published = file.published();
        let mut guard = published.write();
        let table = &mut guard.table;
        let Some((stored, row)) = table.find(key) else { return Ok(None) };
        let row = Row { key: key.clone().spelled_as(stored), entry: Arc::new(row.entry()) };
        let staged = staged.entry(target.path.clone()).or_default();
        let now = now_ms();
        for stored in table.spellings(key) {
            let Some(old) = table.row(&stored).cloned() else { continue };
            staged.push(Op::delete(&stored, &old, now), table.remove(&stored), stored, Some(old));
        }
        Ok(Some(row))
    }

    /// Writes a batch down and answers it, or takes it back and says why.
    fn commit(&mut self, path: &Path, staged: Staged) {
        let Some(file) = self.files.get_mut(path) else { return };
        let written = if staged.ops.is_empty() {
            file.record_failure(staged.durability)
        } else {
            line(&staged.ops).and_then(|line| file.journal(&line, staged.durability, staged.touched))
        };
        match written {
            Ok(()) => staged.answers.into_iter().for_each(UnsyncedReply::send),
            Err(source) => {
                let published = file.published();
                let mut guard = published.write();
                staged.undos.into_iter().rev().for_each(|undo| guard.table.undo(undo));
                drop(guard);
                let error = io_error("write", path, source);
                tracing::error!(store = %path.display(), %error, "a session update was refused");
                staged.answers.into_iter().for_each(|answer| answer.fail(&error));
            }
        }
    }

    fn on_finished(&mut self, finished: Finished) {
        if let Some(thread) = self.snapshots.remove(&finished.path) {
            // A thread that panicked has said so itself.
            let _ = thread.join();
        }
        if let Some(file) = self.files.get_mut(&finished.path) {
            file.on_snapshot(finished.outcome);
        }
    }

    fn start_due_snapshots(&mut self) {
        for job in self.due_snapshots(Instant::now()) {
            let path = job.path.clone();
            match job.start(self.finished.0.clone()) {
                Ok(thread) => drop(self.snapshots.insert(path, thread)),
                Err(error) => self.on_finished(Finished { path, outcome: SnapshotOutcome::Failed(error) }),
            }
        }
    }

    fn due_snapshots(&mut self, now: Instant) -> Vec<Job> {
        let flushing = !self.flushes.is_empty();
        let due = self.files.values_mut().filter(|file| file.wants_snapshot(flushing, now));
        due.filter_map(StoreFile::begin_snapshot).collect()
    }

    fn next_due(&self) -> Option<Instant> {
        let flushing = !self.flushes.is_empty();
        let now = Instant::now();
        let files = self.files.values().filter_map(|file| file.due(flushing, now));
        files.chain(self.flushes.iter().map(|flush| flush.deadline)).min()
    }

    /// Answers flushes that are done or out of patience. Returns whether the store is to close.
    fn answer_flushes(&mut self, now: Instant) -> bool {
        let behind = self.files.values().find(|file| file.is_behind());
        let mut close = false;
        for flush in std::mem::take(&mut self.flushes) {
            let outcome = match behind {
                None => Ok(()),
                Some(file) => match file.failure() {
                    Some(error) => Err(error),
                    None if now >= flush.deadline => Err(file.lock_timeout()),
                    None => {
                        self.flushes.push(flush);
                        continue;
                    }
                },
            };
            close |= flush.then_close;
            let _ = flush.reply.send(outcome);
        }
        close
    }
}

impl UnsyncedReply {
    fn send(self) {
        match self {
            Self::Updated(reply, row) => drop(reply.send(Ok(row))),
            Self::Deleted(reply, row) => drop(reply.send(Ok(row))),
        }
    }

    fn fail(self, error: &StoreError) {
        match self {
            Self::Updated(reply, _) => drop(reply.send(Err(error.clone()))),
            Self::Deleted(reply, _) => drop(reply.send(Err(error.clone()))),
        }
    }
}

fn io_error(what: &'static str, path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Io { what, path: path.to_path_buf(), source: Arc::new(source) }
}

/// Rows of one file, shared with readers.
type SharedRows = Arc<RwLock<super::file::Published>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyRules, Layout};

    #[test]
    fn a_flush_that_waits_too_long_for_a_lock_says_so_and_loses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let options =
            FileStoreOptions::new(Layout::new(dir.path(), dir.path(), None), KeyRules::default(), Vec::new());
        let target =
            StoreTarget { path: options.layout.store_path(&AgentId::default()), agent: AgentId::default() };
        let lock = crate::disk::beside(&target.path, "lock");
        std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
        std::fs::write(&lock, format!("{{\"pid\":{},\"startedAt\":{}}}", nix::unistd::getppid(), now_ms()))
            .unwrap();
        let mut writer = StoreWriter::new(options, Arc::default());
        let (reply, mut updated) = oneshot::channel();
        let key = KeyRules::default().canonical("main").unwrap();
        let change: Change = Box::new(|edit| {
            edit.entry.input_tokens = Some(5);
            Ok(())
        });
        let update = WriterCommand::Update {
            target: target.clone(),
            key,
            change,
            durability: LineDurability::Synced,
            reply,
        };
        let (reply, mut flushed) = oneshot::channel();
        let mut rest = Some(WriterCommand::Flush { then_close: false, reply });
        writer.on_batch(update, || rest.take());
        assert!(updated.try_recv().unwrap().is_ok());

        assert_eq!(FLUSH_PATIENCE.as_millis(), 10_000);
        let now = Instant::now();
        assert!(writer.due_snapshots(now).is_empty());
        assert!(!writer.answer_flushes(now) && flushed.try_recv().is_err(), "it waits");
        assert!(!writer.answer_flushes(now + FLUSH_PATIENCE + Duration::from_secs(1)), "the store goes on");
        let error = flushed.try_recv().unwrap().unwrap_err().to_string();
        assert!(
            error.ends_with(&format!("timeout acquiring session store lock: {}", lock.display())),
            "{error}"
        );

        std::fs::remove_file(&lock).unwrap();
        let (reply, mut flushed) = oneshot::channel();
        writer.on_batch(WriterCommand::Flush { then_close: false, reply }, || None);
        for job in writer.due_snapshots(now + Duration::from_secs(60)) {
            let finished = job.run();
            writer.on_finished(finished);
        }
        writer.answer_flushes(now);
        assert!(flushed.try_recv().unwrap().is_ok());
        assert!(std::fs::read_to_string(&target.path).unwrap().contains("\"inputTokens\": 5"));
        assert!(!lock.exists());
    }
}
