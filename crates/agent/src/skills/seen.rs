//! What the files were that skills were read from: whether one of them has changed is told without reading it.

use std::path::{Path, PathBuf};

use openclaw_config::stamp::Stamp;

/// Files and directories as they were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seen(Vec<(PathBuf, Option<Stamp>)>);

impl Seen {
    /// Notes what is at a path now. To be done before it is read: a change meanwhile is then seen by the next look.
    pub(super) fn note(&mut self, path: &Path) {
        self.0.push((path.to_owned(), Stamp::at(path)));
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The same paths as they are now.
    pub(super) fn again(&self) -> Self {
        Self(self.0.iter().map(|(path, _)| (path.clone(), Stamp::at(path))).collect())
    }

    /// Whether all is as it was.
    pub(super) fn still_holds(&self) -> bool {
        self.0.iter().all(|(path, stamp)| Stamp::at(path) == *stamp)
    }

    /// Whether any change since `now` (Unix milliseconds) is sure to be seen.
    pub(super) fn is_settled(&self, now: i64) -> bool {
        self.0.iter().filter_map(|(_, stamp)| *stamp).all(|stamp| stamp.is_settled(now))
    }

    /// How many looks at directory entries one check takes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
