//! A message that is given up because the process died of it too often.

use openclaw_agent::RunEvent;
use openclaw_journal::inbox::{InboxRow, Queued};
use openclaw_journal::journal::{Journal, Update};
use tokio::sync::mpsc;

use super::attempt::GivenUp;
use super::unanswered::{Unanswered, UnansweredReason};
use crate::control::RunControl;
use crate::ending::{RunEnding, RunEnds};

/// Tells in the transcript, then finishes the row. That too is an attempt that is counted before it is made: should the process
/// die of the transcript, the row is finished without.
pub(super) async fn close(
    (unanswered, ends): (&Unanswered, &RunEnds),
    journal: &dyn Journal,
    row: &InboxRow<Queued>,
    given_up: GivenUp,
    control: &RunControl,
    events: &mpsc::Sender<RunEvent>,
) -> RunEnding {
    let GivenUp { deaths, may_record } = given_up;
    tracing::error!(run_id = %row.run_id, session = %row.session_key, deaths, "a message is given up: the gateway died each time it was worked on");
    let message = format!(
        "This message was given up: the gateway ended unexpectedly {deaths} times while it worked on it. \
         The gateway's log may tell why. Send it again when the cause is mended."
    );
    if may_record {
        if let Err(error) = journal.update(Update::Attempt(row.run_id.clone())).await {
            tracing::warn!(run_id = %row.run_id, %error, "an attempt could not be noted");
        }
        let recorded = unanswered.record(row, UnansweredReason::GivenUp(&message), control).await;
        return unanswered.end(row, recorded, message, events).await;
    }
    tracing::warn!(run_id = %row.run_id, session = %row.session_key, "a message that was given up is not in the history");
    ends.failed(row, message).await
}
