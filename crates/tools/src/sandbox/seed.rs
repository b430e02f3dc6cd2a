//! Fills a new sandbox directory: the agent's own files, and its skills. Blocking.
//!
//! Commands in the sandbox may write there, and put symbolic links in the way: every file is made
//! below an open directory, without following one.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};

use openclaw_agent::bootstrap;
use openclaw_agent::place::{Executable, Place, PlaceError};

/// Longest file that is copied.
const LONGEST: u64 = 2 << 20;
/// Largest number of files of one skill.
const MOST_FILES: usize = 1000;
const DEEPEST: usize = 16;
/// Directory of skills in the sandbox.
pub(super) const SKILLS: &str = "skills";

/// A skill that the sandbox gets a copy of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeededSkill {
    /// Name of the skill, and of the copy's directory.
    pub name: String,
    /// Directory of the skill on the host.
    pub directory: PathBuf,
}

impl SeededSkill {
    /// Returns true if the name can be that of a directory.
    fn is_plain(&self) -> bool {
        let mut parts = Path::new(&self.name).components();
        matches!((parts.next(), parts.next()), (Some(std::path::Component::Normal(_)), None))
    }
}

/// Makes the directory and copies what is not there yet. Skills are copied anew.
pub(super) fn seed(root: &Path, agent_workspace: &Path, skills: &[SeededSkill]) -> io::Result<()> {
    make_private(root)?;
    for name in bootstrap::FILES {
        if let Err(error) = copy_new(agent_workspace, root, name) {
            tracing::warn!(%error, name, "a file of the workspace is not in the sandbox");
        }
    }
    for skill in skills.iter().filter(|skill| skill.is_plain()) {
        if let Err(error) = copy_skill(root, skill) {
            tracing::warn!(%error, skill = %skill.name, "a skill is not in the sandbox");
        }
    }
    Ok(())
}

/// A directory for the gateway's user alone.
fn make_private(root: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(root)
}

fn copy_new(from: &Path, root: &Path, name: &str) -> Result<(), PlaceError> {
    let place = Place::create_beneath(root, Path::new(name), name)?;
    match place.open() {
        Err(error) if error.is_not_found() => {}
        // The directory exists, or its content is not our concern.
        Ok(_) | Err(_) => return Ok(()),
    }
    let source = match Place::within(from, Path::new(name), name).and_then(|place| place.read_head(LONGEST)) {
        Err(error) if error.is_not_found() => return Ok(()),
        source => source?,
    };
    Ok(io::Write::write_all(&mut place.create(Executable::No)?, &source.bytes)?)
}

fn copy_skill(root: &Path, skill: &SeededSkill) -> Result<(), PlaceError> {
    wipe(root, &skill.name)?;
    let mut files = Vec::new();
    list(&skill.directory, Path::new(""), 0, &mut files)?;
    for inside in files {
        let target = Path::new(SKILLS).join(&skill.name).join(&inside);
        let asked = target.display().to_string();
        let source = Place::beneath(&skill.directory, &inside, &asked)?.open()?;
        copy(source, &Place::create_beneath(root, &target, &asked)?)?;
    }
    Ok(())
}

fn copy(source: File, target: &Place) -> Result<(), PlaceError> {
    use std::os::unix::fs::PermissionsExt as _;
    let is_program = source.metadata()?.permissions().mode() & 0o100 != 0;
    let executable = if is_program { Executable::Yes } else { Executable::No };
    let mut copy = target.create(executable)?;
    io::copy(&mut io::Read::take(source, LONGEST), &mut copy)?;
    Ok(())
}

/// The regular files below a directory, as paths in it.
fn list(root: &Path, inside: &Path, depth: usize, out: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(inside))? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, inside.join(entry.file_name()));
        if kind.is_dir() && depth < DEEPEST && entry.file_name() != ".git" {
            list(root, &path, depth + 1, out)?;
        } else if kind.is_file() && out.len() < MOST_FILES {
            out.push(path);
        }
    }
    Ok(())
}

/// Removes the copy that is there. Through an open directory: `skills` may have become a link to somewhere else.
fn wipe(root: &Path, name: &str) -> Result<(), PlaceError> {
    let inside = Path::new(SKILLS).join(name);
    let place = Place::create_beneath(root, &inside, SKILLS)?;
    let name = CString::new(name).map_err(io::Error::other)?;
    match remove(place.directory(), &name, 0) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes what has this name in an open directory, with all below it. Links are removed, not followed.
fn remove(directory: &OwnedFd, name: &CStr, depth: usize) -> Result<(), Errno> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let below = match openat(directory, name, flags, Mode::empty()) {
        Err(Errno::ENOTDIR | Errno::ELOOP) => return unlinkat(directory, name, UnlinkatFlags::NoRemoveDir),
        Err(error) => return Err(error),
        // Directories nested deeper than any skill are kept as they are.
        Ok(_) if depth > 2 * DEEPEST => return Err(Errno::ENAMETOOLONG),
        Ok(below) => below,
    };
    let names = Dir::from_fd(below.try_clone().map_err(|_| Errno::EMFILE)?)?;
    let names = names.into_iter().flatten().map(|entry| entry.file_name().to_owned());
    for name in names.filter(|name| !matches!(name.to_bytes(), b"." | b"..")) {
        remove(&below, &name, depth + 1)?;
    }
    unlinkat(directory, name, UnlinkatFlags::RemoveDir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_of_the_workspace_are_copied_once() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = to.path().join("box");
        fs::write(from.path().join("AGENTS.md"), "rules").unwrap();
        fs::write(from.path().join("secret.txt"), "x").unwrap();
        seed(&root, from.path(), &[]).unwrap();
        assert_eq!(fs::read_to_string(root.join("AGENTS.md")).unwrap(), "rules");
        assert!(!root.join("secret.txt").exists());
        fs::write(root.join("AGENTS.md"), "own").unwrap();
        seed(&root, from.path(), &[]).unwrap();
        assert_eq!(fs::read_to_string(root.join("AGENTS.md")).unwrap(), "own");
    }

    #[test]
    fn skills_are_copied_anew_and_never_through_a_link() {
        let (from, to, host) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("sub")).unwrap();
        fs::write(from.path().join("SKILL.md"), "do").unwrap();
        fs::write(from.path().join("sub/a.sh"), "run").unwrap();
        symlink("/etc/passwd", from.path().join("link")).unwrap();
        let skill = SeededSkill { name: "s".into(), directory: from.path().to_owned() };
        let root = to.path();
        fs::create_dir_all(root.join("skills/s")).unwrap();
        fs::write(root.join("skills/s/stale"), "").unwrap();
        fs::write(host.path().join("precious"), "").unwrap();
        symlink(host.path(), root.join("skills/s/away")).unwrap();
        seed(root, from.path(), std::slice::from_ref(&skill)).unwrap();
        let mut files = Vec::new();
        list(&root.join("skills/s"), Path::new(""), 0, &mut files).unwrap();
        files.sort();
        assert_eq!(files, [Path::new("SKILL.md"), Path::new("sub/a.sh")]);
        assert!(host.path().join("precious").exists());
        // A prisoner points the directory somewhere else.
        fs::create_dir(host.path().join("s")).unwrap();
        fs::write(host.path().join("s/precious"), "").unwrap();
        fs::remove_dir_all(root.join("skills")).unwrap();
        symlink(host.path(), root.join("skills")).unwrap();
        seed(root, from.path(), std::slice::from_ref(&skill)).unwrap();
        assert!(host.path().join("s/precious").exists());
        assert!(!host.path().join("s/SKILL.md").exists());
        for name in ["..", ".", "", "a/b", "/x"] {
            let skill = SeededSkill { name: name.into(), directory: from.path().to_owned() };
            assert!(!skill.is_plain(), "{name}");
        }
    }
}
