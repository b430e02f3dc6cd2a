//! Finding the files of skills below a directory (spec `agent-runtime.md` §6.1).
//!
//! `*.md` right in the root, `SKILL.md` anywhere below, in the order of their names. Symbolic links
//! are followed, loops and what `.gitignore`, `.ignore` and `.fdignore` name are left out. The walk
//! ends for any shape of the tree.

mod ignore_rules;

use std::ffi::OsStr;
use std::fs::FileType;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::seen::SeenFiles;
use ignore_rules::IgnoreRules;

/// The file that makes a directory a skill.
pub(super) const SKILL_FILE: &str = "SKILL.md";
/// Directories are not entered that lie deeper below the root.
const MAX_DEPTH: usize = 24;
/// Entries that are looked at below one entry of the root: one skill with a huge tree hides no other.
const MAX_ENTRIES_EACH: usize = 20_000;
/// Entries that are looked at in all.
const MAX_ENTRIES: usize = 200_000;
/// Directories in which edits are not watched for: programs write there all the time.
const NOT_WATCHED: &[&str] = &[
    ".git",
    "node_modules",
    "dist",
    ".venv",
    "venv",
    "__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    "build",
    ".cache",
];

/// Skill files found below a directory.
#[derive(Debug, Default)]
pub(super) struct FoundSkills {
    /// Files that may be skills, in order.
    pub(super) files: Vec<PathBuf>,
    /// Paths that were left out, and why.
    pub(super) problems: Vec<(PathBuf, String)>,
    /// The files and directories on which this depends.
    pub(super) seen: SeenFiles,
}

/// Walks a directory; one that does not exist has nothing in it. Blocking.
pub(super) fn scan(root: &Path) -> FoundSkills {
    let mut walk = SkillWalk::default();
    walk.enter(root, &At { depth: 0, is_watched: true });
    walk.found
}

#[derive(Default)]
struct SkillWalk {
    found: FoundSkills,
    rules: IgnoreRules,
    /// Device and inode of the directories that the walk is in.
    above: Vec<(u64, u64)>,
    entries: usize,
    entries_here: usize,
    told: bool,
}

/// Position of the walk.
struct At {
    depth: usize,
    is_watched: bool,
}

impl SkillWalk {
    fn enter(&mut self, dir: &Path, at: &At) {
        if at.is_watched {
            self.found.seen.note(dir);
        }
        let identity = match dir.metadata() {
            Ok(found) if found.is_dir() => (found.dev(), found.ino()),
            Ok(_) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.problem(dir, format!("cannot be read: {error}")),
        };
        // A link to a directory that the walk is in already would never end.
        if self.above.contains(&identity) {
            return;
        }
        if at.depth > MAX_DEPTH {
            return self.problem(dir, format!("is more than {MAX_DEPTH} directories deep, left out"));
        }
        self.above.push(identity);
        match names_in(dir) {
            Ok(names) => self.list(dir, names, at),
            Err(error) => self.problem(dir, format!("cannot be read: {error}")),
        }
        self.above.pop();
    }

    fn list(&mut self, dir: &Path, names: Vec<DirectoryEntry>, at: &At) {
        let files = names.iter().filter(|entry| ignore_rules::is_file_of_rules(&entry.name));
        let files: Vec<PathBuf> = files.map(|entry| dir.join(&entry.name)).collect();
        if at.is_watched {
            files.iter().for_each(|file| self.found.seen.note(file));
        }
        self.rules.push(dir, &files);
        for entry in names {
            if at.depth == 0 {
                self.entries_here = 0;
                self.told = false;
            }
            if !self.may_go_on(dir) {
                break;
            }
            self.visit(dir, &entry, at);
        }
        self.rules.pop();
    }

    fn visit(&mut self, dir: &Path, entry: &DirectoryEntry, at: &At) {
        let Some(name) = entry.name.to_str() else {
            return self.problem(&dir.join(&entry.name), "its name is not UTF-8, left out".to_owned());
        };
        if name.starts_with('.') || name == "node_modules" {
            return;
        }
        let path = dir.join(name);
        let Some(kind) = kind_of(&path, entry.kind) else { return };
        if self.rules.ignores(&path, kind == ListedKind::Directory) {
            return;
        }
        match kind {
            ListedKind::Directory => {
                let is_watched = at.is_watched && !NOT_WATCHED.contains(&name);
                self.enter(&path, &At { depth: at.depth + 1, is_watched });
            }
            ListedKind::File if is_skill_file(name, at.depth) => {
                if at.is_watched {
                    self.found.seen.note(&path);
                }
                self.found.files.push(path);
            }
            ListedKind::Other if is_skill_file(name, at.depth) => {
                self.problem(&path, "is not a regular file, left out".to_owned());
            }
            ListedKind::File | ListedKind::Other => {}
        }
    }

    /// Counts an entry; false when there are too many.
    fn may_go_on(&mut self, dir: &Path) -> bool {
        self.entries += 1;
        self.entries_here += 1;
        let goes_on = self.entries <= MAX_ENTRIES && self.entries_here <= MAX_ENTRIES_EACH;
        if !goes_on && !self.told {
            self.told = true;
            let text =
                format!("holds more than {MAX_ENTRIES_EACH} files and directories, the rest is left out");
            self.problem(dir, text);
        }
        goes_on
    }

    fn problem(&mut self, path: &Path, text: String) {
        /// Largest number of reported problems; more say nothing new.
        const MOST: usize = 100;
        if self.found.problems.len() < MOST {
            self.found.problems.push((path.to_owned(), text));
        }
    }
}

/// An entry of a directory, links not followed.
struct DirectoryEntry {
    name: std::ffi::OsString,
    kind: Option<FileType>,
}

fn names_in(dir: &Path) -> io::Result<Vec<DirectoryEntry>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir)?.take(MAX_ENTRIES_EACH + 1) {
        let entry = entry?;
        names.push(DirectoryEntry { kind: entry.file_type().ok(), name: entry.file_name() });
    }
    names.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(names)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListedKind {
    Directory,
    File,
    /// A pipe, a device, a socket.
    Other,
}

/// Returns the kind of an entry, links followed; `None` for a broken link.
fn kind_of(path: &Path, listed: Option<FileType>) -> Option<ListedKind> {
    let kind = match listed {
        Some(kind) if !kind.is_symlink() => kind,
        Some(_) | None => path.metadata().ok()?.file_type(),
    };
    Some(match kind {
        kind if kind.is_dir() => ListedKind::Directory,
        kind if kind.is_file() => ListedKind::File,
        _ => ListedKind::Other,
    })
}

fn is_skill_file(name: &str, depth: usize) -> bool {
    if depth == 0 { Path::new(name).extension() == Some(OsStr::new("md")) } else { name == SKILL_FILE }
}

#[cfg(test)]
mod tests;
