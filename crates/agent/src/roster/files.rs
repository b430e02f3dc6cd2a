//! The files of a workspace that a person edits from afar (spec `gateway-protocol.md` §6.6, `agents.files.*`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use openclaw_config::private_file;

use crate::bootstrap::FILES;
use crate::place::{Head, PlaceError};
use crate::workspace_file;

/// The memory file's two spellings; the first is made when there is none.
const MEMORY: [&str; 2] = ["MEMORY.md", "memory.md"];
/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// File of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceFile {
    /// File name, such as `AGENTS.md`.
    pub name: String,
    /// Path of the file, whether it exists or not.
    pub path: PathBuf,
    /// Size and time of the last change; nothing when it is not there.
    pub stamp: Option<FileStamp>,
}

/// Size and time of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Bytes.
    pub size: u64,
    /// Unix milliseconds.
    pub updated_at_ms: i64,
}

/// Error of reading or writing a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The name is not one of the workspace files; others can't be accessed this way.
    #[error("unsupported file \"{0}\"")]
    Unsupported(String),
    /// A link that leads out of the workspace.
    #[error("{0} is a link out of the workspace; edit what it points to instead")]
    Outside(PathBuf),
    /// Larger than is ever read.
    #[error("{path} is larger than {MAX_BYTES} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A pipe, a device or a directory under the file's name.
    #[error("{0} is not a regular file; remove it")]
    NotAFile(PathBuf),
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Underlying I/O error.
        source: io::Error,
    },
}

impl FileError {
    fn of(path: PathBuf, error: PlaceError) -> Self {
        match error {
            PlaceError::Escapes { .. }
            | PlaceError::SymbolicLink(_)
            | PlaceError::OffLimits(_)
            | PlaceError::Hook(_) => Self::Outside(path),
            PlaceError::NotAFile(_) => Self::NotAFile(path),
            PlaceError::Io(source) => Self::Io { path, source },
        }
    }
}

/// The files in their order, whether they are there or not.
pub fn list(workspace: &Path) -> Vec<WorkspaceFile> {
    let memory = MEMORY.iter().find(|name| stamp(workspace, name).is_some()).copied().unwrap_or("MEMORY.md");
    FILES.iter().copied().chain([memory]).map(|name| file(workspace, name, stamp(workspace, name))).collect()
}

/// Returns a file and its content; no content if the file does not exist.
///
/// # Errors
/// [`FileError`].
pub fn get(workspace: &Path, name: &str) -> Result<(WorkspaceFile, Option<String>), FileError> {
    let path = path_of(workspace, name)?;
    let head = workspace_file::read(workspace, name, MAX_BYTES);
    match head.map_err(|error| FileError::of(path.clone(), error))? {
        None => Ok((file(workspace, name, None), None)),
        Some(Head { is_cut: true, .. }) => Err(FileError::TooLarge { path }),
        Some(Head { bytes, metadata, .. }) => {
            let content = String::from_utf8_lossy(&bytes).into_owned();
            Ok((file(workspace, name, Some(FileStamp::of(&metadata))), Some(content)))
        }
    }
}

/// Replaces what one file says; the workspace is made when it is missing.
///
/// # Errors
/// [`FileError`]; the file is as it was then.
pub fn set(workspace: &Path, name: &str, content: &str) -> Result<WorkspaceFile, FileError> {
    let path = path_of(workspace, name)?;
    private_file::make_dir(workspace).map_err(|source| FileError::Io { path: path.clone(), source })?;
    // A link within the workspace stays a link.
    let written = workspace_file::place(workspace, name).and_then(|place| {
        place.replace(content.as_bytes())?;
        place.sync_directory()
    });
    written.map_err(|error| FileError::of(path, error))?;
    Ok(file(workspace, name, stamp(workspace, name)))
}

/// The path of one of the files; others can't be named.
fn path_of(workspace: &Path, name: &str) -> Result<PathBuf, FileError> {
    if FILES.contains(&name) || MEMORY.contains(&name) {
        Ok(workspace.join(name))
    } else {
        Err(FileError::Unsupported(name.to_owned()))
    }
}

fn file(workspace: &Path, name: &str, stamp: Option<FileStamp>) -> WorkspaceFile {
    WorkspaceFile { name: name.to_owned(), path: workspace.join(name), stamp }
}

/// Returns the stamp of a file if it can be read; its content is not read.
fn stamp(workspace: &Path, name: &str) -> Option<FileStamp> {
    workspace_file::read(workspace, name, 0).ok()?.map(|head| FileStamp::of(&head.metadata))
}

impl FileStamp {
    fn of(metadata: &fs::Metadata) -> Self {
        let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let millis = changed.map_or(0, |since| since.as_millis());
        Self { size: metadata.len(), updated_at_ms: i64::try_from(millis).unwrap_or(i64::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn present(workspace: &Path) -> Vec<(String, Option<u64>)> {
        list(workspace).into_iter().map(|file| (file.name, file.stamp.map(|stamp| stamp.size))).collect()
    }

    #[test]
    fn files_are_listed_read_and_written() {
        let dir = tempfile::tempdir().unwrap();
        let ws = dir.path().join("new/ws");
        assert!(list(&ws).iter().all(|file| file.stamp.is_none()));
        assert_eq!(get(&ws, "SOUL.md").unwrap().1, None);
        let written = set(&ws, "SOUL.md", "# soul\n").unwrap();
        assert_eq!((written.path.clone(), written.stamp.unwrap().size), (ws.join("SOUL.md"), 7));
        assert_eq!(get(&ws, "SOUL.md").unwrap(), (written, Some("# soul\n".to_owned())));
        set(&ws, "memory.md", "m").unwrap();
        let all = present(&ws);
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        let expect = [
            "AGENTS.md",
            "SOUL.md",
            "TOOLS.md",
            "IDENTITY.md",
            "USER.md",
            "HEARTBEAT.md",
            "BOOTSTRAP.md",
            "memory.md",
        ];
        assert_eq!(names, expect);
        let there: Vec<&str> =
            all.iter().filter(|(_, size)| size.is_some()).map(|(name, _)| name.as_str()).collect();
        assert_eq!(there, ["SOUL.md", "memory.md"]);
    }

    #[test]
    fn no_other_file_can_be_reached() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["../x", "/etc/passwd", "agents.md", "AGENTS.md/..", "", "memory/2026-01-01.md"] {
            assert!(matches!(get(dir.path(), name), Err(FileError::Unsupported(_))), "{name}");
            assert!(matches!(set(dir.path(), name, ""), Err(FileError::Unsupported(_))), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_within_the_workspace_only() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let ws = dir.path().join("ws");
        fs::create_dir(&ws).unwrap();
        fs::write(dir.path().join("secret"), "s").unwrap();
        fs::write(ws.join("real.md"), "r").unwrap();
        symlink(dir.path().join("secret"), ws.join("AGENTS.md")).unwrap();
        symlink(dir.path().join("not-yet"), ws.join("TOOLS.md")).unwrap();
        symlink(ws.join("real.md"), ws.join("SOUL.md")).unwrap();
        nix::unistd::mkfifo(&ws.join("USER.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(matches!(get(&ws, "USER.md"), Err(FileError::NotAFile(_))));
        assert!(matches!(set(&ws, "USER.md", "x"), Err(FileError::NotAFile(_) | FileError::Io { .. })));
        for name in ["AGENTS.md", "TOOLS.md"] {
            assert!(matches!(get(&ws, name), Err(FileError::Outside(_))), "{name}");
            assert!(matches!(set(&ws, name, "x"), Err(FileError::Outside(_))), "{name}");
        }
        assert_eq!(fs::read_to_string(dir.path().join("secret")).unwrap(), "s");
        assert!(list(&ws).iter().all(|file| file.stamp.is_none() || file.name == "SOUL.md"));
        set(&ws, "SOUL.md", "new").unwrap();
        assert_eq!(fs::read_to_string(ws.join("real.md")).unwrap(), "new");
        assert!(fs::symlink_metadata(ws.join("SOUL.md")).unwrap().is_symlink());
    }
}
