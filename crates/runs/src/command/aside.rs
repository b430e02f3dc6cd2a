//! Answers to commands beside the run of their session.

use std::sync::Arc;

use openclaw_commands::{CommandContext, CommandServices, CommandSession};
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::journal::{Journal, Update};
use openclaw_runtime::setup::LiveSettings;
use openclaw_sessions::transcript::Transcripts;
use tokio_util::sync::CancellationToken;

use super::{AnswerStore, GatewayAnswer, answer, answer_of};
use crate::inject::AnsweredIn;
use crate::not_begun::NotBegun;
use crate::rows::SessionRows;
use crate::session::transcript_of;

/// Parts for answering commands beside the run of their session.
pub struct AsideAnswers {
    settings: LiveSettings,
    services: Arc<CommandServices>,
    rows: Arc<SessionRows>,
    transcripts: Transcripts,
    journal: Arc<dyn Journal>,
    answers: Arc<AnswerStore>,
    /// Cancelled when runs stop where they are.
    kill: CancellationToken,
}

impl AsideAnswers {
    pub(crate) fn new(
        settings: LiveSettings,
        services: Arc<CommandServices>,
        rows: Arc<SessionRows>,
        transcripts: Transcripts,
        journal: Arc<dyn Journal>,
        answers: Arc<AnswerStore>,
        kill: CancellationToken,
    ) -> Self {
        Self { settings, services, rows, transcripts, journal, answers, kill }
    }

    /// Carries out a message's request while a run of its session is under way. Clients may be told
    /// the answer at once; [`GatewayCommands::close`](super::GatewayCommands::close) writes it into
    /// the transcript. `overtaken` is cancelled once something else waits for it.
    pub async fn answer_aside(&self, row: &InboxRow, overtaken: &CancellationToken) -> Option<GatewayAnswer> {
        match self.answer_beside_run(row, overtaken).await {
            Ok(answer) => answer,
            Err(NotBegun { message, .. }) => {
                tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "a command has to wait");
                None
            }
        }
    }

    async fn answer_beside_run(
        &self,
        row: &InboxRow,
        overtaken: &CancellationToken,
    ) -> Result<Option<GatewayAnswer>, NotBegun> {
        let settings = self.settings.now();
        let key = &row.session_key;
        let agent = settings.config.agent(&key.agent_or(&settings.sessions.default_agent()));
        let Some(found) = self.rows.get(key).await? else { return Ok(None) };
        let Some(id) = found.entry.session_id.clone() else { return Ok(None) };
        // The place where the run has it, which looks at the disk too.
        let transcript = transcript_of(&self.transcripts, &agent.id, key, &id, Some(&found.entry))?;
        self.journal.update(Update::Begin(row.run_id.clone(), id.clone())).await?;
        let context = self.services.context(
            CommandSession { settings: &settings, key, agent: &agent, entry: &found.entry },
            row,
            &self.kill,
        );
        let context = CommandContext { overtaken: Some(overtaken), ..context };
        let response = answer(&context, row).await?;
        let place = AnsweredIn::new(transcript, &id, &agent.workspace);
        self.answers.store(row, answer_of(row, response, place)).await.map(Some)
    }
}
