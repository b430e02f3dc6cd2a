//! Answers to messages for the gateway itself in their turn.

use std::sync::Arc;

use openclaw_agent::event::RunEvent;
use openclaw_commands::{CommandContext, CommandResponse, CommandServices, CommandSession};
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::intent::Intent;
use openclaw_journal::journal::Journal;
use openclaw_runtime::setup::LiveSettings;
use tokio::sync::mpsc;

use super::{AnswerStore, GatewayAnswer, answer, answer_of};
use crate::compaction::Compactions;
use crate::control::RunControl;
use crate::inject::AnsweredIn;
use crate::not_begun::NotBegun;
use crate::session::{RunSession, SessionOpener};
use crate::skill_tool::{self, ToolCalls};

/// Parts for answering messages to the gateway itself in their turn.
pub(crate) struct TurnAnswers {
    settings: LiveSettings,
    services: Arc<CommandServices>,
    sessions: Arc<SessionOpener>,
    journal: Arc<dyn Journal>,
    compactions: Compactions,
    tool_calls: ToolCalls,
    answers: Arc<AnswerStore>,
}

impl TurnAnswers {
    pub(crate) fn new(
        settings: LiveSettings,
        services: Arc<CommandServices>,
        sessions: Arc<SessionOpener>,
        journal: Arc<dyn Journal>,
        compactions: Compactions,
        tool_calls: ToolCalls,
        answers: Arc<AnswerStore>,
    ) -> Self {
        Self { settings, services, sessions, journal, compactions, tool_calls, answers }
    }

    pub(super) async fn answer_in_turn(
        &self,
        row: &InboxRow,
        control: &RunControl,
        refusal: Option<String>,
        events: &mpsc::Sender<RunEvent>,
    ) -> Result<GatewayAnswer, NotBegun> {
        let settings = self.settings.now();
        let session = self.sessions.session(row, &settings, None, &control.cancel).await?;
        // Noted before the tool is called: what was begun once is not done again.
        let was_begun = row.recovered && row.session_id.is_some();
        session.note(&*self.journal, row).await?;
        let RunSession { key, agent, entry, id, transcript, .. } = &session;
        let place = AnsweredIn::new(transcript.clone(), id, &agent.workspace);
        if let Some(record) = &row.answered {
            let text = record.outcome.result().and_then(|result| result.texts().next());
            return Ok(answer_of(row, text.map(CommandResponse::from), place));
        }
        let context = self.services.context(
            CommandSession { settings: &settings, key, agent, entry },
            row,
            &control.cancel,
        );
        let context = CommandContext { was_begun, overtaken: Some(&control.overtaken), ..context };
        let response = match (refusal, row.payload.to_gateway()) {
            (Some(refusal), _) => Some(refusal.into()),
            (None, Intent::Command { arguments, .. }) if row.payload.compacts() => {
                let cancel = control.cancel.clone();
                let asked = (arguments.as_str(), row.payload.conversation());
                Some(Box::pin(self.compactions.compact_now(&session, &settings, asked, cancel)).await?.into())
            }
            (None, Intent::Tool(_)) if was_begun => Some(skill_tool::INTERRUPTED.into()),
            (None, Intent::Tool(wish)) => Some(
                Box::pin(self.tool_calls.call_tool(row, &context, &session, wish, control, events))
                    .await?
                    .into(),
            ),
            (None, _) => answer(&context, row).await?,
        };
        self.answers.store(row, answer_of(row, response, place)).await
    }
}
