//! Places that some sandbox may write to. Files there are not trusted: they are never run outside
//! of a sandbox.

use std::io;
use std::path::{Path, PathBuf};

use openclaw_protocol::AgentId;

use super::{SandboxMode, WorkspaceAccess};
use crate::settings::Config;
use crate::shared_place;

/// The places that commands in any agent's sandbox may write to, links resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxWritable(Vec<PathBuf>);

impl SandboxWritable {
    /// Returns true if a sandbox may write the file or directory at `path`, or change where a link on the way to it leads. So does
    /// what can't be looked at. Blocking, unless there is no sandbox.
    pub fn holds(&self, path: &Path) -> bool {
        self.refuse(path).is_err()
    }

    /// Refuses a path that a sandbox may write to.
    ///
    /// # Errors
    /// Says so, or what the system says of the way there.
    pub fn refuse(&self, path: &Path) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        shared_place::each_step(path, |step| match self.0.iter().any(|place| step.starts_with(place)) {
            true => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{} is not used: a sandbox may write there", path.display()),
            )),
            false => Ok(()),
        })
    }
}

impl Config {
    /// Returns the places that some sandbox may write to: workspaces with `workspaceAccess: "rw"`, the directories of the sandboxes
    /// themselves and binds that are not read-only. Blocking, unless there is no sandbox.
    pub fn sandbox_writable(&self) -> SandboxWritable {
        let agents = self.agent_ids();
        if agents.iter().all(|agent| self.sandbox_mode(agent) == SandboxMode::Off) {
            return SandboxWritable::default();
        }
        // Those of an agent without a sandbox too: what a sandboxed run causes there is held to one,
        // with the agent's own settings.
        let places = agents.into_iter().flat_map(|agent| self.writable_in_sandbox_of(&agent));
        let mut real: Vec<PathBuf> = places
            .map(|place| place.canonicalize().unwrap_or_else(|_| crate::without_dots(&place)))
            .collect();
        real.sort();
        real.dedup();
        SandboxWritable(real)
    }

    /// Returns the parent directory of an agent's sandboxes: `workspaceRoot`, by default `sandboxes` in the state directory.
    pub fn sandbox_root(&self, agent: &AgentId) -> PathBuf {
        let own = self.agent_entry(agent).and_then(|entry| entry.sandbox.workspace_root.as_deref());
        let shared = self.agents.defaults.sandbox.workspace_root.as_deref();
        let configured = [own, shared].into_iter().flatten().map(str::trim).find(|dir| !dir.is_empty());
        match configured {
            Some(dir) => self.environment().expand_path(dir),
            None => self.paths().state_dir().join("sandboxes"),
        }
    }

    /// Returns which sessions of an agent run in a sandbox.
    pub fn sandbox_mode(&self, agent: &AgentId) -> SandboxMode {
        let own = self.agent_entry(agent).and_then(|entry| entry.sandbox.mode);
        own.or(self.agents.defaults.sandbox.mode).unwrap_or_default()
    }

    fn writable_in_sandbox_of(&self, agent: &AgentId) -> Vec<PathBuf> {
        let shared = &self.agents.defaults.sandbox;
        let own = self.agent_entry(agent).map(|entry| entry.sandbox.clone()).unwrap_or_default();
        let binds = shared.docker.binds.iter().chain(&own.docker.binds).flatten();
        let mut places: Vec<PathBuf> = binds.filter_map(|bind| writable_source(bind)).collect();
        if own.workspace_access.or(shared.workspace_access) == Some(WorkspaceAccess::ReadWrite) {
            places.push(self.agent(agent).workspace);
        }
        places.push(self.sandbox_root(agent));
        places
    }
}

/// The host's side of `source:target[:options]`, unless it may only be read. A named volume is no place of the host.
fn writable_source(bind: &str) -> Option<PathBuf> {
    let mut parts = bind.split(':');
    let (source, options) = (parts.next()?, parts.nth(1).unwrap_or_default());
    let is_read_only = options.split(',').any(|option| option == "ro");
    (source.starts_with('/') && !is_read_only).then(|| source.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::{Value, json};

    use super::*;
    use crate::Environment;

    /// A home with `ws`, `ws/hooks` and `safe` in it, and `HOME` for its path in the config.
    fn open(defaults: &Value, list: &Value, path: &str) -> bool {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        for dir in ["ws/hooks", "safe/hooks", ".openclaw/hooks"] {
            fs::create_dir_all(at(dir)).unwrap();
        }
        symlink(at("ws"), at("safe/to-ws")).unwrap();
        symlink(at("safe/hooks"), at("ws/to-safe")).unwrap();
        symlink(at("ws"), at("other")).unwrap();
        let shown = home.path().display().to_string();
        let document = json!({"agents": {"defaults": defaults, "list": list}}).to_string();
        let environment = Environment::new([("HOME", shown.as_str())], "/");
        let config = Config::from_json5(&document.replace("HOME", &shown), &environment).unwrap();
        config.sandbox_writable().holds(&at(path))
    }

    #[test]
    fn a_workspace_that_a_sandbox_writes_to_is_open() {
        let rw = json!({"mode": "non-main", "workspaceAccess": "rw"});
        let ws = |sandbox: Value| json!({"workspace": "HOME/ws", "sandbox": sandbox});
        for (defaults, list, expect) in [
            (ws(json!({})), json!([]), false),
            (ws(rw.clone()), json!([]), true),
            (ws(json!({"mode": "all", "workspaceAccess": "ro"})), json!([]), false),
            (ws(json!({"mode": "off", "workspaceAccess": "rw"})), json!([]), false),
            (ws(rw.clone()), json!([{"id": "main", "sandbox": {"mode": "off"}}]), false),
            (ws(json!({})), json!([{"id": "main", "sandbox": rw}]), true),
            (
                ws(json!({})),
                json!([{"id": "main"}, {"id": "b", "workspace": "HOME/ws", "sandbox": rw}]),
                true,
            ),
            (
                ws(json!({})),
                json!([{"id": "main"}, {"id": "b", "workspace": "HOME/safe", "sandbox": rw}]),
                false,
            ),
            // An agent without a sandbox holds what a sandboxed one causes in it to one.
            (
                ws(rw.clone()),
                json!([{"id": "main", "sandbox": {"mode": "off"}}, {"id": "b", "workspace": "HOME/safe"}]),
                true,
            ),
            // Another agent's workspace above it, and by another name.
            (ws(json!({})), json!([{"id": "main"}, {"id": "b", "workspace": "HOME", "sandbox": rw}]), true),
            (
                ws(json!({})),
                json!([{"id": "main"}, {"id": "b", "workspace": "HOME/other", "sandbox": rw}]),
                true,
            ),
        ] {
            assert_eq!(open(&defaults, &list, "ws/hooks"), expect, "{defaults} {list}");
        }
    }

    #[test]
    fn binds_are_open_unless_they_may_only_be_read() {
        let all = |binds: Value| json!({"sandbox": {"mode": "all", "docker": {"binds": binds}}});
        for (binds, expect) in [
            (json!(["HOME/ws:/x"]), true),
            (json!(["HOME/ws:/x:rw"]), true),
            (json!(["HOME:/x:z"]), true),
            (json!(["HOME/other/hooks:/x"]), true),
            (json!(["HOME/ws:/x:ro"]), false),
            (json!(["HOME/ws:/x:z,ro"]), false),
            (json!(["HOME/safe:/x"]), false),
            (json!(["ws:/x"]), false),
        ] {
            assert_eq!(open(&all(binds.clone()), &json!([]), "ws/hooks"), expect, "{binds}");
            let own = json!([{"id": "b", "sandbox": {"docker": {"binds": binds}}}]);
            assert_eq!(open(&json!({"sandbox": {"mode": "all"}}), &own, "ws/hooks"), expect, "{own}");
        }
    }

    #[test]
    fn real_paths_count_and_every_link_on_the_way() {
        let defaults = json!({"workspace": "HOME/ws", "sandbox": {"mode": "all", "workspaceAccess": "rw"}});
        for (path, expect) in [
            ("ws", true),
            ("safe/to-ws/hooks", true),
            ("ws/to-safe", true),
            ("other/to-safe", true),
            ("safe/hooks", false),
            ("safe", false),
            (".openclaw/hooks", false),
            ("ws/not-there", true),
        ] {
            assert_eq!(open(&defaults, &json!([]), path), expect, "{path}");
        }
        assert!(open(
            &json!({"sandbox": {"mode": "all", "workspaceRoot": "HOME/safe"}}),
            &json!([]),
            "safe/hooks"
        ));
        assert!(!open(&json!({"sandbox": {"workspaceRoot": "HOME/safe"}}), &json!([]), "safe/hooks"));
    }
}
