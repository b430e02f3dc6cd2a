//! Directories that others may write to, such as `/tmp`, or could until a moment ago. Another user may have put there what
//! we are about to open: a link to a file of ours, a directory of their own, a pipe. So what lies in one counts only when
//! it is ours (or root's), and a file of the state wherever it lies ([`open`]): a mode says nothing about yesterday.

mod checked_dir;

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::geteuid;

pub use checked_dir::CheckedDir;

/// Group and others may write.
const OTHERS_WRITE: u32 = 0o022;
const MAX_LINKS: usize = 40;

/// Reason why something in a shared place is not used. The text says what to do.
#[derive(Debug, thiserror::Error)]
enum NotOurs {
    /// Another user made it.
    #[error("{what} belongs to user {owner}, not to user {us}; {}", advice(*owner, *us))]
    Foreign { what: String, owner: u32, us: u32 },
    /// A link that leads elsewhere, or something of another kind.
    #[error("{what} is {is}, not a regular file; remove it, or use another directory")]
    Odd { what: String, is: &'static str },
    /// A file with further names (hard links), which others may have given it.
    #[error("{what} has {links} hard links; remove it, or use another directory")]
    Linked { what: String, links: u64 },
}

fn advice(owner: u32, us: u32) -> String {
    match us {
        0 => format!("run this as user {owner} if you know it, else remove it, or use another directory"),
        _ => "make it yours with chown if you know it, else remove it, or use another directory".to_owned(),
    }
}

/// True if a place was refused for what another user may have put there.
pub fn is_not_ours(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<NotOurs>())
}

impl From<NotOurs> for io::Error {
    fn from(error: NotOurs) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, error)
    }
}

/// Requirement on who may write to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    /// No other user may write to it.
    Private,
    /// Others could write to it before; now nobody can.
    Repaired,
    /// Others may write to it, and that is not ours to change.
    Shared,
}

/// Owners whose files are trusted.
#[derive(Debug, Clone, Copy)]
struct Owners {
    us: u32,
    root: u32,
}

impl Owners {
    fn current() -> Self {
        Self { us: geteuid().as_raw(), root: 0 }
    }

    fn require(self, what: &Path, found: &Metadata) -> io::Result<()> {
        if found.uid() == self.us || found.uid() == self.root {
            return Ok(());
        }
        let what = what.display().to_string();
        Err(NotOurs::Foreign { what, owner: found.uid(), us: self.us }.into())
    }
}

fn is_shared(dir: &Metadata) -> bool {
    dir.mode() & OTHERS_WRITE != 0
}

/// Refuses a path that leads through something in a shared directory that is not ours, or through another user's link
/// wherever that lies. Parts that are not there yet are fine. Links of ours are our business.
///
/// # Errors
/// Says what is not ours.
pub fn check_way(path: &Path) -> io::Result<()> {
    walk(Owners::current(), PathBuf::from("/"), names(&std::path::absolute(path)?))
}

fn walk(owners: Owners, at: PathBuf, left: VecDeque<OsString>) -> io::Result<()> {
    steps(at, left, |step| match step.found.is_symlink() || is_shared(step.parent) {
        true => owners.require(step.path, step.found),
        false => Ok(()),
    })
}

/// Calls `look` with everything on the way to a path: directories, links, and what the links lead through. In the paths that `look` is
/// given, only the last name may be a link.
///
/// # Errors
/// The error of `look`, or what the system says. Parts that are not there yet are fine.
pub(crate) fn each_step(path: &Path, mut look: impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    steps(PathBuf::from("/"), names(&std::path::absolute(path)?), |step| look(step.path))
}

/// Step on the way to a path: the directory, and what was found in it.
struct PathStep<'a> {
    parent: &'a Metadata,
    path: &'a Path,
    found: &'a Metadata,
}

/// Walks from a directory along the names that are left, step by step.
fn steps(
    mut at: PathBuf,
    mut left: VecDeque<OsString>,
    mut look: impl FnMut(PathStep<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut links = 0;
    // Of the directory it is at, once it has been looked at.
    let mut dir: Option<Metadata> = None;
    while let Some(name) = left.pop_front() {
        if name == ".." {
            at.pop();
            dir = None;
            continue;
        }
        let next = at.join(&name);
        let found = match fs::symlink_metadata(&next) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        let parent = match dir.take() {
            Some(parent) => parent,
            None => fs::symlink_metadata(&at)?,
        };
        look(PathStep { parent: &parent, path: &next, found: &found })?;
        if !found.is_symlink() {
            at = next;
            dir = Some(found);
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(io::Error::other(format!("{} leads in a circle", next.display())));
        }
        let target = fs::read_link(&next)?;
        if target.is_absolute() {
            at = PathBuf::from("/");
        } else {
            dir = Some(parent);
        }
        let mut ahead = names(&target);
        ahead.append(&mut left);
        left = ahead;
    }
    Ok(())
}

fn names(path: &Path) -> VecDeque<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().filter_map(name).collect()
}

/// A directory to put private files into, held open: files are opened in what was checked.
#[derive(Debug)]
pub struct OwnDir {
    handle: File,
    path: PathBuf,
}

impl OwnDir {
    /// Opens a directory that is there. Changes nothing.
    ///
    /// # Errors
    /// When it is not ours, or the system refuses.
    pub fn open(path: &Path) -> io::Result<Self> {
        check_way(path)?;
        // Links on the way are ours or root's; the last step follows none that came meanwhile.
        let real = fs::canonicalize(path)?;
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let handle = OpenOptions::new().read(true).custom_flags(flags.bits()).open(&real)?;
        Owners::current().require(path, &handle.metadata()?)?;
        Ok(Self { handle, path: path.to_owned() })
    }

    /// Closes it to others if they could write to it.
    ///
    /// # Errors
    /// When it can't be looked at.
    pub fn close_to_others(&self) -> io::Result<Modes> {
        let found = self.handle.metadata()?;
        match (is_shared(&found), found.uid() == Owners::current().us) {
            (false, _) => Ok(Modes::Private),
            (true, false) => Ok(Modes::Shared),
            // There are file systems without modes.
            (true, true) => match self.handle.set_permissions(Permissions::from_mode(0o700)) {
                Ok(()) => Ok(Modes::Repaired),
                Err(_) => Ok(Modes::Shared),
            },
        }
    }

    /// Refuses things in it that another user made, which they could while it was open to them.
    ///
    /// # Errors
    /// Names the first of them.
    pub fn check_entries(&self) -> io::Result<()> {
        let owners = Owners::current();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            match entry.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                found => owners.require(&entry.path(), &found?)?,
            }
        }
        Ok(())
    }

    /// Opens a file in it to be read and written, made with mode 0600 where missing. A link, a file with other names,
    /// one of another user or anything but a file is refused, and nothing is done to it.
    ///
    /// # Errors
    /// Says what it is instead of a file of ours.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        self.open_with(name, OFlag::O_RDWR | OFlag::O_CREAT)
    }

    /// The same to be read, and not made.
    ///
    /// # Errors
    /// The same.
    pub fn read_file(&self, name: &OsStr) -> io::Result<File> {
        self.open_with(name, OFlag::O_RDONLY)
    }

    fn open_with(&self, name: &OsStr, access: OFlag) -> io::Result<File> {
        // A pipe is not waited for.
        let flags = access | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let path = self.path.join(name);
        let opened = openat(&self.handle, name, flags, Mode::S_IRUSR | Mode::S_IWUSR);
        let file: OwnedFd =
            opened.map_err(|errno| refusal(&path, fs::symlink_metadata(&path), errno.into()))?;
        let file = File::from(file);
        require_private(Owners::current(), &path, &file)?;
        Ok(file)
    }
}

/// Error for something that can't be opened, which names what is there instead.
fn refusal(path: &Path, there: io::Result<Metadata>, error: io::Error) -> io::Error {
    match there {
        Ok(found) if !found.is_file() => odd(path, &found),
        _ => error,
    }
}

fn odd(path: &Path, found: &Metadata) -> io::Error {
    let kind = found.file_type();
    let is = match kind {
        _ if kind.is_symlink() => "a symbolic link",
        _ if kind.is_dir() => "a directory",
        _ if kind.is_fifo() => "a pipe",
        _ => "a device or socket",
    };
    NotOurs::Odd { what: path.display().to_string(), is }.into()
}

/// An open regular file that is ours.
fn require_file(owners: Owners, path: &Path, file: &File) -> io::Result<Metadata> {
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(odd(path, &found));
    }
    owners.require(path, &found)?;
    Ok(found)
}

/// The same, ours alone; its mode is set to 0600.
fn require_private(owners: Owners, path: &Path, file: &File) -> io::Result<()> {
    let found = require_file(owners, path, file)?;
    if found.nlink() > 1 {
        return Err(NotOurs::Linked { what: path.display().to_string(), links: found.nlink() }.into());
    }
    if found.mode() & 0o077 != 0 && found.uid() == owners.us {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// Opens a file of the state to be read: a regular one that is ours, reached through no link of another user. Links of our
/// own are followed. A pipe is refused, not waited for.
///
/// # Errors
/// Says what it is instead of a file of ours.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// The same for what the options say.
///
/// # Errors
/// As [`open`].
pub fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    check_way(path)?;
    let opened = options.custom_flags(OFlag::O_NONBLOCK.bits()).open(path);
    let file = opened.map_err(|error| refusal(path, fs::metadata(path), error))?;
    require_file(Owners::current(), path, &file)?;
    Ok(file)
}

/// All of such a file.
///
/// # Errors
/// As [`open`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let len = file.metadata().map_or(0, |found| usize::try_from(found.len()).unwrap_or(0));
    let mut bytes = Vec::with_capacity(len);
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of such a file.
///
/// # Errors
/// As [`open`], and when it is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    io::read_to_string(open(path)?)
}

/// Opens a private file to append to. It has to be ours, and in a shared directory as [`OwnDir::open_file`] has it.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_shared = is_shared(&fs::metadata(dir)?);
    let follow = if is_shared { OFlag::O_NOFOLLOW } else { OFlag::empty() };
    let flags = follow | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).custom_flags(flags.bits());
    check_way(path)?;
    let file = options.open(path).map_err(|error| refusal(path, fs::symlink_metadata(path), error))?;
    if is_shared {
        require_private(Owners::current(), path, &file)?;
    } else {
        // A log may go to a device.
        Owners::current().require(path, &file.metadata()?)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests;
