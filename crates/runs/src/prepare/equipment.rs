//! Equipment of a run: all that it is given besides its conversation and its model.

use std::sync::Arc;

use openclaw_agent::Toolbox;
use openclaw_agent::bootstrap::BootstrapFile;
use openclaw_agent::prompt::SystemPromptReport;
use openclaw_agent::skills::{SkillBook, Snapshot};
use openclaw_models::Candidate;
use openclaw_runtime::setup::Settings;
use openclaw_tools::sandbox::{ActiveSandbox, Sandboxes};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::{PromptParts, RunOrigin, SystemPrompts, ToolMaker, WorkspaceLoader, skills_of};
use crate::not_begun::NotBegun;
use crate::sandbox;
use crate::secrets::{KnownSecrets, Shield};
use crate::session::RunSession;

/// Skills, tools, workspace files and system prompts of runs, with the secrets that they must not show.
pub(crate) struct Equipment {
    secrets: Arc<KnownSecrets>,
    skills: Arc<SkillBook>,
    sandboxes: Arc<Sandboxes>,
    workspaces: WorkspaceLoader,
    tools: ToolMaker,
    prompts: SystemPrompts,
}

impl Equipment {
    pub(crate) fn new(
        secrets: Arc<KnownSecrets>,
        skills: Arc<SkillBook>,
        sandboxes: Arc<Sandboxes>,
        workspaces: WorkspaceLoader,
        tools: ToolMaker,
        prompts: SystemPrompts,
    ) -> Self {
        Self { secrets, skills, sandboxes, workspaces, tools, prompts }
    }

    /// Returns the skills of a session's agent.
    pub(crate) async fn skills_of(&self, session: &RunSession, settings: &Settings) -> Arc<Snapshot> {
        skills_of(&self.skills, session, settings).await
    }

    /// Returns the shield of a run with these credentials.
    pub(crate) fn shield(
        &self,
        settings: &Arc<Settings>,
        credentials: Vec<SecretString>,
    ) -> Result<Arc<Shield>, NotBegun> {
        self.secrets.shield(settings, credentials, self.secrets.of_devices())
    }

    /// Notes the keys of skills, which no tool may print from now on.
    pub(crate) fn learn_keys(&self, skills: &Snapshot) {
        self.secrets.learn_keys(&skills.overlay);
    }

    /// Makes the session's sandbox ready; `None` if the session needs none.
    pub(crate) async fn sandbox(
        &self,
        session: &RunSession,
        settings: &Settings,
        skills: &Snapshot,
    ) -> Result<Option<Arc<ActiveSandbox>>, NotBegun> {
        let RunSession { key, agent, rights, .. } = session;
        sandbox::open(&self.sandboxes, settings, (key, agent), rights, skills).await
    }

    /// Returns the files of the session's own workspace; see [`WorkspaceLoader::load_workspace`].
    pub(crate) async fn own_files(
        &self,
        session: &RunSession,
        settings: &Arc<Settings>,
        stop: &CancellationToken,
    ) -> Result<Arc<[BootstrapFile]>, NotBegun> {
        self.workspaces.load_workspace(session, settings, stop).await
    }

    /// Returns the files that the model is told; see [`WorkspaceLoader::files_told`].
    pub(crate) async fn files_told(
        &self,
        session: &RunSession,
        settings: &Arc<Settings>,
        sandbox: Option<&ActiveSandbox>,
        own: Arc<[BootstrapFile]>,
        stop: &CancellationToken,
    ) -> Result<Arc<[BootstrapFile]>, NotBegun> {
        self.workspaces.files_told(session, settings, sandbox, own, stop).await
    }

    /// Returns the tools of a run; see [`ToolMaker::tools`].
    pub(crate) fn tools(
        &self,
        session: &RunSession,
        settings: &Settings,
        model: (&str, &str),
        of_run: (&Shield, &Snapshot, Option<&Arc<ActiveSandbox>>),
        from: RunOrigin<'_>,
    ) -> Toolbox {
        self.tools.tools(session, settings, model, of_run, from)
    }

    /// Returns the system prompt of a run, and what it is made of.
    pub(crate) fn system_prompt(
        &self,
        extra: Option<String>,
        session: &RunSession,
        settings: &Settings,
        first: &Candidate,
        parts: PromptParts<'_>,
    ) -> (Arc<str>, SystemPromptReport) {
        self.prompts.system_prompt(extra, session, settings, first, parts)
    }
}
