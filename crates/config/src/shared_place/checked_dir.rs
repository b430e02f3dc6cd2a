//! Directory whose way is checked once, for reading many files in it.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

use super::{Owners, check_way, open, refusal, require_file};

/// A directory of the state that is held open: files are opened in what was checked.
#[derive(Debug)]
pub struct CheckedDir {
    handle: File,
    path: PathBuf,
}

impl CheckedDir {
    /// Opens a directory that is reached through no link of another user.
    ///
    /// # Errors
    /// Says what is not ours, or why it can't be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        check_way(path)?;
        let handle = OpenOptions::new().read(true).custom_flags(OFlag::O_DIRECTORY.bits()).open(path)?;
        Ok(Self { handle, path: path.to_owned() })
    }

    /// Opens a file in it to be read, as [`open`] does.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let path = self.path.join(name);
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let opened: OwnedFd = match openat(&self.handle, name, flags, Mode::empty()) {
            // A link leads on from here.
            Err(Errno::ELOOP) => return open(&path),
            opened => opened.map_err(|errno| refusal(&path, path.metadata(), errno.into()))?,
        };
        let file = File::from(opened);
        require_file(Owners::current(), &path, &file)?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_opened_as_one_by_one() {
        let base = tempfile::tempdir().unwrap();
        std::fs::write(base.path().join("file"), "text").unwrap();
        std::fs::create_dir(base.path().join("directory")).unwrap();
        symlink("file", base.path().join("link")).unwrap();
        symlink("nowhere", base.path().join("dangling")).unwrap();
        nix::unistd::mkfifo(&base.path().join("pipe"), Mode::S_IRUSR).unwrap();
        let dir = CheckedDir::open(base.path()).unwrap();
        let read = |opened: io::Result<File>| {
            let mut text = String::new();
            opened.and_then(|mut file| file.read_to_string(&mut text)).map_err(|error| error.to_string())?;
            Ok::<_, String>(text)
        };
        for name in ["file", "link", "dangling", "directory", "pipe", "missing"] {
            assert_eq!(read(dir.open_file(name.as_ref())), read(open(&base.path().join(name))), "{name}");
        }
        assert_eq!(read(dir.open_file("link".as_ref())).as_deref(), Ok("text"));
        assert!(CheckedDir::open(&base.path().join("file")).is_err());
    }
}
