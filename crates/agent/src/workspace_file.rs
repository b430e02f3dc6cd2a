//! Reads a file of a workspace so that nothing outside of it is reached, nothing hangs and memory
//! stays bounded. Blocking.

use std::path::{Path, PathBuf};

use openclaw_config::without_dots;

use crate::place::{Directory, Head, Place, PlaceError};

/// A workspace held open, to read several files that lie right in it.
#[derive(Debug)]
pub struct Workspace<'a> {
    path: &'a Path,
    directory: Result<Directory, PlaceError>,
}

impl<'a> Workspace<'a> {
    /// Opens it. A missing directory has no files.
    pub fn open(path: &'a Path) -> Self {
        Self { path, directory: Directory::open(path) }
    }

    /// Reads a file like [`read`]. `name` is a file's name without directories.
    ///
    /// # Errors
    /// Same errors as [`read`].
    pub fn read(&self, name: &str, limit: u64) -> Result<Option<Head>, PlaceError> {
        match &self.directory {
            Ok(directory) => match directory.read_head(name, limit) {
                Ok(head) => Ok(Some(head)),
                Err(error) if error.is_not_found() => Ok(None),
                // A link may lead to another file of the workspace.
                Err(PlaceError::SymbolicLink(_)) => read(self.path, name, limit),
                Err(error) => Err(error),
            },
            Err(_) => read(self.path, name, limit),
        }
    }
}

/// The file's place. Links are followed as long as they stay in the workspace.
///
/// # Errors
/// [`PlaceError::Escapes`] and [`PlaceError::SymbolicLink`] for one that is not in the workspace.
pub fn place(workspace: &Path, path: &str) -> Result<Place, PlaceError> {
    match inside(workspace, path) {
        Some(inside) => Place::within(workspace, &inside, path),
        None => Err(PlaceError::Escapes { root: workspace.to_owned(), path: path.to_owned() }),
    }
}

/// The file's first bytes, at most `limit`; `None` where there is no such file.
///
/// # Errors
/// When it is no file of the workspace, or can't be read; [`why`] says it.
pub fn read(workspace: &Path, path: &str, limit: u64) -> Result<Option<Head>, PlaceError> {
    match place(workspace, path).and_then(|place| place.read_head(limit)) {
        Ok(head) => Ok(Some(head)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the reason why a file is left out, for the owner and for the model.
pub fn why(error: &PlaceError) -> String {
    match error {
        PlaceError::Escapes { .. }
        | PlaceError::SymbolicLink(_)
        | PlaceError::OffLimits(_)
        | PlaceError::Hook(_) => "it is a link that leads to no file of the workspace".to_owned(),
        PlaceError::NotAFile(_) => "it is not a regular file".to_owned(),
        PlaceError::Io(error) => format!("it cannot be read: {error}"),
    }
}

/// `path` relative to the workspace, without `..`.
fn inside(workspace: &Path, path: &str) -> Option<PathBuf> {
    let workspace = without_dots(workspace);
    let inside = without_dots(&workspace.join(path)).strip_prefix(&workspace).ok()?.to_owned();
    (!inside.as_os_str().is_empty()).then_some(inside)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn says(workspace: &Path, path: &str) -> String {
        match read(workspace, path, 4) {
            Ok(Some(head)) => {
                format!("{}{}", String::from_utf8_lossy(&head.bytes), if head.is_cut { "…" } else { "" })
            }
            Ok(None) => "missing".to_owned(),
            Err(error) => why(&error),
        }
    }

    #[test]
    fn only_regular_files_of_the_workspace_are_read_and_only_so_far() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().join("ws");
        fs::create_dir_all(workspace.join("sub")).unwrap();
        fs::write(dir.path().join("secret"), "s").unwrap();
        fs::write(workspace.join("four"), "1234").unwrap();
        fs::write(workspace.join("sub/five"), "12345").unwrap();
        nix::unistd::mkfifo(&workspace.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for (target, link) in [
            ("../secret", "relative"),
            ("/dev/zero", "device"),
            ("../not-yet", "dangling"),
            ("sub/five", "inner"),
            ("sub", "directory"),
            ("pipe", "to-pipe"),
            ("loop", "loop"),
        ] {
            symlink(target, workspace.join(link)).unwrap();
        }
        symlink(dir.path(), workspace.join("sub/up")).unwrap();
        let outside = "it is a link that leads to no file of the workspace";
        let no_file = "it is not a regular file";
        for (path, expect) in [
            ("four", "1234"),
            ("sub/five", "1234…"),
            ("./sub/../four", "1234"),
            ("inner", "1234…"),
            ("directory/five", "1234…"),
            ("none", "missing"),
            ("sub/none", "missing"),
            ("relative", outside),
            ("device", outside),
            ("dangling", outside),
            ("loop", outside),
            ("sub/up/secret", outside),
            ("../secret", outside),
            ("/etc/passwd", outside),
            (".", outside),
            ("pipe", no_file),
            ("to-pipe", no_file),
            ("sub", no_file),
        ] {
            assert_eq!(says(&workspace, path), expect, "{path}");
        }
        let held = Workspace::open(&workspace);
        for name in ["four", "inner", "none", "relative", "device", "pipe", "to-pipe", "sub"] {
            let told = |found: Result<Option<Head>, PlaceError>| match found {
                Ok(head) => head.map_or("missing".to_owned(), |head| format!("{:?}", head.bytes)),
                Err(error) => why(&error),
            };
            assert_eq!(told(held.read(name, 4)), told(read(&workspace, name, 4)), "{name}");
        }
        let linked = dir.path().join("linked");
        symlink(&workspace, &linked).unwrap();
        assert_eq!(says(&linked, "inner"), "1234…");
        assert_eq!(says(&dir.path().join("no-workspace"), "four"), "missing");
    }
}
