//! A disk in memory that refuses, forgets and loses power, by a seed. It behaves as a file system
//! may:
//!
//! - written data is seen at once and durable when the file was synced; a name when its directory
//!   was;
//! - a write may write a part only, or a part and then fail;
//! - after a failed sync the written data is seen as before, and its durability is unknown; it
//!   counts as clean, so that a later sync does not write it any more;
//! - after the end of the process everything seen is there; after the end of the machine what was synced, and of the rest
//!   anything.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{Disk, DiskFile, FileVersion};

/// End of a simulated life of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// `kill -9`: the system has everything that was written.
    Process,
    /// Power: what was synced, and of the rest anything.
    Machine,
}

/// The disk; clones are the same one.
#[derive(Clone)]
pub(crate) struct FaultyDisk {
    state: Arc<Mutex<FaultyDiskState>>,
}

struct FaultyDiskState {
    random: StdRng,
    /// Failure rate: one operation in this many fails.
    one_in: u32,
    /// Operations until the end.
    left: Option<u64>,
    clock: u64,
    files: HashMap<u64, SimulatedFile>,
    dirs: BTreeMap<PathBuf, Dir>,
    /// Log of the operations, for whoever debugs a failing test.
    log: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone, Default)]
struct SimulatedFile {
    seen: Vec<u8>,
    durable: Vec<u8>,
    /// Operations that are not synced yet.
    unsynced: Vec<FileOp>,
    modified: u64,
    holds: u32,
}

#[derive(Clone)]
enum FileOp {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

#[derive(Clone, Default)]
struct Dir {
    seen: BTreeMap<OsString, Node>,
    durable: BTreeMap<OsString, Node>,
    unsynced: Vec<DirOp>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    File(u64),
    Dir,
}

#[derive(Clone)]
enum DirOp {
    Put(OsString, Node),
    Remove(OsString),
    Rename(OsString, OsString, Node),
}

impl FileOp {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(at, more) => {
                bytes.resize(bytes.len().max(at + more.len()), 0);
                bytes[*at..at + more.len()].copy_from_slice(more);
            }
            Self::SetLen(len) => bytes.resize(*len, 0),
        }
    }
}

impl Dir {
    fn apply(names: &mut BTreeMap<OsString, Node>, op: &DirOp) {
        match op {
            DirOp::Put(name, node) => drop(names.insert(name.clone(), *node)),
            DirOp::Remove(name) => drop(names.remove(name)),
            DirOp::Rename(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
        }
    }

    /// All that has or may get a name again.
    fn nodes(&self) -> impl Iterator<Item = Node> {
        let pending = self.unsynced.iter().filter_map(|op| match op {
            DirOp::Put(_, node) | DirOp::Rename(_, _, node) => Some(*node),
            DirOp::Remove(_) => None,
        });
        self.seen.values().chain(self.durable.values()).copied().chain(pending)
    }

    fn change(&mut self, op: DirOp) {
        Self::apply(&mut self.seen, &op);
        self.unsynced.push(op);
    }

    fn sync(&mut self) {
        self.unsynced.clear();
        self.durable = self.seen.clone();
    }
}

fn gone() -> io::Error {
    io::Error::other("the machine is off")
}

fn missing() -> io::Error {
    ErrorKind::NotFound.into()
}

fn split(path: &Path) -> (PathBuf, OsString) {
    (path.parent().unwrap().to_path_buf(), path.file_name().unwrap().to_owned())
}

impl FaultyDiskState {
    /// Counts an operation and says whether it is to fail.
    fn step(&mut self, what: &str, path: &Path) -> io::Result<()> {
        self.clock += 1;
        let name = path.display();
        match &mut self.left {
            Some(0) => return Err(gone()),
            Some(left) => *left -= 1,
            None => {}
        }
        if self.one_in > 0 && self.random.random_range(0..self.one_in) == 0 {
            self.log.lock().push(format!("{what} {name} FAILS"));
            let kinds = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::Other];
            return Err(kinds[self.random.random_range(0..kinds.len())].into());
        }
        self.log.lock().push(format!("{what} {name}"));
        Ok(())
    }

    fn dir(&mut self, path: &Path) -> io::Result<&mut Dir> {
        self.dirs.get_mut(path).ok_or_else(missing)
    }

    fn node(&self, path: &Path) -> Option<Node> {
        let (dir, name) = split(path);
        self.dirs.get(&dir)?.seen.get(&name).copied()
    }

    fn file(&self, path: &Path) -> io::Result<(u64, &SimulatedFile)> {
        match self.node(path).ok_or_else(missing)? {
            Node::File(id) => Ok((id, &self.files[&id])),
            Node::Dir => Err(ErrorKind::IsADirectory.into()),
        }
    }

    fn content(&mut self, id: u64) -> &mut SimulatedFile {
        self.files.get_mut(&id).unwrap()
    }

    fn write(&mut self, id: u64, bytes: &[u8]) {
        let clock = self.clock;
        let content = self.content(id);
        let op = FileOp::Write(content.seen.len(), bytes.to_vec());
        op.apply(&mut content.seen);
        content.unsynced.push(op);
        content.modified = clock;
    }

    /// Lets part of the unsynced data reach the disk.
    fn settle_file(&mut self, id: u64) {
        let ops = std::mem::take(&mut self.content(id).unsynced);
        let mut durable = std::mem::take(&mut self.content(id).durable);
        for op in ops {
            match (self.random.random_range(0..4), op) {
                (0, _) => break,
                (1, FileOp::Write(at, mut bytes)) => {
                    bytes.truncate(self.random.random_range(0..=bytes.len()));
                    FileOp::Write(at, bytes).apply(&mut durable);
                    break;
                }
                (2, FileOp::Write(at, mut bytes)) if !bytes.is_empty() => {
                    let hole = self.random.random_range(0..bytes.len());
                    let end = self.random.random_range(hole..bytes.len());
                    bytes[hole..=end].fill(0);
                    FileOp::Write(at, bytes).apply(&mut durable);
                }
                (_, op) => op.apply(&mut durable),
            }
        }
        self.content(id).durable = durable;
    }

    fn settle_dir(&mut self, path: &Path) {
        let dir = self.dirs.get_mut(path).unwrap();
        for op in std::mem::take(&mut dir.unsynced) {
            if self.random.random_bool(0.5) {
                Dir::apply(&mut dir.durable, &op);
            }
        }
        dir.seen = dir.durable.clone();
    }
}

impl FaultyDisk {
    /// An empty disk with one directory, durable.
    pub(crate) fn new(seed: u64, root: &Path) -> Self {
        let mut dirs = BTreeMap::new();
        dirs.insert(root.to_path_buf(), Dir::default());
        let state = FaultyDiskState {
            random: StdRng::seed_from_u64(seed),
            one_in: 0,
            left: None,
            clock: 0,
            files: HashMap::new(),
            dirs,
            log: Arc::default(),
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Makes one operation in `one_in` fail from now on; none if zero.
    pub(crate) fn fail_one_in(&self, one_in: u32) {
        self.state.lock().one_in = one_in;
    }

    /// Sets the end after so many operations: later ones fail because the machine is off.
    pub(crate) fn end_after(&self, operations: u64) {
        self.state.lock().left = Some(operations);
    }

    pub(crate) fn is_off(&self) -> bool {
        self.state.lock().left == Some(0)
    }

    /// Disk as found an hour later, after the crash; it makes no more faults.
    pub(crate) fn after(&self, end: End) -> Self {
        let mut state = self.state.lock();
        if end == End::Machine {
            let ids: Vec<u64> = state.files.keys().copied().collect();
            ids.into_iter().for_each(|id| state.settle_file(id));
            let root = state.dirs.keys().next().unwrap().clone();
            let paths: Vec<PathBuf> = state.dirs.keys().cloned().collect();
            for path in paths {
                if path == root || state.node(&path) == Some(Node::Dir) {
                    state.settle_dir(&path);
                } else {
                    state.dirs.remove(&path);
                }
            }
            state.files.values_mut().for_each(|file| file.seen = file.durable.clone());
        }
        state.files.values_mut().for_each(|file| file.holds = 0);
        let named: HashSet<Node> = state.dirs.values().flat_map(Dir::nodes).collect();
        state.files.retain(|id, _| named.contains(&Node::File(*id)));
        let next = FaultyDiskState {
            random: StdRng::seed_from_u64(state.random.random()),
            one_in: 0,
            left: None,
            clock: state.clock + 3_600_000,
            files: state.files.clone(),
            dirs: state.dirs.clone(),
            log: Arc::clone(&state.log),
        };
        Self { state: Arc::new(Mutex::new(next)) }
    }

    /// Puts a durable file there, as another program would that does everything right.
    pub(crate) fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state.lock();
        let (dir, name) = split(path);
        state.clock += 1;
        let id = state.clock;
        let content = SimulatedFile {
            seen: bytes.to_vec(),
            durable: bytes.to_vec(),
            modified: id,
            ..SimulatedFile::default()
        };
        state.files.insert(id, content);
        state.log.lock().push(format!("put {}", path.display()));
        state.dir(&dir).unwrap().change(DirOp::Put(name, Node::File(id)));
        let above = state.dirs.iter_mut().filter(|(above, _)| dir.starts_with(above));
        above.for_each(|(_, above)| above.sync());
    }

    /// Contents of a file, without counting as an operation.
    pub(crate) fn peek(&self, path: &Path) -> Option<Vec<u8>> {
        self.state.lock().file(path).ok().map(|(_, content)| content.seen.clone())
    }

    pub(crate) fn names(&self, dir: &Path) -> Vec<String> {
        let state = self.state.lock();
        let names = state.dirs.get(dir).into_iter().flat_map(|dir| dir.seen.keys());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    pub(crate) fn log(&self) -> String {
        self.state.lock().log.lock().join("\n")
    }

    pub(crate) fn note(&self, text: String) {
        self.state.lock().log.lock().push(text);
    }
}

impl fmt::Debug for FaultyDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyDisk")
    }
}

impl Disk for FaultyDisk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        between_operations();
        let mut state = self.state.lock();
        state.step("create", path)?;
        let (dir, name) = split(path);
        let id = state.clock;
        let there = state.dir(&dir)?;
        if there.seen.contains_key(&name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        there.change(DirOp::Put(name, Node::File(id)));
        state.files.insert(id, SimulatedFile { modified: id, ..SimulatedFile::default() });
        Ok(Box::new(FaultyFile {
            disk: self.clone(),
            id,
            path: path.to_path_buf(),
            holds: Mutex::new(false),
        }))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut state = self.state.lock();
        state.step("read", path)?;
        state.file(path).map(|(_, content)| content.seen.clone())
    }

    fn stamp(&self, path: &Path) -> io::Result<Option<FileVersion>> {
        let mut state = self.state.lock();
        state.step("stamp", path)?;
        Ok(match state.node(path) {
            Some(Node::File(id)) => Some(stamp_of(id, &state.files[&id])),
            Some(Node::Dir) => Some(FileVersion::default()),
            None => None,
        })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let mut state = self.state.lock();
        state.step("list", dir)?;
        Ok(state.dirs.get(dir).map(|dir| dir.seen.keys().cloned().collect()).unwrap_or_default())
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.step("create directory", dir)?;
        if state.dirs.contains_key(dir) {
            return Ok(());
        }
        let (parent, name) = split(dir);
        state.dir(&parent)?.change(DirOp::Put(name, Node::Dir));
        state.dirs.insert(dir.to_path_buf(), Dir::default());
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        between_operations();
        let mut state = self.state.lock();
        state.step("rename to", to)?;
        let ((dir, from), (_, to)) = (split(from), split(to));
        let there = state.dir(&dir)?;
        let node = *there.seen.get(&from).ok_or_else(missing)?;
        if there.seen.get(&to) == Some(&Node::Dir) {
            return Err(ErrorKind::IsADirectory.into());
        }
        there.change(DirOp::Rename(from, to, node));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        between_operations();
        let mut state = self.state.lock();
        state.step("remove", path)?;
        let (dir, name) = split(path);
        if let Some(dir) = state.dirs.get_mut(&dir)
            && dir.seen.contains_key(&name)
        {
            dir.change(DirOp::Remove(name));
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        between_operations();
        let mut state = self.state.lock();
        state.step("sync directory", dir)?;
        // Nothing happens to directories above the one that is all there is.
        if let Some(dir) = state.dirs.get_mut(dir) {
            dir.sync();
        }
        Ok(())
    }

    fn is_held(&self, path: &Path) -> io::Result<bool> {
        let mut state = self.state.lock();
        state.step("is held", path)?;
        state.file(path).map(|(_, content)| content.holds > 0)
    }
}

fn stamp_of(id: u64, content: &SimulatedFile) -> FileVersion {
    let modified = SystemTime::UNIX_EPOCH + Duration::from_millis(content.modified);
    FileVersion::new(id, content.seen.len() as u64, modified)
}

struct FaultyFile {
    disk: FaultyDisk,
    id: u64,
    path: PathBuf,
    holds: Mutex<bool>,
}

impl fmt::Debug for FaultyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

impl Write for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        between_operations();
        let mut state = self.disk.state.lock();
        let outcome = state.step("write", &self.path);
        let is_short = outcome.is_err() || (state.one_in > 0 && state.random.random_range(0..8) == 0);
        let len = if is_short && !bytes.is_empty() {
            state.random.random_range(1..=bytes.len())
        } else {
            bytes.len()
        };
        if state.left != Some(0) || outcome.is_ok() {
            state.write(self.id, &bytes[..len]);
        }
        outcome.map(|()| len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for FaultyFile {
    fn sync(&mut self) -> io::Result<()> {
        between_operations();
        let mut state = self.disk.state.lock();
        match state.step("sync", &self.path) {
            Ok(()) => {
                let content = state.content(self.id);
                for op in std::mem::take(&mut content.unsynced) {
                    op.apply(&mut content.durable);
                }
                Ok(())
            }
            Err(error) => {
                if state.left != Some(0) {
                    state.settle_file(self.id);
                }
                Err(error)
            }
        }
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        state.step("cut", &self.path)?;
        let content = state.content(self.id);
        let op = FileOp::SetLen(len as usize);
        op.apply(&mut content.seen);
        content.unsynced.push(op);
        Ok(())
    }

    fn stamp(&self) -> io::Result<FileVersion> {
        let mut state = self.disk.state.lock();
        state.step("stamp", &self.path)?;
        Ok(stamp_of(self.id, &state.files[&self.id]))
    }

    fn hold(&self) {
        *self.holds.lock() = true;
        self.disk.state.lock().content(self.id).holds += 1;
    }
}

impl Drop for FaultyFile {
    fn drop(&mut self) {
        if *self.holds.lock() {
            self.disk.state.lock().content(self.id).holds -= 1;
        }
    }
}

type Meanwhile = Box<dyn FnMut()>;

thread_local! {
    static MEANWHILE: std::cell::RefCell<Option<Meanwhile>> = const { std::cell::RefCell::new(None) };
}

/// While `work` runs, `meanwhile` is called before each of its operations that change something: it
/// stands for another thread at that moment, but depends on the seed alone. The operations of
/// `meanwhile` itself call nothing.
pub(crate) fn with_meanwhile<T>(meanwhile: impl FnMut() + 'static, work: impl FnOnce() -> T) -> T {
    MEANWHILE.with(|slot| *slot.borrow_mut() = Some(Box::new(meanwhile)));
    let done = work();
    MEANWHILE.with(|slot| slot.borrow_mut().take());
    done
}

fn between_operations() {
    let taken = MEANWHILE.with(|slot| slot.borrow_mut().take());
    if let Some(mut meanwhile) = taken {
        meanwhile();
        MEANWHILE.with(|slot| *slot.borrow_mut() = Some(meanwhile));
    }
}
