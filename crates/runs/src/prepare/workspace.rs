//! The files of the workspace that go into the prompt.

use std::path::Path;
use std::sync::Arc;

use openclaw_agent::bootstrap::{BootstrapFile, BootstrapScope, Wanted, WorkspaceFiles};
use openclaw_agent::hooks::{EventKind, HookBus};
use openclaw_agent::workspace::Fill;
use openclaw_config::settings::WorkspaceAccess;
use openclaw_runtime::setup::Settings;
use openclaw_tools::sandbox::ActiveSandbox;
use tokio_util::sync::CancellationToken;

use crate::hooks::Hooks;
use crate::hooks::bootstrap::Bootstrap;
use crate::not_begun::NotBegun;
use crate::sandbox;
use crate::session::RunSession;

/// Parts for reading the workspace files that models are told.
pub(crate) struct WorkspaceLoader {
    hooks: Arc<Hooks>,
    files: WorkspaceFiles,
}

impl WorkspaceLoader {
    pub(crate) fn new(hooks: Arc<Hooks>) -> Self {
        Self { hooks, files: WorkspaceFiles::default() }
    }

    /// Makes the workspace ready and gives the files that go into the prompt. Where the session has a copy of them in a sandbox, hooks
    /// are not told yet: see [`Self::files_told`].
    pub(crate) async fn load_workspace(
        &self,
        session: &RunSession,
        settings: &Arc<Settings>,
        stop: &CancellationToken,
    ) -> Result<Arc<[BootstrapFile]>, NotBegun> {
        let agent = &session.agent;
        let fill = if agent.skip_bootstrap { Fill::DirectoryOnly } else { Fill::Templates };
        let wanted = wanted(session, settings, &agent.workspace, fill);
        if sandbox::has_copies(settings, agent, &session.rights) {
            return Ok(self.files.load(wanted).await?);
        }
        self.hooked(session, settings, wanted, stop).await
    }

    /// Returns the files as the run is told of them: those of its sandbox, which it can read and
    /// change; else `own`.
    pub(crate) async fn files_told(
        &self,
        session: &RunSession,
        settings: &Arc<Settings>,
        sandbox: Option<&ActiveSandbox>,
        own: Arc<[BootstrapFile]>,
        stop: &CancellationToken,
    ) -> Result<Arc<[BootstrapFile]>, NotBegun> {
        let copies = sandbox.filter(|sandbox| sandbox.settings().access != WorkspaceAccess::ReadWrite);
        let Some(sandbox) = copies else { return Ok(own) };
        let wanted = wanted(session, settings, sandbox.workspace(), Fill::DirectoryOnly);
        let files = self.hooked(session, settings, wanted, stop).await?;
        let (host, inner) = (sandbox.workspace().display().to_string(), sandbox.inner_workspace());
        let inner = inner.display().to_string();
        // A missing file is told with the place where it would be.
        let named_inside = |file: &BootstrapFile| match file.missing {
            true => BootstrapFile { injected: file.injected.replace(&host, &inner), ..file.clone() },
            false => file.clone(),
        };
        Ok(files.iter().map(named_inside).collect())
    }

    async fn hooked(
        &self,
        session: &RunSession,
        settings: &Arc<Settings>,
        wanted: Wanted,
        stop: &CancellationToken,
    ) -> Result<Arc<[BootstrapFile]>, NotBegun> {
        let hears = |bus: &HookBus| bus.set().hears(EventKind::AgentBootstrap);
        match self.hooks.hooks(settings).filter(hears) {
            Some(bus) => {
                let (key, session_id) = (&session.key, session.id.as_str());
                let whose = Bootstrap { key, session_id, agent: &session.agent };
                Box::pin(self.hooks.hooked_workspace(&bus, settings, wanted, &whose, stop)).await
            }
            None => Ok(self.files.load(wanted).await?),
        }
    }
}

fn wanted(session: &RunSession, settings: &Settings, workspace: &Path, fill: Fill) -> Wanted {
    Wanted {
        workspace: workspace.to_owned(),
        scope: match BootstrapScope::for_session(&session.key, &settings.sessions.key_rules().main_key) {
            BootstrapScope::Private if !session.rights.read_memory() => BootstrapScope::Shared,
            scope => scope,
        },
        max_chars: usize::try_from(session.agent.bootstrap_max_chars).unwrap_or(usize::MAX),
        fill,
    }
}
