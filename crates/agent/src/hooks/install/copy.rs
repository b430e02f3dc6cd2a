//! Copies a directory: files, directories, and links that stay within it.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use super::InstallError;
use crate::place::{Executable, Place};

/// Files, directories and links; with what a pack depends on there are many.
pub(super) const MAX_ENTRIES: usize = 50_000;
/// Bytes of all files.
pub(super) const MAX_BYTES: u64 = 1024 * 1024 * 1024;

const ANY_EXECUTE: u32 = 0o111;
/// Directory that is not installed.
const SKIPPED: &str = ".git";

/// Copies what is in a directory into another one, which is empty. Blocking.
pub(super) fn copy(from: &Path, into: &Path) -> Result<(), InstallError> {
    let root = from.canonicalize()?;
    let (mut waiting, mut entries, mut left) = (vec![PathBuf::new()], 0, MAX_BYTES);
    while let Some(inside) = waiting.pop() {
        for entry in fs::read_dir(root.join(&inside))? {
            let entry = entry?;
            if entry.file_name() == SKIPPED {
                continue;
            }
            entries += 1;
            if entries > MAX_ENTRIES {
                return Err(InstallError::TooLarge);
            }
            let (inside, kind) = (inside.join(entry.file_name()), entry.file_type()?);
            if kind.is_dir() {
                fs::create_dir(into.join(&inside))?;
                waiting.push(inside);
            } else if kind.is_file() {
                file(&root, &inside, into, &mut left)?;
            } else if kind.is_symlink() {
                link(&root, &inside, into)?;
            } else {
                return Err(InstallError::Kind(entry.path()));
            }
        }
    }
    Ok(())
}

fn file(root: &Path, inside: &Path, into: &Path, left: &mut u64) -> Result<(), InstallError> {
    // A pipe that took the file's place is not waited for.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let path = root.join(inside);
    let source = File::options().read(true).custom_flags(flags.bits()).open(&path)?;
    let metadata = source.metadata()?;
    if !metadata.is_file() {
        return Err(InstallError::Kind(path));
    }
    let executable =
        if metadata.permissions().mode() & ANY_EXECUTE == 0 { Executable::No } else { Executable::Yes };
    let mut target =
        Place::create_beneath(into, inside, &inside.display().to_string())?.create(executable)?;
    // One extra byte shows if there is more.
    let written = io::copy(&mut source.take(left.saturating_add(1)), &mut target)?;
    *left = left.checked_sub(written).ok_or(InstallError::TooLarge)?;
    Ok(())
}

/// A link is copied as it is, so it has to lead somewhere within by a way that is the same there.
fn link(root: &Path, inside: &Path, into: &Path) -> Result<(), InstallError> {
    let path = root.join(inside);
    let target = fs::read_link(&path)?;
    let stays = !target.is_absolute() && path.canonicalize().is_ok_and(|found| found.starts_with(root));
    if !stays {
        return Err(InstallError::Kind(path));
    }
    Ok(Place::create_beneath(into, inside, &inside.display().to_string())?.link_to(&target)?)
}
