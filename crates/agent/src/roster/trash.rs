//! The user's trash: what is deleted can be had back. Files are never erased.
//!
//! Moves things to the trash. On Linux and the BSDs the trash is laid out as the freedesktop.org
//! trash specification 1.0 says, so that file managers list and restore it; on macOS it is
//! `~/.Trash`. Things on another file system go to a directory beside them instead: moving must not
//! become copying.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use openclaw_config::{Environment, private_file};

/// Trash directory beside the files, used when the user's trash is on another file system.
const NEARBY: &str = ".openclaw-trash";
/// Names that are tried for one thing.
const TRIES: u32 = 10_000;

/// The trash of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trash {
    home: Home,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Home {
    /// `files` and `info` below it.
    Freedesktop(PathBuf),
    /// The directory itself.
    Plain(PathBuf),
}

/// A thing could not be moved; it is where it was.
#[derive(Debug, thiserror::Error)]
#[error("cannot move {path} to the trash: {source}")]
pub struct TrashError {
    /// The thing.
    pub path: PathBuf,
    /// Underlying I/O error.
    #[source]
    pub source: io::Error,
}

impl Trash {
    /// The trash of the user of an environment.
    pub fn of(env: &Environment) -> Self {
        let home = env.home();
        if cfg!(target_os = "macos") {
            return Self { home: Home::Plain(home.join(".Trash")) };
        }
        let data = env.get_nonblank("XDG_DATA_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
        Self { home: Home::Freedesktop(data.unwrap_or_else(|| home.join(".local/share")).join("Trash")) }
    }

    /// Moves a file or directory, under a name that tells what it was. Gives its new place.
    ///
    /// # Errors
    /// [`TrashError`]; the thing is where it was then.
    pub fn take(&self, path: &Path, name: &str) -> Result<PathBuf, TrashError> {
        let moved = match &self.home {
            Home::Freedesktop(dir) => into_freedesktop(dir, path, name),
            Home::Plain(dir) => into_plain(dir, path, name),
        };
        let nearby = || {
            let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
            into_plain(&parent.join(NEARBY), path, name)
        };
        // A trash that can't be written, or is elsewhere, is no reason to keep a thing in the way.
        moved.or_else(|_| nearby()).map_err(|source| TrashError { path: path.to_path_buf(), source })
    }
}

fn into_freedesktop(trash: &Path, path: &Path, name: &str) -> io::Result<PathBuf> {
    let (files, infos) = (trash.join("files"), trash.join("info"));
    private_file::make_dir(&files)?;
    private_file::make_dir(&infos)?;
    for name in names(name) {
        let info = infos.join(format!("{name}.trashinfo"));
        // The information file reserves the name.
        let mut file = match OpenOptions::new().write(true).create_new(true).open(&info) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        let place = files.join(&name);
        let done = file.write_all(info_of(path).as_bytes()).and_then(|()| rename_to_free(path, &place));
        match done {
            Ok(true) => return Ok(place),
            Ok(false) => fs::remove_file(&info)?,
            Err(error) => {
                fs::remove_file(&info)?;
                return Err(error);
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn into_plain(trash: &Path, path: &Path, name: &str) -> io::Result<PathBuf> {
    private_file::make_dir(trash)?;
    for name in names(name) {
        let place = trash.join(name);
        if rename_to_free(path, &place)? {
            return Ok(place);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// `name`, `name-2`, `name-3`, …
fn names(name: &str) -> impl Iterator<Item = String> {
    (1..=TRIES).map(move |at| if at == 1 { name.to_owned() } else { format!("{name}-{at}") })
}

/// Renames unless something is there already; whether it did.
fn rename_to_free(from: &Path, to: &Path) -> io::Result<bool> {
    if fs::symlink_metadata(to).is_ok() {
        return Ok(false);
    }
    fs::rename(from, to).map(|()| true)
}

fn info_of(path: &Path) -> String {
    let now = jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S");
    format!("[Trash Info]\nPath={}\nDeletionDate={now}\n", escaped(path))
}

/// Escapes a path as in a URL, except for `/`.
fn escaped(path: &Path) -> String {
    let mut out = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte) {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trash(home: &Path, vars: &[(&str, &str)]) -> Trash {
        let home = home.to_str().unwrap();
        Trash::of(&Environment::new([("HOME", home)].iter().chain(vars).copied(), home))
    }

    #[cfg(not(target_os = "macos"))]
    #[test]
    fn things_can_be_restored_and_names_never_clash() {
        let home = tempfile::tempdir().unwrap();
        let trash = trash(home.path(), &[]);
        let dir = home.path().join("work space");
        let root = home.path().join(".local/share/Trash");
        for (at, name) in ["a", "a-2"].iter().enumerate() {
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join("f"), at.to_string()).unwrap();
            assert_eq!(trash.take(&dir, "a").unwrap(), root.join("files").join(name));
            assert!(!dir.exists());
            assert_eq!(fs::read_to_string(root.join("files").join(name).join("f")).unwrap(), at.to_string());
            let info = fs::read_to_string(root.join("info").join(format!("{name}.trashinfo"))).unwrap();
            let path = format!("Path={}/work%20space\nDeletionDate=2", home.path().display());
            assert!(info.starts_with("[Trash Info]\n") && info.contains(&path), "{info}");
        }
    }

    #[test]
    fn a_trash_that_cannot_be_used_is_replaced_by_one_nearby() {
        let home = tempfile::tempdir().unwrap();
        let blocked = home.path().join("file");
        fs::write(&blocked, "").unwrap();
        let trash = trash(home.path(), &[("XDG_DATA_HOME", blocked.to_str().unwrap())]);
        fs::write(home.path().join("x"), "1").unwrap();
        let place = trash.take(&home.path().join("x"), "x").unwrap();
        if cfg!(not(target_os = "macos")) {
            assert_eq!(place, home.path().join(".openclaw-trash/x"));
        }
        assert_eq!(fs::read_to_string(place).unwrap(), "1");
    }

    #[test]
    fn what_is_not_there_is_named_and_leaves_nothing_behind() {
        let home = tempfile::tempdir().unwrap();
        let error = trash(home.path(), &[]).take(&home.path().join("gone"), "gone").unwrap_err();
        assert!(error.to_string().contains("gone"), "{error}");
        let infos = fs::read_dir(home.path().join(".local/share/Trash/info")).map_or(0, Iterator::count);
        assert_eq!(infos, 0);
    }
}
