//! Workspaces in which the gateway's own state lies.

use std::fmt;
use std::path::{Path, PathBuf};

use openclaw_protocol::AgentId;

use crate::Config;

/// An agent's workspace that is the state directory or lies above it. Tools do not reach the state there, but commands outside of a
/// sandbox do, and what a sandbox may write is never run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedState {
    agent: AgentId,
    workspace: PathBuf,
    state_dir: PathBuf,
}

impl ExposedState {
    /// Advice that follows the message.
    pub const REMEDY: &str = "Give the agent a directory of its own.";
}

impl fmt::Display for ExposedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (workspace, state_dir) = (self.workspace.display(), self.state_dir.display());
        match self.workspace == self.state_dir {
            true => write!(
                f,
                "The workspace of agent {} is the state directory {state_dir}: its tools reach nothing there.",
                self.agent
            ),
            false => write!(
                f,
                "The workspace of agent {}, {workspace}, holds the state directory {state_dir}, which its tools do not reach; commands \
                 outside of a sandbox do.",
                self.agent
            ),
        }
    }
}

/// The agents whose workspace holds the state directory, by real paths. Blocking.
pub fn exposed_state(config: &Config) -> Vec<ExposedState> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let state_dir = real(config.paths().state_dir());
    let workspaces = config.agent_ids().into_iter().map(|agent| {
        let workspace = real(&config.agent(&agent).workspace);
        ExposedState { agent, workspace, state_dir: state_dir.clone() }
    });
    workspaces.filter(|found| found.state_dir.starts_with(&found.workspace)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Environment;

    #[test]
    fn workspaces_that_hold_the_state_are_found_by_real_paths() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        std::fs::create_dir_all(at(".openclaw/workspace")).unwrap();
        std::os::unix::fs::symlink(home.path(), at("link")).unwrap();
        for (workspace, expect) in [
            (at(""), "holds"),
            (at("link"), "holds"),
            (at(".openclaw"), "is the state directory"),
            ("/".into(), "holds"),
            (at(".openclaw/workspace"), ""),
            (at("ws"), ""),
        ] {
            let list = json!([{"id": "main"}, {"id": "work", "workspace": workspace}]);
            let document = json!({"agents": {"list": list}}).to_string();
            let environment = Environment::new([("HOME", home.path().to_str().unwrap())], "/");
            let config = Config::from_json5(&document, &environment).unwrap();
            let found = exposed_state(&config);
            let told: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(told.len(), usize::from(!expect.is_empty()), "{workspace:?} {told:?}");
            assert!(told.iter().all(|told| told.contains("agent work") && told.contains(expect)), "{told:?}");
        }
    }
}
