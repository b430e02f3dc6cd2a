//! Messages for the gateway itself: done and answered without the agent (spec `messages.md` §4).
//!
//! The answer is stored like a run's (`docs/durability.md`): the request is carried out durably,
//! then the inbox records this with the answer, the answer is written into the transcript once,
//! under the message's own entry id, and only then is the message finished. A message from a chat
//! platform is answered there alone.

use std::sync::Arc;

use openclaw_agent::event::RunEvent;
use openclaw_channels::Button;
use openclaw_config::ResolvedAgent;
use openclaw_journal::api::{RunOutcome, RunRecord};
use openclaw_journal::delivery::Author;
use openclaw_journal::inbox::{InboxRow, Queued, RequestForm};
use openclaw_journal::intent::Intent;
use openclaw_journal::job::Job;
use openclaw_journal::journal::Update;
use openclaw_journal::run_result::RunResult;
use openclaw_protocol::message::Message;
use openclaw_runtime::session_model::RequestedModel;
use openclaw_runtime::setup::Settings;
use openclaw_sessions::transcript::inject::injected;
use openclaw_sessions::{SessionEntry, SessionKey};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::attempt::COMMAND_PATIENCE;
use super::inject::{AnsweredIn, PutError, RunTranscript};
use super::session::RunSession;
use super::skill_tool;
use crate::blocked;
use crate::control::RunControl;
use crate::ending::RunEnding;
use crate::ending::finish;
use crate::ending::{done, record};
use crate::not_begun::NotBegun;
use crate::runner::Runner;
use crate::said::FinalReplies;
use crate::unanswered::passed;
use openclaw_commands::{CommandContext, CommandResponse, Then};

/// Destination of a message's words.
pub(super) enum MessageRoute {
    /// Words for the agent.
    Agent(Option<RequestedModel>),
    /// Words for the gateway alone: it carries out the request and answers, or tells why that can't
    /// be granted.
    Gateway { refusal: Option<String> },
}

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

/// Answers a message at its turn.
pub(super) async fn work(
    runner: &Runner,
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
                answer = Some(runner.answer_in_turn(row, control, refusal.clone(), events).await?);
            }
            let Some(answer) = &answer else { return Ok((None, None)) };
            runner.keep_answer(row, answer, None).await?;
            Ok::<_, NotBegun>((answer.message.clone(), answer.told().cloned().map(Box::new)))
        };
        let answering =
            control.attempt.within(COMMAND_PATIENCE, &*runner.shared.journal, &job.row, Box::pin(answering));
        let answered = tokio::select! { biased;
            () = runner.shared.kill.cancelled() => return RunEnding::Interrupted,
            answered = answering => answered,
        };
        match answered {
            Ok((message, told)) => {
                return RunEnding::Answered(finished(runner, row, message.as_deref()).await, told);
            }
            Err(_) if runner.shared.kill.is_cancelled() => return RunEnding::Interrupted,
            Err(NotBegun { obstacle: Some(obstacle), .. }) => {
                // An answer that its reader was told is not taken back by a stop: it is written
                // down.
                let passed = match &answer {
                    Some(_) => blocked::gone(&obstacle, runner, &job.row, control).await,
                    None => passed(&obstacle, runner, &job.row, control).await,
                };
                if let Err(ending) = passed {
                    return ending;
                }
            }
            Err(NotBegun { message, .. }) => {
                tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "a command failed");
                return done(runner, row, None, RunOutcome::Error { message, result: None }).await;
            }
        }
    }
}

/// Carries out a message's request while a run of its session is under way. Clients may be told the
/// answer at once; it is written into the transcript by [`close`]. `overtaken` is cancelled once
/// something else waits for it.
pub async fn answer_aside(
    runner: &Runner,
    row: &InboxRow,
    overtaken: &CancellationToken,
) -> Option<GatewayAnswer> {
    match runner.answer_beside_run(row, overtaken).await {
        Ok(answer) => answer,
        Err(NotBegun { message, .. }) => {
            tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "a command has to wait");
            None
        }
    }
}

/// Writes an answer that was told into the transcript, between two entries of the run under way, and finishes its message.
/// Waits for space and for a transcript that another process has. Nothing when the gateway stops before: then the next start
/// does it.
pub async fn close<P: RequestForm>(
    runner: &Runner,
    row: &InboxRow<P>,
    answer: &GatewayAnswer,
    run: Option<RunTranscript>,
) -> Option<RunRecord> {
    let control = RunControl::default();
    loop {
        let kept = tokio::select! { biased;
            () = runner.shared.kill.cancelled() => return None,
            kept = runner.keep_answer(row, answer, run.clone()) => kept,
        };
        match kept {
            Ok(()) => break,
            Err(NotBegun { obstacle: Some(obstacle), .. }) => {
                blocked::gone(&obstacle, runner, row, &control).await.ok()?;
            }
            Err(NotBegun { message, .. }) => {
                tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "an answer is not in the history");
                break;
            }
        }
    }
    Some(finished(runner, row, answer.message.as_deref()).await)
}

/// Finishes a message that was answered.
async fn finished<P: RequestForm>(runner: &Runner, row: &InboxRow<P>, said: Option<&Message>) -> RunRecord {
    let record = record(runner, row, None, outcome(said));
    // The answer was told when it was made.
    finish(runner, row, &record, FinalReplies::nothing()).await;
    record
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

impl Runner {
    /// True if a message is answered at once although a run of its session is under way. False for
    /// one that starts a new conversation: it takes the run's place.
    pub async fn is_aside(&self, row: &InboxRow<Queued>) -> bool {
        let wants = row.payload.facts.wants;
        wants.is_light()
            && !wants.compaction
            && !wants.reset
            && self.entry_or_none(&row.session_key).await.is_some_and(|entry| entry.session_id.is_some())
    }

    /// Returns the destination of a message's words. Reads the available models if it asks for one.
    pub(super) async fn route(&self, row: &InboxRow) -> MessageRoute {
        let asked = match row.payload.to_gateway() {
            // Done already, whatever the settings say by now.
            _ if row.answered.is_some() => return MessageRoute::Gateway { refusal: None },
            Intent::Prompt | Intent::Stripped { .. } | Intent::Reworded { .. } => {
                return MessageRoute::Agent(self.model_of_beat(row).await);
            }
            Intent::Command { .. }
            | Intent::Settings { .. }
            | Intent::Ignored
            | Intent::Announcement
            | Intent::Tool(_) => return MessageRoute::Gateway { refusal: None },
            Intent::PromptFor { hints, .. } => match &hints.model {
                Some(choice) => choice,
                None => return MessageRoute::Agent(None),
            },
        };
        let settings = self.settings();
        let key = &row.session_key;
        let agent = settings.config.agent(&key.agent_or(&settings.sessions.default_agent()));
        let choices = self.models.all.choices(&settings.models, &agent.id, &agent.agent_dir).await;
        match openclaw_commands::model::choose(&self.models.all, &choices, &agent, asked).await {
            Ok(chosen) => MessageRoute::Agent(Some(RequestedModel {
                model: chosen.model,
                profile: asked.profile.clone(),
            })),
            Err(refusal) => MessageRoute::Gateway { refusal: Some(refusal) },
        }
    }

    /// Returns the model that is configured for a heartbeat. A model that does not exist is
    /// reported in the log, and the session's own is used.
    async fn model_of_beat(&self, row: &InboxRow) -> Option<RequestedModel> {
        let asked = row.payload.source.beat()?.model.as_deref()?;
        let settings = self.settings();
        let agent = settings.config.agent(&row.payload.agent_id.clone()?);
        let choices = self.models.all.choices(&settings.models, &agent.id, &agent.agent_dir).await;
        match choices.find(asked) {
            Ok(chosen) => Some(RequestedModel { model: chosen.model, profile: None }),
            Err(error) => {
                tracing::warn!(agent = %agent.id, model = asked, %error, "heartbeat.model can't be used; the session's own is");
                None
            }
        }
    }

    async fn answer_in_turn(
        &self,
        row: &InboxRow,
        control: &RunControl,
        refusal: Option<String>,
        events: &mpsc::Sender<RunEvent>,
    ) -> Result<GatewayAnswer, NotBegun> {
        let settings = self.settings();
        let session = self.session(row, &settings, None, &control.cancel).await?;
        // Noted before the tool is called: what was begun once is not done again.
        let was_begun = row.recovered && row.session_id.is_some();
        session.note(&*self.shared.journal, row).await?;
        let RunSession { key, agent, entry, id, transcript, .. } = &session;
        let place = AnsweredIn::new(transcript.clone(), id, &agent.workspace);
        if let Some(record) = &row.answered {
            let text = record.outcome.result().and_then(|result| result.texts().next());
            return Ok(answer_of(row, text.map(CommandResponse::from), place));
        }
        let context = self.context(&settings, key, agent, entry, row, &control.cancel);
        let context = CommandContext { was_begun, overtaken: Some(&control.overtaken), ..context };
        let response = match (refusal, row.payload.to_gateway()) {
            (Some(refusal), _) => Some(refusal.into()),
            (None, Intent::Command { arguments, .. }) if row.payload.compacts() => {
                let cancel = control.cancel.clone();
                let asked = (arguments.as_str(), row.payload.conversation());
                Some(Box::pin(self.compact_now(&session, &settings, asked, cancel)).await?.into())
            }
            (None, Intent::Tool(_)) if was_begun => Some(skill_tool::INTERRUPTED.into()),
            (None, Intent::Tool(wish)) => {
                Some(Box::pin(self.call_tool(row, &context, &session, wish, control, events)).await?.into())
            }
            (None, _) => self.answer(&context, row).await?,
        };
        self.answered(row, answer_of(row, response, place)).await
    }

    async fn answer_beside_run(
        &self,
        row: &InboxRow,
        overtaken: &CancellationToken,
    ) -> Result<Option<GatewayAnswer>, NotBegun> {
        let settings = self.settings();
        let key = &row.session_key;
        let agent = settings.config.agent(&key.agent_or(&settings.sessions.default_agent()));
        let Some(found) = self.deps.store.get(key).await? else { return Ok(None) };
        let Some(id) = found.entry.session_id.clone() else { return Ok(None) };
        // The place where the run has it, which looks at the disk too.
        let transcript = self.transcript_of(&agent.id, key, &id, Some(&found.entry))?;
        self.shared.journal.update(Update::Begin(row.run_id.clone(), id.clone())).await?;
        let context = self.context(&settings, key, &agent, &found.entry, row, &self.shared.kill);
        let context = CommandContext { overtaken: Some(overtaken), ..context };
        let response = self.answer(&context, row).await?;
        let place = AnsweredIn::new(transcript, &id, &agent.workspace);
        self.answered(row, answer_of(row, response, place)).await.map(Some)
    }

    /// Context that a command works in.
    pub fn context<'a>(
        &'a self,
        settings: &'a Arc<Settings>,
        key: &'a SessionKey,
        agent: &'a ResolvedAgent,
        entry: &'a SessionEntry,
        row: &'a InboxRow,
        stop: &'a CancellationToken,
    ) -> CommandContext<'a> {
        CommandContext {
            models: &self.models,
            deps: &self.deps,
            shared: &self.shared,
            host: self,
            settings,
            key,
            agent,
            entry,
            row,
            was_begun: false,
            stop,
            overtaken: None,
        }
    }

    /// Stores in the inbox that a message is answered, with the answer, before anybody is told: a
    /// later choice is not overruled by doing it again after a crash.
    async fn answered(&self, row: &InboxRow, answer: GatewayAnswer) -> Result<GatewayAnswer, NotBegun> {
        let record = record(self, row, None, outcome(answer.message.as_deref()));
        let is_agents = matches!(row.payload.to_gateway(), Intent::Announcement);
        let author = if is_agents { Author::Other } else { Author::Gateway };
        let said = FinalReplies { buttons: answer.buttons.clone(), author, ..FinalReplies::default() };
        let replies = self.replies(row, &record, said).await;
        self.shared.journal.update(Update::Answered(record, replies)).await?;
        self.no_longer_acknowledged(row).await;
        if let (Some(Then::Restart), Some(around)) = (answer.then, &self.deps.surroundings) {
            around.restart();
        }
        Ok(answer)
    }

    /// Carries out the message and returns the answer; `None` if the sender may not give commands.
    async fn answer(
        &self,
        context: &CommandContext<'_>,
        row: &InboxRow,
    ) -> Result<Option<CommandResponse>, NotBegun> {
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

    /// Makes the answer part of the transcript if it belongs there, unless it is there from before a crash.
    async fn keep_answer<P: Sync>(
        &self,
        row: &InboxRow<P>,
        answer: &GatewayAnswer,
        run: Option<RunTranscript>,
    ) -> Result<(), NotBegun> {
        let (Some(message), Some(place)) = (&answer.message, &answer.place) else { return Ok(()) };
        self.put_once(row, place, message, run).await.map_err(|error| match error {
            PutError::Lock(error) => error.into(),
            PutError::Transcript(error) => error.into(),
            error @ PutError::Read(_) => error.into(),
        })
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
