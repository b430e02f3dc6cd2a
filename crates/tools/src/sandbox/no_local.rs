//! Stub for systems whose kernel has no sandbox of this kind.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::active::Inside;
use super::settings::DockerSettings;
use crate::command::Launch;

const NOWHERE: &str = "the sandbox \"local\" is made by Linux, and this is another system";

/// Advice for the owner.
pub(super) const REMEDY: &str =
    "Install Docker or Podman, and set agents.defaults.sandbox.backend to \"docker\" or \"podman\"";

/// The first argument that makes `openclaw` shut itself in and become a command.
pub const ENTER: &str = "--sandbox-enter";

/// Level of kernel support: uninhabited, because there is no such kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {}

impl Level {
    /// The word that is shown.
    pub fn as_str(self) -> &'static str {
        match self {}
    }
}

/// Does nothing.
pub fn enter(_: impl Iterator<Item = OsString>) -> ExitCode {
    ExitCode::FAILURE
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct BadSettings(String);

pub(super) struct SandboxView<'a> {
    pub(super) settings: &'a DockerSettings,
    pub(super) workspace: &'a Path,
    pub(super) is_writable: bool,
    pub(super) agent_workspace: Option<&'a Path>,
    pub(super) hidden: Vec<PathBuf>,
    pub(super) group: Option<&'a Cgroup>,
}

/// Place of limits on all processes of a sandbox together: uninhabited.
#[derive(Debug, Clone)]
pub(super) enum Cgroups {}

/// The group of one sandbox.
#[derive(Debug)]
pub(super) enum Cgroup {}

#[derive(Debug)]
pub(super) struct Amounts;

impl Cgroups {
    pub(super) fn take() -> Result<Self, String> {
        Err(NOWHERE.to_owned())
    }

    pub(super) fn at(_: &Path) -> Result<Self, String> {
        Err(NOWHERE.to_owned())
    }

    pub(super) fn group(&self, _: &str, _: &Amounts) -> io::Result<Cgroup> {
        match *self {}
    }

    pub(super) fn remove(&self, _: &str) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn base(&self) -> &Path {
        match *self {}
    }
}

pub(super) fn amounts(_: &DockerSettings) -> Result<Amounts, BadSettings> {
    Ok(Amounts)
}

pub(super) fn limits_told(group: Result<&Cgroup, &str>) -> String {
    match group {
        Ok(group) => match *group {},
        Err(why) => why.to_owned(),
    }
}

#[derive(Debug, Clone)]
pub(super) struct Local(Level);

impl Local {
    pub(super) fn new(_: &Path, level: Level, _: &SandboxView<'_>) -> Result<Self, BadSettings> {
        Ok(Self(level))
    }

    pub(super) fn inner_workspace(&self) -> PathBuf {
        match self.0 {}
    }

    pub(super) fn temporary(&self) -> Option<PathBuf> {
        match self.0 {}
    }

    pub(super) fn launch(&self, _: Inside<'_>) -> Launch {
        match self.0 {}
    }
}

pub(super) async fn level(_: &Path, _: &Path) -> Result<Level, String> {
    Err(NOWHERE.to_owned())
}
