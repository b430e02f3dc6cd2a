//! `/dev`: devices that do no harm, and terminals of its own.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};

use super::super::super::rules::DEVICES;
use super::super::{Doing as _, EnterError};
use super::mounts::{Bind, MountAccess, in_memory, remount};

const LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
];

pub(super) fn build() -> Result<(), EnterError> {
    in_memory(Path::new("/dev"), "mode=755,size=64k")?;
    for device in DEVICES {
        let path = PathBuf::from(device);
        Bind { source: path.clone(), target: path, access: MountAccess::Device }.mount()?;
    }
    for (at, to) in LINKS {
        symlink(to, at).doing(format!("link {at}"))?;
    }
    std::fs::create_dir("/dev/pts").doing("make terminals")?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = Some("newinstance,ptmxmode=0666,mode=0620");
    mount(Some("devpts"), "/dev/pts", Some("devpts"), flags, options).doing("make terminals")?;
    in_memory(Path::new("/dev/shm"), "mode=1777,size=64m")?;
    remount(Path::new("/dev"), MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY)
}
