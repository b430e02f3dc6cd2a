//! Workspaces whose files lie where their agent does not look.

use std::fmt;
use std::path::{Path, PathBuf};

use openclaw_protocol::AgentId;

use crate::Config;

/// An agent without a configured workspace, and files that were probably meant for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftWorkspace {
    agent: AgentId,
    workspace: PathBuf,
    /// The directory that has files.
    other: PathBuf,
}

/// Finds those of all agents. Looks at the disk.
pub fn left_workspaces(config: &Config) -> Vec<LeftWorkspace> {
    config.agent_ids().into_iter().filter_map(|agent| of_agent(config, agent)).collect()
}

fn of_agent(config: &Config, agent: AgentId) -> Option<LeftWorkspace> {
    let paths = config.paths();
    let is_default = agent == config.default_agent();
    let workspace = config.agent(&agent).workspace;
    let other = paths.mistaken_workspace(&agent, is_default)?;
    let is_configured = workspace != paths.workspace(&agent, is_default);
    // Outside of this state directory they may be those of another instance.
    let is_ours = other.starts_with(paths.state_dir()) || !has_files(&workspace);
    (!is_configured && is_ours && has_files(&other)).then_some(LeftWorkspace { agent, workspace, other })
}

fn has_files(dir: &Path) -> bool {
    dir.read_dir().is_ok_and(|mut entries| entries.next().is_some())
}

impl fmt::Display for LeftWorkspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agent, workspace, other } = self;
        let (workspace, other) = (workspace.display(), other.display());
        write!(
            f,
            "agent {agent} works in {workspace}, but there are files in {other}; move them, or name that directory in the agent's \
             workspace setting"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Environment;

    #[test]
    fn files_in_the_other_place_are_told_unless_they_may_be_of_another_instance() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().display().to_string();
        let environment = |vars: &[(&str, &str)]| {
            let all = vars.iter().map(|(name, value)| ((*name).to_owned(), value.replace("~", &home)));
            Environment::new(all.chain([("HOME".to_owned(), home.clone())]), "/")
        };
        let told = |vars: &[(&str, &str)], config: &str| -> Vec<PathBuf> {
            let config = Config::from_json5(config, &environment(vars)).unwrap();
            left_workspaces(&config).into_iter().map(|left| left.other).collect()
        };
        let put = |path: &str| {
            let place = dir.path().join(path);
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("AGENTS.md"), "").unwrap();
        };
        let (state, two) = ([("OPENCLAW_STATE_DIR", "~/s")], "{agents: {list: [{id: 'main'}, {id: 'ops'}]}}");
        assert!(told(&state, two).is_empty());
        put("s/workspace");
        put(".openclaw/workspace");
        assert_eq!(told(&state, two), [dir.path().join("s/workspace")]);
        assert!(told(&state, "{agents: {defaults: {workspace: '~/w'}}}").is_empty(), "it is configured");
        assert!(told(&[], two).is_empty());
        let profile = [("OPENCLAW_PROFILE", "job"), ("OPENCLAW_STATE_DIR", "~/.openclaw-job")];
        put(".openclaw/workspace-ops");
        assert_eq!(told(&profile, two), [dir.path().join(".openclaw/workspace-ops")]);
        put(".openclaw-job/workspace-ops");
        assert!(told(&profile, two).is_empty(), "those of the plain instance's agent of that name");
    }
}
