//! File handling that stores and transcripts share, and the seam below the store: [`Disk`] is every operation by which
//! store file, journal and locks touch the disk, so that tests can put one in its place that fails and loses power.

#[cfg(test)]
pub(crate) mod faulty;
mod real;

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::process::{self, Sighting};

pub(crate) use real::RealDisk;

/// Disk operations that a store needs. Nothing is durable before it is synced: contents by
/// [`DiskFile::sync`], names by [`Disk::sync_dir`].
pub(crate) trait Disk: fmt::Debug + Send + Sync {
    /// Makes a file that is not there yet, its owner's alone, to be written from its end.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// All of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// A file, to be read piece by piece.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(io::Cursor::new(self.read(path)?)))
    }
    /// Stamp of a file's current version; `None` if there is no file.
    fn stamp(&self, path: &Path) -> io::Result<Option<FileVersion>>;
    /// The names in a directory; none when it is not there.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;
    /// Makes one directory, its owner's alone. An existing directory is fine.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Gives a file another name, in place of what has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. A missing file is fine.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// True if another handle holds a file ([`DiskFile::hold`]).
    fn is_held(&self, path: &Path) -> io::Result<bool>;
}

/// A file that is being written.
pub(crate) trait DiskFile: Write + fmt::Debug + Send {
    /// Makes written data durable. After a failure it is unknown what reached the disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts the file.
    fn set_len(&mut self, len: u64) -> io::Result<()>;
    /// Stamp of the file's current version.
    fn stamp(&self) -> io::Result<FileVersion>;
    /// Tells other processes that the file is in use for as long as this handle lives. Only advice; where the file system
    /// has no such thing, nothing happens.
    fn hold(&self);
}

/// A disk, shared.
pub(crate) type SharedDisk = Arc<dyn Disk>;

/// The disk of this machine.
pub(crate) fn real() -> SharedDisk {
    Arc::new(RealDisk)
}

/// A file that is created is its owner's alone.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

/// Creates the directory of a file, its owner's alone where it is new. A file that shall last there
/// needs [`sync_way_to`].
pub(crate) fn create_parent(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    let Some(parent) = parent_of(path) else { return Ok(()) };
    match disk.create_dir(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_parent(disk, parent)?;
            disk.create_dir(parent)
        }
        other => other,
    }
}

/// Makes the name of a file durable.
pub(crate) fn sync_parent(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    parent_of(path).map_or(Ok(()), |parent| disk.sync_dir(parent))
}

/// Makes the name of a file durable and those of all directories above it: whoever made one of them may have been stopped
/// before it was synced. Ends at `rooted`, whose own name and those above are durable already, and at the first directory
/// that can't be synced by us at all.
pub(crate) fn sync_way_to(disk: &dyn Disk, path: &Path, rooted: Option<&Path>) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    sync_parent(disk, path)?;
    let is_below = |file: &&Path| rooted.is_none() || parent_of(file) != rooted;
    let files = path.ancestors().take_while(is_below);
    for dir in files.filter_map(|file| parent_of(parent_of(file)?)) {
        match disk.sync_dir(dir).map_err(|error| (error.kind(), error)) {
            Err((PermissionDenied | InvalidInput | Unsupported | ReadOnlyFilesystem, _)) => break,
            other => other.map_err(|(_, error)| error)?,
        }
    }
    Ok(())
}

fn parent_of(path: &Path) -> Option<&Path> {
    path.parent().filter(|parent| !parent.as_os_str().is_empty())
}

/// Version of a file: changes when the file is changed or replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileVersion {
    modified: Option<SystemTime>,
    len: u64,
    inode: u64,
    device: u64,
}

impl FileVersion {
    /// Version of a file that is told from others by a number of its own. `modified` differs for each change.
    pub fn new(number: u64, len: u64, modified: SystemTime) -> Self {
        Self { modified: Some(modified), len, inode: number, device: 0 }
    }

    /// The stamp of a file; `None` if there is no file.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        Ok(look(path)?.as_ref().map(Self::from_meta))
    }

    /// The same; `None` also for what is no regular file.
    pub(crate) fn of_regular(path: &Path) -> io::Result<Option<Self>> {
        Ok(look(path)?.filter(Metadata::is_file).as_ref().map(Self::from_meta))
    }

    pub(crate) fn from_meta(meta: &Metadata) -> Self {
        #[cfg(unix)]
        let (inode, device) = {
            use std::os::unix::fs::MetadataExt as _;
            (meta.ino(), meta.dev())
        };
        #[cfg(not(unix))]
        let (inode, device) = (0, 0);
        Self { modified: meta.modified().ok(), len: meta.len(), inode, device }
    }

    /// Time of the last change, if the file system tells it.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// True if both are versions of one file that was written to, not replaced.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        (self.inode, self.device) == (other.inode, other.device)
    }
}

fn look(path: &Path) -> io::Result<Option<Metadata>> {
    match std::fs::metadata(path) {
        Ok(meta) => Ok(Some(meta)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// `<file>.<suffix>`
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

/// Replaces a file at once or not at all, durably: temporary file, sync, rename, sync of the directory.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = Temporary::write(&RealDisk, path, |file| file.write_all(bytes))?;
    temporary.persist(path)
}

/// A complete and synced file under a temporary name; removed on drop unless it took its place.
pub(crate) struct Temporary<'d> {
    disk: &'d dyn Disk,
    path: PathBuf,
    _claim: Option<Claim>,
    stamp: FileVersion,
    persisted: bool,
}

impl<'d> Temporary<'d> {
    /// Writes a temporary file beside `path`, its owner's alone.
    pub(crate) fn write(
        disk: &'d dyn Disk,
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<Self> {
        let name = beside(path, &format!("{}.{}.tmp", std::process::id(), uuid::Uuid::new_v4()));
        let claim = Claim::new(&name);
        let mut file = match disk.create_new(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_parent(disk, &name)?;
                disk.create_new(&name)?
            }
            other => other?,
        };
        let mut temporary =
            Self { disk, path: name, _claim: claim, stamp: FileVersion::default(), persisted: false };
        write(&mut *file)?;
        file.sync()?;
        temporary.stamp = file.stamp()?;
        Ok(temporary)
    }

    /// The stamp the file keeps under its final name.
    pub(crate) fn stamp(&self) -> FileVersion {
        self.stamp
    }

    /// Gives the file its final name, durably.
    pub(crate) fn persist(self, path: &Path) -> io::Result<()> {
        let disk = self.disk;
        self.rename(path)?;
        sync_parent(disk, path)
    }

    /// Gives the file its final name. It is there for everybody then; that it lasts takes [`sync_parent`].
    pub(crate) fn rename(mut self, path: &Path) -> io::Result<()> {
        self.disk.rename(&self.path, path)?;
        self.persisted = true;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.persisted {
            let _ = self.disk.remove(&self.path);
        }
    }
}

/// Removes temporary files of `path`, and of the transcripts beside it, whose writers are gone.
pub(crate) fn sweep_temporaries(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    let (Some(dir), Some(name)) = (parent_of(path), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(());
    };
    let writer = |file: &OsString| {
        let (left, id) = file.to_str()?.strip_suffix(".tmp")?.rsplit_once('.')?;
        uuid::Uuid::try_parse(id).ok()?;
        let (of, pid) = left.rsplit_once('.')?;
        (of == name || of.ends_with(".jsonl")).then_some(())?;
        pid.parse::<u32>().ok()
    };
    for file in disk.list(dir)? {
        let Some(pid) = writer(&file) else { continue };
        let left = dir.join(&file);
        let is_ours = pid == std::process::id();
        if (is_ours && !Claim::exists(&left)) || (!is_ours && process::look(pid) == Sighting::Gone) {
            disk.remove(&left)?;
            tracing::info!(file = %left.display(), "removed a temporary file that was left behind");
        }
    }
    Ok(())
}

/// A temporary file or a lock file of this very process. A file that bears our process id and is
/// not claimed was left by a former process with the same id; in a container every process may have
/// the same id.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
}

static CLAIMS: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);

impl Claim {
    /// Claims a path; nothing when it is claimed already.
    pub(crate) fn new(path: &Path) -> Option<Self> {
        let is_new = CLAIMS.lock().get_or_insert_default().insert(path.to_path_buf());
        is_new.then(|| Self { path: path.to_path_buf() })
    }

    /// Claimed path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True if this process uses a path.
    pub(crate) fn exists(path: &Path) -> bool {
        CLAIMS.lock().as_ref().is_some_and(|claims| claims.contains(path))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(claims) = CLAIMS.lock().as_mut() {
            claims.remove(&self.path);
        }
    }
}
