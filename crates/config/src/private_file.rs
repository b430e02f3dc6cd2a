//! State files for their owner alone, replaced so that a crash leaves the old or the new one, never half of it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use crate::shared_place;

/// How sure the content must be when the write returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// On disk: file and directory are synced.
    Synced,
    /// Complete or not there; may be the old content after a power cut.
    Whole,
}

/// Replaces a file by this content, mode 0600. Blocking; the directory is made when missing.
///
/// # Errors
/// What the file system says; the file is as it was then.
pub fn replace(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    make_dir(dir)?;
    // A temporary file is made with mode 0600.
    let mut file = tempfile::Builder::new().suffix(".tmp").tempfile_in(dir)?;
    file.write_all(content)?;
    if durability == Durability::Synced {
        file.as_file().sync_all()?;
    }
    file.persist(path).map_err(|error| error.error)?;
    if durability == Durability::Synced {
        File::open(dir)?.sync_all()?;
    }
    Ok(())
}

/// Opens a file to append to, mode 0600 when it is made. Blocking; the directory is made when missing.
///
/// # Errors
/// What the file system says, and where others may write: that it is not ours.
pub fn append(path: &Path) -> io::Result<File> {
    make_dir(path.parent().unwrap_or(Path::new(".")))?;
    shared_place::append(path)
}

/// Makes a directory of mode 0700 with its parents; an existing one is left as it is.
///
/// # Errors
/// What the file system says, and where the way leads through something another user made ([`shared_place`]).
pub fn make_dir(dir: &Path) -> io::Result<()> {
    if !dir.is_dir() {
        // What others put in the way is not to be made something in.
        shared_place::check_way(dir)?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    shared_place::check_way(dir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn file_and_directory_are_their_owners_alone_and_nothing_else_is_left() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("a/b");
        let path = dir.join("f.json");
        for (content, durability) in [("one", Durability::Synced), ("two", Durability::Whole)] {
            replace(&path, content.as_bytes(), durability).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&path)), (0o700, 0o600));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    }
}
