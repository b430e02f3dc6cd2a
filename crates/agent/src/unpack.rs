//! Unpacks archives below a directory: nothing in one can lead out of it, and how much comes of one is bounded.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::{Component, Path, PathBuf};

use bzip2_rs::DecoderReader;
use flate2::read::MultiGzDecoder;
use tar::EntryType;
use zip::ZipArchive;

use crate::place::{Executable, Place, PlaceError};

/// Files, directories and links.
const MAX_ENTRIES: usize = 50_000;
/// Bytes of all files.
const MAX_BYTES: u64 = 4 * 1024 * 1024 * 1024;
/// Bytes of the target of a link.
const MAX_LINK: u64 = 4_096;

/// A kind of archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Archive {
    Tar,
    TarGz,
    TarBz2,
    Zip,
}

impl Archive {
    /// The kind of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "tar" => Some(Self::Tar),
            "tar.gz" | "tgz" => Some(Self::TarGz),
            "tar.bz2" | "tbz2" | "tbz" => Some(Self::TarBz2),
            "zip" => Some(Self::Zip),
            _ => None,
        }
    }

    /// The kind that the name of a file says.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let name = name.split(['?', '#']).next().unwrap_or_default().to_lowercase();
        ["tar", "tar.gz", "tgz", "tar.bz2", "tbz2", "tbz", "zip"]
            .into_iter()
            .find(|ending| name.strip_suffix(ending).is_some_and(|stem| stem.ends_with('.')))
            .and_then(Self::parse)
    }
}

/// Error of unpacking an archive, which may have been unpacked in part; for people.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnpackError {
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("it cannot be read: {0}")]
    Zip(#[from] zip::result::ZipError),
    #[error("\"{0}\" in it would be outside of the directory")]
    Outside(String),
    #[error("\"{0}\" in it is neither a file nor a directory nor a link within it")]
    Kind(String),
    #[error("it has more than {MAX_ENTRIES} entries")]
    TooMany,
    #[error("what is in it has more than {} MiB", MAX_BYTES / 1024 / 1024)]
    TooLarge,
    #[error("\"{0}\" could not be written: {1}")]
    Write(String, PlaceError),
}

/// Unpacks into a directory that exists, without the first `strip` parts of each path. Counts the files. Blocking.
pub(crate) fn unpack(file: File, archive: Archive, into: &Path, strip: usize) -> Result<usize, UnpackError> {
    let mut unpacker = Unpacker { into, strip, entries: 0, files: 0, left: MAX_BYTES };
    match archive {
        Archive::Tar => unpacker.tar(io::BufReader::new(file))?,
        Archive::TarGz => unpacker.tar(MultiGzDecoder::new(io::BufReader::new(file)))?,
        Archive::TarBz2 => unpacker.tar(DecoderReader::new(io::BufReader::new(file)))?,
        Archive::Zip => unpacker.zip(file)?,
    }
    Ok(unpacker.files)
}

struct Unpacker<'a> {
    into: &'a Path,
    strip: usize,
    entries: usize,
    files: usize,
    /// Bytes that may still come.
    left: u64,
}

impl Unpacker<'_> {
    fn tar(&mut self, reader: impl Read) -> Result<(), UnpackError> {
        let mut archive = tar::Archive::new(reader);
        for entry in archive.entries()? {
            let mut entry = entry?;
            let path = entry.path()?.into_owned();
            let mode = entry.header().mode().unwrap_or(0);
            let kind = entry.header().entry_type();
            let Some(inside) = self.begin(&path)? else { continue };
            match kind {
                EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                    self.file(&inside, mode, &mut entry)?;
                }
                EntryType::Directory => self.directory(&inside)?,
                EntryType::Symlink => {
                    let target = entry.link_name()?.unwrap_or_default().into_owned();
                    self.link(&inside, &target)?;
                }
                EntryType::XGlobalHeader => {}
                _ => return Err(UnpackError::Kind(path.display().to_string())),
            }
        }
        Ok(())
    }

    fn zip(&mut self, mut file: File) -> Result<(), UnpackError> {
        const KIND: u32 = 0o170_000;
        const LINK: u32 = 0o120_000;
        file.rewind()?;
        let mut archive = ZipArchive::new(io::BufReader::new(file))?;
        for at in 0..archive.len() {
            let mut entry = archive.by_index(at)?;
            let path = PathBuf::from(entry.name()?.as_ref());
            let mode = entry.unix_mode().unwrap_or(0);
            let Some(inside) = self.begin(&path)? else { continue };
            if mode & KIND == LINK {
                let mut target = String::new();
                (&mut entry).take(MAX_LINK).read_to_string(&mut target)?;
                self.link(&inside, Path::new(&target))?;
            } else if entry.is_dir() {
                self.directory(&inside)?;
            } else {
                self.file(&inside, mode, &mut entry)?;
            }
        }
        Ok(())
    }

    /// Counts an entry and tells where it goes; `None` for one of which nothing is left.
    fn begin(&mut self, path: &Path) -> Result<Option<PathBuf>, UnpackError> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(UnpackError::TooMany);
        }
        let mut parts = Vec::new();
        for part in path.components() {
            match part {
                Component::Normal(part) => parts.push(part),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(UnpackError::Outside(path.display().to_string()));
                }
            }
        }
        let inside: PathBuf = parts.into_iter().skip(self.strip).collect();
        Ok(Some(inside).filter(|inside| !inside.as_os_str().is_empty()))
    }

    fn file(&mut self, inside: &Path, mode: u32, reader: &mut impl Read) -> Result<(), UnpackError> {
        let executable = if mode & 0o111 == 0 { Executable::No } else { Executable::Yes };
        let place = self.place(inside)?;
        let mut file = place.create(executable).map_err(|error| not_written(inside, error))?;
        // One extra byte shows if there is more.
        let written = io::copy(&mut reader.take(self.left.saturating_add(1)), &mut file)?;
        self.left = self.left.checked_sub(written).ok_or(UnpackError::TooLarge)?;
        self.files += 1;
        Ok(())
    }

    fn directory(&self, inside: &Path) -> Result<(), UnpackError> {
        // The directories on the way to a file in it.
        self.place(&inside.join("file")).map(|_| ())
    }

    /// A link to something that is below the directory too, by name.
    fn link(&self, inside: &Path, target: &Path) -> Result<(), UnpackError> {
        let mut depth = inside.components().count().saturating_sub(1);
        let mut went_down = false;
        for part in target.components() {
            match part {
                Component::Normal(_) => went_down = true,
                Component::CurDir => {}
                // Up comes first: a part before it could be a link that leads elsewhere.
                Component::ParentDir if depth > 0 && !went_down => depth -= 1,
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(UnpackError::Outside(format!(
                        "{} -> {}",
                        inside.display(),
                        target.display()
                    )));
                }
            }
        }
        if target.as_os_str().is_empty() {
            return Err(UnpackError::Kind(inside.display().to_string()));
        }
        self.place(inside)?.link_to(target).map_err(|error| not_written(inside, error))
    }

    /// No step on the way is a link, so that one in the archive leads nothing elsewhere.
    fn place(&self, inside: &Path) -> Result<Place, UnpackError> {
        let shown = inside.display().to_string();
        match Place::create_beneath(self.into, inside, &shown) {
            // A replaced link is removed, not followed.
            Err(PlaceError::SymbolicLink(_)) if self.is_own_link(inside) => {
                std::fs::remove_file(self.into.join(inside))?;
                Place::create_beneath(self.into, inside, &shown)
            }
            found => found,
        }
        .map_err(|error| not_written(inside, error))
    }

    /// Returns true if at most the last component of the path is a link: the path above it leads
    /// nowhere else.
    fn is_own_link(&self, inside: &Path) -> bool {
        let above = inside.parent().filter(|above| !above.as_os_str().is_empty());
        above.is_none_or(|above| Place::beneath(self.into, &above.join("file"), "").is_ok())
    }
}

fn not_written(inside: &Path, error: PlaceError) -> UnpackError {
    UnpackError::Write(inside.display().to_string(), error)
}

#[cfg(test)]
mod tests;
