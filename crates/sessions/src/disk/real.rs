//! The disk of this machine.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use openclaw_config::shared_place;

use super::{Disk, DiskFile, FileVersion, private};

/// Plain system calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RealDisk;

impl Disk for RealDisk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(private(OpenOptions::new().append(true).create_new(true)).open(path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        shared_place::read(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(shared_place::open(path)?))
    }

    fn stamp(&self, path: &Path) -> io::Result<Option<FileVersion>> {
        FileVersion::of(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        match std::fs::read_dir(dir) {
            Ok(entries) => entries.map(|entry| entry.map(|entry| entry.file_name())).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::DirBuilderExt as _;
            builder.mode(0o700);
        }
        match builder.create(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
            other => other,
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        #[cfg(unix)]
        File::open(dir)?.sync_all()?;
        #[cfg(not(unix))]
        let _ = dir;
        Ok(())
    }

    fn is_held(&self, path: &Path) -> io::Result<bool> {
        match shared_place::open(path)?.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Ok(true),
            // A file system without locks holds nothing.
            Err(TryLockError::Error(_)) | Ok(()) => Ok(false),
        }
    }
}

impl DiskFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        self.sync_data()
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn stamp(&self) -> io::Result<FileVersion> {
        Ok(FileVersion::from_meta(&self.metadata()?))
    }

    fn hold(&self) {
        // A file system without locks can tell nobody.
        let _ = self.try_lock();
    }
}
