//! Commands that stand among words for the agent, answered at once (spec `messages.md` §4): before
//! their message's own run, and beside any other run. On a chat platform the answer is a delivery
//! of its own, whose id keeps it from being sent twice; at a client it is an event, and an entry of
//! the transcript under an id of its own.

use std::sync::Arc;

use openclaw_journal::inbox::{InboxRow, Queued};
use openclaw_protocol::message::Message;
use openclaw_runtime::events::injected as injected_event;
use openclaw_sessions::transcript::EntryId;
use openclaw_sessions::transcript::inject::injected;
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use openclaw_runs::{Aside, NotBegun, Runner};

use super::{ChangeKind, LaneCommand, SessionChange, Supervisor};
use openclaw_commands::CommandResponse;

/// Begins to answer the shortcuts of a message once the returned value is dropped, which means that
/// the message is acknowledged. `gate` opens when they are answered, so that the message's run may
/// begin.
pub(crate) fn begin(
    runner: &Arc<Runner>,
    lanes: &Arc<Supervisor>,
    row: &Arc<InboxRow<Queued>>,
    gate: DropGuard,
) -> DropGuard {
    let acknowledged = CancellationToken::new();
    let is_acknowledged = acknowledged.clone().drop_guard();
    let (runner, lanes, row) = (Arc::clone(runner), Arc::clone(lanes), Arc::clone(row));
    let shared = Arc::clone(&runner.shared);
    shared.accepting.spawn(async move {
        // Opens however this ends.
        let _gate = gate;
        let answering = async {
            acknowledged.cancelled().await;
            answer(&runner, &lanes, &row).await;
        };
        tokio::select! { biased;
            () = runner.shared.kill.cancelled() => {}
            () = answering => {}
        }
    });
    is_acknowledged
}

async fn answer(runner: &Arc<Runner>, lanes: &Arc<Supervisor>, row: &InboxRow<Queued>) {
    let row = match runner.load(row).await {
        Ok(row) => row,
        Err(error) => {
            tracing::warn!(run_id = %row.run_id, %error, "a command among words was not answered");
            return;
        }
    };
    let Some(hints) = row.payload.to_gateway().hints() else { return };
    for (at, name) in hints.shortcuts.iter().enumerate() {
        match runner.shortcut(&row, name).await {
            Ok(response) => match row.payload.source.origin() {
                Some(origin) => {
                    let (id, CommandResponse { text, buttons, .. }) =
                        (format!("{}:i{}", row.run_id, at + 1), response);
                    runner.say_aside(&row.session_key, origin.into(), &id, Aside { text, buttons }).await;
                }
                None => tell_aside(runner, lanes, &row, at + 1, &response.text).await,
            },
            Err(NotBegun { message, .. }) => {
                tracing::warn!(run_id = %row.run_id, name, %message, "a command among words was not answered");
            }
        }
    }
}

/// Tells clients of an answer at once; it is written when the run under way, or the message's
/// own, leaves room for it.
async fn tell_aside(
    runner: &Arc<Runner>,
    lanes: &Arc<Supervisor>,
    row: &InboxRow,
    number: usize,
    text: &str,
) {
    let said = injected(text, None, row.accepted_at);
    let id = entry_id(row, number);
    let event = injected_event(&row.session_key, id.as_str(), &said);
    runner.shared.hub.publish(event).await;
    let (runner, lanes, row) = (Arc::clone(runner), Arc::clone(lanes), row.clone());
    let shared = Arc::clone(&runner.shared);
    shared.accepting.spawn(async move {
        tokio::select! { biased;
            () = runner.shared.kill.cancelled() => {}
            () = keep_aside(&runner, &lanes, &row, &said, id) => {}
        }
    });
}

async fn keep_aside(runner: &Runner, lanes: &Arc<Supervisor>, row: &InboxRow, said: &Message, id: EntryId) {
    let (give, floor) = oneshot::channel();
    lanes
        .send(&row.session_key, LaneCommand::Change(SessionChange { kind: ChangeKind::Words, floor: give }))
        .await;
    let Ok(Ok(mut floor)) = floor.await else { return };
    if let Err(error) = runner.put_aside(row, said, id, floor.run.take()).await {
        tracing::warn!(run_id = %row.run_id, %error, "the answer to a command among words is not in the history");
    }
}

/// Returns the entry id, the same for the same message and number.
fn entry_id(row: &InboxRow, number: usize) -> EntryId {
    let digest = Sha256::digest(format!("{}:{number}", row.fresh_id));
    let first = digest.iter().take(4).fold(0_u32, |id, byte| (id << 8) | u32::from(*byte));
    EntryId::new(format!("{first:08x}"))
}
