//! The repository a workspace lies in, for the `Runtime:` line.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use parking_lot::Mutex;

/// The repositories around workspaces, looked for again when the workspace's directory has changed.
/// A repository that appears or disappears above an unchanged workspace is noticed by the next
/// process.
#[derive(Debug, Default)]
pub struct RepoRoots {
    /// Results by workspace: the modification time of its directory at the last look, and what was
    /// found.
    found: Mutex<HashMap<PathBuf, (SystemTime, Option<PathBuf>)>>,
}

impl RepoRoots {
    /// The first directory with a `.git` among `workspace` and its twelve nearest parents.
    pub fn find(&self, workspace: &Path) -> Option<PathBuf> {
        let modified = workspace.metadata().and_then(|found| found.modified()).ok()?;
        let mut found = self.found.lock();
        if let Some((seen, root)) = found.get(workspace)
            && *seen == modified
        {
            return root.clone();
        }
        let root = find_repo_root(workspace);
        found.insert(workspace.to_path_buf(), (modified, root.clone()));
        root
    }
}

fn find_repo_root(start: &Path) -> Option<PathBuf> {
    const DEPTH: usize = 12;
    start.ancestors().take(DEPTH).find(|dir| dir.join(".git").exists()).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_found_above_and_looked_for_again_once_the_workspace_changes() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().join("home/workspace");
        std::fs::create_dir_all(&workspace).unwrap();
        let roots = RepoRoots::default();
        assert_eq!(roots.find(&workspace), None);
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        assert_eq!(roots.find(&workspace), None, "nothing has changed in the workspace");
        std::fs::File::open(&workspace).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(roots.find(&workspace).as_deref(), Some(dir.path()));
        std::fs::create_dir(workspace.join(".git")).unwrap();
        assert_eq!(roots.find(&workspace), Some(workspace.clone()));
        std::fs::remove_dir_all(&workspace).unwrap();
        assert_eq!(roots.find(&workspace), None);
    }
}
