//! What a person says to the gateway itself: done and answered without the agent (spec `messages.md` §4).
//!
//! The answer is stored like a run's (`docs/durability.md`): what was wished for is done durably, then the inbox says so with the
//! answer, the answer is written into the transcript once, under the message's own entry id, and only then is the message
//! finished. What was said on a chat platform is answered there alone.

use std::path::Path;
use std::sync::Arc;

use openclaw_agent::event::RunEvent;
use openclaw_channels::Button;
use openclaw_config::ResolvedAgent;
use openclaw_protocol::SessionId;
use openclaw_protocol::message::Message;
use openclaw_sessions::transcript::inject::injected;
use openclaw_sessions::transcript::{NewTranscript, TranscriptRef};
use openclaw_sessions::{SessionEntry, SessionKey};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::attempt::COMMAND_PATIENCE;
use super::inject::{PutError, RunTranscript};
use super::replies::Said;
use super::session::Session;
use super::{Ending, NotBegun, RunControl, Runner, done, finish, record, skill_tool};
use crate::api::{RunOutcome, RunRecord};
use crate::commands::{self, Context, Intent, Response, Then};
use crate::inbox::{Asked, Queued, Row};
use crate::job::Job;
use crate::journal::Update;
use crate::session_model::RequestedModel;
use crate::setup::Settings;

/// Where a message's words go.
pub(super) enum Route {
    /// To the agent.
    Agent(Option<RequestedModel>),
    /// Nowhere: the gateway does what the message says, and answers; or says why that can't be granted.
    Gateway { refusal: Option<String> },
}

/// The gateway's own answer to a message.
#[derive(Debug)]
pub(crate) struct Answer {
    /// What it says; `None` if the sender may not give commands.
    pub(crate) message: Option<Box<Message>>,
    /// Rows of buttons below it.
    buttons: Vec<Vec<Button>>,
    /// What follows once it is durable.
    then: Option<Then>,
    /// `None`: only who asked is told, and the conversation does not have it.
    place: Option<AnsweredIn>,
}

impl Answer {
    /// What clients hear of it.
    pub(crate) fn told(&self) -> Option<&Message> {
        self.message.as_deref().filter(|_| self.place.is_some())
    }
}

/// The transcript an answer goes into.
#[derive(Debug)]
pub(super) struct AnsweredIn {
    pub(super) transcript: TranscriptRef,
    /// For one that has to be made.
    pub(super) new: NewTranscript,
}

impl AnsweredIn {
    pub(super) fn new(transcript: TranscriptRef, id: &SessionId, workspace: &Path) -> Self {
        let (session_id, cwd) = (id.to_string(), workspace.display().to_string());
        Self { transcript, new: NewTranscript { session_id, cwd, parent: None } }
    }
}

/// Answers a message whose turn it is.
pub(super) async fn work(
    runner: &Runner,
    job: &Job,
    row: &Row,
    control: &RunControl,
    refusal: Option<String>,
    events: &mpsc::Sender<RunEvent>,
) -> Ending {
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
        let answering = control.attempt.within(COMMAND_PATIENCE, runner, &job.row, Box::pin(answering));
        let answered = tokio::select! { biased;
            () = runner.shared.kill.cancelled() => return Ending::Interrupted,
            answered = answering => answered,
        };
        match answered {
            Ok((message, told)) => {
                return Ending::Answered(finished(runner, row, message.as_deref()).await, told);
            }
            Err(_) if runner.shared.kill.is_cancelled() => return Ending::Interrupted,
            Err(NotBegun { obstacle: Some(obstacle), .. }) => {
                // What its reader was told is not taken back by a stop: it is written down.
                let passed = match &answer {
                    Some(_) => obstacle.gone(runner, &job.row, control).await,
                    None => obstacle.passed(runner, &job.row, control).await,
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

/// Does what a message asks for while a run of its session is under way. Clients may be told the answer at once; it is
/// written into the transcript by [`close`]. `overtaken` is cancelled once something else waits for it.
pub(crate) async fn answer_aside(
    runner: &Runner,
    row: &Row,
    overtaken: &CancellationToken,
) -> Option<Answer> {
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
pub(crate) async fn close<P: Asked>(
    runner: &Runner,
    row: &Row<P>,
    answer: &Answer,
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
                obstacle.gone(runner, row, &control).await.ok()?;
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
async fn finished<P: Asked>(runner: &Runner, row: &Row<P>, said: Option<&Message>) -> RunRecord {
    let record = record(runner, row, None, outcome(said));
    // That was told when it was answered.
    finish(runner, row, &record, Said::nothing()).await;
    record
}

/// What is remembered of an answered command.
pub(crate) fn outcome(said: Option<&Message>) -> RunOutcome {
    let text = said.and_then(|said| match said {
        Message::Assistant(said) => Some(said.text()),
        Message::User(_) | Message::ToolResult(_) => None,
    });
    let payloads: Vec<_> = text.into_iter().map(|text| json!({"text": text, "mediaUrl": null})).collect();
    RunOutcome::Ok { result: json!({"payloads": payloads, "meta": {}}) }
}

/// Whether a message ended with such an answer: a run says in its `meta` what it was.
pub(crate) fn is_answer(outcome: &RunOutcome) -> bool {
    let meta = match outcome {
        RunOutcome::Ok { result } => result.get("meta").and_then(Value::as_object),
        RunOutcome::Error { .. } | RunOutcome::Aborted { .. } => None,
    };
    meta.is_some_and(Map::is_empty) && text_of(outcome).is_some()
}

/// What such a command said.
fn text_of(outcome: &RunOutcome) -> Option<String> {
    match outcome {
        RunOutcome::Ok { result } => Some(result.pointer("/payloads/0/text")?.as_str()?.to_owned()),
        RunOutcome::Error { .. } | RunOutcome::Aborted { .. } => None,
    }
}

impl Runner {
    /// Whether a message is answered at once although a run of its session is under way. One that starts a conversation
    /// anew is not: it takes the run's place.
    pub(crate) async fn is_aside(&self, row: &Row<Queued>) -> bool {
        let wants = row.payload.facts.wants;
        wants.is_light()
            && !wants.compaction
            && !wants.reset
            && self.entry_or_none(&row.session_key).await.is_some_and(|entry| entry.session_id.is_some())
    }

    /// Where the words of a message go. Reads what models there are where it asks for one.
    pub(super) async fn route(&self, row: &Row) -> Route {
        let asked = match row.payload.to_gateway() {
            // Done already, whatever the settings say by now.
            _ if row.answered.is_some() => return Route::Gateway { refusal: None },
            Intent::Prompt | Intent::Stripped { .. } | Intent::Reworded { .. } => {
                return Route::Agent(self.model_of_beat(row).await);
            }
            Intent::Command { .. }
            | Intent::Settings { .. }
            | Intent::Ignored
            | Intent::Announcement
            | Intent::Tool(_) => return Route::Gateway { refusal: None },
            Intent::PromptFor { hints, .. } => match &hints.model {
                Some(choice) => choice,
                None => return Route::Agent(None),
            },
        };
        let settings = self.settings();
        let key = &row.session_key;
        let agent = settings.config.agent(&key.agent_or(&settings.sessions.default_agent()));
        let choices = self.models.all.choices(&settings.models, &agent.id, &agent.agent_dir).await;
        match commands::model::choose(&self.models.all, &choices, &agent, asked).await {
            Ok(chosen) => {
                Route::Agent(Some(RequestedModel { model: chosen.model, profile: asked.profile.clone() }))
            }
            Err(refusal) => Route::Gateway { refusal: Some(refusal) },
        }
    }

    /// The model that is configured for a heartbeat. One that there is not is said in the log: the session's own is used.
    async fn model_of_beat(&self, row: &Row) -> Option<RequestedModel> {
        let asked = row.payload.beat.as_ref()?.model.as_deref()?;
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
        row: &Row,
        control: &RunControl,
        refusal: Option<String>,
        events: &mpsc::Sender<RunEvent>,
    ) -> Result<Answer, NotBegun> {
        let settings = self.settings();
        let session = self.session(row, &settings, None, &control.cancel).await?;
        // Noted before the tool is called: what was begun once is not done again.
        let was_begun = row.recovered && row.session_id.is_some();
        session.note(&*self.shared.journal, row).await?;
        let Session { key, agent, entry, id, transcript, .. } = &session;
        let place = AnsweredIn::new(transcript.clone(), id, &agent.workspace);
        if let Some(record) = &row.answered {
            return Ok(answer_of(row, text_of(&record.outcome).map(Response::from), place));
        }
        let context = self.context(&settings, key, agent, entry, row, &control.cancel);
        let context = Context { was_begun, overtaken: Some(&control.overtaken), ..context };
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
        row: &Row,
        overtaken: &CancellationToken,
    ) -> Result<Option<Answer>, NotBegun> {
        let settings = self.settings();
        let key = &row.session_key;
        let agent = settings.config.agent(&key.agent_or(&settings.sessions.default_agent()));
        let Some(found) = self.deps.store.get(key).await? else { return Ok(None) };
        let Some(id) = found.entry.session_id.clone() else { return Ok(None) };
        // Where the run has it, which looks at the disk too.
        let transcript = self.transcript_of(&agent.id, key, &id, Some(&found.entry))?;
        self.shared.journal.update(Update::Begin(row.run_id.clone(), id.clone())).await?;
        let context = self.context(&settings, key, &agent, &found.entry, row, &self.shared.kill);
        let context = Context { overtaken: Some(overtaken), ..context };
        let response = self.answer(&context, row).await?;
        let place = AnsweredIn::new(transcript, &id, &agent.workspace);
        self.answered(row, answer_of(row, response, place)).await.map(Some)
    }

    /// What a command works on.
    pub(crate) fn context<'a>(
        &'a self,
        settings: &'a Arc<Settings>,
        key: &'a SessionKey,
        agent: &'a ResolvedAgent,
        entry: &'a SessionEntry,
        row: &'a Row,
        stop: &'a CancellationToken,
    ) -> Context<'a> {
        Context {
            models: &self.models,
            runner: self,
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

    /// Makes the inbox say that a message is answered, and how, before anybody is told: what comes later is not overruled by
    /// doing it again after a crash.
    async fn answered(&self, row: &Row, answer: Answer) -> Result<Answer, NotBegun> {
        let record = record(self, row, None, outcome(answer.message.as_deref()));
        let said = Said { buttons: answer.buttons.clone(), ..Said::default() };
        let replies = self.replies(row, &record, said).await;
        let is_told = !replies.is_empty();
        self.shared.journal.update(Update::Answered(record, replies)).await?;
        if is_told {
            self.shared.outbox.wake();
        }
        self.no_longer_acknowledged(row).await;
        if let (Some(Then::Restart), Some(around)) = (answer.then, &self.deps.surroundings) {
            around.restart();
        }
        Ok(answer)
    }

    /// Does what was said and tells what came of it; `None` if the sender may not give commands.
    async fn answer(&self, context: &Context<'_>, row: &Row) -> Result<Option<Response>, NotBegun> {
        match row.payload.to_gateway() {
            Intent::Command { name, arguments } => Ok(Some(commands::run(context, name, arguments).await?)),
            Intent::Settings { wishes } => Ok(Some(commands::settle(context, wishes).await?.into())),
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
        row: &Row<P>,
        answer: &Answer,
        run: Option<RunTranscript>,
    ) -> Result<(), NotBegun> {
        let (Some(message), Some(place)) = (&answer.message, &answer.place) else { return Ok(()) };
        self.put_once(row, place, message, run).await.map_err(|error| match error {
            PutError::Lock(error) => error.into(),
            error => error.into(),
        })
    }
}

/// The time is that of acceptance: the same after a restart.
fn answer_of(row: &Row, response: Option<Response>, place: AnsweredIn) -> Answer {
    let place = Some(place).filter(|_| is_kept(row));
    let Some(Response { text, buttons, then }) = response else {
        return Answer { message: None, buttons: Vec::new(), then: None, place };
    };
    let mut message = injected(&text, None, row.accepted_at);
    if let (Message::Assistant(said), Some(provenance)) = (&mut message, &row.payload.provenance) {
        said.extra.insert("provenance".to_owned(), json!(provenance));
    }
    Answer { message: Some(Box::new(message)), buttons, then, place }
}

/// Whether the conversation has the answer: OpenClaw 2026.2.9 keeps what the gateway says at a client, and nothing of what it says on a chat
/// platform. What a sub-agent is announced with is the agent's to know, wherever that is told.
fn is_kept(row: &Row) -> bool {
    row.payload.origin.is_none() || matches!(row.payload.to_gateway(), Intent::Announcement)
}
