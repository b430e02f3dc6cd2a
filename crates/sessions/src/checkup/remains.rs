//! Leftovers of processes that ended in the middle of something: locks and temporary files.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use openclaw_config::APPROVALS_FILE;

use super::{Finding, Premises, Repair, Severity, finding, such_as};
use crate::disk;
use crate::lockfile::LockFile;
use crate::process::{self, Sighting};

/// Age at which a temporary file of unknown owner counts as left behind.
const TEMPORARY_FOR: Duration = Duration::from_secs(60 * 60);

pub(super) fn check(premises: &Premises, found: &mut Vec<Finding>) -> io::Result<()> {
    let (mut locks, mut temporary) = (Vec::new(), Vec::new());
    let staying = staying_locks(premises);
    for dir in directories(premises) {
        for name in disk::Disk::list(&disk::RealDisk, &dir).unwrap_or_default() {
            let path = dir.join(&name);
            let Some(name) = name.to_str() else { continue };
            let is_lock =
                !staying.contains(&path) && (name.ends_with(".json.lock") || name.ends_with(".jsonl.lock"));
            if is_lock && LockFile::is_left_behind(&disk::real(), &path)? {
                locks.push(path);
            } else if name.ends_with(".tmp") && is_left_over(&path, name) {
                temporary.push(path);
            }
        }
    }
    if !locks.is_empty() {
        let list = such_as(&locks, "lock", |path| path.display().to_string());
        let message = format!("Left behind by a process that is gone: {list}.");
        let repairs = locks.into_iter().map(Repair::RemoveLock).collect();
        found.push(finding("lock.stale", Severity::Warning, message, repairs));
    }
    if !temporary.is_empty() {
        let list = such_as(&temporary, "temporary file", |path| path.display().to_string());
        let message = format!("Left behind by a write that did not finish: {list}.");
        found.push(finding("files.temporary", Severity::Info, message, vec![Repair::SetAside(temporary)]));
    }
    Ok(())
}

/// Files that the system locks for as long as a write takes, and that stay: removing one would let two write at once.
fn staying_locks(premises: &Premises) -> [PathBuf; 2] {
    let approvals = premises.state.layout.state_dir().join(APPROVALS_FILE);
    [&premises.config_path, &approvals].map(|file| disk::beside(file, "lock"))
}

fn directories(premises: &Premises) -> BTreeSet<PathBuf> {
    let state_dir = premises.state.layout.state_dir();
    let mut dirs: BTreeSet<PathBuf> =
        ["", "devices", "identity", "nodes"].map(|name| state_dir.join(name)).into();
    dirs.insert(premises.state.credentials_dir.clone());
    dirs.extend(premises.agent_dirs.iter().cloned());
    dirs.extend(
        premises.state.stores().iter().filter_map(|(store, _)| store.parent().map(Path::to_path_buf)),
    );
    dirs
}

/// `<file>.<pid>.<uuid>.tmp` of a process that is gone, or any temporary file that is old.
fn is_left_over(path: &Path, name: &str) -> bool {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return false };
    let pid = name.trim_end_matches(".tmp").rsplit('.').nth(1).and_then(|pid| pid.parse::<u32>().ok());
    let age = meta.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
    meta.is_file()
        && (pid.is_some_and(|pid| process::look(pid) == Sighting::Gone)
            || age.is_some_and(|age| age > TEMPORARY_FOR))
}
