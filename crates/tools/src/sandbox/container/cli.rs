//! Running `docker` and `podman`.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use openclaw_config::Environment;
use tokio::process::Command;
use tokio::time::timeout;

/// Pulling an image, and a setup command, take their time.
const PATIENCE: Duration = Duration::from_secs(600);

/// A program that manages containers.
#[derive(Debug, Clone)]
pub(in crate::sandbox) struct Cli {
    program: &'static str,
    environment: Vec<(String, String)>,
}

/// Reason why there is no container; the owner is told.
#[derive(Debug, thiserror::Error)]
pub(in crate::sandbox) enum ContainerError {
    /// The program is not there.
    #[error(
        "{0} is not installed or not on PATH. Install it, or set agents.defaults.sandbox.backend to \"local\" for a sandbox \
         that needs no daemon"
    )]
    NotInstalled(&'static str),
    /// The command failed.
    #[error(
        "{program} {what} failed: {said}. If {program} can't be used here, set agents.defaults.sandbox.backend to \"local\""
    )]
    Failed { program: &'static str, what: String, said: String },
    /// The program is installed, but its daemon is not running.
    #[error(
        "{program} is installed, but its daemon does not answer ({said}). Start it (systemctl start {program}), or set \
         agents.defaults.sandbox.backend to \"local\" for a sandbox that needs no daemon"
    )]
    NoDaemon { program: &'static str, said: String },
    /// The gateway's user is not allowed to use the program.
    #[error(
        "the gateway's user may not use {program} ({said}). Let it (usermod -aG docker USER, then start the gateway anew from a new \
         login), or set agents.defaults.sandbox.backend to \"local\""
    )]
    NotAllowed { program: &'static str, said: String },
    /// The image does not exist. The first two sentences are OpenClaw's.
    #[error(
        "Sandbox image not found: {image}. Build or pull it first. ({program} pull {image}; its name is \
         agents.defaults.sandbox.docker.image)"
    )]
    NoImage { program: &'static str, image: String },
    /// The base of the default image can't be pulled.
    #[error(
        "the sandbox's image is missing, and {image}, which it is made from, can't be pulled: {said}. Pull or load it by hand, or name \
         an image that is there in agents.defaults.sandbox.docker.image"
    )]
    NotPulled { image: &'static str, said: String },
    /// The owner's own command.
    #[error("the sandbox's setupCommand failed: {0}. It is tried again with the next message")]
    Setup(String),
    /// The list of containers can't be written.
    #[error("the list of sandboxes can't be kept: {0}")]
    Registry(#[from] std::io::Error),
}

/// Phrases in lower case with which programs report that their daemon is not running.
const NO_DAEMON: &[&str] = &[
    "cannot connect to the docker daemon",
    "is the docker daemon running",
    "error during connect",
    "cannot connect to podman",
    "unable to connect to podman",
];
/// Phrases with which programs report that the user may not use their daemon.
const NOT_ALLOWED: &[&str] = &[
    "permission denied while trying to connect to the docker",
    "dial unix /var/run/docker.sock: connect: permission denied",
];

/// The end of what was said: the reason is there.
fn tail(said: &str) -> String {
    const LONGEST: usize = 500;
    let start = said.char_indices().rev().nth(LONGEST - 1).map_or(0, |(at, _)| at);
    said.get(start..).unwrap_or_default().to_owned()
}

impl Cli {
    /// `docker` or `podman`, with what the gateway inherited: it says where their daemon is.
    pub(in crate::sandbox) fn new(program: &'static str, environment: &Environment) -> Self {
        let all = environment.vars().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { program, environment: all.collect() }
    }

    /// Returns true if the program is on `PATH`.
    pub(in crate::sandbox) fn is_installed(&self) -> bool {
        let path = self.environment.iter().find(|(name, _)| name == "PATH");
        path.is_some_and(|(_, dirs)| dirs.split(':').any(|dir| Path::new(dir).join(self.program).is_file()))
    }

    pub(in crate::sandbox) fn program(&self) -> &'static str {
        self.program
    }

    pub(super) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Runs the program and returns its output.
    pub(super) async fn run(&self, arguments: &[String]) -> Result<String, ContainerError> {
        let output = self.output(arguments).await?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(self.failed(arguments, &String::from_utf8_lossy(&output.stderr))),
        }
    }

    async fn output(&self, arguments: &[String]) -> Result<Output, ContainerError> {
        let child = Command::new(self.program)
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        match timeout(PATIENCE, child).await {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(ContainerError::NotInstalled(self.program))
            }
            Ok(Err(error)) => Err(self.failed(arguments, &error.to_string())),
            Err(_) => Err(self.failed(arguments, "it took too long")),
        }
    }

    fn failed(&self, arguments: &[String], said: &str) -> ContainerError {
        let (said, program) = (tail(said.trim()), self.program);
        let lower = said.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|words| lower.contains(words));
        if says(NOT_ALLOWED) {
            return ContainerError::NotAllowed { program, said };
        }
        if says(NO_DAEMON) {
            return ContainerError::NoDaemon { program, said };
        }
        let what = arguments.first().cloned().unwrap_or_default();
        ContainerError::Failed { program, what, said }
    }
}
