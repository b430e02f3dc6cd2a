//! Backups of state files, made before a migration or repair changes them so that a person can undo
//! it.
//!
//! A backup is a directory `<state>/backups/<time>` that comes into being with the first file kept. Beside the copies,
//! `manifest.jsonl` says line by line what was where: `{"kept":…,"copy":…}` for a copy, `{"moved":…,"to":…}` for a file that
//! has another place now.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use crate::disk;
use crate::time::iso;

/// The backup of one migration or repair.
#[derive(Debug)]
pub struct Backup {
    state_dir: PathBuf,
    dir: PathBuf,
    is_begun: bool,
    steps: Steps,
}

/// Counts changes on disk; a test lets the disk fail after some of them.
#[derive(Debug, Default)]
struct Steps {
    left: Option<usize>,
}

impl Steps {
    fn take(&mut self) -> io::Result<()> {
        match &mut self.left {
            None => Ok(()),
            Some(0) => Err(io::Error::other("the disk fails here")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }
}

impl Backup {
    /// A backup that is made when something is kept in it. `now` in Unix milliseconds names it.
    pub fn new(state_dir: &Path, now: i64) -> Self {
        let all = state_dir.join("backups");
        let stamp = iso(now).replace(':', "-");
        let mut dir = all.join(&stamp);
        let mut more = 1;
        while dir.exists() {
            more += 1;
            dir = all.join(format!("{stamp}-{more}"));
        }
        Self { state_dir: state_dir.to_path_buf(), dir, is_begun: false, steps: Steps::default() }
    }

    #[cfg(test)]
    pub(crate) fn failing_after(mut self, steps: usize) -> Self {
        self.steps.left = Some(steps);
        self
    }

    /// Directory of the backup; `None` if nothing had to be kept.
    pub fn dir(&self) -> Option<&Path> {
        self.is_begun.then_some(&*self.dir)
    }

    /// Announces a change on disk that the backup itself does not make.
    pub(crate) fn step(&mut self) -> io::Result<()> {
        self.steps.take()
    }

    /// Keeps a copy of a file; a missing one needs none.
    pub(crate) fn keep(&mut self, file: &Path) -> io::Result<()> {
        if !file.exists() {
            return Ok(());
        }
        self.steps.take()?;
        let copy = self.place_for(file)?;
        std::fs::copy(file, &copy)?;
        std::fs::File::open(&copy)?.sync_all()?;
        make_private(&copy)?;
        self.note(&json!({"kept": text(file), "copy": text(&copy)}))
    }

    /// Moves a file into the backup.
    pub(crate) fn take(&mut self, file: &Path) -> io::Result<()> {
        let to = self.place_for(file)?;
        self.relocate(file, &to)
    }

    /// Moves a file or directory to another place and notes where it was. Fails if something is at
    /// that place already, which stays.
    pub(crate) fn relocate(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        if to.symlink_metadata().is_ok() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} exists", to.display())));
        }
        self.note(&json!({"moved": text(from), "to": text(to)}))?;
        self.steps.take()?;
        disk::create_parent(&disk::RealDisk, to)?;
        match std::fs::rename(from, to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices && from.is_file() => {
                copy_over(from, to)?;
            }
            renamed => renamed?,
        }
        disk::sync_parent(&disk::RealDisk, to)?;
        disk::sync_parent(&disk::RealDisk, from)
    }

    /// Path for a file in the backup, under a name that is not in use.
    fn place_for(&mut self, file: &Path) -> io::Result<PathBuf> {
        let below = match file.strip_prefix(&self.state_dir) {
            Ok(rest) => rest.to_path_buf(),
            Err(_) => Path::new("elsewhere").join(plain_parts(file)),
        };
        let mut place = self.dir.join(&below);
        let mut more = 1;
        while place.symlink_metadata().is_ok() {
            more += 1;
            place = disk::beside(&self.dir.join(&below), &more.to_string());
        }
        disk::create_parent(&disk::RealDisk, &place)?;
        self.is_begun = true;
        Ok(place)
    }

    fn note(&mut self, line: &Value) -> io::Result<()> {
        let path = self.dir.join("manifest.jsonl");
        disk::create_parent(&disk::RealDisk, &path)?;
        self.is_begun = true;
        let mut file = disk::private(OpenOptions::new().append(true).create(true)).open(&path)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The names of a path without root and without a way upwards.
fn plain_parts(path: &Path) -> PathBuf {
    path.components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

/// Moves a file to another file system.
fn copy_over(from: &Path, to: &Path) -> io::Result<()> {
    let temporary = disk::Temporary::write(&disk::RealDisk, to, |out| {
        io::copy(&mut std::fs::File::open(from)?, out).map(drop)
    })?;
    temporary.persist(to)?;
    std::fs::remove_file(from)
}

pub(crate) fn make_private(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600))?;
    }
    let _ = file;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_kept_where_they_were_and_the_manifest_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let (inside, outside) = (state.join("a/x.json"), dir.path().join("y.json"));
        std::fs::create_dir_all(inside.parent().unwrap()).unwrap();
        std::fs::write(&inside, "x").unwrap();
        std::fs::write(&outside, "y").unwrap();
        let mut backup = Backup::new(&state, 1_770_631_932_123);
        backup.keep(&state.join("missing")).unwrap();
        assert_eq!(backup.dir(), None);
        backup.keep(&inside).unwrap();
        backup.take(&inside).unwrap();
        backup.keep(&outside).unwrap();
        let kept = backup.dir().unwrap().to_path_buf();
        assert_eq!(kept, state.join("backups/2026-02-09T10-12-12.123Z"));
        assert!(!inside.exists() && outside.exists());
        let read = |name: &str| std::fs::read_to_string(kept.join(name)).unwrap();
        assert_eq!((read("a/x.json"), read("a/x.json.2")), ("x".to_owned(), "x".to_owned()));
        let lines = read("manifest.jsonl");
        let manifest: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(manifest[0], json!({"kept": text(&inside), "copy": text(&kept.join("a/x.json"))}));
        assert_eq!(manifest[1], json!({"moved": text(&inside), "to": text(&kept.join("a/x.json.2"))}));
        assert_eq!(read(manifest[2]["copy"].as_str().unwrap()), "y");
        assert_ne!(Backup::new(&state, 1_770_631_932_123).dir, kept);
    }
}
