//! The sandbox that a session's runs are held to (spec `tools.md` §10).

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::prompt::{SandboxNote, SandboxReport};
use openclaw_agent::skills::Snapshot;
use openclaw_config::ResolvedAgent;
use openclaw_config::settings::{SandboxScope, ToolPolicy, WorkspaceAccess};
use openclaw_sessions::SessionKey;
use openclaw_tools::Confinement;
use openclaw_tools::sandbox::{
    ActiveSandbox, SandboxPolicy, SandboxSettings, SeededSkill, Wanted, workspace_of,
};

use super::session::Session;
use super::{NotBegun, Runner};
use crate::setup::Settings;

/// Tools that a sandbox which may only read does not have.
pub(crate) const WRITING_TOOLS: [&str; 3] = ["write", "edit", "apply_patch"];

/// The settings that hold a session's runs; nothing where they are not held.
pub(crate) fn settings_of(
    settings: &Settings,
    agent: &ResolvedAgent,
    key: &SessionKey,
) -> Option<SandboxSettings> {
    let is_held = SandboxSettings::hold(&settings.config, &agent.id, is_main(settings, agent, key));
    is_held.then(|| SandboxSettings::of(&settings.config, &agent.id))
}

fn is_main(settings: &Settings, agent: &ResolvedAgent, key: &SessionKey) -> bool {
    let rules = settings.sessions.key_rules();
    rules.is_main(key) && rules.agent_of(key) == agent.id
}

/// The host directory that a session's files are in: that of its sandbox, or the agent's workspace.
pub(super) fn files_of(settings: &Settings, agent: &ResolvedAgent, key: &SessionKey) -> PathBuf {
    let held = settings_of(settings, agent, key);
    held.map_or_else(
        || agent.workspace.clone(),
        |held| workspace_of(&held, &agent.id, &agent.workspace, key.as_str()),
    )
}

/// Whether runs of a session have copies of the workspace's files, and not those themselves.
pub(super) fn has_copies(settings: &Settings, agent: &ResolvedAgent, key: &SessionKey) -> bool {
    settings_of(settings, agent, key).is_some_and(|held| held.access != WorkspaceAccess::ReadWrite)
}

/// Whether a run could write to the agent's workspace.
pub(super) fn reaches_workspace(settings: &Settings, agent: &ResolvedAgent, key: &SessionKey) -> bool {
    settings_of(settings, agent, key).is_none_or(|held| held.access == WorkspaceAccess::ReadWrite)
}

/// Whose the commands in a sandbox are: they are seen by the runs that share it, and by no other.
pub(super) fn scope_of(sandbox: &ActiveSandbox, agent: &ResolvedAgent, key: &SessionKey) -> String {
    match sandbox.settings().scope {
        SandboxScope::Session => format!("sandbox:{key}"),
        SandboxScope::Agent => format!("sandbox-of:{}", agent.id),
        SandboxScope::Shared => "sandbox".to_owned(),
    }
}

impl Runner {
    /// Makes the session's sandbox ready. Where that can't be had, the run does not begin: it would be done without.
    pub(super) async fn sandbox(
        &self,
        session: &Session,
        settings: &Settings,
        skills: &Snapshot,
    ) -> Result<Option<Arc<ActiveSandbox>>, NotBegun> {
        let agent = &session.agent;
        if settings_of(settings, agent, &session.key).is_none() {
            return Ok(None);
        }
        let skills: Vec<SeededSkill> = skills
            .skills
            .iter()
            .map(|skill| SeededSkill { name: skill.name.clone(), directory: skill.base_dir.clone() })
            .collect();
        let wanted = Wanted {
            config: &settings.config,
            agent: &agent.id,
            agent_workspace: &agent.workspace,
            session_key: session.key.as_str(),
            skills: &skills,
        };
        let opened = Box::pin(self.deps.sandboxes.open(wanted)).await;
        let opened = opened.map_err(|error| {
            NotBegun::because(format!(
                "Error: the run did not begin, as there is no sandbox for it: {error}."
            ))
        })?;
        Ok(Some(Arc::new(opened)))
    }
}

/// How far the tools of a run reach.
pub(super) fn confinement(sandbox: Option<&ActiveSandbox>) -> Confinement {
    sandbox.map_or(Confinement::Host, |sandbox| Confinement::Within(sandbox.workspace().to_owned()))
}

/// The step of the tool policy.
pub(super) fn policy(
    settings: &Settings,
    agent: &ResolvedAgent,
    sandbox: Option<&ActiveSandbox>,
) -> Option<ToolPolicy> {
    sandbox.map(|_| SandboxPolicy::of(&settings.config, &agent.id).lists())
}

/// Takes tools away that a sandbox which may only read does not have.
pub(super) fn without_writing(sandbox: Option<&ActiveSandbox>, allowed: &mut Vec<String>) {
    if sandbox.is_some_and(|sandbox| sandbox.settings().access == WorkspaceAccess::ReadOnly) {
        allowed.retain(|name| !WRITING_TOOLS.contains(&name.as_str()));
    }
}

/// What the prompt says of it.
pub(super) fn note(sandbox: &ActiveSandbox) -> SandboxNote {
    SandboxNote {
        workspace: Some(sandbox.inner_workspace()),
        workspace_access: Some(sandbox.settings().access.as_str().to_owned()),
        ..SandboxNote::default()
    }
}

/// What the report of the prompt says.
pub(super) fn report(
    settings: &Settings,
    agent: &ResolvedAgent,
    sandbox: Option<&ActiveSandbox>,
) -> SandboxReport {
    let mode = SandboxSettings::of(&settings.config, &agent.id).mode;
    SandboxReport { mode: mode.as_str().to_owned(), sandboxed: sandbox.is_some() }
}

/// The skills prompt with the paths under which the sandbox has the skills.
pub(super) fn skills_prompt(sandbox: &ActiveSandbox, agent: &ResolvedAgent, skills: &Snapshot) -> String {
    let root = sandbox.inner_workspace();
    let mut text = skills.prompt.to_string();
    for skill in &skills.skills {
        let Some(file) = skill.file_path.file_name() else { continue };
        let inner = match sandbox.settings().access {
            WorkspaceAccess::ReadWrite => match skill.file_path.strip_prefix(&agent.workspace) {
                Ok(inside) => root.join(inside),
                Err(_) => continue,
            },
            WorkspaceAccess::None | WorkspaceAccess::ReadOnly => {
                root.join("skills").join(&skill.name).join(file)
            }
        };
        text = text.replace(&skill.file_path.display().to_string(), &inner.display().to_string());
    }
    text
}
