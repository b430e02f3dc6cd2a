//! The configured agents: adding, changing and removing them, their directories and their workspace files. Blocking.
//!
//! The command line and the gateway do it with the same functions. `edit` plans the next
//! `openclaw.json` from the one that was read (pure); the config crate writes it, touching only
//! what changed; here directories are made and moved away. Files are never erased: those of a
//! deleted agent go to the [`trash`].

mod edit;
pub mod files;
mod identity_lines;
pub mod trash;

use std::path::{Path, PathBuf};

use openclaw_config::private_file;
use openclaw_config::settings::Identity;
use openclaw_config::write::{self, Actor, WriteError};
use openclaw_config::{Config, InvalidConfig, Loaded};
use openclaw_protocol::AgentId;

use crate::workspace::{Fill, WorkspaceError, ensure};

pub use edit::{BindingChanges, NewBinding};
pub use identity_lines::IdentityLines;

/// An agent to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAgent {
    /// Agent id.
    pub id: AgentId,
    /// Display name.
    pub name: String,
    /// Absolute.
    pub workspace: PathBuf,
    /// Absolute; absent leaves it to the state directory's layout.
    pub agent_dir: Option<PathBuf>,
    /// `provider/id` or an alias; absent takes the shared one.
    pub model: Option<String>,
    /// Bindings: the chats that the agent answers.
    pub bindings: Vec<NewBinding>,
    /// Lines for its `IDENTITY.md`.
    pub identity: IdentityLines,
}

/// Result of adding an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Absolute.
    pub workspace: PathBuf,
    /// Absolute.
    pub agent_dir: PathBuf,
    /// Absolute.
    pub sessions_dir: PathBuf,
    /// Bindings that were added or were there already.
    pub bindings: BindingChanges,
}

/// Changes to an agent; absent fields stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentChange {
    /// Display name.
    pub name: Option<String>,
    /// Absolute.
    pub workspace: Option<PathBuf>,
    /// `provider/id` or an alias.
    pub model: Option<String>,
    /// Picture of the agent; written to `IDENTITY.md`.
    pub avatar: Option<String>,
}

/// Treatment of a deleted agent's directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// Workspace, agent directory and sessions go to the trash.
    Trash,
    /// Leaves the directories where they are.
    Keep,
}

/// Result of deleting an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// Former workspace of the agent.
    pub workspace: PathBuf,
    /// Former agent directory.
    pub agent_dir: PathBuf,
    /// Former directory of its sessions.
    pub sessions_dir: PathBuf,
    /// Bindings that are gone.
    pub removed_bindings: usize,
    /// Entries of `tools.agentToAgent.allow` that are gone.
    pub removed_allow: usize,
    /// Directories and where they are now.
    pub trashed: Vec<(PathBuf, PathBuf)>,
    /// Directories that stayed, and why.
    pub kept: Vec<(PathBuf, String)>,
}

/// Reason why nothing was changed. The variants are told apart by what they say to the person.
#[derive(Debug, thiserror::Error)]
pub enum RosterError {
    /// The id of the agent that exists without configuration.
    #[error("\"{0}\" is reserved")]
    Reserved(AgentId),
    /// The agent exists already.
    #[error("agent \"{0}\" already exists")]
    Exists(AgentId),
    /// The agent does not exist.
    #[error("agent \"{0}\" not found")]
    NotFound(AgentId),
    /// The agent that exists without configuration.
    #[error("\"{0}\" cannot be deleted")]
    Undeletable(AgentId),
    /// The agent comes from an included file.
    #[error("agent \"{0}\" is configured in an included file; change it there")]
    Included(AgentId),
    /// The config can't be used.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// The config can't be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The workspace can't be made.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Another directory or file can't be made.
    #[error("cannot write {path}: {source}")]
    Io {
        /// Path of the directory or file.
        path: PathBuf,
        /// Underlying I/O error.
        source: std::io::Error,
    },
}

/// Adds an agent. The directories are made first: an agent that is configured has them.
///
/// # Errors
/// [`RosterError`]; the config is unchanged then.
pub fn create(loaded: &Loaded, new: &NewAgent, actor: Actor) -> Result<Created, RosterError> {
    let config = loaded.config_for_reading()?;
    let plan = edit::add(&loaded.snapshot.parsed, config, new)?;
    let sessions_dir = config.paths().sessions_dir(&new.id);
    ensure(&new.workspace, fill(config))?;
    private_file::make_dir(&sessions_dir)
        .map_err(|source| RosterError::Io { path: sessions_dir.clone(), source })?;
    new.identity.append(&new.workspace)?;
    write::write(loaded, &plan.document, actor)?;
    let agent_dir = new.agent_dir.clone().unwrap_or_else(|| config.paths().agent_dir(&new.id));
    Ok(Created { workspace: new.workspace.clone(), agent_dir, sessions_dir, bindings: plan.bindings })
}

fn fill(config: &Config) -> Fill {
    if config.agents.defaults.skip_bootstrap { Fill::DirectoryOnly } else { Fill::Templates }
}

/// Changes an agent.
///
/// # Errors
/// [`RosterError`]; the config is unchanged then.
pub fn update(loaded: &Loaded, id: &AgentId, change: &AgentChange, actor: Actor) -> Result<(), RosterError> {
    let config = loaded.config_for_reading()?;
    let next = edit::change(&loaded.snapshot.parsed, config, id, change)?;
    let workspace = change.workspace.clone().unwrap_or_else(|| config.agent(id).workspace);
    if change.workspace.is_some() {
        ensure(&workspace, fill(config))?;
    }
    if change.avatar.is_some() {
        let lines = IdentityLines { avatar: change.avatar.clone(), ..IdentityLines::default() };
        lines.append(&workspace)?;
    }
    write::write(loaded, &next, actor)?;
    Ok(())
}

/// Changes who an agent is; fields that are absent stay. Gives the whole identity.
///
/// # Errors
/// [`RosterError`]; the config is unchanged then.
pub fn set_identity(
    loaded: &Loaded,
    id: &AgentId,
    identity: &Identity,
    actor: Actor,
) -> Result<Identity, RosterError> {
    let config = loaded.config_for_reading()?;
    let (next, whole) = edit::set_identity(&loaded.snapshot.parsed, config, id, identity)?;
    write::write(loaded, &next, actor)?;
    Ok(whole)
}

/// Removes an agent and what names it. Directories that can't be moved away stay, and are reported.
///
/// # Errors
/// [`RosterError`]; nothing is changed then.
pub fn delete(loaded: &Loaded, id: &AgentId, files: Files, actor: Actor) -> Result<Deleted, RosterError> {
    let config = loaded.config_for_reading()?;
    let plan = edit::remove(&loaded.snapshot.parsed, config, id)?;
    let agent = config.agent(id);
    write::write(loaded, &plan.document, actor)?;
    let mut deleted = Deleted {
        workspace: agent.workspace,
        agent_dir: agent.agent_dir,
        sessions_dir: agent.sessions_dir,
        removed_bindings: plan.bindings,
        removed_allow: plan.allow,
        trashed: Vec::new(),
        kept: Vec::new(),
    };
    if files == Files::Trash {
        move_away(config, id, &mut deleted);
    }
    Ok(deleted)
}

fn move_away(config: &Config, id: &AgentId, deleted: &mut Deleted) {
    let trash = trash::Trash::of(config.environment());
    let places = [
        (deleted.workspace.clone(), "workspace"),
        (deleted.agent_dir.clone(), "agent"),
        (deleted.sessions_dir.clone(), "sessions"),
    ];
    for (dir, what) in places {
        if std::fs::symlink_metadata(&dir).is_err() {
            continue;
        }
        match in_use(config, id, &dir) {
            Some(reason) => deleted.kept.push((dir, reason)),
            None => match trash.take(&dir, &format!("openclaw-{id}-{what}")) {
                Ok(now_at) => deleted.trashed.push((dir, now_at)),
                Err(error) => deleted.kept.push((dir, error.to_string())),
            },
        }
    }
    // `agents/<id>` goes when nothing is left in it: an agent with a directory counts as known.
    let _ = std::fs::remove_dir(config.paths().agent_root(id));
}

/// Returns the reason why a directory belongs not only to this agent.
fn in_use(config: &Config, id: &AgentId, dir: &Path) -> Option<String> {
    let dir = real(dir);
    if dir.parent().is_none() {
        return Some("it is the root directory".to_owned());
    }
    let own = [config.paths().home(), config.paths().state_dir(), config.paths().config_path()];
    if let Some(inside) = own.into_iter().find(|path| real(path).starts_with(&dir)) {
        return Some(format!("{} is in it", inside.display()));
    }
    config.agent_ids().into_iter().filter(|other| other != id).find_map(|other| {
        let agent = config.agent(&other);
        let theirs = [agent.workspace, agent.agent_dir, agent.sessions_dir];
        let shared =
            theirs.iter().map(|path| real(path)).any(|path| path.starts_with(&dir) || dir.starts_with(&path));
        shared.then(|| format!("agent \"{other}\" uses it too"))
    })
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests;
