//! Small pieces of file handling that stores and transcripts share.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::time::now_ms;

/// A file that is created is its owner's alone.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

/// Creates the directory of a file, its owner's alone where it is new.
pub(crate) fn create_parent(path: &Path) -> io::Result<()> {
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else { return Ok(()) };
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(parent)
}

/// Makes the name of a file durable.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

/// Whether both describe the same file.
pub(crate) fn same_file(a: &Metadata, b: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        (a.dev(), a.ino()) == (b.dev(), b.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = (a, b);
        true
    }
}

/// What changes when a file is changed or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: Option<std::time::SystemTime>,
    len: u64,
    inode: u64,
}

impl Stamp {
    /// The stamp of a file; nothing when there is none.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        match std::fs::metadata(path) {
            Ok(meta) => Ok(Some(Self::from_meta(&meta))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn from_meta(meta: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = {
            use std::os::unix::fs::MetadataExt as _;
            meta.ino()
        };
        #[cfg(not(unix))]
        let inode = 0;
        Self { modified: meta.modified().ok(), len: meta.len(), inode }
    }
}

/// `<file>.bak-<pid>-<ms>`, a name that is not in use.
pub(crate) fn backup_path(path: &Path) -> PathBuf {
    let mut ms = now_ms();
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".bak-{}-{ms}", std::process::id()));
        let backup = PathBuf::from(name);
        if !backup.exists() {
            return backup;
        }
        ms += 1;
    }
}

/// `<file>.<suffix>`
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

/// Writes a new file and makes it durable.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = private(OpenOptions::new().write(true).create_new(true)).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    sync_parent(path)
}

/// Replaces a file at once or not at all, durably: temporary file, sync, rename, sync of the directory.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = Temporary::write(path, |file| file.write_all(bytes))?;
    temporary.persist(path)
}

/// A complete and synced file under a temporary name; removed on drop unless it took its place.
pub(crate) struct Temporary {
    path: PathBuf,
    stamp: Stamp,
    persisted: bool,
}

impl Temporary {
    /// Writes a temporary file beside `path`, its owner's alone.
    pub(crate) fn write(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<Self> {
        create_parent(path)?;
        let name = beside(path, &format!("{}.{}.tmp", std::process::id(), uuid::Uuid::new_v4()));
        let mut file = private(OpenOptions::new().write(true).create_new(true)).open(&name)?;
        let mut temporary = Self { path: name, stamp: Stamp::from_meta(&file.metadata()?), persisted: false };
        write(&mut file)?;
        file.sync_all()?;
        temporary.stamp = Stamp::from_meta(&file.metadata()?);
        Ok(temporary)
    }

    /// The stamp the file keeps under its final name.
    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Gives the file its final name, durably.
    pub(crate) fn persist(mut self, path: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, path)?;
        self.persisted = true;
        sync_parent(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.persisted {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
