//! State of the files from which skills were read: detects changes without reading the files again.

use std::path::{Path, PathBuf};

use openclaw_config::stamp::Stamp;

/// Files and directories as they were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SeenFiles(Vec<(PathBuf, Option<Stamp>)>);

impl SeenFiles {
    /// Notes what is at a path now. To be done before it is read: a change meanwhile is then seen by the next look.
    pub(super) fn note(&mut self, path: &Path) {
        self.0.push((path.to_owned(), Stamp::at(path)));
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns the current state of the same paths.
    pub(super) fn again(&self) -> Self {
        Self(self.0.iter().map(|(path, _)| (path.clone(), Stamp::at(path))).collect())
    }

    /// Returns true if nothing has changed.
    pub(super) fn still_holds(&self) -> bool {
        self.0.iter().all(|(path, stamp)| Stamp::at(path) == *stamp)
    }

    /// Returns true if any change after `now` (Unix milliseconds) is certain to be detected.
    pub(super) fn is_settled(&self, now: i64) -> bool {
        self.0.iter().filter_map(|(_, stamp)| *stamp).all(|stamp| stamp.is_settled(now))
    }

    /// The paths.
    pub(super) fn places(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|(path, _)| path.as_path())
    }
}
