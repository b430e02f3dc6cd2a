//! What the next run of a session would be told, for `/context` where no run has told it yet: built as for a run, and not used.

use std::sync::Arc;

use openclaw_agent::prompt::{ReportSource, SystemPromptReport};
use openclaw_config::ResolvedAgent;
use openclaw_sessions::entry::new_session_id;
use openclaw_sessions::{SessionEntry, SessionKey};
use tokio_util::sync::CancellationToken;

use super::prepare::{Asking, PromptParts};
use super::session::Session;
use super::{NotBegun, Runner};
use crate::setup::Settings;

impl Runner {
    /// The report of a prompt that is built now.
    pub(crate) async fn estimate(
        &self,
        settings: &Arc<Settings>,
        key: &SessionKey,
        agent: &ResolvedAgent,
        entry: &SessionEntry,
        stop: &CancellationToken,
    ) -> Result<SystemPromptReport, NotBegun> {
        let id = entry.session_id.clone().unwrap_or_else(new_session_id);
        let session = Session {
            key: key.clone(),
            transcript: self.transcript_of(&agent.id, &id, Some(entry))?,
            agent: agent.clone(),
            id,
            entry: Arc::new(entry.clone()),
            noted: true,
            is_new: false,
            reset: None,
            requested: None,
            after_abort: false,
        };
        let selected = self.models.next(&settings.models, agent, key, entry).await?;
        let first = selected.candidates.first();
        let first = first.ok_or_else(|| NotBegun::because("Error: no model is configured"))?;
        let files = self.load_workspace(&session, settings, stop).await?;
        let skills = self.skills_of(&session, settings).await;
        let shield = self.secrets.shield(settings, selected.secrets, self.secrets.of_devices())?;
        let model = (first.model.provider(), first.model.id());
        let sandbox = self.sandbox(&session, settings, &skills).await?;
        let tools =
            self.tools(&session, settings, model, (&shield, &skills, sandbox.as_ref()), Asking::default());
        let sandbox = sandbox.as_deref();
        let parts = PromptParts { files: &files, skills: &skills, tools: &tools, sandbox, at: None };
        let (_, report) = self.system_prompt(None, &session, settings, first, parts);
        Ok(SystemPromptReport { source: ReportSource::Estimate, ..report })
    }
}
