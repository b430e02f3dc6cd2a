//! The sandboxes of a gateway: made ready when a run begins.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use openclaw_config::Environment;
use openclaw_config::settings::{Config, SandboxBackend, WorkspaceAccess};
use openclaw_protocol::AgentId;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::active::{ActiveSandbox, Engine};
use super::container::{self, Cli, Container, ContainerError, ContainerSpec};
use super::local::{self, BadSettings, Cgroup, Cgroups, Level, Local, SandboxView};
use super::name;
use super::registry::{Entry, Registry, SandboxEngine};
use super::seed::{self, SeededSkill};
use super::settings::SandboxSettings;
use crate::command::guard::CommandLock;

/// An empty directory in the state, which is mounted over what a container must not show.
const EMPTY: &str = "sandbox/empty";

/// Makes sandboxes.
#[derive(Debug)]
pub struct Sandboxes {
    /// An `openclaw`, which shuts itself in.
    program: PathBuf,
    pub(super) state_dir: PathBuf,
    /// Level of kernel support, or the reason why there is none.
    level: OnceCell<Result<Level, String>>,
    /// Place of limits on all processes of a sandbox together, or the reason why there is none.
    cgroups: OnceCell<Result<Cgroups, String>>,
    /// Lock that ends setup commands with this process.
    pub(super) lock: Option<CommandLock>,
    /// Locks by sandbox: only one run at a time prepares a sandbox.
    making: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    /// Sandboxes that runs use, by name.
    pub(super) used: Mutex<HashMap<String, Weak<()>>>,
    pub(super) pruned_at: Mutex<i64>,
}

/// Parameters of the sandbox that a run needs.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The agent.
    pub agent: &'a AgentId,
    /// Workspace of the agent.
    pub agent_workspace: &'a Path,
    /// The session.
    pub session_key: &'a str,
    /// Skills that the sandbox may read.
    pub skills: &'a [SeededSkill],
}

/// Reason why there is no sandbox. The run does not begin, and whoever wrote is told.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SandboxError(#[from] SandboxFault);

#[derive(Debug, thiserror::Error)]
pub(super) enum SandboxFault {
    #[error("this system gives no sandbox without containers ({0}). {remedy}", remedy = local::REMEDY)]
    NoKernel(String),
    #[error(transparent)]
    Settings(#[from] BadSettings),
    #[error("{0}")]
    Container(#[from] ContainerError),
    #[error("the sandbox's directory {}: {error}", path.display())]
    Directory { path: PathBuf, error: io::Error },
    #[error("the sandbox's setupCommand failed: {0}. It is tried again with the next message")]
    Setup(String),
    #[error("the limits of the sandbox can't be set in {}: {error}", path.display())]
    Limits { path: PathBuf, error: io::Error },
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
            cgroups: OnceCell::new_with(Some(Err("this process has taken none".to_owned()))),
            lock: None,
            making: Mutex::default(),
            used: Mutex::default(),
            pruned_at: Mutex::default(),
        }
    }

    /// Configures the sandboxes of a gateway: the processes they start end with `lock`, and this
    /// process may move to another control group.
    #[must_use]
    pub fn of_gateway(self, lock: CommandLock) -> Self {
        Self { lock: Some(lock), cgroups: OnceCell::new(), ..self }
    }

    /// Uses this directory of the cgroup tree without a check: directories that were not delegated
    /// to this process can be tried in this way.
    #[must_use]
    pub fn within(self, cgroup: &Path) -> Self {
        Self { cgroups: OnceCell::new_with(Some(Cgroups::at(cgroup))), ..self }
    }

    /// Creates the sandboxes of this process: they use the program that runs, even if its file was
    /// replaced since.
    pub fn of_this_process(state_dir: impl Into<PathBuf>) -> Self {
        let linux = Path::new("/proc/self/exe");
        let program =
            if linux.exists() { linux.to_owned() } else { std::env::current_exe().unwrap_or_default() };
        Self::new(program, state_dir)
    }

    /// Uses this level without a check: the behaviour of a kernel without user namespaces can be
    /// tested on any.
    #[cfg_attr(not(target_os = "linux"), allow(unreachable_patterns, reason = "there are no levels"))]
    pub async fn at_level(self, level: Level) -> Self {
        let works = self.level().await.and_then(|most| match most {
            most if most >= level => Ok(level),
            most => Err(format!("it has {} alone", most.as_str())),
        });
        Self { level: OnceCell::new_with(Some(works)), ..self }
    }

    /// Returns the level of kernel support, or the reason why there is none.
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

    /// Returns the place of limits, if there is one.
    async fn cgroups(&self) -> Result<&Cgroups, &str> {
        let take = || async {
            let taken = tokio::task::spawn_blocking(Cgroups::take).await;
            taken.unwrap_or_else(|error| Err(error.to_string()))
        };
        self.cgroups.get_or_init(take).await.as_ref().map_err(String::as_str)
    }

    /// Removes a sandbox; the next run makes it anew. Its directory stays.
    ///
    /// # Errors
    /// When it is still there.
    pub async fn remove(&self, config: &Config, entry: &Entry) -> Result<(), SandboxError> {
        Ok(self.removed(config, entry).await?)
    }

    /// The lock of whoever makes a sandbox ready, or removes it.
    pub(super) fn making(&self, name: &str) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(self.making.lock().entry(name.to_owned()).or_default())
    }

    pub(super) async fn removed(&self, config: &Config, entry: &Entry) -> Result<(), SandboxFault> {
        if entry.kind == SandboxEngine::Kernel {
            if let Some(Ok(cgroups)) = self.cgroups.get() {
                let (cgroups, name) = (cgroups.clone(), entry.container_name.clone());
                let removed = tokio::task::spawn_blocking(move || cgroups.remove(&name)).await;
                removed.map_err(io::Error::other).and_then(|removed| removed)?;
            }
            return Ok(Registry::local(&self.state_dir).forget(&entry.container_name)?);
        }
        self.removed_container(config, &entry.container_name).await?;
        Ok(Registry::containers(&self.state_dir).forget(&entry.container_name)?)
    }

    /// Removes a container with `docker` and `podman`, because it was not recorded which program
    /// made it.
    async fn removed_container(&self, config: &Config, name: &str) -> Result<(), SandboxFault> {
        let known = ["docker", "podman"].map(|program| Cli::new(program, config.environment()));
        let (mut is_gone, mut without_daemon) = (false, None);
        for cli in known.iter().filter(|cli| cli.is_installed()) {
            match container::remove(cli, name).await {
                Ok(()) => is_gone = true,
                Err(error @ ContainerError::NoDaemon { .. }) => without_daemon = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        match without_daemon {
            Some(error) if !is_gone => Err(error.into()),
            Some(_) | None => Ok(()),
        }
    }

    async fn opened(&self, wanted: Wanted<'_>) -> Result<ActiveSandbox, SandboxFault> {
        let settings = SandboxSettings::of(wanted.config, wanted.agent);
        let key = name::scope_key(settings.scope, wanted.agent, wanted.session_key);
        let name = name::container(&settings.docker.prefix, settings.scope, &key);
        self.prune(wanted.config).await;
        let making = self.making(&name);
        let _one_at_a_time = making.lock().await;
        let in_use = self.use_of(&name);
        let workspace = directory(&settings, wanted).await?;
        let agent_workspace =
            (settings.access == WorkspaceAccess::ReadOnly).then_some(wanted.agent_workspace);
        let environment = wanted.config.environment();
        if let Some(cli) = program_of(settings.backend, environment).map(|name| Cli::new(name, environment)) {
            let empty = self.state_dir.join(EMPTY);
            let made = std::fs::create_dir_all(&empty);
            made.map_err(|error| SandboxFault::Directory { path: empty.clone(), error })?;
            let docker = &settings.docker;
            let covers =
                container::covers(docker, &workspace, agent_workspace, &private(wanted.config), &empty);
            let made = ContainerSpec {
                name: &name,
                key: &key,
                settings: &settings.docker,
                workspace: &workspace,
                agent_workspace,
                covers: &covers,
            };
            let registry = Registry::containers(&self.state_dir);
            container::ensure(&cli, &registry, made).await?;
            let engine = Engine::Container(Container { cli, name });
            return Ok(ActiveSandbox { settings, workspace, engine, _in_use: in_use });
        }
        let level = self.level().await.map_err(SandboxFault::NoKernel)?;
        let group = self.group(&name, &settings).await?;
        let view = SandboxView {
            settings: &settings.docker,
            workspace: &workspace,
            is_writable: true,
            agent_workspace,
            hidden: hidden(wanted.config, [Some(workspace.as_path()), agent_workspace]),
            group: group.as_ref().ok(),
        };
        let local = Local::new(&self.program, level, &view)?;
        if let Some(temporary) = local.temporary() {
            let made = std::fs::create_dir_all(&temporary);
            made.map_err(|error| SandboxFault::Directory { path: temporary, error })?;
        }
        let sandbox = ActiveSandbox { settings, workspace, engine: Engine::Local(local), _in_use: in_use };
        let limits = local::limits_told(group.as_ref().map_err(String::as_str));
        self.note_local(&sandbox, &name, key, (limits, group.is_ok())).await?;
        Ok(sandbox)
    }

    /// The control group of a sandbox of the kernel; else why it has none.
    #[cfg_attr(not(target_os = "linux"), allow(unused_variables, reason = "there are no groups"))]
    async fn group(
        &self,
        name: &str,
        settings: &SandboxSettings,
    ) -> Result<Result<Cgroup, String>, SandboxFault> {
        let amounts = local::amounts(&settings.docker)?;
        let cgroups = match self.cgroups().await {
            Ok(cgroups) => cgroups.clone(),
            Err(why) => return Ok(Err(why.to_owned())),
        };
        let (name, path) = (name.to_owned(), cgroups.base().to_owned());
        let made = tokio::task::spawn_blocking(move || cgroups.group(&name, &amounts)).await;
        let made = made.map_err(io::Error::other).and_then(|made| made);
        made.map(Ok).map_err(|error| SandboxFault::Limits { path, error })
    }
}

/// The host directory that is the workspace inside, with what it starts with.
async fn directory(settings: &SandboxSettings, wanted: Wanted<'_>) -> Result<PathBuf, SandboxFault> {
    let directory = name::workspace_of(settings, wanted.agent, wanted.agent_workspace, wanted.session_key);
    if settings.access == WorkspaceAccess::ReadWrite {
        return Ok(directory);
    }
    let (root, from, skills) = (directory.clone(), wanted.agent_workspace.to_owned(), wanted.skills.to_vec());
    let seeded = tokio::task::spawn_blocking(move || seed::seed(&root, &from, &skills)).await;
    match seeded.map_err(io::Error::other).and_then(|seeded| seeded) {
        Ok(()) => Ok(directory),
        Err(error) => Err(SandboxFault::Directory { path: directory, error }),
    }
}

/// The program that holds sandboxes of a backend; `None` for the kernel. `auto` takes a container program where one is installed.
pub fn program_of(backend: SandboxBackend, environment: &Environment) -> Option<&'static str> {
    let is_there = |name: &&'static str| Cli::new(name, environment).is_installed();
    match backend {
        SandboxBackend::Docker => Some("docker"),
        SandboxBackend::Podman => Some("podman"),
        SandboxBackend::Local => None,
        SandboxBackend::Auto => ["docker", "podman"].into_iter().find(is_there),
    }
}

/// Returns the paths that no command may see: the gateway's state, the files of its config, and the home directory unless it is below one
/// of the paths in `shown`, which the owner shows to commands all the same.
fn hidden(config: &Config, shown: [Option<&Path>; 2]) -> Vec<PathBuf> {
    let paths = config.paths();
    let is_shown = |home: &Path| shown.into_iter().flatten().any(|shown| home.starts_with(shown));
    let home = Some(paths.home()).filter(|home| !is_shown(home)).map(Path::to_owned);
    private(config).into_iter().chain(home).collect()
}

/// Returns the gateway's own directories and the files of its config, wherever they lie.
fn private(config: &Config) -> Vec<PathBuf> {
    let files = config.source_files().into_iter().filter(|file| file.exists());
    config.private_directories().into_iter().chain(files).collect()
}
