//! A message whose run never began: it was said, so it is in the history.

use std::sync::Arc;

use openclaw_protocol::message::AssistantMessage;
use openclaw_sessions::transcript::{NewTranscript, TranscriptLock};

use super::branch::{Prompted, RunBranch};
use super::{Ending, NotBegun, Runner, done, result};
use crate::api::AbortReason;
use crate::inbox::{Parked, Row};
use crate::shared::Shared;

/// Writes the message of a stopped row into the transcript, unless it is there, and closes the row.
pub(super) async fn close(shared: &Shared, row: &Row<Parked>, reason: AbortReason) -> Ending {
    let kept = async { keep(shared, shared.inbox.load(row).await?, reason, None).await };
    let kept = tokio::select! { biased;
        () = shared.kill.cancelled() => return Ending::Interrupted,
        kept = kept => kept,
    };
    if let Err(NotBegun(message)) = kept {
        tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "a stopped message is not in the history");
    }
    done(shared, row, None, result::aborted(reason, None)).await
}

/// Makes a message part of the transcript, with what is said to it if anything is. `reason` keeps it from doing what it asks
/// for, such as a reset.
pub(super) async fn keep(
    shared: &Shared,
    row: Row,
    reason: AbortReason,
    answer: Option<AssistantMessage>,
) -> Result<(), NotBegun> {
    let row = Row { abort: Some(reason), ..row };
    shared.runner.keep_unanswered(shared, &row, answer).await
}

impl Runner {
    async fn keep_unanswered(
        &self,
        shared: &Shared,
        row: &Row,
        answer: Option<AssistantMessage>,
    ) -> Result<(), NotBegun> {
        let session = self.session(shared, row, &self.settings(), None).await?;
        session.note(shared, row).await?;
        let lock = TranscriptLock::acquire(&self.transcripts, &session.transcript).await?;
        let new = NewTranscript {
            session_id: session.id.as_str().to_owned(),
            cwd: session.agent.workspace.display().to_string(),
            parent: None,
        };
        let transcript = lock.reopen(self.kept.take(&session.transcript), new).await?;
        let mut branch =
            RunBranch::new(transcript, Vec::new(), Arc::default(), Arc::default(), shared.kill.clone());
        if let Prompted::NotYet(id) = branch.prompted(row, shared.inbox.entries_since(row).await).await? {
            branch.begin_turn().await?;
            branch.say(self.steered_message(row), &id).await?;
        }
        if let Some(answer) = answer {
            branch.answer(answer).await?;
        }
        branch.sync().await?;
        self.kept.put(branch.into_transcript());
        Ok(())
    }
}
