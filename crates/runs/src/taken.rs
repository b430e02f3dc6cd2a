//! Messages that another run took into itself and answered.

use std::sync::Arc;

use openclaw_journal::api::RunOutcome;
use openclaw_journal::inbox::{AskedRecords, InboxRow, KnownRun};
use openclaw_journal::journal::{Journal, JournalError, Update};
use openclaw_protocol::RunId;
use openclaw_protocol::message::{Message, StopReason};

/// True if another run has already given the answer of a message: the message was steered into
/// that run, which has ended well, and a crash came before the message's own end was noted. If
/// that can't be known, the answer is given once more rather than never. A message whose answer
/// was not told counts as its own from now on.
pub(super) async fn is_told_by_another<P>(
    journal: &dyn Journal,
    row: &InboxRow<P>,
    context: &[Arc<Message>],
) -> bool {
    // In the process that took it the message ends with that run.
    if !row.recovered {
        return false;
    }
    let is_told = stands_in_anothers_turn(context, row.accepted_at)
        && has_been_told(journal, row).await.unwrap_or(false);
    if !is_told {
        own(journal, row).await;
    }
    is_told
}

async fn has_been_told<P>(journal: &dyn Journal, row: &InboxRow<P>) -> Result<bool, JournalError> {
    let records = journal.message_records(AskedRecords::Run(row.run_id.clone()), 1).await?;
    let Some(by) = records.into_iter().next().and_then(|record| record.taken_by) else {
        return Ok(false);
    };
    let known = journal.message(&by).await?;
    Ok(matches!(known, Some(KnownRun::Finished(record)) if matches!(record.outcome, RunOutcome::Ok { .. })))
}

/// Notes that the message has a run of its own: a crash parted it from the run that was about
/// to take it, or had taken it.
pub(super) async fn own<P>(journal: &dyn Journal, row: &InboxRow<P>) {
    takes_on(journal, row, vec![row.run_id.clone()]).await;
}

/// Notes that its run answers these messages, which it found in its turn or is about.
pub(super) async fn takes_on<P>(journal: &dyn Journal, row: &InboxRow<P>, runs: Vec<RunId>) {
    if runs.is_empty() {
        return;
    }
    let taken = Update::Taken { runs, by: row.run_id.clone() };
    if let Err(error) = journal.update(taken).await {
        tracing::warn!(run_id = %row.run_id, %error, "a message may be taken for one that another run has answered");
    }
}

/// True if a message was said before the messages ahead of it were answered. Behind an answer a
/// message begins a turn of its own, whichever run had read it: a start takes that run up to its
/// answer, and no further.
fn stands_in_anothers_turn(context: &[Arc<Message>], accepted_at: i64) -> bool {
    let is_it =
        |message: &Arc<Message>| matches!(&**message, Message::User(user) if user.timestamp == accepted_at);
    let Some(at) = context.iter().rposition(is_it) else { return false };
    match at.checked_sub(1).and_then(|before| context.get(before)).map(Arc::as_ref) {
        Some(Message::User(_) | Message::ToolResult(_)) => true,
        Some(Message::Assistant(answer)) => answer.stop_reason == StopReason::ToolUse,
        None => false,
    }
}
