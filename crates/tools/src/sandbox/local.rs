//! The sandbox of the kernel: namespaces, Landlock and seccomp, without a daemon.
//!
//! The gateway starts itself again, because no code can run between fork and exec in a program
//! without `unsafe`: [`mod@enter`] reads what [`Local`] wrote, enters the sandbox and becomes the
//! command.

mod cgroup;
mod enter;
mod filter;
mod plan;
mod probe;
mod rules;
mod spec;

use std::path::{Path, PathBuf};

pub(super) use cgroup::{Cgroup, Cgroups, told as limits_told};
pub use enter::enter;
pub(super) use plan::{BadSettings, SandboxView, amounts};
pub(super) use probe::level;
pub use spec::{ENTER, Level};
use spec::{Spec, VARIABLE};

use super::active::{Inside, SHELL};
use crate::command::Launch;

/// Advice if the kernel does not allow any sandbox.
pub(super) const REMEDY: &str = "Allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, \
    kernel.apparmor_restrict_unprivileged_userns=0), use a kernel with Landlock, or install Docker or Podman and set \
    agents.defaults.sandbox.backend";

/// The sandbox of one run.
#[derive(Debug, Clone)]
pub(super) struct Local {
    /// Path of our own program.
    program: PathBuf,
    /// Specification for a command without a terminal that starts in the workspace.
    spec: Spec,
}

impl Local {
    /// `program` is an `openclaw`.
    pub(super) fn new(program: &Path, level: Level, view: &SandboxView<'_>) -> Result<Self, BadSettings> {
        Ok(Self { program: program.to_owned(), spec: plan::spec(level, view)? })
    }

    pub(super) fn inner_workspace(&self) -> PathBuf {
        self.spec.workspace().unwrap_or(Path::new("/")).to_owned()
    }

    /// A directory for temporary files, where `/tmp` can't be written.
    pub(super) fn temporary(&self) -> Option<PathBuf> {
        (self.spec.level == Level::Landlock).then(|| self.inner_workspace().join(".tmp"))
    }

    pub(super) fn launch(&self, inside: Inside<'_>) -> Launch {
        let spec =
            Spec { workdir: inside.directory.to_owned(), terminal: inside.in_terminal, ..self.spec.clone() };
        let mut arguments = enter::arguments(&spec);
        arguments.extend([SHELL, "-c", inside.command, SHELL].map(Into::into));
        let variables = inside.environment.iter();
        Launch {
            program: self.program.clone().into(),
            arguments,
            environment: variables
                .map(|(name, value)| (format!("{VARIABLE}{name}"), value.clone()))
                .collect(),
            directory: "/".into(),
            ending: Vec::new(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn local() -> Local {
        let settings = super::super::SandboxSettings::of(&Default::default(), &Default::default());
        let view = SandboxView {
            settings: &settings.docker,
            workspace: Path::new("/boxes/a"),
            is_writable: true,
            agent_workspace: None,
            hidden: vec![],
            group: None,
        };
        Local::new(Path::new("/x/openclaw"), Level::Namespaces, &view).unwrap()
    }

    #[test]
    fn variables_of_a_command_do_not_work_on_the_program_that_enters() {
        let environment = [("LD_PRELOAD".to_owned(), "/workspace/evil.so".to_owned())];
        let inside = Inside {
            command: "id",
            directory: Path::new("/workspace"),
            environment: &environment,
            in_terminal: false,
        };
        let launch = local().launch(inside);
        assert_eq!(
            launch.environment,
            [("OCSANDBOX_LD_PRELOAD".to_owned(), "/workspace/evil.so".to_owned())]
        );
        assert_eq!(launch.directory, Path::new("/"));
        let shown: Vec<_> = launch.arguments.iter().map(|each| each.to_str().unwrap()).collect();
        assert_eq!(shown[..2], [ENTER, "outer"]);
        assert_eq!(shown[shown.len() - 4..], ["/bin/sh", "-c", "id", "/bin/sh"]);
        let spec: Spec = serde_json::from_str(shown[2]).unwrap();
        assert_eq!(spec, local().spec);
    }
}
