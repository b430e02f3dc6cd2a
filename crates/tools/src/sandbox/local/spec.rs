//! Specification that the gateway gives to the program that enters the sandbox: one JSON argument.
//! It holds no secret, as arguments can be read by everyone.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The first argument that makes `openclaw` shut itself in and become a command.
pub const ENTER: &str = "--sandbox-enter";
/// Stands before the names of the command's variables. Under their own names they would work on our program, which is still free.
pub(super) const VARIABLE: &str = "OCSANDBOX_";
/// Exit code of the program if the sandbox can't be made.
pub(super) const FAILED: u8 = 125;
/// User and group inside.
pub(super) const INNER_ID: u32 = 1000;

/// A sandbox for one command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Spec {
    pub(super) level: Level,
    /// Host directories and where they are seen; the first is the workspace.
    pub(super) mounts: Vec<Mount>,
    /// Host paths that are never seen, wherever they lie.
    pub(super) hidden: Vec<PathBuf>,
    /// Directories in memory, and how much they take at most.
    pub(super) tmpfs: Vec<(PathBuf, Option<String>)>,
    /// Working directory of the command.
    pub(super) workdir: PathBuf,
    pub(super) network: Network,
    /// Lines for `/etc/hosts`: address, name.
    pub(super) hosts: Vec<(String, String)>,
    /// Name servers, in the place of the host's.
    pub(super) dns: Vec<String>,
    pub(super) limits: ProcessLimits,
    /// The control group that the command is in, a directory of the host.
    pub(super) cgroup: Option<PathBuf>,
    /// True if the command has a terminal, which it must keep.
    pub(super) terminal: bool,
}

/// Level of kernel support, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Landlock and seccomp alone, where user namespaces are refused: paths are those of the host.
    Landlock,
    /// Namespaces, with Landlock and seccomp on top.
    Namespaces,
}

impl Level {
    /// The word that is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
        }
    }
}

/// Network access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Network {
    None,
    Host,
}

/// A host directory that is seen inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mount {
    pub(super) source: PathBuf,
    pub(super) target: PathBuf,
    pub(super) writable: bool,
}

/// Limits; absent ones are not set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessLimits {
    pub(super) processes: Option<u64>,
    /// Bytes of address space of each process.
    pub(super) memory: Option<u64>,
    /// Names of Docker's `--ulimit` with soft and hard limit.
    pub(super) others: Vec<(String, u64, u64)>,
}

impl Spec {
    /// Returns the path at which the command sees its workspace.
    pub(super) fn workspace(&self) -> Option<&std::path::Path> {
        self.mounts.first().map(|mount| match self.level {
            Level::Namespaces => mount.target.as_path(),
            Level::Landlock => mount.source.as_path(),
        })
    }
}
