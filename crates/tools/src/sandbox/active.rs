//! A sandbox that is ready: how a command is started in it, and what its paths mean.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_config::without_dots;

use super::container::Container;
use super::local::Local;
use super::settings::SandboxSettings;
use crate::command::Launch;

/// `PATH` inside.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
pub(super) const SHELL: &str = "/bin/sh";

/// The sandbox of one run.
#[derive(Debug, Clone)]
pub struct ActiveSandbox {
    pub(super) settings: SandboxSettings,
    /// The host directory that is the workspace inside. File tools are held to it.
    pub(super) workspace: PathBuf,
    pub(super) engine: Engine,
    /// Keeps it from being removed.
    pub(super) _in_use: Arc<()>,
}

/// Engine that runs the commands.
#[derive(Debug, Clone)]
pub(super) enum Engine {
    Local(Local),
    Container(Container),
}

/// A command that is to run inside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inside<'a> {
    pub(crate) command: &'a str,
    /// A directory inside.
    pub(crate) directory: &'a Path,
    /// All its variables.
    pub(crate) environment: &'a [(String, String)],
    pub(crate) in_terminal: bool,
}

impl ActiveSandbox {
    /// The host directory that file tools are held to.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Returns the workspace as commands see it.
    pub fn inner_workspace(&self) -> PathBuf {
        match &self.engine {
            Engine::Local(local) => local.inner_workspace(),
            Engine::Container(_) => self.settings.docker.workdir.clone().into(),
        }
    }

    /// Settings of the sandbox.
    pub fn settings(&self) -> &SandboxSettings {
        &self.settings
    }

    /// Returns the program that starts a command.
    pub(crate) fn launch(&self, inside: Inside<'_>) -> Launch {
        match &self.engine {
            Engine::Local(local) => local.launch(inside),
            Engine::Container(container) => container.launch(inside),
        }
    }

    /// The command's variables: nothing of the gateway's.
    pub(crate) fn environment(
        &self,
        asked: &[(String, String)],
        path_prepend: &[String],
    ) -> Vec<(String, String)> {
        let home = self.inner_workspace().display().to_string();
        let configured = self.settings.docker.env.iter().cloned();
        let mut out = vec![("PATH".to_owned(), PATH.to_owned()), ("HOME".to_owned(), home)];
        if let Engine::Local(local) = &self.engine {
            out.extend(local.temporary().map(|dir| ("TMPDIR".to_owned(), dir.display().to_string())));
            out.extend([
                ("USER".to_owned(), "sandbox".to_owned()),
                ("LOGNAME".to_owned(), "sandbox".to_owned()),
            ]);
        }
        let mut path = None;
        for (name, value) in configured.chain(asked.iter().cloned()) {
            if name == "PATH" {
                path = Some(value);
                continue;
            }
            match out.iter_mut().find(|(known, _)| *known == name) {
                Some((_, old)) => *old = value,
                None => out.push((name, value)),
            }
        }
        if let Some((_, all)) = out.first_mut() {
            let first = path_prepend.iter().map(String::as_str).chain(path.as_deref());
            let mut dirs: Vec<&str> = Vec::new();
            for dir in first.flat_map(|dirs| dirs.split(':')).chain(PATH.split(':')) {
                if !dir.is_empty() && !dirs.contains(&dir) {
                    dirs.push(dir);
                }
            }
            *all = dirs.join(":");
        }
        out
    }

    /// A host path below the workspace as commands see it; nothing for one that is not there.
    pub(crate) fn inner(&self, host: &Path) -> Option<PathBuf> {
        let inside = without_dots(host).strip_prefix(without_dots(&self.workspace)).ok()?.to_owned();
        let root = self.inner_workspace();
        Some(if inside.as_os_str().is_empty() { root } else { root.join(inside) })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::local::tests::local;
    use super::*;

    fn sandbox() -> ActiveSandbox {
        let config = openclaw_config::settings::Config::default();
        let settings = SandboxSettings::of(&config, &openclaw_protocol::AgentId::default());
        ActiveSandbox {
            settings,
            workspace: "/boxes/a".into(),
            engine: Engine::Local(local()),
            _in_use: Arc::default(),
        }
    }

    #[test]
    fn host_paths_below_the_workspace_have_a_name_inside() {
        let sandbox = sandbox();
        for (host, inner) in [
            ("/boxes/a", Some("/workspace")),
            ("/boxes/a/", Some("/workspace")),
            ("/boxes/a/b/../c", Some("/workspace/c")),
            ("/boxes/a/..", None),
            ("/boxes/ab", None),
            ("/", None),
        ] {
            assert_eq!(sandbox.inner(Path::new(host)).as_deref(), inner.map(Path::new), "{host}");
        }
    }

    #[test]
    fn variables_are_the_sandboxs_own_and_then_the_calls() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let found = |asked: &[(String, String)], prepend: &[&str]| {
            let prepend: Vec<String> = prepend.iter().map(|dir| (*dir).to_owned()).collect();
            let all = sandbox().environment(asked, &prepend);
            all.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        let rest = "HOME=/workspace USER=sandbox LOGNAME=sandbox LANG=C.UTF-8";
        assert_eq!(found(&[], &[]), format!("PATH={PATH} {rest}"));
        assert_eq!(found(&[pair("A", "1")], &["/x"]), format!("PATH=/x:{PATH} {rest} A=1"));
        let asked = [pair("PATH", "/y:/bin"), pair("HOME", "/tmp")];
        let path = PATH.strip_suffix(":/bin").unwrap();
        assert_eq!(
            found(&asked, &["/x"]),
            format!("PATH=/x:/y:/bin:{path} HOME=/tmp USER=sandbox LOGNAME=sandbox LANG=C.UTF-8")
        );
    }
}
