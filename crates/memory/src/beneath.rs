//! Opening a file below a directory without following a symbolic link on the way.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Component, Path};

/// Opens the regular file at `inside`, a relative path without `..`, below `root`. Links in `root` itself are followed;
/// no step after it may be one. A pipe or device is refused rather than waited for.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidInput`] if the path leads out of `root`, through a link, or to something that is no file.
pub(crate) fn open_beneath(root: &Path, inside: &Path) -> io::Result<(File, Metadata)> {
    let mut steps = Vec::new();
    for part in inside.components() {
        match part {
            Component::Normal(name) => steps.push(name),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::ParentDir => {
                return Err(refused("the path leads out of its directory"));
            }
        }
    }
    let file = open_steps(root, &steps)?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(refused("not a regular file")) }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why.to_owned())
}

#[cfg(unix)]
fn open_steps(root: &Path, steps: &[&std::ffi::OsStr]) -> io::Result<File> {
    use nix::errno::Errno;
    use nix::fcntl::{OFlag, open, openat};
    use nix::sys::stat::Mode;

    let directory = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let Some((name, before)) = steps.split_last() else { return Err(refused("not a regular file")) };
    let link = |error: Errno| match error {
        // A link where a directory is asked for is "not a directory".
        Errno::ELOOP => refused("a symbolic link is not followed"),
        error => io::Error::from(error),
    };
    let mut here = open(root, directory, Mode::empty()).map_err(io::Error::from)?;
    for step in before {
        here = openat(&here, *step, directory | OFlag::O_NOFOLLOW, Mode::empty()).map_err(
            |error| match error {
                Errno::ENOTDIR => refused("a symbolic link is not followed"),
                error => link(error),
            },
        )?;
    }
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    openat(&here, *name, flags, Mode::empty()).map(File::from).map_err(link)
}

#[cfg(not(unix))]
fn open_steps(root: &Path, steps: &[&std::ffi::OsStr]) -> io::Result<File> {
    let mut path = root.to_owned();
    for step in steps {
        path.push(step);
        if std::fs::symlink_metadata(&path)?.file_type().is_symlink() {
            return Err(refused("a symbolic link is not followed"));
        }
    }
    File::open(path)
}
