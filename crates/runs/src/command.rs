//! Messages for the gateway itself: done and answered without the agent (spec `messages.md` §4).
//!
//! The answer is stored like a run's (`docs/durability.md`): the request is carried out durably,
//! then the inbox records this with the answer, the answer is written into the transcript once,
//! under the message's own entry id, and only then is the message finished. A message from a chat
//! platform is answered there alone.

use std::sync::Arc;

use openclaw_agent::event::RunEvent;
use openclaw_channels::Button;
use openclaw_journal::api::{RunOutcome, RunRecord};
use openclaw_journal::delivery::Author;
use openclaw_journal::inbox::{InboxRow, Queued, RequestForm};
use openclaw_journal::intent::Intent;
use openclaw_journal::job::Job;
use openclaw_journal::journal::{Journal, Update};
use openclaw_journal::run_result::RunResult;
use openclaw_protocol::message::Message;
use openclaw_runtime::setup::LiveSettings;
use openclaw_runtime::surroundings::Surroundings;
use openclaw_sessions::transcript::Transcripts;
use openclaw_sessions::transcript::inject::injected;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::attempt::COMMAND_PATIENCE;
use super::compaction::Compactions;
use super::inject::{AnsweredIn, PutError, RunTranscript, TranscriptWords};
use super::rows::SessionRows;
use super::session::{RunSession, SessionOpener, transcript_of};
use super::skill_tool::{self, ToolCalls};
use crate::blocked::ObstacleWaits;
use crate::control::RunControl;
use crate::ending::{RunEnding, RunEnds};
use crate::not_begun::NotBegun;
use crate::said::FinalReplies;
use crate::unanswered::Unanswered;
use openclaw_commands::{CommandContext, CommandResponse, CommandServices, CommandSession, Then};

/// The gateway's own answer to a message.
#[derive(Debug)]
pub struct GatewayAnswer {
    /// Text of the answer; `None` if the sender may not give commands.
    pub message: Option<Box<Message>>,
    /// Rows of buttons below it.
    buttons: Vec<Vec<Button>>,
    /// Action to take once it is durable.
    then: Option<Then>,
    /// Place in the transcript; `None` if only the caller is told, and the conversation does not
    /// have it.
    place: Option<AnsweredIn>,
}

impl GatewayAnswer {
    /// Returns the part of the answer that clients hear.
    pub fn told(&self) -> Option<&Message> {
        self.message.as_deref().filter(|_| self.place.is_some())
    }
}

/// Parts for storing answers of the gateway itself.
pub(crate) struct AnswerStore {
    ends: Arc<RunEnds>,
    /// Services of the gateway; `None` if there is no gateway.
    surroundings: Option<Arc<dyn Surroundings>>,
}

impl AnswerStore {
    pub(crate) fn new(ends: Arc<RunEnds>, surroundings: Option<Arc<dyn Surroundings>>) -> Self {
        Self { ends, surroundings }
    }

    /// Stores in the inbox that a message is answered, with the answer, before anybody is told: a
    /// later choice is not overruled by doing it again after a crash.
    pub(crate) async fn store(
        &self,
        row: &InboxRow,
        answer: GatewayAnswer,
    ) -> Result<GatewayAnswer, NotBegun> {
        let record = self.ends.record(row, None, outcome(answer.message.as_deref()));
        let is_agents = matches!(row.payload.to_gateway(), Intent::Announcement);
        let author = if is_agents { Author::Other } else { Author::Gateway };
        let said = FinalReplies { buttons: answer.buttons.clone(), author, ..FinalReplies::default() };
        self.ends.answered(row, record, said).await?;
        if let (Some(Then::Restart), Some(around)) = (answer.then, &self.surroundings) {
            around.restart();
        }
        Ok(answer)
    }
}

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

    async fn answer_in_turn(
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

/// Parts for answering commands beside the run of their session.
pub struct AsideAnswers {
    settings: LiveSettings,
    services: Arc<CommandServices>,
    rows: Arc<SessionRows>,
    transcripts: Arc<dyn Transcripts>,
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
        transcripts: Arc<dyn Transcripts>,
        journal: Arc<dyn Journal>,
        answers: Arc<AnswerStore>,
        kill: CancellationToken,
    ) -> Self {
        Self { settings, services, rows, transcripts, journal, answers, kill }
    }

    /// Carries out a message's request while a run of its session is under way. Clients may be told the
    /// answer at once; it is written into the transcript by [`close`]. `overtaken` is cancelled once
    /// something else waits for it.
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
        let transcript = transcript_of(&*self.transcripts, &agent.id, key, &id, Some(&found.entry))?;
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

/// Parts for working on messages to the gateway itself.
pub struct GatewayCommands {
    answers: TurnAnswers,
    words: Arc<TranscriptWords>,
    ends: Arc<RunEnds>,
    waits: Arc<ObstacleWaits>,
    unanswered: Arc<Unanswered>,
    journal: Arc<dyn Journal>,
    /// Cancelled when runs stop where they are.
    kill: CancellationToken,
}

impl GatewayCommands {
    pub(crate) fn new(
        answers: TurnAnswers,
        words: Arc<TranscriptWords>,
        ends: Arc<RunEnds>,
        waits: Arc<ObstacleWaits>,
        unanswered: Arc<Unanswered>,
        journal: Arc<dyn Journal>,
        kill: CancellationToken,
    ) -> Self {
        Self { answers, words, ends, waits, unanswered, journal, kill }
    }

    /// Answers a message at its turn.
    pub(super) async fn work(
        &self,
        job: &Job,
        row: &InboxRow,
        control: &RunControl,
        refusal: Option<String>,
        events: &mpsc::Sender<RunEvent>,
    ) -> RunEnding {
        let mut answer = None;
        loop {
            let answering = async {
                job.gate.cancelled().await;
                if answer.is_none() {
                    answer = Some(self.answers.answer_in_turn(row, control, refusal.clone(), events).await?);
                }
                let Some(answer) = &answer else { return Ok((None, None)) };
                self.keep_answer(row, answer, None).await?;
                Ok::<_, NotBegun>((answer.message.clone(), answer.told().cloned().map(Box::new)))
            };
            let answering =
                control.attempt.within(COMMAND_PATIENCE, &*self.journal, &job.row, Box::pin(answering));
            let answered = tokio::select! { biased;
                () = self.kill.cancelled() => return RunEnding::Interrupted,
                answered = answering => answered,
            };
            match answered {
                Ok((message, told)) => {
                    return RunEnding::Answered(self.finished(row, message.as_deref()).await, told);
                }
                Err(_) if self.kill.is_cancelled() => return RunEnding::Interrupted,
                Err(NotBegun { obstacle: Some(obstacle), .. }) => {
                    // An answer that its reader was told is not taken back by a stop: it is written
                    // down.
                    let passed = match &answer {
                        Some(_) => self.waits.gone(&obstacle, &job.row, control).await,
                        None => self.unanswered.passed(&obstacle, &job.row, control).await,
                    };
                    if let Err(ending) = passed {
                        return ending;
                    }
                }
                Err(NotBegun { message, .. }) => {
                    tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "a command failed");
                    return self.ends.done(row, None, RunOutcome::Error { message, result: None }).await;
                }
            }
        }
    }

    /// Writes an answer that was told into the transcript, between two entries of the run under way, and finishes its message.
    /// Waits for space and for a transcript that another process has. Nothing when the gateway stops before: then the next start
    /// does it.
    pub async fn close<P: RequestForm>(
        &self,
        row: &InboxRow<P>,
        answer: &GatewayAnswer,
        run: Option<RunTranscript>,
    ) -> Option<RunRecord> {
        let control = RunControl::default();
        loop {
            let kept = tokio::select! { biased;
                () = self.kill.cancelled() => return None,
                kept = self.keep_answer(row, answer, run.clone()) => kept,
            };
            match kept {
                Ok(()) => break,
                Err(NotBegun { obstacle: Some(obstacle), .. }) => {
                    self.waits.gone(&obstacle, row, &control).await.ok()?;
                }
                Err(NotBegun { message, .. }) => {
                    tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "an answer is not in the history");
                    break;
                }
            }
        }
        Some(self.finished(row, answer.message.as_deref()).await)
    }

    /// Finishes a message that was answered.
    async fn finished<P: RequestForm>(&self, row: &InboxRow<P>, said: Option<&Message>) -> RunRecord {
        let record = self.ends.record(row, None, outcome(said));
        // The answer was told when it was made.
        self.ends.finish(row, &record, FinalReplies::nothing()).await;
        record
    }

    /// Makes the answer part of the transcript if it belongs there, unless it is there from before a crash.
    async fn keep_answer<P: Sync>(
        &self,
        row: &InboxRow<P>,
        answer: &GatewayAnswer,
        run: Option<RunTranscript>,
    ) -> Result<(), NotBegun> {
        let (Some(message), Some(place)) = (&answer.message, &answer.place) else { return Ok(()) };
        self.words.put_once(row, place, message, run).await.map_err(|error| match error {
            PutError::Lock(error) => error.into(),
            PutError::Transcript(error) => error.into(),
            error @ PutError::Read(_) => error.into(),
        })
    }
}

/// Outcome that is recorded for an answered command.
pub fn outcome(said: Option<&Message>) -> RunOutcome {
    let text = said.and_then(|said| match said {
        Message::Assistant(said) => Some(said.text()),
        Message::User(_) | Message::ToolResult(_) => None,
    });
    RunOutcome::Ok { result: RunResult::of_command(text.as_deref()) }
}

/// True if a message ended with such an answer: a run has fields in its `meta`.
pub fn is_answer(outcome: &RunOutcome) -> bool {
    matches!(outcome, RunOutcome::Ok { result } if result.is_of_command())
}

/// True if a message is answered at once although a run of its session is under way. False for
/// one that starts a new conversation: it takes the run's place.
pub async fn is_aside(rows: &SessionRows, row: &InboxRow<Queued>) -> bool {
    let wants = row.payload.facts.wants;
    wants.is_light()
        && !wants.compaction
        && !wants.reset
        && rows.entry_or_none(&row.session_key).await.is_some_and(|entry| entry.session_id.is_some())
}

/// Carries out the message and returns the answer; `None` if the sender may not give commands.
async fn answer(context: &CommandContext<'_>, row: &InboxRow) -> Result<Option<CommandResponse>, NotBegun> {
    match row.payload.to_gateway() {
        Intent::Command { name, arguments } => {
            Ok(Some(openclaw_commands::run(context, name, arguments).await?))
        }
        Intent::Settings { wishes } => Ok(Some(openclaw_commands::settle(context, wishes).await?.into())),
        Intent::Announcement => Ok(Some(row.payload.text.clone().into())),
        Intent::Prompt
        | Intent::PromptFor { .. }
        | Intent::Stripped { .. }
        | Intent::Reworded { .. }
        | Intent::Tool(_)
        | Intent::Ignored => Ok(None),
    }
}

/// Builds the answer. Its time is that of acceptance: the same after a restart.
fn answer_of(row: &InboxRow, response: Option<CommandResponse>, place: AnsweredIn) -> GatewayAnswer {
    let place = Some(place).filter(|_| is_kept(row));
    let Some(CommandResponse { text, buttons, then }) = response else {
        return GatewayAnswer { message: None, buttons: Vec::new(), then: None, place };
    };
    let mut message = injected(&text, None, row.accepted_at);
    if let Message::Assistant(said) = &mut message {
        match row.payload.source.provenance() {
            Some(provenance) => said.extra.insert("provenance".to_owned(), json!(provenance)),
            // Ours: a page that is loaded later shows what was asked beside the answer. The command itself is no entry, as in OpenClaw 2026.2.9.
            None => said.extra.insert("command".to_owned(), json!(row.payload.text)),
        };
    }
    GatewayAnswer { message: Some(Box::new(message)), buttons, then, place }
}

/// True if the conversation has the answer: OpenClaw 2026.2.9 keeps the gateway's answers to a
/// client, and none of those on a chat platform. The announcement of a sub-agent is kept for the
/// agent wherever it is told.
fn is_kept(row: &InboxRow) -> bool {
    row.payload.source.origin().is_none() || matches!(row.payload.to_gateway(), Intent::Announcement)
}
