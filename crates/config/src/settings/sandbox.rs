//! `sandbox` of `agents.defaults` and `agents.list[]` as the file has it (spec `tools.md` §10). The crate of the tools lays the
//! two over each other and applies the defaults.

use std::path::Path;

use indexmap::IndexMap;
use openclaw_protocol::AgentId;
use serde::Deserialize;

use super::{Config, TextOrNumber};

/// `sandbox`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Sandbox {
    /// Which sessions it is for; default off.
    pub mode: Option<SandboxMode>,
    /// Ours: what runs the commands; default `auto`.
    pub backend: Option<SandboxBackend>,
    /// Who shares one; default `agent`.
    pub scope: Option<SandboxScope>,
    /// Older name of `scope`: true is `session`, false is `shared`.
    pub per_session: Option<bool>,
    /// What is seen of the agent's workspace; default `none`.
    pub workspace_access: Option<WorkspaceAccess>,
    /// Where the workspaces of sandboxes lie; default `sandboxes` in the state directory.
    pub workspace_root: Option<String>,
    /// Which sessions the session tools see from inside; default `spawned`.
    pub session_tools_visibility: Option<SessionToolsVisibility>,
    /// Limits and mounts, in the words of Docker.
    pub docker: SandboxDocker,
    /// When containers are removed.
    pub prune: SandboxPrune,
}

/// `sandbox.docker`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SandboxDocker {
    /// Image; default `openclaw-sandbox:bookworm-slim`.
    pub image: Option<String>,
    /// Beginning of container names; default `openclaw-sbx-`.
    pub container_prefix: Option<String>,
    /// Where the workspace is inside; default `/workspace`.
    pub workdir: Option<String>,
    /// Default true.
    pub read_only_root: Option<bool>,
    /// Directories in memory; default `/tmp`, `/var/tmp`, `/run`.
    pub tmpfs: Option<Vec<String>>,
    /// Network; default `none`.
    pub network: Option<String>,
    /// User inside.
    pub user: Option<String>,
    /// Capabilities taken away; default `ALL`.
    pub cap_drop: Option<Vec<String>>,
    /// Variables; default `LANG=C.UTF-8`.
    pub env: Option<IndexMap<String, String>>,
    /// Run once in each new sandbox.
    pub setup_command: Option<String>,
    /// Processes at once.
    pub pids_limit: Option<u64>,
    /// Memory, such as `512m`.
    pub memory: Option<TextOrNumber>,
    /// Memory with swap.
    pub memory_swap: Option<TextOrNumber>,
    /// Processors.
    pub cpus: Option<f64>,
    /// Limits by name.
    pub ulimits: Option<IndexMap<String, Ulimit>>,
    /// File with a seccomp profile.
    pub seccomp_profile: Option<String>,
    /// Name of an AppArmor profile.
    pub apparmor_profile: Option<String>,
    /// Name servers.
    pub dns: Option<Vec<String>>,
    /// `name:address`.
    pub extra_hosts: Option<Vec<String>>,
    /// More mounts, `source:target[:ro|rw]`.
    pub binds: Option<Vec<String>>,
}

/// `sandbox.prune`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SandboxPrune {
    /// Removed when unused for as long; default 24, 0 never.
    pub idle_hours: Option<u64>,
    /// Removed when as old; default 7, 0 never.
    pub max_age_days: Option<u64>,
}

/// `sandbox.docker.ulimits.<name>`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Ulimit {
    /// `soft[:hard]`.
    Same(TextOrNumber),
    /// One or both.
    Range {
        /// The soft limit.
        soft: Option<u64>,
        /// The hard limit.
        hard: Option<u64>,
    },
}

impl Config {
    /// Whether some agent's sandbox may write to this workspace. What is there must then not be run outside of it.
    pub fn is_open_to_sandboxes(&self, workspace: &Path) -> bool {
        let shared = &self.agents.defaults.sandbox;
        let listed =
            self.agents.list.iter().map(|entry| (AgentId::normalize(&entry.id), Some(&entry.sandbox)));
        listed.chain([(self.default_agent(), None)]).any(|(agent, own)| {
            let own = own.or_else(|| self.agent_entry(&agent).map(|entry| &entry.sandbox));
            let mode = own.and_then(|own| own.mode).or(shared.mode).unwrap_or_default();
            let access =
                own.and_then(|own| own.workspace_access).or(shared.workspace_access).unwrap_or_default();
            mode != SandboxMode::Off
                && access == WorkspaceAccess::ReadWrite
                && self.agent(&agent).workspace == workspace
        })
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
        pub enum $name { $($(#[$each])* #[serde(rename = $word)] $variant,)* }

        impl $name {
            /// The word used in the config.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

words! {
    /// `sandbox.mode`.
    SandboxMode {
        /// None.
        #[default] Off = "off",
        /// All but the agent's main session.
        NonMain = "non-main",
        /// All.
        All = "all",
    }
}

words! {
    /// `sandbox.backend`.
    SandboxBackend {
        /// Docker or Podman where one is installed, else `local`.
        #[default] Auto = "auto",
        /// Containers of Docker.
        Docker = "docker",
        /// Containers of Podman.
        Podman = "podman",
        /// The kernel's own means, without a daemon.
        Local = "local",
    }
}

words! {
    /// `sandbox.scope`.
    SandboxScope {
        /// One for each session.
        Session = "session",
        /// One for each agent.
        #[default] Agent = "agent",
        /// One for all.
        Shared = "shared",
    }
}

words! {
    /// `sandbox.workspaceAccess`.
    WorkspaceAccess {
        /// Nothing: the sandbox has a directory of its own.
        #[default] None = "none",
        /// The same, and the workspace at `/agent` to be read.
        ReadOnly = "ro",
        /// The workspace itself.
        ReadWrite = "rw",
    }
}

words! {
    /// `sandbox.sessionToolsVisibility`.
    SessionToolsVisibility {
        /// Those that the session has spawned.
        #[default] Spawned = "spawned",
        /// All that the agent may see.
        All = "all",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Environment;

    #[test]
    fn a_workspace_that_a_sandbox_writes_to_is_open() {
        let rw = json!({"mode": "non-main", "workspaceAccess": "rw"});
        let config = |shared: &Value, list: &Value| {
            let document =
                json!({"agents": {"defaults": {"sandbox": shared, "workspace": "/ws"}, "list": list}});
            Config::from_json5(&document.to_string(), &Environment::new([("HOME", "/h")], "/")).unwrap()
        };
        for (shared, list, open) in [
            (json!({}), json!([]), false),
            (rw.clone(), json!([]), true),
            (json!({"mode": "all", "workspaceAccess": "ro"}), json!([]), false),
            (json!({"mode": "off", "workspaceAccess": "rw"}), json!([]), false),
            (rw.clone(), json!([{"id": "main", "sandbox": {"mode": "off"}}]), false),
            (json!({}), json!([{"id": "main", "sandbox": rw}]), true),
            (json!({}), json!([{"id": "main"}, {"id": "b", "workspace": "/ws", "sandbox": rw}]), true),
            (json!({}), json!([{"id": "main"}, {"id": "b", "workspace": "/other", "sandbox": rw}]), false),
        ] {
            assert_eq!(
                config(&shared, &list).is_open_to_sandboxes(Path::new("/ws")),
                open,
                "{shared} {list}"
            );
        }
    }
}
