//! A message that was stopped before its run began: it was said, so it is in the history, and nobody answers it.

use std::sync::Arc;

use openclaw_sessions::transcript::{NewTranscript, Transcript, TranscriptLock};

use super::branch::{Prompted, RunBranch};
use super::{Ending, NotBegun, Runner, done, result};
use crate::api::AbortReason;
use crate::inbox::Row;
use crate::shared::Shared;

/// Writes the message of a stopped row into the transcript, unless it is there, and closes the row.
pub(super) async fn close(shared: &Shared, row: &Row, reason: AbortReason) -> Ending {
    let stopped = Row { abort: Some(reason), ..row.clone() };
    let kept = tokio::select! { biased;
        () = shared.kill.cancelled() => return Ending::Interrupted,
        kept = shared.runner.keep_unanswered(shared, &stopped) => kept,
    };
    if let Err(NotBegun(message)) = kept {
        tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "a stopped message is not in the history");
    }
    done(shared, row, None, result::aborted(reason, None)).await
}

impl Runner {
    async fn keep_unanswered(&self, shared: &Shared, row: &Row) -> Result<(), NotBegun> {
        let session = self.session(shared, row, &self.settings(), None).await?;
        session.note(shared, row).await?;
        let _lock = TranscriptLock::acquire(&session.path).await?;
        let new = NewTranscript {
            session_id: session.id.as_str().to_owned(),
            cwd: session.agent.workspace.display().to_string(),
            parent: None,
        };
        let kept = self.kept.take(&session.path);
        let transcript = Transcript::reopen(kept, session.path.clone(), new).await?;
        let mut branch =
            RunBranch::new(transcript, Vec::new(), Arc::default(), Arc::default(), shared.kill.clone());
        if let Prompted::NotYet(id) = branch.prompted(row).await? {
            branch.begin_turn().await?;
            branch.say(self.steered_message(row), &id).await?;
            branch.sync().await?;
        }
        self.kept.put(branch.into_transcript());
        Ok(())
    }
}
