//! State files for their owner alone, replaced so that a crash leaves the old or the new one, never half of it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use crate::shared_place;

/// Durability of the content when the write returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Synced to disk, file and directory.
    Synced,
    /// Complete, also after a power cut: then it may be the old content.
    Whole,
    /// Complete, but after a power cut perhaps empty: for files that are made anew if they make no
    /// sense, and are written too often to wait for the disk.
    Renewable,
}

/// Replaces a file by this content, mode 0600. Blocking; the directory is made when missing.
///
/// # Errors
/// Returns the file system's error; the file is unchanged then.
pub fn replace(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    make_dir(dir)?;
    // A temporary file is made with mode 0600.
    let mut file = tempfile::Builder::new().suffix(".tmp").tempfile_in(dir)?;
    file.write_all(content)?;
    // Otherwise the new name may be on disk before what it names is.
    if durability != Durability::Renewable {
        file.as_file().sync_all()?;
    }
    // `persist` renames behind the back of the C library, where no test of failing disks could meet it.
    let temporary = file.into_temp_path();
    fs::rename(&temporary, path)?;
    // Nothing is left to be removed.
    drop(temporary.keep());
    if durability == Durability::Synced {
        File::open(dir)?.sync_all()?;
    }
    Ok(())
}

/// Opens a file to append to, mode 0600 when it is made. Blocking; the directory is made when missing.
///
/// # Errors
/// Returns the file system's error, or one that says that others may write there and it is not
/// ours.
pub fn append(path: &Path) -> io::Result<File> {
    make_dir(path.parent().unwrap_or(Path::new(".")))?;
    shared_place::append(path)
}

/// True if an error means that there is no space left, on the disk or for this user.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Makes a directory of mode 0700 with its parents; an existing one is left as it is.
///
/// # Errors
/// Returns the file system's error, or one that says that the way leads through something another
/// user made ([`shared_place`]).
pub fn make_dir(dir: &Path) -> io::Result<()> {
    if !dir.is_dir() {
        // Directories must not be made below something that others put in the way.
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
        let all = [Durability::Synced, Durability::Whole, Durability::Renewable];
        for (content, durability) in ["one", "two", "three"].into_iter().zip(all) {
            replace(&path, content.as_bytes(), durability).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&path)), (0o700, 0o600));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    }
}
