//! The place of the open database: tells if its files are still where the next start looks for
//! them. A file that is deleted or moved away stays writable for the process that has it open, so
//! that SQLite notices nothing, and what it holds is lost with the process.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::FILE_NAME;
use crate::journal::JournalError;

/// The files of an open database, by path, and what they were when it was opened.
pub(super) struct DatabasePlace(Vec<(PathBuf, FileId)>);

/// Device and number of a file.
type FileId = (u64, u64);

impl DatabasePlace {
    /// Remembers the files of the database at a path, which are open.
    pub(super) fn of(path: &Path) -> Self {
        Self(files(path).into_iter().filter_map(|file| Some((file.clone(), file_id(&file)?))).collect())
    }

    /// Returns the error for changes that the next start would not find; `None` if all files are in
    /// place.
    pub(super) fn lost(&self) -> Option<JournalError> {
        let (path, _) = self.0.iter().find(|(path, id)| is_another(path, *id))?;
        Some(JournalError::Gone(path.display().to_string()))
    }
}

/// The database and its log.
fn files(path: &Path) -> [PathBuf; 2] {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    [path.to_owned(), log.into()]
}

/// True if a path leads nowhere or to another file. One that can't be looked at counts as in place.
fn is_another(path: &Path, id: FileId) -> bool {
    match std::fs::metadata(path) {
        Ok(found) => (found.dev(), found.ino()) != id,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

fn file_id(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// True if a process has a database of a gateway open, but not the files at this path: they were
/// deleted or moved away. Known on Linux alone, elsewhere false.
pub fn is_lost_by(path: &Path, process: u32) -> bool {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let (mut is_gateway, mut open) = (false, Vec::new());
    for entry in entries.flatten().map(|entry| entry.path()) {
        let target = std::fs::read_link(&entry).unwrap_or_default();
        let name = target.file_name().and_then(|name| name.to_str());
        is_gateway |= name.is_some_and(|name| name.starts_with(FILE_NAME));
        open.extend(file_id(&entry));
    }
    let is_open = |file: PathBuf| file_id(&file).is_some_and(|id| open.contains(&id));
    is_gateway && !files(path).into_iter().all(is_open)
}
