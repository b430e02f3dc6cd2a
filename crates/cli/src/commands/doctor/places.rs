//! Files and directories that commands and runs fail over, or do without, when they are not what they should be.

use std::fmt;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use nix::unistd::{AccessFlags, access};
use openclaw_config::{Config, ResolvedAgent, left_workspaces, private_file};
use openclaw_models::credentials::AuthStore;
use openclaw_models::{models_file_problem, set_models_file_aside};
use openclaw_protocol::AgentId;
use openclaw_sessions::checkup::{Finding, Severity};
use openclaw_tools::exec_approvals::store::ApprovalsStore;

use crate::client::identity::DeviceKeyPair;
use crate::context::CliContext;

/// Findings about private files and directories. A person has to look: nothing of this can be made
/// again.
pub(super) fn findings(context: &CliContext) -> Vec<Finding> {
    let config = context.config_or_default();
    let identity = DeviceKeyPair::problem(context.paths());
    let mut found: Vec<Finding> = identity
        .map(|error| finding("identity.damaged", format!("This host's device key cannot be used: {error}.")))
        .into_iter()
        .chain(logs(context.paths().log_dir()))
        .chain(full(context.paths().state_dir()))
        .chain(approvals(context))
        .collect();
    found.extend(left_workspaces(&config).iter().map(|left| Finding {
        severity: Severity::Warning,
        ..finding("workspace.elsewhere", format!("{left}."))
    }));
    for agent in config.agent_ids() {
        found.extend(of_agent(&config, &config.agent(&agent)));
    }
    found
}

/// Moves files aside that only runs have to make anew. Returns sentences that say what was done.
pub(super) fn set_aside(context: &CliContext) -> Vec<String> {
    let config = context.config_or_default();
    let of = |agent: &AgentId| {
        let dir = config.agent(agent).agent_dir;
        match set_models_file_aside(&dir) {
            Ok(kept) => {
                let (path, kept) = (dir.join("models.json"), kept?);
                let [path, kept] = [path, kept].map(|path| context.short(&path));
                Some(format!("{path} was no JSON; it is kept as {kept}, and the next run makes it anew."))
            }
            Err(error) => Some(format!("Could not look at models.json of agent {agent}: {error}.")),
        }
    };
    config.agent_ids().iter().filter_map(of).collect()
}

fn of_agent(config: &Config, agent: &ResolvedAgent) -> Vec<Finding> {
    let id = &agent.id;
    let credentials = AuthStore::load(&agent.agent_dir).err();
    let setting =
        if config.agent_ids().len() > 1 { "agents.list[].workspace" } else { "agents.defaults.workspace" };
    let workspace = obstacle(&agent.workspace).map(|why| {
        let path = agent.workspace.display();
        let remedy = why.remedy();
        format!("Agent {id} has no workspace {path}: {why}. {remedy}, or name another directory ({setting}).")
    });
    [
        credentials
            .map(|error| finding("credentials.damaged", format!("Agent {id} has no credentials: {error}."))),
        models_file_problem(&agent.agent_dir).map(|why| Finding {
            severity: Severity::Warning,
            ..finding("models.ignored", format!("Agent {id}: {why}. Correct the file, or move it away."))
        }),
        workspace.map(|message| finding("workspace.unusable", message)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The file that says which commands may run. While it can't be read, none runs that it is for.
fn approvals(context: &CliContext) -> Option<Finding> {
    let store = ApprovalsStore::new(context.paths().state_dir(), &context.env().home());
    let why = store.load().err()?;
    let advice = "Correct its text, or move it away and start anew; its rules are lost then.";
    Some(finding("approvals.damaged", format!("Commands are refused: {why}. {advice}")))
}

fn logs(dir: &Path) -> Option<Finding> {
    let why = obstacle(dir)?;
    let remedy = why.remedy();
    Some(finding(
        "state.logs",
        format!("No log is written: {why}. {remedy}: {} has to be a directory.", dir.display()),
    ))
}

/// Size of the file that is written to see whether there is space: a message and what is stored with it.
const PROBE: usize = 64 * 1024;

/// Tries whether a file can be written. A directory that refuses every file is reported with the modes.
fn full(state_dir: &Path) -> Option<Finding> {
    let write = || {
        let mut file = tempfile::Builder::new().prefix(".doctor-").suffix(".tmp").tempfile_in(state_dir)?;
        file.write_all(&[0; PROBE])?;
        file.as_file().sync_all()?;
        file.close()
    };
    let error = write().err()?;
    let shown = state_dir.display();
    let message = match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => return None,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => return None,
        _ if private_file::is_full(&error) => {
            format!("No message can be stored: there is no space left for {shown}. Free space on that disk.")
        }
        _ => format!("No message can be stored: a file can't be written in {shown} ({error})."),
    };
    Some(finding("state.full", message))
}

/// Reason why a directory does not exist and can't be made.
enum NoDirectory<'a> {
    /// Another kind of file stands in its place, or in that of a directory above it.
    InTheWay(&'a Path),
    /// The directory that is there does not let this user make it.
    Refused(&'a Path),
}

impl NoDirectory<'_> {
    /// Advice, as the beginning of a sentence.
    fn remedy(&self) -> String {
        match self {
            Self::InTheWay(_) => "Move away what is there".to_owned(),
            Self::Refused(dir) => format!("Let this user write in {}", dir.display()),
        }
    }
}

impl fmt::Display for NoDirectory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InTheWay(path) => write!(f, "{} is not a directory", path.display()),
            Self::Refused(dir) => write!(f, "nothing can be made in {}", dir.display()),
        }
    }
}

fn obstacle(dir: &Path) -> Option<NoDirectory<'_>> {
    let there = dir.ancestors().find(|path| path.symlink_metadata().is_ok())?;
    if !there.is_dir() {
        return Some(NoDirectory::InTheWay(there));
    }
    let is_refused = there != dir && access(there, AccessFlags::W_OK).is_err();
    is_refused.then_some(NoDirectory::Refused(there))
}

fn finding(id: &'static str, message: String) -> Finding {
    Finding { id, severity: Severity::Error, message, repairs: Vec::new() }
}
