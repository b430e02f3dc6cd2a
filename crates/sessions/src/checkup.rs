//! Checks and repairs of the state directory: the state part of `openclaw doctor` (spec `cli.md`
//! §7, rows 7 and 8).
//!
//! [`check`] only reads. Each [`Finding`] has a severity and the possible repairs: [`Repair`]s are
//! data, [`repair`] carries one out. A file is kept in a [`Backup`] before a repair changes it;
//! only useless things are ever deleted: locks of dead processes and empty directories.

mod directories;
mod permissions;
mod remains;
mod stores;
mod transcripts;

use std::io;
use std::path::{Path, PathBuf};

use openclaw_protocol::AgentId;

pub use self::directories::wanted_directories;
use crate::backup::Backup;
use crate::layout::{ArchiveReason, archive_path};
use crate::legacy_state::OldState;
use crate::lockfile::LockFile;

/// Input of a checkup.
#[derive(Debug, Clone)]
pub struct Premises {
    /// Stores, agents, and what old versions may have left.
    pub state: OldState,
    /// The home directory, for other state directories.
    pub home: PathBuf,
    /// The config file.
    pub config_path: PathBuf,
    /// Agents' own directories.
    pub agent_dirs: Vec<PathBuf>,
    /// True if a gateway uses the directory: then a file that is still being written does not count
    /// as torn.
    pub is_running: bool,
    /// True if the config could be read: without it the agents and their stores are unknown.
    pub is_configured: bool,
    /// True if transcripts that no session uses are to be archived.
    pub archive_orphans: bool,
    /// Now, Unix milliseconds.
    pub now: i64,
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Should be put right.
    Warning,
    /// Error: a part does not work, or data was lost.
    Error,
}

impl Severity {
    /// Name of the severity in `openclaw doctor --json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Problem found in the state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Stable name, for scripts.
    pub id: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Description of the problem and advice, for people.
    pub message: String,
    /// Repairs that `doctor` can make; empty where a person has to act.
    pub repairs: Vec<Repair>,
}

/// Single repair step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// Make a directory of mode 0700.
    MakeDir(PathBuf),
    /// Set a mode.
    Chmod {
        /// The file or directory.
        path: PathBuf,
        /// Mode to set.
        mode: u32,
    },
    /// Move what old versions left.
    MigrateOldState,
    /// Write a store anew with the rows that can be read, in order.
    TidyStore {
        /// The store.
        store: PathBuf,
        /// The agent it is of.
        agent: AgentId,
    },
    /// Write a transcript anew with the lines that can be read.
    MendTranscript(PathBuf),
    /// Rename transcripts that no session uses.
    Archive(Vec<PathBuf>),
    /// Remove a lock that was left behind.
    RemoveLock(PathBuf),
    /// Move files into the backup.
    SetAside(Vec<PathBuf>),
    /// Write the config with its keys where they belong now. The caller does it, who has the config.
    MoveOldKeys,
}

impl Repair {
    /// True if the repair may be made while a gateway runs.
    pub fn is_safe_beside_a_gateway(&self) -> bool {
        matches!(self, Self::MakeDir(_) | Self::Chmod { .. } | Self::MoveOldKeys)
    }
}

/// A check, by the part of the state it looks at.
type CheckFn = fn(&Premises, &mut Vec<Finding>) -> io::Result<()>;

/// All checks with the name under which one that fails itself is reported, in the order of the report.
const CHECKS: &[(&str, CheckFn)] = &[
    ("state.directories", directories::check),
    ("state.permissions", permissions::check),
    ("state.old", stores::check_old),
    ("store", stores::check),
    ("transcripts", transcripts::check),
    ("state.remains", remains::check),
];

/// Looks at everything; changes nothing. Blocking.
pub fn check(premises: &Premises) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, check) in CHECKS {
        if let Err(error) = check(premises, &mut found) {
            let message = format!("Could not be looked at: {error}.");
            found.push(Finding { id: name, severity: Severity::Error, message, repairs: Vec::new() });
        }
    }
    found
}

/// Takes from group and others what they may do with state files. Returns of how many. Blocking.
///
/// # Errors
/// The first one that could not be changed; the others are changed all the same.
pub fn keep_private(premises: &Premises) -> io::Result<usize> {
    let mut found = Vec::new();
    permissions::check(premises, &mut found)?;
    let mut outcome = Ok(0);
    for action in found.iter().flat_map(|finding| &finding.repairs) {
        if let Repair::Chmod { path, mode } = action {
            let done = permissions::set_mode(path, *mode);
            outcome = match (outcome, done) {
                (Ok(count), Ok(())) => Ok(count + 1),
                (Ok(_), Err(error)) => Err(error),
                (failed, _) => failed,
            };
        }
    }
    outcome
}

/// Carries one repair out. The caller holds the lock of the state directory unless the repair is safe without. Blocking.
///
/// # Errors
/// Returns the system's error; what was to be changed is as it was, or in the backup.
pub fn repair(premises: &Premises, repair: &Repair, backup: &mut Backup) -> io::Result<()> {
    match repair {
        Repair::MakeDir(path) => crate::disk::create_parent(&crate::disk::RealDisk, &path.join("x")),
        // A path that was moved meanwhile is looked at again.
        Repair::Chmod { path, .. } if !path.exists() => Ok(()),
        Repair::Chmod { path, mode } => permissions::set_mode(path, *mode),
        Repair::MigrateOldState => {
            let migrated = premises.state.migrate_into(backup, premises.now);
            migrated.map(drop).map_err(|error| io::Error::other(error.to_string()))
        }
        Repair::TidyStore { store, agent } => {
            premises.state.tidy_store(store, agent, backup, premises.now).map(drop)
        }
        Repair::MendTranscript(path) if !path.exists() => Ok(()),
        Repair::MendTranscript(path) => transcripts::mend(path, backup, premises.now),
        Repair::Archive(paths) => {
            let mut there = paths.iter().filter(|path| path.exists());
            there.try_for_each(|path| archive(path, backup, premises.now))
        }
        Repair::RemoveLock(path) => LockFile::sweep(&crate::disk::real(), path),
        Repair::SetAside(paths) => {
            paths.iter().filter(|path| path.exists()).try_for_each(|path| backup.take(path))
        }
        Repair::MoveOldKeys => Err(io::Error::other("the config is not written here")),
    }
}

fn archive(path: &Path, backup: &mut Backup, now: i64) -> io::Result<()> {
    backup.relocate(path, &archive_path(path, ArchiveReason::Deleted, now))
}

/// Collects findings with less ado.
pub(crate) fn finding(
    id: &'static str,
    severity: Severity,
    message: String,
    repairs: Vec<Repair>,
) -> Finding {
    Finding { id, severity, message, repairs }
}

/// `3 files, such as a.json` or `a.json`
pub(crate) fn such_as<T>(items: &[T], noun: &str, name: impl Fn(&T) -> String) -> String {
    match items {
        [] => format!("no {noun}"),
        [only] => format!("1 {noun}: {}", name(only)),
        [first, ..] => format!("{} {noun}s, such as {}", items.len(), name(first)),
    }
}

#[cfg(test)]
mod tests;
