//! State that older versions left behind: rows under old keys, and files from the days before there were several agents
//! (spec `sessions.md` §1.6, `cli.md` §7 row 7).
//!
//! [`OldState::found`] says what there is, [`OldState::migrate`] moves it. Files are kept in a
//! [`Backup`] before they are changed. Every step can be the last one before a crash: the next run
//! finds and moves the rest. The caller must hold the lock of the state directory, and nobody may
//! have a store of it open.

mod moves;
pub(crate) mod rows;

use std::cell::Cell;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use openclaw_protocol::AgentId;

use crate::backup::Backup;
use crate::key::KeyRules;
use crate::layout::Layout;
use crate::store::on_disk::{self, StoreOnDisk, StoredRow};
use rows::{CleanupChange, StoreOwner, Tidied};

/// Locations to search for old state, and the layout it moves into.
#[derive(Debug, Clone)]
pub struct OldState {
    /// Layout of stores and transcripts.
    pub layout: Layout,
    /// Rules for reading keys.
    pub rules: KeyRules,
    /// Agents that exist by configuration; those on disk are found.
    pub agents: Vec<AgentId>,
    /// The default agent's own directory.
    pub agent_dir: PathBuf,
    /// Credentials of channels.
    pub credentials_dir: PathBuf,
}

/// Remnant of an old version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remnant {
    /// `<state>/sessions`: store and transcripts of the only agent there was.
    Sessions(PathBuf),
    /// A store with rows under old keys.
    OldKeys {
        /// The store.
        store: PathBuf,
        /// The agent it is of.
        agent: AgentId,
    },
    /// `<state>/agent`: the directory of the only agent there was.
    AgentDir(PathBuf),
    /// WhatsApp's login, directly in the credentials directory.
    WhatsAppLogin(PathBuf),
}

/// Result of a migration.
#[derive(Debug, Default)]
pub struct Migrated {
    /// Changes made, one line each, for people.
    pub changes: Vec<String>,
    /// Directory that keeps the former state; `None` if nothing had to be kept.
    pub backup: Option<PathBuf>,
}

/// A migration stopped; it can be run again.
#[derive(Debug, thiserror::Error)]
#[error("cannot migrate {}: {source}{}", .path.display(), kept_in(.backup.as_deref()))]
pub struct MigrateError {
    /// Path that was being moved.
    pub path: PathBuf,
    /// Directory that keeps the former state.
    pub backup: Option<PathBuf>,
    /// Error from the system.
    #[source]
    pub source: io::Error,
}

/// True if a store has a group whose key lacks the channel that its row names.
fn has_misnamed(store: &Path, owner: StoreOwner<'_>) -> io::Result<bool> {
    let rows = StoreOnDisk::read(store)?.rows();
    Ok(rows.iter().any(|row| owner.is_misnamed(row, &rows)))
}

fn kept_in(backup: Option<&Path>) -> String {
    backup.map_or_else(String::new, |dir| format!("; what it was is kept in {}", dir.display()))
}

impl OldState {
    /// Finds what old versions left; changes nothing.
    ///
    /// # Errors
    /// When a directory or store can't be read.
    pub fn found(&self) -> io::Result<Vec<Remnant>> {
        let mut found = Vec::new();
        if self.has_old_sessions()? {
            found.push(Remnant::Sessions(self.old_sessions()));
        }
        for (store, agent) in self.stores() {
            let owner = self.owner(&agent);
            let has_unnamed = Cell::new(false);
            let is_old = on_disk::has_key(&store, |key| {
                has_unnamed.set(has_unnamed.get() || rows::is_unnamed_group(key));
                owner.is_old(key)
            })?;
            if is_old || has_unnamed.get() && has_misnamed(&store, owner)? {
                found.push(Remnant::OldKeys { store, agent });
            }
        }
        if moves::has_files(&self.old_agent_dir())? && self.old_agent_dir() != self.agent_dir {
            found.push(Remnant::AgentDir(self.old_agent_dir()));
        }
        if !moves::whatsapp_files(&self.credentials_dir)?.is_empty() {
            found.push(Remnant::WhatsAppLogin(self.credentials_dir.clone()));
        }
        Ok(found)
    }

    /// Moves everything that [`Self::found`] finds. `now` in Unix milliseconds. Blocking.
    ///
    /// # Errors
    /// The first thing that could not be moved; what was done before it stays done.
    pub fn migrate(&self, now: i64) -> Result<Migrated, MigrateError> {
        let mut backup = Backup::new(self.layout.state_dir(), now);
        self.migrate_into(&mut backup, now)
    }

    /// [`Self::migrate`] with a backup that is also used otherwise.
    ///
    /// # Errors
    /// See there.
    pub fn migrate_into(&self, backup: &mut Backup, now: i64) -> Result<Migrated, MigrateError> {
        let found = self.found().map_err(|source| self.failed(self.layout.state_dir(), backup, source))?;
        let mut changes = Vec::new();
        for remnant in found {
            let (path, moved) = match &remnant {
                Remnant::Sessions(path) => (path, self.take_in_old_sessions(backup, now)),
                Remnant::OldKeys { store, agent } => (store, self.tidy_store(store, agent, backup, now)),
                Remnant::AgentDir(path) => (path, moves::agent_dir(path, &self.agent_dir, backup, now)),
                Remnant::WhatsAppLogin(path) => (path, moves::whatsapp(path, backup)),
            };
            changes.extend(moved.map_err(|source| self.failed(path, backup, source))?);
        }
        Ok(Migrated { changes, backup: backup.dir().map(Path::to_path_buf) })
    }

    fn failed(&self, path: &Path, backup: &Backup, source: io::Error) -> MigrateError {
        MigrateError { path: path.to_path_buf(), backup: backup.dir().map(Path::to_path_buf), source }
    }

    /// Every store file with the agent that its bare keys belong to.
    pub(crate) fn stores(&self) -> Vec<(PathBuf, AgentId)> {
        let default = self.rules.default_agent.clone();
        let mut seen = HashSet::new();
        let agents =
            [default].into_iter().chain(self.agents.iter().cloned()).chain(self.layout.agents_on_disk());
        let stores = agents.map(|agent| (self.layout.store_path(&agent), agent));
        stores.filter(|(path, _)| seen.insert(path.clone())).collect()
    }

    pub(crate) fn owner<'a>(&'a self, agent: &'a AgentId) -> StoreOwner<'a> {
        StoreOwner { agent, rules: &self.rules, is_shared: !self.layout.is_per_agent() }
    }

    fn old_sessions(&self) -> PathBuf {
        self.layout.state_dir().join("sessions")
    }

    fn old_agent_dir(&self) -> PathBuf {
        self.layout.state_dir().join("agent")
    }

    /// True if `<state>/sessions` dates from the time before agents, and is not a configured store.
    fn has_old_sessions(&self) -> io::Result<bool> {
        let dir = self.old_sessions();
        let is_dir = std::fs::symlink_metadata(&dir).is_ok_and(|meta| meta.is_dir());
        if !is_dir || self.stores().iter().any(|(store, _)| store.starts_with(&dir)) {
            return Ok(false);
        }
        Ok(dir.join(STORE).exists() || !moves::transcripts(&dir)?.is_empty())
    }

    /// Moves transcripts and rows of the days before agents to the default agent.
    fn take_in_old_sessions(&self, backup: &mut Backup, now: i64) -> io::Result<Vec<String>> {
        let old = self.old_sessions();
        let agent = &self.rules.default_agent;
        let target = self.layout.sessions_dir(agent);
        let store = self.layout.store_path(agent);
        let mut changes = Vec::new();
        backup.keep(&old.join(STORE))?;
        let moved = moves::move_transcripts(&old, &target, backup)?;
        if moved > 0 {
            changes.push(format!(
                "moved {moved} transcript(s) from {} to {}",
                old.display(),
                target.display()
            ));
        }
        let theirs = StoreOnDisk::read(&old.join(STORE))?;
        let rows: Vec<StoredRow> =
            theirs.rows().into_iter().map(|row| moves::at_its_new_place(row, &old, &target)).collect();
        if !rows.is_empty() {
            changes.push(format!(
                "took {} session(s) of {} into {}",
                rows.len(),
                old.display(),
                store.display()
            ));
            changes.extend(self.rewrite(&store, agent, rows, backup, now)?);
        }
        let left = moves::free_name(&self.layout.state_dir().join(format!("sessions.legacy-{now}")));
        backup.relocate(&old, &left)?;
        changes.push(format!("what is left of {} is in {}", old.display(), left.display()));
        Ok(changes)
    }

    /// Puts the rows of one store in order.
    pub(crate) fn tidy_store(
        &self,
        store: &Path,
        agent: &AgentId,
        backup: &mut Backup,
        now: i64,
    ) -> io::Result<Vec<String>> {
        self.rewrite(store, agent, Vec::new(), backup, now)
    }

    /// Writes a store anew: its rows and those that join it, in order. The journal's changes are brought into the file
    /// under their old keys first, so that it is never replayed over new ones.
    fn rewrite(
        &self,
        store: &Path,
        agent: &AgentId,
        joining: Vec<StoredRow>,
        backup: &mut Backup,
        now: i64,
    ) -> io::Result<Vec<String>> {
        let _lock = on_disk::lock(store)?;
        let there = StoreOnDisk::read(store)?;
        let (found, segments) = (there.rows(), there.journal.paths().collect::<Vec<_>>());
        let joins = !joining.is_empty();
        let Tidied { rows, changes } =
            rows::tidy(found.iter().cloned().chain(joining).collect(), self.owner(agent), now);
        if changes.is_empty() && there.is_whole() && !joins {
            return Ok(Vec::new());
        }
        backup.keep(store)?;
        for segment in &segments {
            backup.keep(segment)?;
        }
        if !segments.is_empty() {
            backup.step()?;
            on_disk::write(store, &found)?;
            for segment in &segments {
                backup.step()?;
                std::fs::remove_file(segment)?;
            }
        }
        backup.step()?;
        on_disk::write(store, &rows)?;
        let mut lines: Vec<String> = changes.iter().map(CleanupChange::to_string).collect();
        lines.extend(there.keys_without_row().map(|key| format!("removed {key:?}: no session")));
        if let Some(damage) = &there.document.damage {
            lines.push(format!(
                "{} {damage}: wrote the {} session(s) that could be read",
                store.display(),
                rows.len()
            ));
        }
        Ok(lines)
    }
}

/// Name of a store file.
const STORE: &str = "sessions.json";

impl std::fmt::Display for CleanupChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Moved { from, to } => write!(f, "{from:?} is {to:?} now"),
            Self::Superseded { key, by } => write!(f, "removed {key:?}: {by:?} of the same session is newer"),
            Self::NoSessionId { key } => write!(f, "removed {key:?}: it has no session id"),
            Self::NoUpdatedAt { key } => {
                write!(f, "{key:?} counts as active now: its last activity is unknown")
            }
            Self::BecameMain { from, to } => write!(f, "{from:?} is the main session {to:?} now"),
            Self::LabelTaken { key, label } => {
                write!(f, "{key:?} lost its label {label:?} to a newer session")
            }
        }
    }
}

#[cfg(test)]
mod tests;
