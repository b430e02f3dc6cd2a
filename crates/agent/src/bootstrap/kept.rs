//! The files of workspaces as they were read last. A turn that finds nothing changed reads nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_config::clock::now_ms;
use openclaw_config::stamp::Stamp;
use parking_lot::Mutex;

use super::{BootstrapFile, BootstrapScope, MEMORY_FILES, load};
use crate::workspace::{self, Fill, WorkspaceError};

/// Workspaces that are kept; a host has few agents.
const MOST: usize = 64;

/// Parameters for the workspace files of a session's prompt and for preparing its workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// The directory.
    pub workspace: PathBuf,
    /// Files to load.
    pub scope: BootstrapScope,
    /// Limit for each file, in UTF-16 units.
    pub max_chars: usize,
    /// Template files to write where they are missing.
    pub fill: Fill,
}

/// The files that were read last, by what was wanted.
#[derive(Debug, Default)]
pub struct WorkspaceFiles(Mutex<HashMap<Wanted, LoadedFiles>>);

#[derive(Debug)]
struct LoadedFiles {
    files: Arc<[BootstrapFile]>,
    seen: WorkspaceState,
}

/// State of the workspace before the files were read.
#[derive(Debug, PartialEq, Eq)]
struct WorkspaceState {
    /// A file that comes or goes changes its directory.
    directory: Option<Stamp>,
    files: Vec<(PathBuf, Stamp)>,
}

impl WorkspaceState {
    fn now(wanted: &Wanted) -> Self {
        let names = wanted.scope.files().iter().chain(MEMORY_FILES);
        let path = |name: &&str| wanted.workspace.join(name);
        let files = names.map(path).filter_map(|path| Some((path.clone(), Stamp::at_link(&path)?)));
        Self { directory: Stamp::at(&wanted.workspace), files: files.collect() }
    }

    /// Returns true if nothing has changed. The directory's own state shows if missing files have
    /// appeared.
    fn still_holds(&self, workspace: &Path) -> bool {
        self.directory.is_some()
            && Stamp::at(workspace) == self.directory
            && self.files.iter().all(|(path, stamp)| Stamp::at_link(path) == Some(*stamp))
    }

    fn is_settled(&self, now: i64) -> bool {
        let mut stamps = self.files.iter().map(|(_, stamp)| stamp).chain(&self.directory);
        stamps.all(|stamp| stamp.is_settled(now))
    }
}

impl WorkspaceFiles {
    /// Makes a workspace ready and gives the files that go into the prompt. If nothing has changed
    /// since they were read, that takes a few looks at directory entries: going to another thread
    /// for them would take longer.
    ///
    /// # Errors
    /// When the workspace can't be made.
    pub async fn load(&self, wanted: Wanted) -> Result<Arc<[BootstrapFile]>, WorkspaceError> {
        if let Some(read) = self.0.lock().get(&wanted).filter(|read| read.seen.still_holds(&wanted.workspace))
        {
            return Ok(Arc::clone(&read.files));
        }
        let path = wanted.workspace.clone();
        let reading = tokio::task::spawn_blocking(move || {
            workspace::ensure(&wanted.workspace, wanted.fill)?;
            let (seen, now) = (WorkspaceState::now(&wanted), now_ms());
            let files: Arc<[BootstrapFile]> = load(&wanted.workspace, wanted.scope, wanted.max_chars).into();
            let is_lasting = seen.is_settled(now);
            Ok((wanted, LoadedFiles { files, seen }, is_lasting))
        });
        let read = reading
            .await
            .unwrap_or_else(|error| Err(WorkspaceError { path, source: std::io::Error::other(error) }));
        let (wanted, read, is_lasting) = read?;
        let files = Arc::clone(&read.files);
        let mut all = self.0.lock();
        if is_lasting {
            if all.len() >= MOST {
                all.clear();
            }
            all.insert(wanted, read);
        } else {
            all.remove(&wanted);
        }
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::{Duration, Instant};

    use super::*;

    fn wanted(workspace: &Path) -> Wanted {
        Wanted {
            workspace: workspace.to_owned(),
            scope: BootstrapScope::Private,
            max_chars: 1_000,
            fill: Fill::DirectoryOnly,
        }
    }

    async fn soul(files: &WorkspaceFiles, workspace: &Path) -> Option<String> {
        let all = files.load(wanted(workspace)).await.unwrap();
        all.iter().find(|file| file.name == "SOUL.md" && !file.missing).map(|file| file.injected.clone())
    }

    /// Waits until the files can be distinguished from later versions.
    async fn kept(files: &WorkspaceFiles, workspace: &Path) {
        let begun = Instant::now();
        while !files.0.lock().contains_key(&wanted(workspace)) {
            assert!(begun.elapsed() < Duration::from_secs(30), "the files are never kept");
            tokio::task::yield_now().await;
            files.load(wanted(workspace)).await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_is_changed_replaced_or_removed_is_seen_by_the_next_who_asks() {
        let dir = tempfile::tempdir().unwrap();
        let (files, workspace) = (WorkspaceFiles::default(), dir.path().join("ws"));
        let path = workspace.join("SOUL.md");
        assert_eq!(soul(&files, &workspace).await, None);
        kept(&files, &workspace).await;
        fs::write(&path, "one").unwrap();
        assert_eq!(soul(&files, &workspace).await.as_deref(), Some("one"), "it has come");
        kept(&files, &workspace).await;
        let first = files.load(wanted(&workspace)).await.unwrap();
        assert!(Arc::ptr_eq(&first, &files.load(wanted(&workspace)).await.unwrap()), "nothing is read again");
        fs::write(&path, "two").unwrap();
        assert_eq!(soul(&files, &workspace).await.as_deref(), Some("two"), "it was changed");
        // Right after each other, and of the same length.
        fs::write(&path, "2.1").unwrap();
        assert_eq!(soul(&files, &workspace).await.as_deref(), Some("2.1"));
        kept(&files, &workspace).await;
        fs::write(workspace.join("new"), "six").unwrap();
        File::open(workspace.join("new"))
            .unwrap()
            .set_modified(path.metadata().unwrap().modified().unwrap())
            .unwrap();
        fs::rename(workspace.join("new"), &path).unwrap();
        assert_eq!(soul(&files, &workspace).await.as_deref(), Some("six"), "it was replaced");
        kept(&files, &workspace).await;
        fs::remove_file(&path).unwrap();
        assert_eq!(soul(&files, &workspace).await, None, "it is gone");
        kept(&files, &workspace).await;
        fs::remove_dir_all(&workspace).unwrap();
        assert_eq!(soul(&files, &workspace).await, None);
        assert!(workspace.is_dir(), "it is made again");
    }
}
