//! The settings of an agent's sandbox: its own laid over the shared ones, with defaults (spec `tools.md` §10).

use std::path::PathBuf;

use openclaw_config::settings::{
    Config, Sandbox as Raw, SandboxBackend, SandboxDocker, SandboxMode, SandboxPrune, SandboxScope, Ulimit,
    WorkspaceAccess,
};
use openclaw_protocol::AgentId;

/// Settings of one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct SandboxSettings {
    /// Sessions that run in a sandbox.
    pub mode: SandboxMode,
    /// Engine that runs the commands.
    pub backend: SandboxBackend,
    /// Scope in which a sandbox is shared.
    pub scope: SandboxScope,
    /// Access to the agent's workspace.
    pub access: WorkspaceAccess,
    /// Directory of the sandboxes' workspaces.
    pub root: PathBuf,
    /// Limits and mounts.
    pub docker: DockerSettings,
    /// Conditions for removing containers.
    pub prune: PruneSettings,
}

/// `docker` with defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct DockerSettings {
    /// Image.
    pub image: String,
    /// True if the image is named in the configuration.
    pub image_is_configured: bool,
    /// Beginning of container names.
    pub prefix: String,
    /// Path of the workspace inside the sandbox.
    pub workdir: String,
    /// True if the rest of the file system is read-only.
    pub read_only_root: bool,
    /// Directories in memory.
    pub tmpfs: Vec<String>,
    /// Network.
    pub network: String,
    /// User inside.
    pub user: Option<String>,
    /// Capabilities taken away.
    pub cap_drop: Vec<String>,
    /// Variables.
    pub env: Vec<(String, String)>,
    /// Run once in each new sandbox.
    pub setup_command: Option<String>,
    /// Processes at once.
    pub pids_limit: Option<u64>,
    /// Memory.
    pub memory: Option<String>,
    /// Memory with swap.
    pub memory_swap: Option<String>,
    /// Processors.
    pub cpus: Option<f64>,
    /// Limits by name, as `docker` takes them.
    pub ulimits: Vec<(String, String)>,
    /// File with a seccomp profile.
    pub seccomp_profile: Option<String>,
    /// Name of an AppArmor profile.
    pub apparmor_profile: Option<String>,
    /// Name servers.
    pub dns: Vec<String>,
    /// `name:address`.
    pub extra_hosts: Vec<String>,
    /// `source:target[:options]`.
    pub binds: Vec<String>,
}

/// Conditions for removing containers; 0 means never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PruneSettings {
    /// Hours without use after which a container is removed.
    pub idle_hours: u64,
    /// Age in days at which a container is removed.
    pub max_age_days: u64,
}

const IMAGE: &str = "openclaw-sandbox:bookworm-slim";
const TMPFS: [&str; 3] = ["/tmp", "/var/tmp", "/run"];

impl SandboxSettings {
    /// Returns the settings of an agent.
    pub fn of(config: &Config, agent: &AgentId) -> Self {
        let shared = &config.agents.defaults.sandbox;
        let own = config.agent_entry(agent).map(|entry| entry.sandbox.clone()).unwrap_or_default();
        let scope = scope(&own, shared);
        // A sandbox that all share can't look different to each.
        let (docker, prune) = match scope {
            SandboxScope::Shared => (SandboxDocker::default(), SandboxPrune::default()),
            SandboxScope::Session | SandboxScope::Agent => (own.docker.clone(), own.prune.clone()),
        };
        Self {
            mode: config.sandbox_mode(agent),
            backend: own.backend.or(shared.backend).unwrap_or_default(),
            scope,
            access: own.workspace_access.or(shared.workspace_access).unwrap_or_default(),
            root: config.sandbox_root(agent),
            docker: DockerSettings::of(docker, &shared.docker),
            prune: PruneSettings {
                idle_hours: prune.idle_hours.or(shared.prune.idle_hours).unwrap_or(24),
                max_age_days: prune.max_age_days.or(shared.prune.max_age_days).unwrap_or(7),
            },
        }
    }

    /// Returns true if an agent's sessions run in a sandbox.
    pub fn hold(config: &Config, agent: &AgentId, is_main: bool) -> bool {
        holds(config.sandbox_mode(agent), is_main)
    }

    /// Returns true if a session runs in a sandbox.
    pub fn holds(&self, is_main: bool) -> bool {
        holds(self.mode, is_main)
    }
}

fn holds(mode: SandboxMode, is_main: bool) -> bool {
    match mode {
        SandboxMode::Off => false,
        SandboxMode::NonMain => !is_main,
        SandboxMode::All => true,
    }
}

fn scope(own: &Raw, shared: &Raw) -> SandboxScope {
    let older = |per_session| if per_session { SandboxScope::Session } else { SandboxScope::Shared };
    let per_session = own.per_session.or(shared.per_session);
    own.scope.or(shared.scope).or(per_session.map(older)).unwrap_or_default()
}

impl DockerSettings {
    fn of(own: SandboxDocker, shared: &SandboxDocker) -> Self {
        let text = |own: Option<String>, shared: &Option<String>| {
            nonblank(own.as_ref()).or(nonblank(shared.as_ref()))
        };
        let list = |own: Option<Vec<String>>, shared: &Option<Vec<String>>| own.or_else(|| shared.clone());
        let image = text(own.image, &shared.image);
        let shared_env =
            shared.env.clone().unwrap_or_else(|| [("LANG".to_owned(), "C.UTF-8".to_owned())].into());
        let ulimits = shared.ulimits.iter().chain(&own.ulimits).flatten();
        let binds = shared.binds.iter().chain(&own.binds).flatten();
        Self {
            image_is_configured: image.is_some(),
            image: image.unwrap_or_else(|| IMAGE.to_owned()),
            prefix: text(own.container_prefix, &shared.container_prefix)
                .unwrap_or_else(|| "openclaw-sbx-".to_owned()),
            workdir: text(own.workdir, &shared.workdir)
                .filter(|dir| dir.starts_with('/'))
                .unwrap_or_else(|| "/workspace".to_owned()),
            read_only_root: own.read_only_root.or(shared.read_only_root).unwrap_or(true),
            tmpfs: list(own.tmpfs, &shared.tmpfs).unwrap_or_else(|| TMPFS.map(str::to_owned).to_vec()),
            network: text(own.network, &shared.network).unwrap_or_else(|| "none".to_owned()),
            user: text(own.user, &shared.user),
            cap_drop: list(own.cap_drop, &shared.cap_drop).unwrap_or_else(|| vec!["ALL".to_owned()]),
            env: laid_over(shared_env.into_iter().chain(own.env.into_iter().flatten())),
            setup_command: text(own.setup_command, &shared.setup_command),
            pids_limit: own.pids_limit.or(shared.pids_limit),
            memory: own.memory.or(shared.memory.clone()).map(|size| size.to_string()),
            memory_swap: own.memory_swap.or(shared.memory_swap.clone()).map(|size| size.to_string()),
            cpus: own.cpus.or(shared.cpus),
            ulimits: laid_over(ulimits.filter_map(|(name, limit)| Some((name.clone(), ulimit(limit)?)))),
            seccomp_profile: text(own.seccomp_profile, &shared.seccomp_profile),
            apparmor_profile: text(own.apparmor_profile, &shared.apparmor_profile),
            dns: list(own.dns, &shared.dns).unwrap_or_default(),
            extra_hosts: list(own.extra_hosts, &shared.extra_hosts).unwrap_or_default(),
            binds: binds.cloned().collect(),
        }
    }
}

fn nonblank(text: Option<&String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// `soft[:hard]`; nothing where neither is given.
fn ulimit(limit: &Ulimit) -> Option<String> {
    match limit {
        Ulimit::Same(limit) => Some(limit.to_string()).filter(|text| !text.is_empty()),
        Ulimit::Range { soft: Some(soft), hard: Some(hard) } => Some(format!("{soft}:{hard}")),
        Ulimit::Range { soft: Some(only), hard: None } | Ulimit::Range { soft: None, hard: Some(only) } => {
            Some(only.to_string())
        }
        Ulimit::Range { soft: None, hard: None } => None,
    }
}

/// A later value replaces an earlier one of the same name, in its place.
fn laid_over(pairs: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for (name, value) in pairs {
        match out.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => out.push((name, value)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;
    use serde_json::{Value, json};

    use super::*;

    fn settings(shared: &Value, own: &Value) -> SandboxSettings {
        let document =
            json!({"agents": {"defaults": {"sandbox": shared}, "list": [{"id": "a", "sandbox": own}]}});
        let environment = Environment::new([("HOME", "/home/o")], "/");
        let config = Config::from_json5(&document.to_string(), &environment).unwrap();
        SandboxSettings::of(&config, &AgentId::normalize("a"))
    }

    #[test]
    fn defaults_are_those_of_the_reference() {
        let found = settings(&json!({}), &json!({}));
        let expect = SandboxSettings {
            mode: SandboxMode::Off,
            backend: SandboxBackend::Auto,
            scope: SandboxScope::Agent,
            access: WorkspaceAccess::None,
            root: "/home/o/.openclaw/sandboxes".into(),
            docker: DockerSettings {
                image: "openclaw-sandbox:bookworm-slim".into(),
                image_is_configured: false,
                prefix: "openclaw-sbx-".into(),
                workdir: "/workspace".into(),
                read_only_root: true,
                tmpfs: vec!["/tmp".into(), "/var/tmp".into(), "/run".into()],
                network: "none".into(),
                user: None,
                cap_drop: vec!["ALL".into()],
                env: vec![("LANG".into(), "C.UTF-8".into())],
                setup_command: None,
                pids_limit: None,
                memory: None,
                memory_swap: None,
                cpus: None,
                ulimits: vec![],
                seccomp_profile: None,
                apparmor_profile: None,
                dns: vec![],
                extra_hosts: vec![],
                binds: vec![],
            },
            prune: PruneSettings { idle_hours: 24, max_age_days: 7 },
        };
        assert_eq!(found, expect);
    }

    #[test]
    fn the_scope_also_has_an_older_name() {
        for (shared, own, scope) in [
            (json!({}), json!({}), SandboxScope::Agent),
            (json!({"perSession": true}), json!({}), SandboxScope::Session),
            (json!({"perSession": false}), json!({}), SandboxScope::Shared),
            (json!({"perSession": false}), json!({"perSession": true}), SandboxScope::Session),
            (json!({"scope": "agent", "perSession": true}), json!({}), SandboxScope::Agent),
            (json!({"scope": "agent"}), json!({"perSession": true}), SandboxScope::Agent),
            (json!({"scope": "agent"}), json!({"scope": "shared"}), SandboxScope::Shared),
        ] {
            assert_eq!(settings(&shared, &own).scope, scope, "{shared} {own}");
        }
    }

    #[test]
    fn an_agents_settings_lie_over_the_shared_ones() {
        let shared = json!({
            "mode": "non-main", "workspaceAccess": "ro", "workspaceRoot": "~/boxes", "prune": {"idleHours": 1},
            "docker": {
                "image": "a", "network": "bridge", "memory": 1024, "env": {"A": "1", "B": "2"}, "binds": ["/a:/a"],
                "ulimits": {"nofile": {"soft": 1024, "hard": 2048}, "nproc": 5, "core": {}},
            },
        });
        let own = json!({
            "mode": "all", "prune": {"maxAgeDays": 0},
            "docker": {"image": "b", "env": {"B": "3", "C": "4"}, "binds": ["/b:/b:ro"], "ulimits": {"nproc": "6:7"}, "memory": " 1g "},
        });
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let found = settings(&shared, &own);
        assert_eq!((found.mode, found.access), (SandboxMode::All, WorkspaceAccess::ReadOnly));
        assert_eq!(found.root, std::path::Path::new("/home/o/boxes"));
        assert_eq!(found.prune, PruneSettings { idle_hours: 1, max_age_days: 0 });
        let docker = found.docker;
        assert_eq!((docker.image.as_str(), docker.network.as_str()), ("b", "bridge"));
        assert_eq!(docker.memory.as_deref(), Some("1g"));
        assert_eq!(docker.env, pairs(&[("A", "1"), ("B", "3"), ("C", "4")]));
        assert_eq!(docker.ulimits, pairs(&[("nofile", "1024:2048"), ("nproc", "6:7")]));
        assert_eq!(docker.binds, ["/a:/a", "/b:/b:ro"]);
        // A shared sandbox does not follow the settings of one agent.
        let mut together = own;
        together["scope"] = json!("shared");
        let found = settings(&shared, &together);
        assert_eq!((found.docker.image.as_str(), found.prune.max_age_days), ("a", 7));
        assert_eq!(found.docker.env, pairs(&[("A", "1"), ("B", "2")]));
    }

    #[test]
    fn the_mode_says_which_sessions_are_held() {
        for (mode, main, other) in [("off", false, false), ("non-main", false, true), ("all", true, true)] {
            let found = settings(&json!({"mode": mode}), &json!({}));
            assert_eq!((found.holds(true), found.holds(false)), (main, other), "{mode}");
        }
    }
}
