//! A message whose run never began: it was said, so it is in the history.

use std::sync::Arc;

use openclaw_protocol::message::AssistantMessage;
use openclaw_sessions::transcript::{NewTranscript, TranscriptLock};

use super::branch::{Prompted, RunBranch};
use super::{Ending, NotBegun, RunControl, Runner, done, result};
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
    if !row.payload.facts.wants.command && !record(runner, row, reason, None, control).await {
        return Ending::Interrupted;
    }
    done(runner, row, None, result::aborted(reason, None)).await
}

/// Writes a message into the transcript, and what is said to it if anything is, unless that is there. Waits for space and for a
/// transcript that another process has. `reason` keeps it from doing what it asks for, such as a reset. `false`: the gateway
/// stops, and the next start does it.
pub(super) async fn record(
    runner: &Runner,
    row: &Row<Queued>,
    reason: AbortReason,
    answer: Option<AssistantMessage>,
    control: &RunControl,
) -> bool {
    loop {
        let recorded = async {
            let row = Row { abort: Some(reason), ..runner.load(row).await? };
            runner.record_unanswered(&row, answer.clone()).await
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
    async fn record_unanswered(&self, row: &Row, answer: Option<AssistantMessage>) -> Result<(), NotBegun> {
        let session = self.session(row, &self.settings(), None).await?;
        session.note(&*self.shared.journal, row).await?;
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
            branch.say(self.steered_message(row), &id).await?;
        }
        if let Some(answer) = answer {
            branch.close_turn(answer).await?;
        }
        branch.sync().await?;
        self.kept.put(branch.into_transcript(), asked.unwrap_or_default());
        Ok(())
    }
}
