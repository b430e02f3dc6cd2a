//! The approvals file on disk. Blocking.

use std::io;
use std::path::{Path, PathBuf};

use openclaw_config::private_file::{self, Durability};
use openclaw_config::{approvals_files, hash_of, shared_place};

use super::file::ApprovalsFile;
use super::flaw::FileFlaw;

/// Reason why the file can't be used. Every caller then denies the command.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalsError {
    /// The file exists but is invalid. It never counts as empty: its rules would be lost.
    #[error(
        "exec approvals file {path} is invalid: {source}. Its rules are not known, so no command runs that they are for; a person has to mend it"
    )]
    Invalid {
        /// The file.
        path: String,
        /// Flaw of the file.
        source: FileFlaw,
    },
    /// The file can't be read or written.
    #[error("exec approvals file {path} cannot be used: {source}")]
    Io {
        /// The file.
        path: String,
        /// Underlying I/O error.
        source: io::Error,
    },
    /// A file was to be replaced without saying which one was seen.
    #[error("exec approvals base hash required; re-run exec.approvals.get and retry")]
    HashRequired,
    /// The file is another one than the caller has seen.
    #[error("exec approvals changed since last load; re-run exec.approvals.get and retry")]
    Changed,
}

/// The file as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Path of the file, whether it exists or not.
    pub path: PathBuf,
    /// True if the file exists.
    pub exists: bool,
    /// SHA-256 of its text, of the empty text where there is none.
    pub hash: String,
    /// Content of the file.
    pub file: ApprovalsFile,
}

/// Reads and writes the file of one instance.
#[derive(Debug, Clone)]
pub struct ApprovalsStore {
    own: PathBuf,
    fallback: PathBuf,
}

impl ApprovalsStore {
    /// `<state>/exec-approvals.json`. While that does not exist, `~/.openclaw/exec-approvals.json` is read in its place, because
    /// OpenClaw has it there whatever the state directory is. It is never written: it belongs to the instance at home, and the
    /// first change begins the file of this one with what it holds.
    pub fn new(state_dir: &Path, home: &Path) -> Self {
        let [own, fallback] = approvals_files(state_dir, home);
        Self { own, fallback }
    }

    /// The file that is read.
    fn path(&self) -> &Path {
        if self.is_shared() { &self.fallback } else { &self.own }
    }

    /// True if the rules in force are those of the instance at home.
    pub fn is_shared(&self) -> bool {
        !is_there(&self.own) && is_there(&self.fallback)
    }

    /// State directory of this instance.
    pub fn state_dir(&self) -> Option<&Path> {
        self.own.parent()
    }

    /// Reads the file. A missing file has no rules.
    ///
    /// # Errors
    /// [`ApprovalsError::Invalid`] or [`ApprovalsError::Io`]: nothing may run then.
    pub fn load(&self) -> Result<Loaded, ApprovalsError> {
        load(self.path())
    }

    /// Puts another file in place of the one that was seen. The socket stays where the new one does not name it: clients
    /// never see its token.
    ///
    /// # Errors
    /// [`ApprovalsError`]; the file is as it was then.
    pub fn replace(&self, file: ApprovalsFile, base_hash: Option<&str>) -> Result<Loaded, ApprovalsError> {
        self.with_lock(|current| {
            match base_hash {
                None if current.exists => return Err(ApprovalsError::HashRequired),
                Some(seen) if current.exists && seen != current.hash => return Err(ApprovalsError::Changed),
                None | Some(_) => {}
            }
            let mut next = file;
            next.socket.path = next.socket.path.or(current.file.socket.path);
            next.socket.token = next.socket.token.or(current.file.socket.token);
            next.normalise(&mut mint);
            Ok(next)
        })
    }

    /// Changes the file as it is now.
    ///
    /// # Errors
    /// [`ApprovalsError`]; the file is as it was then.
    pub fn update(&self, change: impl FnOnce(&mut ApprovalsFile)) -> Result<Loaded, ApprovalsError> {
        self.with_lock(|current| {
            let mut next = current.file;
            change(&mut next);
            Ok(next)
        })
    }

    /// Replaces the own file by what `next` makes of what is read, while no other writer can.
    fn with_lock(
        &self,
        next: impl FnOnce(Loaded) -> Result<ApprovalsFile, ApprovalsError>,
    ) -> Result<Loaded, ApprovalsError> {
        let path = &self.own;
        let failed = |source: io::Error| ApprovalsError::Io { path: path.display().to_string(), source };
        // The file a link leads to is replaced, not the link.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut lock_name = target.clone().into_os_string();
        lock_name.push(".lock");
        let lock = private_file::append(Path::new(&lock_name)).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let file = next(self.load()?)?;
        let text = file.to_text().map_err(|source| failed(source.into()))?;
        private_file::replace(&target, text.as_bytes(), Durability::Synced).map_err(failed)?;
        Ok(Loaded { path: path.to_owned(), exists: true, hash: hash_of(&text), file })
    }
}

/// A new id for an entry.
pub fn mint() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// A link counts, wherever it leads, and so does what can't be looked at.
fn is_there(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn load(path: &Path) -> Result<Loaded, ApprovalsError> {
    let shown = || path.display().to_string();
    let (text, exists) = match shared_place::read_to_string(path) {
        Ok(text) => (text, true),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_there(path) => (String::new(), false),
        Err(source) => return Err(ApprovalsError::Io { path: shown(), source }),
    };
    let file = if exists {
        ApprovalsFile::parse(&text, &mut mint)
            .map_err(|source| ApprovalsError::Invalid { path: shown(), source })?
    } else {
        ApprovalsFile::default()
    };
    Ok(Loaded { path: path.to_owned(), exists, hash: hash_of(&text), file })
}

#[cfg(test)]
mod tests;
