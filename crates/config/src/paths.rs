//! Paths of files and directories (spec `config.md` §1).

use std::path::{Path, PathBuf};

use openclaw_protocol::AgentId;

use crate::Environment;

/// Names of the state directory under the home directory, newest first.
const STATE_DIR_NAMES: &[&str] = &[".openclaw", ".clawdbot", ".moltbot", ".moldbot"];
/// Names of the config file in a state directory, newest first.
const CONFIG_FILE_NAMES: &[&str] = &["openclaw.json", "clawdbot.json", "moltbot.json", "moldbot.json"];

/// The resolved places of one instance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paths {
    home: PathBuf,
    state_dir: PathBuf,
    state_dir_is_override: bool,
    config_path: PathBuf,
    oauth_dir: PathBuf,
    main_agent_dir: Option<PathBuf>,
    lock_dir: PathBuf,
    log_dir: PathBuf,
    profile: Option<String>,
}

impl Paths {
    /// Resolves the places for an environment. Looks at which directories and files exist, changes nothing.
    pub fn resolve(env: &Environment) -> Self {
        let home = env.home();
        let over =
            env.first_nonblank(&["OPENCLAW_STATE_DIR", "CLAWDBOT_STATE_DIR"]).map(|p| env.expand_path(p));
        let state_dir = over.clone().unwrap_or_else(|| default_state_dir(&home));
        let config_path = match env.first_nonblank(&["OPENCLAW_CONFIG_PATH", "CLAWDBOT_CONFIG_PATH"]) {
            Some(explicit) => env.expand_path(explicit),
            None => find_config(&home, &state_dir, over.is_some()),
        };
        let oauth_dir = env
            .get_nonblank("OPENCLAW_OAUTH_DIR")
            .map_or_else(|| state_dir.join("credentials"), |dir| env.expand_path(dir));
        let lock_name = env.user_id().map_or_else(|| "openclaw".to_owned(), |uid| format!("openclaw-{uid}"));
        Self {
            lock_dir: env.temp_dir().join(lock_name),
            log_dir: state_dir.join("logs"),
            main_agent_dir: env
                .first_nonblank(&["OPENCLAW_AGENT_DIR", "PI_CODING_AGENT_DIR"])
                .map(|dir| env.expand_path(dir)),
            profile: env.get_nonblank("OPENCLAW_PROFILE").map(str::to_owned),
            home,
            state_dir_is_override: over.is_some(),
            state_dir,
            config_path,
            oauth_dir,
        }
    }

    /// The user's home directory, `OPENCLAW_HOME` considered.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The directory that holds all state.
    pub fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    /// True if the state directory was chosen by a variable or profile.
    pub fn state_dir_is_override(&self) -> bool {
        self.state_dir_is_override
    }

    /// The config file, whether it exists or not.
    pub fn config_path(&self) -> &Path {
        &self.config_path
    }

    /// Credentials of channels and OAuth imports.
    pub fn credentials_dir(&self) -> &Path {
        &self.oauth_dir
    }

    /// `<tmpdir>/openclaw-<uid>`: the gateway's lock files (spec `config.md` §12).
    pub fn lock_dir(&self) -> &Path {
        &self.lock_dir
    }

    /// Directory for log files unless `logging.file` says otherwise: `<state>/logs`, private to the
    /// user, instead of the reference's world-readable `/tmp/openclaw` (spec `operations.md`,
    /// logs).
    pub fn log_dir(&self) -> &Path {
        &self.log_dir
    }

    /// The profile in force, when it is not the default one.
    pub fn profile(&self) -> Option<&str> {
        self.profile.as_deref().filter(|name| !name.eq_ignore_ascii_case("default"))
    }

    /// `agents/<id>/agent`: an agent's own directory unless its `agentDir` says otherwise. The default agent's may be
    /// moved by `OPENCLAW_AGENT_DIR`.
    pub fn agent_dir(&self, agent: &AgentId) -> PathBuf {
        match &self.main_agent_dir {
            Some(dir) if agent.as_str() == AgentId::MAIN => dir.clone(),
            Some(_) | None => self.agent_root(agent).join("agent"),
        }
    }

    /// `agents/<id>/sessions`: session store and transcripts.
    pub fn sessions_dir(&self, agent: &AgentId) -> PathBuf {
        self.agent_root(agent).join("sessions")
    }

    /// `agents/<id>`.
    pub fn agent_root(&self, agent: &AgentId) -> PathBuf {
        self.state_dir.join("agents").join(agent.as_str())
    }

    /// The default agent's workspace when none is configured: `~/.openclaw/workspace`, or
    /// `~/.openclaw/workspace-<profile>`, wherever the state is (spec `config.md` §1.1).
    pub fn default_workspace(&self) -> PathBuf {
        self.home.join(".openclaw").join(self.default_workspace_name())
    }

    fn default_workspace_name(&self) -> String {
        self.profile().map_or_else(|| "workspace".to_owned(), |profile| format!("workspace-{profile}"))
    }

    /// The workspace of an agent without a configured one: the default agent's in the home directory, `workspace-<id>` in
    /// the state directory for the others.
    pub fn workspace(&self, agent: &AgentId, is_default: bool) -> PathBuf {
        if is_default { self.default_workspace() } else { self.state_dir.join(format!("workspace-{agent}")) }
    }

    /// The place that could be taken for that of [`Self::workspace`], and was by earlier versions; `None` where it is the same.
    pub(crate) fn mistaken_workspace(&self, agent: &AgentId, is_default: bool) -> Option<PathBuf> {
        let other = if is_default {
            self.state_dir.join(self.default_workspace_name())
        } else {
            self.home.join(".openclaw").join(format!("workspace-{agent}"))
        };
        (other != self.workspace(agent, is_default)).then_some(other)
    }

    /// `identity/device.json`: this host's key pair (spec `gateway-protocol.md` §12).
    pub fn device_identity(&self) -> PathBuf {
        self.state_dir.join("identity").join("device.json")
    }

    /// `identity/device-auth.json`: tokens that gateways issued to this device.
    pub fn device_auth(&self) -> PathBuf {
        self.state_dir.join("identity").join("device-auth.json")
    }

    /// `devices/pending.json` and `devices/paired.json`.
    pub fn devices_dir(&self) -> PathBuf {
        self.state_dir.join("devices")
    }

    /// Database of our own: inbox, outbox, run records.
    pub fn database(&self) -> PathBuf {
        self.state_dir.join("gateway.sqlite")
    }
}

/// Name of the file with the rules and answers about commands.
pub const APPROVALS_FILE: &str = "exec-approvals.json";

/// Places of [`APPROVALS_FILE`]: the state directory, and `~/.openclaw`, where OpenClaw has it whatever the state directory is.
pub fn approvals_files(state_dir: &Path, home: &Path) -> [PathBuf; 2] {
    [state_dir, &home.join(".openclaw")].map(|dir| dir.join(APPROVALS_FILE))
}

fn default_state_dir(home: &Path) -> PathBuf {
    STATE_DIR_NAMES
        .iter()
        .map(|name| home.join(name))
        .find(|dir| dir.exists())
        .unwrap_or_else(|| home.join(".openclaw"))
}

/// Unlike the reference, a chosen state directory is never left for another instance's config.
fn find_config(home: &Path, state_dir: &Path, is_override: bool) -> PathBuf {
    let places: Vec<PathBuf> = if is_override {
        vec![state_dir.to_path_buf()]
    } else {
        STATE_DIR_NAMES.iter().map(|name| home.join(name)).collect()
    };
    places
        .iter()
        .flat_map(|dir| CONFIG_FILE_NAMES.iter().map(|name| dir.join(name)))
        .find(|file| file.exists())
        .unwrap_or_else(|| state_dir.join("openclaw.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspaces_are_where_the_reference_puts_them() {
        type Row<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);
        let rows: &[Row<'_>] = &[
            (&[], "/h/.openclaw/workspace", "/h/.openclaw/workspace-ops"),
            (
                &[("OPENCLAW_PROFILE", "p"), ("OPENCLAW_STATE_DIR", "/h/.openclaw-p")],
                "/h/.openclaw/workspace-p",
                "/h/.openclaw-p/workspace-ops",
            ),
            (&[("OPENCLAW_STATE_DIR", "/s")], "/h/.openclaw/workspace", "/s/workspace-ops"),
            (&[("OPENCLAW_PROFILE", "default")], "/h/.openclaw/workspace", "/h/.openclaw/workspace-ops"),
        ];
        for (vars, main, ops) in rows {
            let env = Environment::new(vars.iter().copied().chain([("HOME", "/h")]), "/w");
            let paths = Paths::resolve(&env);
            let ops_agent = AgentId::normalize("ops");
            let got = (paths.workspace(&AgentId::default(), true), paths.workspace(&ops_agent, false));
            assert_eq!(got, (PathBuf::from(main), PathBuf::from(ops)), "{vars:?}");
        }
    }
}
