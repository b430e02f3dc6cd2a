//! The file system inside: made in memory from what of the host may be seen, then made the root.
//! Paths that are not mounted here do not exist for the command.

mod devices;
mod etc;
mod mounts;

use std::fs;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, umount2};
use nix::unistd::pivot_root;

use super::super::spec::{Mount, Spec};
use super::{Doing as _, EnterError};
use mounts::{Bind, MountAccess, in_memory, remount};

/// Directory at which the new root is assembled. Any directory would do.
const BASE: &str = "/tmp";
/// Path of the host's root inside the new root while it is assembled.
const HOST: &str = "/.host";

pub(super) fn build(spec: &Spec) -> Result<(), EnterError> {
    // While names still mean what they mean on the host.
    let system = system_directories();
    let etc = etc::gather(spec);
    let binds = spec.mounts.iter().map(bind_of).collect::<Result<Vec<_>, _>>()?;
    let hidden: Vec<PathBuf> = spec.hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
    enter_base()?;
    mounts::process_files()?;
    let mut seen = Vec::new();
    for each in system {
        match each {
            System::Link(at, to) => {
                std::os::unix::fs::symlink(&to, &at).doing(format!("link {}", at.display()))?
            }
            System::Directory(bind) => {
                bind.mount()?;
                seen.push(bind);
            }
        }
    }
    etc::build(&etc)?;
    devices::build()?;
    for (path, size) in &spec.tmpfs {
        in_memory(path, &format!("mode=1777,size={}", size.as_deref().unwrap_or("25%")))?;
    }
    for bind in binds {
        bind.mount()?;
        seen.push(bind);
    }
    for path in &hidden {
        seen.iter().try_for_each(|bind| bind.hide(path))?;
    }
    umount2(HOST, MntFlags::MNT_DETACH).doing("let go of the host's files")?;
    fs::remove_dir(HOST).doing("let go of the host's files")?;
    mounts::protect_process_files(spec.limits.processes)?;
    remount(Path::new("/"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_RDONLY)
}

fn bind_of(mount: &Mount) -> Result<Bind, EnterError> {
    let source = mount.source.canonicalize().doing(format!("find {}", mount.source.display()))?;
    let access = if mount.writable { MountAccess::Write } else { MountAccess::Read };
    Ok(Bind { source, target: mount.target.clone(), access })
}

/// A directory of programs.
enum System {
    Link(PathBuf, PathBuf),
    Directory(Bind),
}

/// Programs and what they need, as the host has them.
fn system_directories() -> Vec<System> {
    let of = |path: &&str| {
        let path = PathBuf::from(path);
        match fs::symlink_metadata(&path).ok()? {
            meta if meta.is_symlink() => Some(System::Link(path.clone(), fs::read_link(&path).ok()?)),
            meta if meta.is_dir() => Some(System::Directory(Bind {
                source: path.clone(),
                target: path,
                access: MountAccess::Read,
            })),
            _ => None,
        }
    };
    super::super::rules::SYSTEM.iter().filter_map(of).collect()
}

/// Makes a new root, with the host's below it.
fn enter_base() -> Result<(), EnterError> {
    mounts::keep_changes_here()?;
    in_memory(Path::new(BASE), "mode=755,size=16m")?;
    let below = Path::new(BASE).join(HOST.trim_start_matches('/'));
    fs::create_dir(&below).doing("make the new root")?;
    std::env::set_current_dir(BASE).doing("enter the new root")?;
    pivot_root(".", &below).doing("change the root")?;
    std::env::set_current_dir("/").doing("enter the new root")
}
