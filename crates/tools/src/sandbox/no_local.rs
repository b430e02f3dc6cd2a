//! Where the kernel has no sandbox of this kind.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::active::{Inside, Launch};
use super::settings::DockerSettings;

/// The first argument that makes `openclaw` shut itself in and become a command.
pub const ENTER: &str = "--sandbox-enter";

/// How much of the kernel is used: there is no such kernel.
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

pub(super) struct View<'a> {
    pub(super) settings: &'a DockerSettings,
    pub(super) workspace: &'a Path,
    pub(super) is_writable: bool,
    pub(super) agent_workspace: Option<&'a Path>,
    pub(super) hidden: Vec<PathBuf>,
}

#[derive(Debug, Clone)]
pub(super) struct Local(Level);

impl Local {
    pub(super) fn new(_: &Path, level: Level, _: &View<'_>) -> Result<Self, BadSettings> {
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
    Err("only Linux has one".to_owned())
}
