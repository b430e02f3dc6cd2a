//! Sandboxes of Docker and Podman, by their command line (spec `tools.md` §10).

mod argv;
mod cli;
mod ensure;

use super::active::{Inside, Launch};
pub(super) use cli::{Cli, ContainerError};
pub(super) use ensure::{Making, ensure, prune, remove};

/// The container of one run.
#[derive(Debug, Clone)]
pub(super) struct Container {
    pub(super) cli: Cli,
    pub(super) name: String,
}

impl Container {
    pub(super) fn launch(&self, inside: Inside<'_>) -> Launch {
        Launch {
            program: self.cli.program().into(),
            arguments: argv::exec(&self.name, inside).into_iter().map(Into::into).collect(),
            environment: self.cli.environment().to_vec(),
            directory: "/".into(),
        }
    }
}
