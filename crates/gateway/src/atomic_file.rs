//! Writing a small state file so that a crash leaves the old or the new one, never half of it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// How sure the content must be when the write returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// On disk: file and directory are synced.
    Synced,
    /// Complete or not there; may be the old content after a power cut.
    Whole,
}

/// Replaces a file by this content, readable by the owner alone. Blocking; the directory is made when missing.
///
/// # Errors
/// What the file system says.
pub(crate) fn replace(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    private_dir(dir)?;
    let mut file = tempfile::Builder::new().suffix(".tmp").tempfile_in(dir)?;
    file.write_all(content)?;
    if durability == Durability::Synced {
        file.as_file().sync_all()?;
    }
    file.persist(path).map_err(|error| error.error)?;
    if durability == Durability::Synced {
        fs::File::open(dir)?.sync_all()?;
    }
    Ok(())
}

/// From here on, whatever this process and its commands create is for its owner alone (spec `operations.md` §8.5).
pub fn keep_files_private() {
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
}

/// Makes a directory that only its owner enters; an existing one is left as it is.
pub(crate) fn private_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}
