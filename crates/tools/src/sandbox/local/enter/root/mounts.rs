//! Mounts, one by one.

use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sys::statvfs::{FsFlags, statvfs};

use super::super::{Doing as _, EnterError};
use super::HOST;

const PROC: &str = "/proc";
/// Files below `/proc` that tell of the host, or of its other programs.
const HOST_FILES: &[&str] =
    &["kcore", "keys", "timer_list", "sched_debug", "latency_stats", "kallsyms", "kmsg"];
const NOBODY: Option<&str> = None;

/// Access below a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountAccess {
    Read,
    Write,
    /// The file is a device, and is used as such.
    Device,
}

impl MountAccess {
    fn flags(self) -> MsFlags {
        match self {
            Self::Read => MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_RDONLY,
            Self::Write => MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
            Self::Device => MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC,
        }
    }
}

/// A file or directory of the host that is seen inside. `source` has no symbolic links.
#[derive(Debug)]
pub(super) struct Bind {
    pub(super) source: PathBuf,
    pub(super) target: PathBuf,
    pub(super) access: MountAccess,
}

impl Bind {
    pub(super) fn mount(&self) -> Result<(), EnterError> {
        let from = Path::new(HOST).join(self.source.strip_prefix("/").unwrap_or(&self.source));
        let what = || format!("show {}", self.source.display());
        if from.is_dir() {
            fs::create_dir_all(&self.target).doing(what())?;
        } else {
            make_file(&self.target).doing(what())?;
        }
        mount(Some(&from), &self.target, NOBODY, MsFlags::MS_BIND | MsFlags::MS_REC, NOBODY).doing(what())?;
        self.protect()
    }

    /// Takes rights away, also where other file systems are mounted below.
    fn protect(&self) -> Result<(), EnterError> {
        let all = fs::read(format!("{PROC}/self/mountinfo")).doing("list mounts")?;
        let below = mount_points(&all).into_iter().filter(|point| point.starts_with(&self.target));
        for point in below {
            match remount(&point, self.access.flags()) {
                // A path that can't even be looked at needs no protection.
                Err(_) if point != self.target && fs::metadata(&point).is_err() => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// Covers a path of the host, if it is seen here. The directories above it keep their names: a mount can't be renamed, and else a
    /// command could move them away and put others in their place.
    pub(super) fn hide(&self, path: &Path) -> Result<(), EnterError> {
        let Ok(inside) = path.strip_prefix(&self.source) else { return Ok(()) };
        let at = if inside.as_os_str().is_empty() { self.target.clone() } else { self.target.join(inside) };
        let above: Vec<&Path> =
            inside.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty()).collect();
        for dir in above.into_iter().rev().map(|dir| self.target.join(dir)).filter(|dir| dir.is_dir()) {
            let what = format!("hold {}", dir.display());
            mount(Some(&dir), &dir, NOBODY, MsFlags::MS_BIND | MsFlags::MS_REC, NOBODY).doing(what)?;
        }
        match fs::symlink_metadata(&at) {
            Ok(meta) if meta.is_dir() => {
                in_memory(&at, "mode=000,size=4k")?;
                remount(&at, MountAccess::Read.flags())
            }
            Ok(_) => {
                let what = format!("hide {}", path.display());
                mount(Some("/dev/null"), &at, NOBODY, MsFlags::MS_BIND, NOBODY).doing(what)
            }
            // Not there, or covered already.
            Err(_) => Ok(()),
        }
    }
}

/// Changes stay in this namespace.
pub(super) fn keep_changes_here() -> Result<(), EnterError> {
    mount(NOBODY, "/", NOBODY, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOBODY).doing("separate the mounts")
}

/// An empty directory in memory.
pub(super) fn in_memory(path: &Path, options: &str) -> Result<(), EnterError> {
    let what = || format!("mount memory at {}", path.display());
    fs::create_dir_all(path).doing(what())?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some(options)).doing(what())
}

/// The processes inside; those of the host are not among them.
pub(super) fn process_files() -> Result<(), EnterError> {
    fs::create_dir(PROC).doing("mount /proc")?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    // The first process is not for the command to look at: its arguments tell where things are on the host.
    mount(Some("proc"), PROC, Some("proc"), flags, Some("hidepid=ptraceable"))
        .or_else(|_| mount(Some("proc"), PROC, Some("proc"), flags, NOBODY))
        .doing("mount /proc")
}

/// Settings of the kernel belong to root, and a gateway that runs as root has its number outside: nothing there may be written.
/// Their most is set before: it also binds a command that limits of a user do not bind, which is what root's are.
pub(super) fn protect_process_files(most: Option<u64>) -> Result<(), EnterError> {
    /// The kernel takes no less.
    const LEAST: u64 = 301;
    if let Some(most) = most.filter(|_| has_own_process_numbers()) {
        let _ = fs::write(Path::new(PROC).join("sys/kernel/pid_max"), most.max(LEAST).to_string());
    }
    for name in HOST_FILES {
        let path = Path::new(PROC).join(name);
        if path.exists() {
            mount(Some("/dev/null"), &path, NOBODY, MsFlags::MS_BIND, NOBODY).doing("hide files of /proc")?;
        }
    }
    remount(Path::new(PROC), MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY)
}

/// Since Linux 6.14 each namespace has its own limit. Before, this would be the whole system's.
fn has_own_process_numbers() -> bool {
    let release = fs::read_to_string(Path::new(PROC).join("sys/kernel/osrelease")).unwrap_or_default();
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(14))
}

/// Adds restrictions to a mount. Restrictions that it has can't be removed here, and must be named.
pub(super) fn remount(point: &Path, flags: MsFlags) -> Result<(), EnterError> {
    let what = format!("protect {}", point.display());
    let has = statvfs(point).doing(what.clone())?.flags();
    let kept = [
        (FsFlags::ST_RDONLY, MsFlags::MS_RDONLY),
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
    ];
    let kept = kept.into_iter().filter(|(flag, _)| has.contains(*flag)).map(|(_, flag)| flag);
    let flags = kept.fold(flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND, |all, flag| all | flag);
    mount(NOBODY, point, NOBODY, flags, NOBODY).doing(what)
}

pub(super) fn make_file(path: &Path) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::File::options().create(true).append(true).open(path).map(drop)
}

/// The fifth field of each line of `mountinfo`, where blanks are written in octal.
fn mount_points(text: &[u8]) -> Vec<PathBuf> {
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4)).map(unescaped).collect()
}

fn unescaped(field: &[u8]) -> PathBuf {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    std::ffi::OsString::from_vec(out).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_with_blanks_in_their_names() {
        let text = b"22 1 8:1 / / rw - ext4 x rw\n23 22 0:5 / /a\\040b\\134c rw shared:1 - tmpfs t rw\n\n";
        assert_eq!(mount_points(text), [Path::new("/"), Path::new("/a b\\c")]);
        assert_eq!(unescaped(b"/a\\04"), Path::new("/a\\04"));
    }
}
