//! `.gitignore` and the like, as Git reads them: a file holds for its directory and all below, and the nearest one decides.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::place::Place;

/// The files, those whose lines win last.
const FILES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];
/// Bytes of such a file that are read.
const MAX_BYTES: u64 = 64 * 1024;
/// Lines of a directory's files that count.
const MAX_LINES: usize = 2_000;

/// Returns true if a file of this name holds ignore rules.
pub(super) fn is_file_of_rules(name: &OsStr) -> bool {
    FILES.iter().any(|file| name == *file)
}

/// The rules of the directories that a walk is in, the outermost first.
#[derive(Default)]
pub(super) struct IgnoreRules(Vec<Gitignore>);

impl IgnoreRules {
    /// Enters a directory that has these ignore files.
    pub(super) fn push(&mut self, dir: &Path, files: &[PathBuf]) {
        let rules = if files.is_empty() { Gitignore::empty() } else { read(dir, files) };
        self.0.push(rules);
    }

    /// Leaves the directory.
    pub(super) fn pop(&mut self) {
        self.0.pop();
    }

    /// Returns true if an entry is to be left out.
    pub(super) fn ignores(&self, path: &Path, is_dir: bool) -> bool {
        let decided = self.0.iter().rev().find_map(|rules| match rules.matched(path, is_dir) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        });
        decided.unwrap_or(false)
    }
}

fn read(dir: &Path, files: &[PathBuf]) -> Gitignore {
    let mut builder = GitignoreBuilder::new(dir);
    let in_order = FILES.iter().filter_map(|name| files.iter().find(|file| file.ends_with(name)));
    let text = |file: &PathBuf| {
        let head = Place::anywhere(file).and_then(|place| place.read_head(MAX_BYTES)).ok()?;
        Some(String::from_utf8_lossy(&head.bytes).into_owned())
    };
    let texts: Vec<String> = in_order.filter_map(text).collect();
    for line in texts.iter().flat_map(|text| text.lines()).take(MAX_LINES) {
        // A line that is no pattern says nothing.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
