//! `sandbox` of `agents.defaults` and `agents.list[]` as the file has it (spec `tools.md` §10). The crate of the tools lays the
//! two over each other and applies the defaults.

mod writable;

use indexmap::IndexMap;
use serde::Deserialize;

use super::TextOrNumber;
pub use writable::SandboxWritable;

/// `sandbox`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Sandbox {
    /// Sessions it is for; default off.
    pub mode: Option<SandboxMode>,
    /// Backend that runs the commands (ours); default `auto`.
    pub backend: Option<SandboxBackend>,
    /// Sharing of a sandbox; default `agent`.
    pub scope: Option<SandboxScope>,
    /// Older name of `scope`: true is `session`, false is `shared`.
    pub per_session: Option<bool>,
    /// Access to the agent's workspace; default `none`.
    pub workspace_access: Option<WorkspaceAccess>,
    /// Directory for the workspaces of sandboxes; default `sandboxes` in the state directory.
    pub workspace_root: Option<String>,
    /// Sessions that the session tools see from inside; default `spawned`.
    pub session_tools_visibility: Option<SessionToolsVisibility>,
    /// Limits and mounts, in the words of Docker.
    pub docker: SandboxDocker,
    /// Rules for removing containers.
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
    /// Path of the workspace inside; default `/workspace`.
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
    /// Further mounts, `source:target[:ro|rw]`.
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
    /// Soft limit, hard limit or both.
    Range {
        /// The soft limit.
        soft: Option<u64>,
        /// The hard limit.
        hard: Option<u64>,
    },
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
        /// No sessions.
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
        /// Each session has its own sandbox.
        Session = "session",
        /// Each agent has its own sandbox.
        #[default] Agent = "agent",
        /// All share one sandbox.
        Shared = "shared",
    }
}

words! {
    /// `sandbox.workspaceAccess`.
    WorkspaceAccess {
        /// No access: the sandbox has a directory of its own.
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
        /// Sessions that the session has spawned.
        #[default] Spawned = "spawned",
        /// All that the agent may see.
        All = "all",
    }
}
