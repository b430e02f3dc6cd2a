//! Small pieces of file handling that stores and transcripts share.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

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
    changed: (i64, i64),
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
        let (inode, changed) = {
            use std::os::unix::fs::MetadataExt as _;
            (meta.ino(), (meta.ctime(), meta.ctime_nsec()))
        };
        #[cfg(not(unix))]
        let (inode, changed) = (0, (0, 0));
        Self { modified: meta.modified().ok(), len: meta.len(), inode, changed }
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
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<Stamp> {
    replace_with(path, |file| file.write_all(bytes))
}

/// [`replace`] with a writer.
pub(crate) fn replace_with(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<Stamp> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    create_parent(path)?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = beside(path, &format!("{}.{}-{number}.tmp", std::process::id(), uuid::Uuid::new_v4()));
    let written = private(OpenOptions::new().write(true).create_new(true)).open(&temporary).and_then(|mut file| {
        write(&mut file)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| std::fs::rename(&temporary, path));
    if let Err(error) = renamed {
        let _ = std::fs::remove_file(&temporary);
        return Err(error);
    }
    let stamp = Stamp::from_meta(&std::fs::metadata(path)?);
    sync_parent(path)?;
    Ok(stamp)
}
