//! Installs hooks below the state directory: one hook, or a pack of them, from a directory, an archive or npm.
//!
//! Installing runs no code of the package: npm is told to run no scripts. New files are assembled
//! beside the directory of hooks and moved there at once, so that a gateway never sees half of
//! them; the version they replace is kept until then.

mod copy;
mod npm;
mod pack;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use openclaw_config::Environment;
use tempfile::TempDir;

use crate::place::PlaceError;
use crate::unpack::{Archive, UnpackError, unpack};
pub use npm::{NpmSpec, NpmSpecError};
pub use pack::{Pack, PackError, PackedHook};

/// Reason why nothing was installed; for people.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The content of the package can't be used.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// A pack of that name exists already.
    #[error("{} is there already; `openclaw hooks update` replaces what came from npm, else delete it first", .0.display())]
    Exists(PathBuf),
    /// The package has another id than the one to update.
    #[error("it is \"{found}\", not \"{expected}\"")]
    OtherId {
        /// Id of the pack to update.
        expected: String,
        /// Id found in the package.
        found: String,
    },
    /// The file is no archive.
    #[error("{} is neither a directory nor an archive (.tar, .tar.gz, .tgz, .tar.bz2, .zip)", .0.display())]
    NoArchive(PathBuf),
    /// The archive can't be opened.
    #[error("the archive could not be unpacked: {0}")]
    Unpack(String),
    /// A file that can't be installed.
    #[error("{} is neither a file nor a directory nor a link within the pack", .0.display())]
    Kind(PathBuf),
    /// The package is far larger than hooks are.
    #[error("it has more than {} files or {} MiB", copy::MAX_ENTRIES, copy::MAX_BYTES / 1024 / 1024)]
    TooLarge,
    /// npm failed; the text is its own.
    #[error("{0}")]
    Npm(String),
    /// Storing the package failed.
    #[error("it could not be stored: {0}")]
    Io(#[from] io::Error),
    /// Storing the package failed.
    #[error("it could not be stored: {0}")]
    Place(#[from] PlaceError),
}

impl From<UnpackError> for InstallError {
    fn from(error: UnpackError) -> Self {
        Self::Unpack(error.to_string())
    }
}

/// Treatment of a pack that is already installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// Refuses to replace an existing pack.
    New,
    /// Replaces the pack with this id; the new one must have the same id.
    Replace(String),
}

/// Package that is ready to be installed. Its files are deleted when this is dropped.
#[derive(Debug)]
pub struct Staged {
    /// Content of the package.
    pub pack: Pack,
    root: PathBuf,
    staging: TempDir,
}

/// Result of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Content of the package.
    pub pack: Pack,
    /// Directory in which the pack is installed.
    pub directory: PathBuf,
}

/// Looks at a local directory without installing it. Blocking.
///
/// # Errors
/// [`PackError`].
pub fn look(dir: &Path) -> Result<Pack, PackError> {
    Pack::read(dir)
}

/// Returns the directory of the pack with this id, below the directory of hooks.
pub fn directory_of(hooks: &Path, id: &str) -> PathBuf {
    hooks.join(id)
}

/// The version that an installed pack says it has. Blocking.
pub fn installed_version(dir: &Path) -> Option<String> {
    Pack::read(dir).ok()?.version
}

/// Takes a copy of a directory or an archive. Blocking.
///
/// # Errors
/// [`InstallError`].
pub fn stage(from: &Path, hooks: &Path) -> Result<Staged, InstallError> {
    let staging = staging(hooks)?;
    if from.is_dir() {
        // The directory's name may be the hook's name, so the pack is read where it is.
        let pack = Pack::read(from)?;
        let root = staging.path().join("new");
        fs::create_dir(&root)?;
        copy::copy(from, &root)?;
        return Ok(Staged { pack, root, staging });
    }
    let name = from.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let archive = Archive::of_name(&name).ok_or_else(|| InstallError::NoArchive(from.to_owned()))?;
    if !from.is_file() {
        return Err(InstallError::NoArchive(from.to_owned()));
    }
    unpacked(File::open(from)?, archive, staging)
}

/// Fetches a package with npm, without running its scripts.
///
/// # Errors
/// [`InstallError`].
pub async fn stage_npm(
    spec: &NpmSpec,
    hooks: &Path,
    environment: &Environment,
) -> Result<Staged, InstallError> {
    let staging = staging(hooks)?;
    let archive = npm::fetch(spec, staging.path(), environment).await?;
    unpacked(File::open(archive)?, Archive::TarGz, staging)
}

fn unpacked(file: File, archive: Archive, staging: TempDir) -> Result<Staged, InstallError> {
    let dir = staging.path().join("unpacked");
    fs::create_dir(&dir)?;
    unpack(file, archive, &dir, 0)?;
    let root = pack::root_of(&dir)?;
    Ok(Staged { pack: Pack::read(&root)?, root, staging })
}

/// Creates a directory on the same file system as the hooks, outside of the places where hooks are
/// looked for.
fn staging(hooks: &Path) -> Result<TempDir, InstallError> {
    fs::create_dir_all(hooks)?;
    Ok(tempfile::Builder::new().prefix(".hooks-").tempdir_in(hooks.parent().unwrap_or(hooks))?)
}

impl Staged {
    /// Fetches what the pack depends on, without running scripts.
    ///
    /// # Errors
    /// [`InstallError::Npm`].
    pub async fn fetch_dependencies(&self, environment: &Environment) -> Result<(), InstallError> {
        if !self.pack.has_dependencies || self.root.join("node_modules").is_dir() {
            return Ok(());
        }
        npm::fetch_dependencies(&self.root, environment).await
    }

    /// Moves it to its place. Blocking.
    ///
    /// # Errors
    /// [`InstallError`]; what was there is there still.
    pub fn install(self, hooks: &Path, mode: &Mode) -> Result<Installed, InstallError> {
        if let Mode::Replace(expected) = mode
            && *expected != self.pack.id
        {
            return Err(InstallError::OtherId { expected: expected.clone(), found: self.pack.id });
        }
        let directory = directory_of(hooks, &self.pack.id);
        let is_there = fs::symlink_metadata(&directory).is_ok();
        if is_there && *mode == Mode::New {
            return Err(InstallError::Exists(directory));
        }
        let old = self.staging.path().join("old");
        if is_there {
            fs::rename(&directory, &old)?;
        }
        if let Err(error) = fs::rename(&self.root, &directory) {
            if is_there {
                fs::rename(&old, &directory)?;
            }
            return Err(error.into());
        }
        Ok(Installed { pack: self.pack, directory })
    }
}

#[cfg(test)]
mod tests;
