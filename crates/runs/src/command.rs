//! Messages for the gateway itself: done and answered without the agent (spec `messages.md` §4).
//!
//! The answer is stored like a run's (`docs/durability.md`): the request is carried out durably,
//! then the inbox records this with the answer, the answer is written into the transcript once,
//! under the message's own entry id, and only then is the message finished. A message from a chat
//! platform is answered there alone.

mod aside;
mod in_turn;
mod store;

use std::sync::Arc;

use openclaw_agent::event::RunEvent;
use openclaw_channels::Button;
use openclaw_journal::api::{RunOutcome, RunRecord};
use openclaw_journal::inbox::{InboxRow, Queued, RequestForm};
use openclaw_journal::intent::Intent;
use openclaw_journal::job::Job;
use openclaw_journal::journal::Journal;
use openclaw_journal::run_result::RunResult;
use openclaw_protocol::message::Message;
use openclaw_sessions::transcript::inject::injected;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::attempt::COMMAND_PATIENCE;
use super::inject::{AnsweredIn, PutError, RunTranscript, TranscriptWords};
use super::rows::SessionRows;
use crate::blocked::ObstacleWaits;
use crate::control::RunControl;
use crate::ending::{RunEnding, RunEnds};
use crate::not_begun::NotBegun;
use crate::said::FinalReplies;
use crate::unanswered::Unanswered;
use openclaw_commands::{CommandContext, CommandResponse, Then};

pub use aside::AsideAnswers;
pub(crate) use in_turn::TurnAnswers;
pub(crate) use store::AnswerStore;

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
