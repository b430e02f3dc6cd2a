//! The sandbox that a session's runs are held to (spec `tools.md` §10).

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::prompt::{SandboxNote, SandboxReport};
use openclaw_agent::skills::Snapshot;
use openclaw_config::ResolvedAgent;
use openclaw_config::settings::{ToolPolicy, WorkspaceAccess};
use openclaw_journal::rights::Rights;
use openclaw_runtime::setup::Settings;
use openclaw_runtime::tool_access::WRITING_TOOLS;
use openclaw_sessions::SessionKey;
use openclaw_tools::Confinement;
use openclaw_tools::sandbox::{
    ActiveSandbox, SandboxPolicy, SandboxSettings, Sandboxes, SeededSkill, Wanted, workspace_of,
};

use crate::not_begun::NotBegun;

/// Returns the sandbox settings of a run; `None` if it is not held in a sandbox.
pub(crate) fn settings_of(
    settings: &Settings,
    agent: &ResolvedAgent,
    rights: &Rights,
) -> Option<SandboxSettings> {
    (!rights.may_use_host()).then(|| SandboxSettings::of(&settings.config, &agent.id))
}

/// Returns the host directory with a run's files: that of its sandbox, or the agent's workspace.
pub(super) fn files_of(
    settings: &Settings,
    agent: &ResolvedAgent,
    key: &SessionKey,
    rights: &Rights,
) -> PathBuf {
    let held = settings_of(settings, agent, rights);
    held.map_or_else(
        || agent.workspace.clone(),
        |held| workspace_of(&held, &agent.id, &agent.workspace, key.as_str()),
    )
}

/// True if a run works on copies of the workspace's files rather than on the files themselves.
pub(super) fn has_copies(settings: &Settings, agent: &ResolvedAgent, rights: &Rights) -> bool {
    let held = settings_of(settings, agent, rights);
    held.is_some_and(|held| held.access != WorkspaceAccess::ReadWrite)
}

/// True if a run could write to the agent's workspace.
pub(super) fn reaches_workspace(settings: &Settings, agent: &ResolvedAgent, rights: &Rights) -> bool {
    let held = settings_of(settings, agent, rights);
    held.is_none_or(|held| held.access == WorkspaceAccess::ReadWrite)
}

/// Makes the session's sandbox ready. Where that can't be had, the run does not begin: it would be done without.
pub(super) async fn open(
    sandboxes: &Sandboxes,
    settings: &Settings,
    (key, agent): (&SessionKey, &ResolvedAgent),
    rights: &Rights,
    skills: &Snapshot,
) -> Result<Option<Arc<ActiveSandbox>>, NotBegun> {
    if rights.may_use_host() {
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
        session_key: key.as_str(),
        skills: &skills,
    };
    let opened = Box::pin(sandboxes.open(wanted)).await;
    let opened = opened.map_err(|error| {
        NotBegun::because(format!("Error: the run did not begin, as there is no sandbox for it: {error}."))
    })?;
    Ok(Some(Arc::new(opened)))
}

/// Returns the reach of a run's tools.
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

/// Note on it for the prompt.
pub(super) fn note(sandbox: &ActiveSandbox) -> SandboxNote {
    SandboxNote {
        workspace: Some(sandbox.inner_workspace()),
        workspace_access: Some(sandbox.settings().access.as_str().to_owned()),
        ..SandboxNote::default()
    }
}

/// Part of the prompt's report about the sandbox.
pub(super) fn report(
    settings: &Settings,
    agent: &ResolvedAgent,
    sandbox: Option<&ActiveSandbox>,
) -> SandboxReport {
    let mode = SandboxSettings::of(&settings.config, &agent.id).mode;
    SandboxReport { mode: mode.as_str().to_owned(), sandboxed: sandbox.is_some() }
}

/// Returns the skills prompt with the paths under which the sandbox has the skills.
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
