//! A message whose run never began: it was said, so it is in the history.

use std::sync::Arc;

use openclaw_protocol::message::{AssistantMessage, StopReason};
use openclaw_sessions::time::now_ms;
use openclaw_sessions::transcript::{NewTranscript, TranscriptLock};
use tokio_util::sync::CancellationToken;

use super::branch::{Prompted, RunBranch};
use super::prepare::circumstances;
use super::wording::{self, Circumstances};
use super::{Ending, NotBegun, RunControl, Runner, done, failed, result};
use crate::api::AbortReason;
use crate::inbox::{Queued, Row};

/// Writes the message of a stopped row into the transcript, unless it is there, and closes the row. What was said to the gateway
/// is nothing the agent should read.
pub(super) async fn close(
    runner: &Runner,
    row: &Row<Queued>,
    reason: AbortReason,
    control: &RunControl,
) -> Ending {
    if !row.payload.facts.wants.command && !record(runner, row, Why::Stopped(reason), control).await {
        return Ending::Interrupted;
    }
    done(runner, row, None, result::aborted(reason, None)).await
}

/// Writes the message of a row that could not begin into the transcript, with the error as its answer, and closes the row.
/// OpenClaw 2026.2.9 forgets the message: nobody could see later what was asked, nor could the agent. A heartbeat is nobody's
/// message, and would fill the conversation with its errors.
pub(super) async fn fail(
    runner: &Runner,
    row: &Row<Queued>,
    message: String,
    is_beat: bool,
    control: &RunControl,
) -> Ending {
    if !is_beat && !record(runner, row, Why::Failed(&message), control).await {
        return Ending::Interrupted;
    }
    failed(runner, row, message).await
}

/// Why a message has no answer of a model.
#[derive(Debug, Clone, Copy)]
pub(super) enum Why<'a> {
    /// It was stopped. What it begins with is done: a new conversation is one, of a stopped message or no message.
    Stopped(AbortReason),
    /// Its run could not begin. People are told this.
    Failed(&'a str),
    /// The process died of it too often. As stopped, and people are told this.
    GivenUp(&'a str),
}

impl Why<'_> {
    fn abort(self) -> Option<AbortReason> {
        match self {
            Self::Stopped(reason) => Some(reason),
            Self::Failed(_) => None,
            Self::GivenUp(_) => Some(AbortReason::Stop),
        }
    }

    /// What is said to the message.
    fn answer(self) -> Option<AssistantMessage> {
        match self {
            Self::Stopped(_) => None,
            Self::Failed(why) | Self::GivenUp(why) => Some(AssistantMessage {
                provider: "openclaw".to_owned(),
                stop_reason: StopReason::Error,
                error_message: Some(why.to_owned()),
                timestamp: now_ms(),
                ..AssistantMessage::default()
            }),
        }
    }
}

/// Writes a message into the transcript, and what is said to it if anything is, unless that is there. Waits for space and for a
/// transcript that another process has. `false`: the gateway stops, and the next start does it.
pub(super) async fn record(runner: &Runner, row: &Row<Queued>, why: Why<'_>, control: &RunControl) -> bool {
    loop {
        let recorded = async {
            let row = Row { abort: why.abort(), ..runner.load(row).await? };
            runner.record_unanswered(&row, why.answer(), &control.cancel).await
        };
        let recorded = tokio::select! { biased;
            () = runner.shared.kill.cancelled() => return false,
            recorded = recorded => recorded,
        };
        match recorded {
            Ok(()) => return true,
            Err(_) if runner.shared.kill.is_cancelled() => return false,
            Err(NotBegun { obstacle: Some(obstacle), .. }) => {
                if obstacle.gone(runner, row, control).await.is_err() {
                    return false;
                }
            }
            Err(NotBegun { message, .. }) => {
                tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "a message that was not answered is not in the history");
                return true;
            }
        }
    }
}

impl Runner {
    async fn record_unanswered(
        &self,
        row: &Row,
        answer: Option<AssistantMessage>,
        stop: &CancellationToken,
    ) -> Result<(), NotBegun> {
        let session = self.session(row, &self.settings(), None, stop).await?;
        session.note(&*self.shared.journal, row).await?;
        let is_bare_reset = session.reset.as_deref().is_some_and(|rest| rest.trim().is_empty());
        if is_bare_reset && answer.is_none() {
            // Nothing was said but that.
            return Ok(());
        }
        let lock = TranscriptLock::acquire_now(&self.deps.transcripts, &session.transcript).await?;
        let new = NewTranscript {
            session_id: session.id.as_str().to_owned(),
            cwd: session.agent.workspace.display().to_string(),
            parent: None,
        };
        let (kept, asked) = self.kept.take(&session.transcript).unzip();
        let transcript = lock.reopen(kept, new).await?;
        let context = match &answer {
            Some(_) => transcript.context().await?.messages,
            None => Vec::new(),
        };
        let mut branch = RunBranch::new(transcript, context, Arc::default(), self.shared.kill.clone());
        let (unsaid, answer) = match branch.prompted(row, self.entries_since(row).await).await? {
            Prompted::NotYet(id) => (Some(id), answer),
            // What is said to it has to follow it.
            Prompted::Overtaken(id) => (answer.is_some().then_some(id), answer),
            Prompted::Yes => (None, answer),
            Prompted::Failed(_) => (None, None),
        };
        if let Some(id) = unsaid {
            branch.begin_turn().await?;
            // That somebody stopped the run before is told to the next one.
            let circumstances = Circumstances { after_abort: false, ..circumstances(&session) };
            branch.say(wording::message(row, &circumstances), &id).await?;
        }
        if let Some(answer) = answer {
            branch.close_turn(answer).await?;
        }
        branch.sync().await?;
        self.kept.put(branch.into_transcript(), asked.unwrap_or_default());
        Ok(())
    }
}
