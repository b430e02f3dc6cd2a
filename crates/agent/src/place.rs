//! A file as an open directory and a name in it: what was checked is what is used, whatever is renamed or linked meanwhile.

pub mod off_limits;
mod removal;

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{Mode, SFlag, fchmod, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

pub use removal::{EntryKind, SetAside};

/// A directory is opened to be walked, not listed: on Linux that needs no read permission.
#[cfg(target_os = "linux")]
const DIRECTORY: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);
#[cfg(not(target_os = "linux"))]
const DIRECTORY: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// Error in reaching a place.
#[derive(Debug)]
pub enum PlaceError {
    /// The path leads out of the confining directory; the model is told.
    Escapes {
        /// The confining directory.
        root: PathBuf,
        /// The path as the model gave it.
        path: String,
    },
    /// A symbolic link on a confined way; the model is told.
    SymbolicLink(String),
    /// A directory, device, pipe or socket.
    NotAFile(String),
    /// The gateway's own state or configuration; the model is told.
    OffLimits(String),
    /// Part of a hook, for a run that may not run commands; the model is told.
    Hook(String),
    /// The system said no.
    Io(io::Error),
}

impl std::fmt::Display for PlaceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Escapes { root, path } => {
                write!(f, "Path escapes sandbox root ({}): {path}", root.display())
            }
            Self::SymbolicLink(path) => write!(f, "Symlink not allowed in sandbox path: {path}"),
            Self::NotAFile(path) => write!(f, "Not a regular file: {path}"),
            Self::OffLimits(path) => {
                write!(
                    f,
                    "{path} belongs to the gateway's own state or configuration, which tools do not touch"
                )
            }
            Self::Hook(path) => {
                write!(
                    f,
                    "{path} would be part of a hook, which the gateway runs with its owner's rights: this run may not run programs unasked"
                )
            }
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PlaceError {}

impl PlaceError {
    /// Returns true if the file does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

impl From<PlaceError> for io::Error {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Io(error) => error,
            PlaceError::Escapes { .. }
            | PlaceError::SymbolicLink(_)
            | PlaceError::NotAFile(_)
            | PlaceError::OffLimits(_)
            | PlaceError::Hook(_) => Self::new(io::ErrorKind::InvalidInput, error.to_string()),
        }
    }
}

impl From<io::Error> for PlaceError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for PlaceError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

/// The beginning of a file.
#[derive(Debug)]
pub struct Head {
    /// First bytes of the file.
    pub bytes: Vec<u8>,
    /// True if the file is longer than `bytes`.
    pub is_cut: bool,
    /// Metadata of the file that was read.
    pub metadata: Metadata,
}

/// A directory held open, to read several files that lie right in it.
#[derive(Debug)]
pub struct Directory(OwnedFd);

impl Directory {
    /// Opens it; symbolic links are followed.
    pub fn open(path: &Path) -> Result<Self, PlaceError> {
        Ok(Self(nix::fcntl::open(path, DIRECTORY, Mode::empty())?))
    }

    /// The first bytes of a file in it, at most `limit`. A symbolic link is refused.
    pub fn read_head(&self, name: &str, limit: u64) -> Result<Head, PlaceError> {
        let (file, metadata) = open_file(&self.0, name.as_ref(), name)?;
        Head::read(file, metadata, limit)
    }
}

/// Opens a file for reading. A pipe or device is refused rather than waited for.
fn open_file(directory: &OwnedFd, name: &OsStr, shown: &str) -> Result<(File, Metadata), PlaceError> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = match openat(directory, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::ELOOP) => return Err(PlaceError::SymbolicLink(shown.to_owned())),
        Err(error) => return Err(error.into()),
    };
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(PlaceError::NotAFile(shown.to_owned())) }
}

impl Head {
    /// No more than `limit` is read, however long the file is.
    fn read(file: File, metadata: Metadata, limit: u64) -> Result<Self, PlaceError> {
        let expected = metadata.len().min(limit).saturating_add(1);
        let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
        // One extra byte shows if there is more: a file may grow, and some have no length.
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        let is_cut = bytes.len() as u64 > limit;
        bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(Self { bytes, is_cut, metadata })
    }
}

/// Permission to execute a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executable {
    /// The file may be executed.
    Yes,
    /// The file is data: no execute permission.
    No,
}

/// Place of one file, existing or not.
#[derive(Debug)]
pub struct Place {
    directory: OwnedFd,
    name: OsString,
    shown: String,
}

impl Place {
    /// The file at an absolute path; symbolic links are followed.
    pub fn anywhere(path: &Path) -> Result<Self, PlaceError> {
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(PlaceError::NotAFile(path.display().to_string()));
        };
        let directory = nix::fcntl::open(parent, DIRECTORY, Mode::empty())?;
        Ok(Self { directory, name: name.to_owned(), shown: path.display().to_string() })
    }

    /// Opens the place like [`Self::anywhere`]; missing directories are created.
    pub fn create_anywhere(path: &Path) -> Result<Self, PlaceError> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        Self::anywhere(path)
    }

    /// The file at `inside`, a relative path without `..`, under `root`. No step may be a symbolic link.
    pub fn beneath(root: &Path, inside: &Path, asked: &str) -> Result<Self, PlaceError> {
        Self::walk(root, inside, asked, |_, _| Ok(()))
    }

    /// Opens the place like [`Self::beneath`]; missing directories are created.
    pub fn create_beneath(root: &Path, inside: &Path, asked: &str) -> Result<Self, PlaceError> {
        std::fs::create_dir_all(root)?;
        Self::walk(root, inside, asked, |directory, name| {
            match mkdirat(directory, name, Mode::from_bits_truncate(0o777)) {
                Ok(()) | Err(Errno::EEXIST) => Ok(()),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn walk(
        root: &Path,
        inside: &Path,
        asked: &str,
        before_step: impl Fn(&OwnedFd, &Path) -> Result<(), PlaceError>,
    ) -> Result<Self, PlaceError> {
        let mut steps: Vec<&Path> = inside
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(Path::new(name)),
                Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
            })
            .collect();
        let Some(name) = steps.pop() else { return Err(PlaceError::NotAFile(asked.to_owned())) };
        let mut directory = nix::fcntl::open(root, DIRECTORY, Mode::empty())?;
        for step in steps {
            before_step(&directory, step)?;
            refuse_link(&directory, step, asked)?;
            directory = openat(&directory, step, DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty())?;
        }
        refuse_link(&directory, name, asked)?;
        Ok(Self { directory, name: name.into(), shown: asked.to_owned() })
    }

    /// The file at `inside` under `root`. Symbolic links are followed as long as they stay under `root`: what they were
    /// resolved to is walked again and may hold no link, so a link put in meanwhile is refused.
    pub fn within(root: &Path, inside: &Path, asked: &str) -> Result<Self, PlaceError> {
        match Self::beneath(root, inside, asked) {
            Err(PlaceError::SymbolicLink(asked)) => {
                let root = root.canonicalize()?;
                // A link to nothing may come to lead anywhere.
                let Ok(real) = root.join(inside).canonicalize() else {
                    return Err(PlaceError::SymbolicLink(asked));
                };
                match real.strip_prefix(&root) {
                    Ok(inside) => Self::beneath(&root, inside, &asked),
                    Err(_) => Err(PlaceError::Escapes { root, path: asked }),
                }
            }
            found => found,
        }
    }

    /// Returns `self` if there is something at the place.
    pub fn if_exists(self) -> Result<Self, PlaceError> {
        fstatat(&self.directory, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW)?;
        Ok(self)
    }

    /// The directory that the file is in, held open.
    pub fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// Opens the file for reading. A pipe or device is refused rather than waited for.
    pub fn open(&self) -> Result<File, PlaceError> {
        Ok(open_file(&self.directory, &self.name, &self.shown)?.0)
    }

    /// The file's first bytes, at most `limit`. No more is read, however long the file is.
    pub fn read_head(&self, limit: u64) -> Result<Head, PlaceError> {
        let (file, metadata) = open_file(&self.directory, &self.name, &self.shown)?;
        Head::read(file, metadata, limit)
    }

    /// Adds `bytes` at the end of the file, which is made when there is none.
    pub fn append(&self, bytes: &[u8]) -> Result<(), PlaceError> {
        let flags = OFlag::O_WRONLY
            | OFlag::O_APPEND
            | OFlag::O_CREAT
            | OFlag::O_NOFOLLOW
            | OFlag::O_NONBLOCK
            | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(0o666);
        let mut file = File::from(openat(&self.directory, self.name.as_os_str(), flags, mode)?);
        match file.metadata()?.is_file() {
            true => Ok(file.write_all(bytes)?),
            false => Err(PlaceError::NotAFile(self.shown.clone())),
        }
    }

    /// Has the directory written to the disk: after that a file that was made or replaced stays so.
    pub fn sync_directory(&self) -> Result<(), PlaceError> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Ok(File::from(openat(&self.directory, ".", flags, Mode::empty())?).sync_all()?)
    }

    /// Makes `bytes` the file's content. A reader sees the old content or the new, and a full disk costs nothing; only a
    /// file with other names or another owner is overwritten in place, so that those stay true.
    pub fn replace(&self, bytes: &[u8]) -> Result<(), PlaceError> {
        match self.open() {
            Ok(old) => {
                let old = old.metadata()?;
                if old.nlink() > 1 || old.uid() != nix::unistd::geteuid().as_raw() {
                    return self.overwrite(bytes);
                }
                self.swap_in(bytes, Some(old.permissions().mode()))
            }
            Err(PlaceError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                self.swap_in(bytes, None)
            }
            Err(PlaceError::Io(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.overwrite(bytes)
            }
            Err(error) => Err(error),
        }
    }

    fn overwrite(&self, bytes: &[u8]) -> Result<(), PlaceError> {
        let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(&self.directory, self.name.as_os_str(), flags, Mode::empty())?);
        file.write_all(bytes)?;
        file.set_len(bytes.len() as u64)?;
        Ok(file.sync_data()?)
    }

    fn swap_in(&self, bytes: &[u8], mode: Option<u32>) -> Result<(), PlaceError> {
        let (draft, mut file) = match self.draft() {
            // A directory that takes no new file may still hold a writable one.
            Err(PlaceError::Io(error))
                if error.kind() == io::ErrorKind::PermissionDenied && mode.is_some() =>
            {
                return self.overwrite(bytes);
            }
            draft => draft?,
        };
        let written = (|| {
            if let Some(mode) = mode {
                #[allow(clippy::useless_conversion, reason = "the raw type differs between systems")]
                fchmod(&file, Mode::from_bits_truncate((mode & 0o7777) as _))?;
            }
            file.write_all(bytes)?;
            file.sync_data()?;
            Ok(renameat(&self.directory, draft.as_os_str(), &self.directory, self.name.as_os_str())?)
        })();
        if written.is_err() {
            let _ = unlinkat(&self.directory, draft.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
        written
    }

    /// A new empty file, in the place of one that is there. Only the owner may change it.
    pub fn create(&self, executable: Executable) -> Result<File, PlaceError> {
        self.remove()?;
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = match executable {
            Executable::Yes => 0o755,
            Executable::No => 0o644,
        };
        Ok(openat(&self.directory, self.name.as_os_str(), flags, Mode::from_bits_truncate(mode))?.into())
    }

    /// Makes a symbolic link, in the place of a file that is there. The target of the link is not
    /// examined.
    pub fn link_to(&self, target: &Path) -> Result<(), PlaceError> {
        self.remove()?;
        Ok(symlinkat(target, &self.directory, self.name.as_os_str())?)
    }

    /// Removes the file if there is one.
    pub fn remove(&self) -> Result<(), PlaceError> {
        match unlinkat(&self.directory, self.name.as_os_str(), UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// A new empty file beside this one, under a name nobody uses.
    fn draft(&self) -> Result<(OsString, File), PlaceError> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut attempt = 0_u32;
        loop {
            let name = OsString::from(format!(".openclaw-{}-{attempt}.tmp", std::process::id()));
            match openat(&self.directory, name.as_os_str(), flags, Mode::from_bits_truncate(0o666)) {
                Ok(file) => return Ok((name, File::from(file))),
                Err(Errno::EEXIST) if attempt < 1000 => attempt += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn refuse_link(directory: &OwnedFd, name: &Path, asked: &str) -> Result<(), PlaceError> {
    match fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) if SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFLNK => {
            Err(PlaceError::SymbolicLink(asked.to_owned()))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
