//! Stamps of files: tell whether a file or directory is unchanged, without reading it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Stamp: changes when a file is written to or replaced, and when a directory gets or loses an
/// entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds of the last change of content or attributes; nobody can set it back.
    changed: (i64, i64),
}

impl Stamp {
    /// The stamp of what is at a path, links followed; `None` if it can't be looked at.
    pub fn at(path: &Path) -> Option<Self> {
        path.metadata().ok().map(|found| Self::of(&found))
    }

    /// [`Self::at`] of a link itself, where there is one.
    pub fn at_link(path: &Path) -> Option<Self> {
        path.symlink_metadata().ok().map(|found| Self::of(&found))
    }

    fn of(metadata: &Metadata) -> Self {
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        Self { inode: metadata.ino(), size: metadata.size(), changed }
    }

    /// True if a change at `now` (Unix milliseconds) or later is sure to give another stamp. System
    /// clocks of files are coarse: of two changes right after each other the second may leave no
    /// trace.
    pub fn is_settled(&self, now: i64) -> bool {
        const COARSE_MS: i64 = 1_000;
        let (seconds, nanoseconds) = self.changed;
        let changed = seconds.saturating_mul(1_000).saturating_add(nanoseconds / 1_000_000);
        now.saturating_sub(changed) > COARSE_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now_ms;

    #[test]
    fn a_change_is_seen_and_a_moment_later_it_can_be_relied_on() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        assert_eq!(Stamp::at(&file), None);
        std::fs::write(&file, "1").unwrap();
        let (first, before) = (Stamp::at(&file).unwrap(), Stamp::at(dir.path()).unwrap());
        assert_eq!(Some(first), Stamp::at_link(&file));
        std::fs::rename(&file, dir.path().join("b")).unwrap();
        std::fs::write(&file, "2").unwrap();
        assert_ne!(Stamp::at(&file), Some(first), "another file of the same size");
        std::os::unix::fs::symlink("a", dir.path().join("link")).unwrap();
        assert_eq!(Stamp::at(&dir.path().join("link")), Stamp::at(&file));
        assert_ne!(Stamp::at_link(&dir.path().join("link")), Stamp::at(&file));
        assert!(!first.is_settled(now_ms()) && first.is_settled(now_ms() + 2_000));
        assert!(before.is_settled(i64::MAX));
    }
}
