//! The sandboxes of a gateway: made ready when a run begins.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::clock::now_ms;
use openclaw_config::settings::{Config, SandboxBackend, WorkspaceAccess};
use openclaw_protocol::AgentId;
use parking_lot::Mutex;
use serde_json::Map;
use sha1::{Digest as _, Sha1};
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::active::{ActiveSandbox, Engine, Inside};
use super::container::{self, Cli, Container, ContainerError, Making};
use super::local::{self, BadSettings, Level, Local, View};
use super::name;
use super::registry::{Entry, Registry};
use super::seed::{self, SeededSkill};
use super::settings::SandboxSettings;

/// How long a setup command may take.
const SETUP_TIME: Duration = Duration::from_secs(600);
/// Containers are looked through no more often.
const PRUNE_EVERY_MS: i64 = 5 * 60 * 1000;

/// Makes sandboxes.
#[derive(Debug)]
pub struct Sandboxes {
    /// An `openclaw`, which shuts itself in.
    program: PathBuf,
    state_dir: PathBuf,
    /// What the kernel lets us do.
    level: OnceCell<Result<Level, String>>,
    /// One run at a time makes a sandbox ready.
    making: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    pruned_at: Mutex<i64>,
}

/// Whose sandbox.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The agent.
    pub agent: &'a AgentId,
    /// Its workspace.
    pub agent_workspace: &'a Path,
    /// The session.
    pub session_key: &'a str,
    /// What it may read of skills.
    pub skills: &'a [SeededSkill],
}

/// Why there is no sandbox. The run does not begin, and whoever wrote is told.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SandboxError(#[from] Why);

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error(
        "this kernel gives no sandbox ({0}). Allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, \
         kernel.apparmor_restrict_unprivileged_userns=0), use a kernel with Landlock, or install Docker or Podman and set \
         agents.defaults.sandbox.backend"
    )]
    NoKernel(String),
    #[error(transparent)]
    Settings(#[from] BadSettings),
    #[error("{0}")]
    Container(#[from] ContainerError),
    #[error("the sandbox's directory {}: {error}", path.display())]
    Directory { path: PathBuf, error: io::Error },
    #[error("the sandbox's setupCommand failed: {0}")]
    Setup(String),
    #[error("the list of sandboxes can't be kept: {0}")]
    Registry(#[from] io::Error),
}

impl Sandboxes {
    /// `program` is an `openclaw`, which is started again for each command.
    pub fn new(program: impl Into<PathBuf>, state_dir: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            state_dir: state_dir.into(),
            level: OnceCell::new(),
            making: Mutex::default(),
            pruned_at: Mutex::default(),
        }
    }

    /// Of this process: the program that runs, also when its file was replaced since.
    pub fn of_this_process(state_dir: impl Into<PathBuf>) -> Self {
        let linux = Path::new("/proc/self/exe");
        let program =
            if linux.exists() { linux.to_owned() } else { std::env::current_exe().unwrap_or_default() };
        Self::new(program, state_dir)
    }

    /// With a level that is taken as given: what a kernel without user namespaces gives can be had on any.
    pub async fn at_level(self, level: Level) -> Self {
        let works = self.level().await.and_then(|most| match most {
            most if most >= level => Ok(level),
            most => Err(format!("it has {} alone", most.as_str())),
        });
        Self { level: OnceCell::new_with(Some(works)), ..self }
    }

    /// How much of the kernel can be used; else why nothing.
    pub async fn level(&self) -> Result<Level, String> {
        self.level.get_or_init(|| local::level(&self.program, Path::new("/usr"))).await.clone()
    }

    /// A sandbox that commands can be run in.
    ///
    /// # Errors
    /// When there is none: nothing may then be run in its place.
    pub async fn open(&self, wanted: Wanted<'_>) -> Result<ActiveSandbox, SandboxError> {
        Ok(self.opened(wanted).await?)
    }

    /// Removes a sandbox; the next run makes it anew. Its directory stays.
    ///
    /// # Errors
    /// When it is still there.
    pub async fn remove(&self, config: &Config, entry: &Entry) -> Result<(), SandboxError> {
        Ok(self.removed(config, entry).await?)
    }

    async fn removed(&self, config: &Config, entry: &Entry) -> Result<(), Why> {
        let local = Registry::local(&self.state_dir);
        if local.find(&entry.container_name).is_some() {
            return Ok(local.forget(&entry.container_name)?);
        }
        let known = ["docker", "podman"].map(|name| Cli::new(name, config.environment()));
        for cli in known.iter().filter(|cli| cli.is_installed()) {
            container::remove(cli, &entry.container_name).await?;
        }
        Ok(Registry::containers(&self.state_dir).forget(&entry.container_name)?)
    }

    async fn opened(&self, wanted: Wanted<'_>) -> Result<ActiveSandbox, Why> {
        let settings = SandboxSettings::of(wanted.config, wanted.agent);
        let key = name::scope_key(settings.scope, wanted.agent, wanted.session_key);
        let name = name::container(&settings.docker.prefix, settings.scope, &key);
        let making = Arc::clone(self.making.lock().entry(name.clone()).or_default());
        let _one_at_a_time = making.lock().await;
        let workspace = directory(&settings, wanted).await?;
        let agent_workspace =
            (settings.access == WorkspaceAccess::ReadOnly).then_some(wanted.agent_workspace);
        let environment = wanted.config.environment();
        let cli = match settings.backend {
            SandboxBackend::Docker => Some(Cli::new("docker", environment)),
            SandboxBackend::Podman => Some(Cli::new("podman", environment)),
            SandboxBackend::Local => None,
            SandboxBackend::Auto => ["docker", "podman"]
                .map(|name| Cli::new(name, environment))
                .into_iter()
                .find(Cli::is_installed),
        };
        if let Some(cli) = cli {
            let made = Making {
                name: &name,
                key: &key,
                settings: &settings.docker,
                workspace: &workspace,
                agent_workspace,
            };
            let registry = Registry::containers(&self.state_dir);
            self.prune(&cli, &registry, &settings).await;
            container::ensure(&cli, &registry, made).await?;
            let engine = Engine::Container(Container { cli, name });
            return Ok(ActiveSandbox { settings, workspace, engine });
        }
        let level = self.level().await.map_err(Why::NoKernel)?;
        let view = View {
            settings: &settings.docker,
            workspace: &workspace,
            is_writable: true,
            agent_workspace,
            hidden: hidden(wanted.config, [Some(workspace.as_path()), agent_workspace]),
        };
        let local = Local::new(&self.program, level, &view)?;
        if let Some(temporary) = local.temporary() {
            let made = std::fs::create_dir_all(&temporary);
            made.map_err(|error| Why::Directory { path: temporary, error })?;
        }
        let sandbox = ActiveSandbox { settings, workspace, engine: Engine::Local(local) };
        self.note_local(&sandbox, name, key).await?;
        Ok(sandbox)
    }

    /// Runs the setup command where it was not yet, and notes that the sandbox is used.
    async fn note_local(&self, sandbox: &ActiveSandbox, name: String, key: String) -> Result<(), Why> {
        let registry = Registry::local(&self.state_dir);
        let (known, now) = (registry.find(&name), now_ms());
        let setup = sandbox.settings.docker.setup_command.as_deref();
        let made_with = setup.map(|command| {
            Sha1::digest(command).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        });
        let is_set_up = known.as_ref().is_some_and(|known| known.config_hash == made_with);
        if let Some(command) = setup.filter(|_| !is_set_up) {
            set_up(sandbox, command).await?;
        }
        let entry = Entry {
            container_name: name,
            session_key: key,
            created_at_ms: known.as_ref().map_or(now, |known| known.created_at_ms),
            last_used_at_ms: now,
            image: "local".to_owned(),
            config_hash: made_with,
            rest: known.map_or_else(Map::new, |known| known.rest),
        };
        Ok(registry.note(entry)?)
    }

    async fn prune(&self, cli: &Cli, registry: &Registry, settings: &SandboxSettings) {
        let now = now_ms();
        {
            let mut pruned_at = self.pruned_at.lock();
            if now.saturating_sub(*pruned_at) < PRUNE_EVERY_MS {
                return;
            }
            *pruned_at = now;
        }
        container::prune(cli, registry, settings.prune).await;
    }
}

/// The host directory that is the workspace inside, with what it starts with.
async fn directory(settings: &SandboxSettings, wanted: Wanted<'_>) -> Result<PathBuf, Why> {
    let directory = name::workspace_of(settings, wanted.agent, wanted.agent_workspace, wanted.session_key);
    if settings.access == WorkspaceAccess::ReadWrite {
        return Ok(directory);
    }
    let (root, from, skills) = (directory.clone(), wanted.agent_workspace.to_owned(), wanted.skills.to_vec());
    let seeded = tokio::task::spawn_blocking(move || seed::seed(&root, &from, &skills)).await;
    match seeded.map_err(io::Error::other).and_then(|seeded| seeded) {
        Ok(()) => Ok(directory),
        Err(error) => Err(Why::Directory { path: directory, error }),
    }
}

/// What no command sees: the gateway's state and config, and the home directory. `shown` is what the owner lets it see all the same.
fn hidden(config: &Config, shown: [Option<&Path>; 2]) -> Vec<PathBuf> {
    let paths = config.paths();
    let is_shown = |home: &Path| shown.into_iter().flatten().any(|shown| home.starts_with(shown));
    let home = Some(paths.home()).filter(|home| !is_shown(home)).map(Path::to_owned);
    let own = [paths.state_dir(), paths.config_path(), paths.credentials_dir(), paths.log_dir()];
    own.into_iter().map(Path::to_owned).chain(home).collect()
}

async fn set_up(sandbox: &ActiveSandbox, command: &str) -> Result<(), Why> {
    let (directory, environment) = (sandbox.inner_workspace(), sandbox.environment(&[], &[]));
    let inside = Inside { command, directory: &directory, environment: &environment, in_terminal: false };
    let launch = sandbox.launch(inside);
    let child = Command::new(&launch.program)
        .args(&launch.arguments)
        .env_clear()
        .envs(launch.environment)
        .current_dir(&launch.directory)
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(SETUP_TIME, child).await;
    let output = output.map_err(|_| Why::Setup("it took too long".to_owned()))?;
    let output = output.map_err(|error| Why::Setup(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Why::Setup(said.trim().chars().rev().take(400).collect::<Vec<_>>().into_iter().rev().collect()))
}
