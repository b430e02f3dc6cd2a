//! File systems with limits, for tests that run as root where mounting is allowed. Elsewhere such a test says that it was
//! passed over.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted directory; dropping it unmounts, also while files in it are open.
#[derive(Debug)]
pub(crate) struct Mount(PathBuf);

impl Mount {
    /// Makes what is in a directory unwritable, for root too.
    pub(crate) fn read_only(dir: &Path) -> Option<Self> {
        let bound = Self::at(&["--bind"], dir, dir)?;
        let options = ["-o", "remount,ro,bind"];
        Self::succeeds(Command::new("mount").args(options).arg(dir)).then_some(bound)
    }

    /// An empty file system of this many bytes in memory.
    pub(crate) fn of_size(dir: &Path, bytes: usize) -> Option<Self> {
        Self::at(&["-t", "tmpfs", "-o", &format!("size={bytes},mode=0700")], Path::new("tmpfs"), dir)
    }

    #[expect(clippy::print_stderr, reason = "a test that checks nothing has to say so")]
    fn at(options: &[&str], what: &Path, dir: &Path) -> Option<Self> {
        let mounted = Self::succeeds(Command::new("mount").args(options).arg(what).arg(dir));
        if !mounted {
            eprintln!("passed over: mounting is not allowed here");
        }
        mounted.then(|| Self(dir.to_owned()))
    }

    fn succeeds(command: &mut Command) -> bool {
        command.output().is_ok_and(|output| output.status.success())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}
