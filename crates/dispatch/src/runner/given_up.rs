//! A message that is given up because the process died of it too often.

use openclaw_protocol::message::{AssistantMessage, StopReason};
use openclaw_sessions::time::now_ms;

use super::{Ending, NotBegun, finish, record, unanswered};
use crate::api::{AbortReason, RunOutcome};
use crate::inbox::{Parked, Row};
use crate::shared::Shared;

/// Finishes the row, then tells in the transcript. In this order: should the transcript be what the process dies of, that was
/// the last time.
pub(super) async fn close(shared: &Shared, row: &Row<Parked>, deaths: u32) -> Ending {
    tracing::error!(run_id = %row.run_id, session = %row.session_key, deaths, "a message is given up: the gateway died each time it was worked on");
    let message = format!(
        "This message was given up: the gateway ended unexpectedly {deaths} times while it worked on it. \
         The gateway's log may tell why. Send it again when the cause is mended."
    );
    let answer = AssistantMessage {
        provider: "openclaw".to_owned(),
        stop_reason: StopReason::Error,
        error_message: Some(message.clone()),
        timestamp: now_ms(),
        ..AssistantMessage::default()
    };
    // Loaded with the payload, which goes when the row is finished.
    let loaded = shared.inbox.load(row).await;
    let record = record(shared, row, None, RunOutcome::Error { message, result: None });
    finish(shared, record.clone()).await;
    let kept = match loaded {
        Ok(row) => unanswered::keep(shared, row, AbortReason::Stop, Some(answer)).await,
        Err(error) => Err(NotBegun(error.to_string())),
    };
    if let Err(NotBegun(message)) = kept {
        tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "a message that was given up is not in the history");
    }
    Ending::Done(record)
}
