//! Estimate of the next run's prompt, for `/context` if no run has told it yet: built as for a run,
//! and not used.

use std::sync::Arc;

use openclaw_agent::prompt::{ReportSource, SystemPromptReport};
use openclaw_config::ResolvedAgent;
use openclaw_journal::rights::groups::{self, Spawner};
use openclaw_journal::rights::settle;
use openclaw_runtime::session_model::SessionModels;
use openclaw_runtime::setup::Settings;
use openclaw_sessions::transcript::Transcripts;
use openclaw_sessions::{SessionEntry, SessionKey};
use openclaw_tools::ImageSetup;
use tokio_util::sync::CancellationToken;

use super::prepare::equipment::Equipment;
use super::prepare::{PromptParts, RunOrigin};
use super::session::RunSession;
use crate::not_begun::NotBegun;
use crate::session_rights::SessionRights;

/// Parts for determining the prompt of a run without making it.
pub(crate) struct Estimator {
    rights: Arc<SessionRights>,
    transcripts: Transcripts,
    models: Arc<SessionModels>,
    equipment: Arc<Equipment>,
}

impl Estimator {
    pub(crate) fn new(
        rights: Arc<SessionRights>,
        transcripts: Transcripts,
        models: Arc<SessionModels>,
        equipment: Arc<Equipment>,
    ) -> Self {
        Self { rights, transcripts, models, equipment }
    }

    /// Builds a prompt now, and returns its report.
    pub(crate) async fn estimate(
        &self,
        settings: &Arc<Settings>,
        key: &SessionKey,
        agent: &ResolvedAgent,
        entry: &SessionEntry,
        stop: &CancellationToken,
    ) -> Result<SystemPromptReport, NotBegun> {
        let tools = groups::of_session(&settings.config, key, entry, Spawner::Counts);
        let started_with = self.rights.started_with(key);
        let within = self.rights.within(settings, (key, &agent.id), entry, started_with.as_ref());
        let rights = settle::of_owner(tools, within);
        let session = RunSession::of_row(&self.transcripts, key, agent, &Arc::new(entry.clone()), rights)?;
        let selected = self.models.next(&settings.models, agent, key, entry).await?;
        let first = selected.candidates.first();
        let first = first.ok_or_else(|| NotBegun::because("Error: no model is configured"))?;
        let files = self.equipment.own_files(&session, settings, stop).await?;
        let skills = self.equipment.skills_of(&session, settings).await;
        let shield = self.equipment.shield(settings, selected.secrets)?;
        let model = (first.model.provider(), first.model.id());
        let sandbox = self.equipment.sandbox(&session, settings, &skills).await?;
        let files = self.equipment.files_told(&session, settings, sandbox.as_deref(), files, stop).await?;
        let image = selected.images.map(|_| ImageSetup { model_sees: first.sees });
        let from = RunOrigin { image, ..RunOrigin::default() };
        let tools =
            self.equipment.tools(&session, settings, model, (&shield, &skills, sandbox.as_ref()), from);
        let sandbox = sandbox.as_deref();
        let parts = PromptParts { files: &files, skills: &skills, tools: &tools, sandbox, at: None };
        let (_, report) = self.equipment.system_prompt(None, &session, settings, first, parts);
        Ok(SystemPromptReport { source: ReportSource::Estimate, ..report })
    }
}
