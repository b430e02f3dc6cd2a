//! Sandboxes of Docker and Podman, by their command line (spec `tools.md` §10).

mod argv;
mod cli;
mod covers;
mod ensure;

use super::active::Inside;
use crate::command::Launch;
use argv::CommandMark;
pub(super) use cli::{Cli, ContainerError};
pub(super) use covers::covers;
pub(super) use ensure::{ContainerSpec, check, ensure, remove};

/// The container of one run.
#[derive(Debug, Clone)]
pub(super) struct Container {
    pub(super) cli: Cli,
    pub(super) name: String,
}

impl Container {
    pub(super) fn launch(&self, inside: Inside<'_>) -> Launch {
        let mark = CommandMark::new();
        let program = self.cli.program();
        let ending = std::iter::once(program.to_owned()).chain(argv::end(&self.name, &mark));
        Launch {
            program: program.into(),
            arguments: argv::exec(&self.name, inside, &mark).into_iter().map(Into::into).collect(),
            environment: self.cli.environment().to_vec(),
            directory: "/".into(),
            ending: ending.map(Into::into).collect(),
        }
    }
}
