//! How a message comes to its lane: from a client, by way of the inbox, or from the inbox at start.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::{RunId, SessionId};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::{Accepted, DispatchError};
use crate::handle::Receipt;
use crate::inbox::{Insert, Known, Parked, Payload, Row, Stored, Unfinished};
use crate::journal::JournalError;
use crate::lane::{Arrival, Command, Job};
use crate::runner::is_last_try;
use crate::shared::Shared;

/// Messages of one session that may wait. Far beyond what a person sends; a script in a loop meets it.
const MAX_WAITING: usize = 1_000;
/// How long a start waits for last tries. Only what is in trouble anyway takes as long.
const QUIET: Duration = Duration::from_secs(5);

/// Gives a message its place in its session, makes it durable, and lets its lane have it. `placed` is dropped once the place is
/// taken: whatever takes one later comes after it, in the lane and in the inbox.
pub(crate) async fn accept(
    shared: Arc<Shared>,
    run_id: RunId,
    session_key: String,
    payload: Payload,
    placed: oneshot::Sender<()>,
) -> Result<Receipt, DispatchError> {
    let is_new = shared.registry.end_of(&run_id).is_none();
    if is_new && shared.registry.count(&session_key) >= MAX_WAITING {
        return Err(DispatchError::QueueFull(session_key));
    }
    let wants = shared.runner.wants(&payload);
    // What is said to the gateway itself goes to nobody: also `/model` where nothing may be sent.
    if is_new && !wants.command && !shared.runner.may_send(&session_key).await? {
        return Err(DispatchError::SendBlocked);
    }
    let (share, in_hand) = shared.backlog.reserve(payload.weight()).ok_or(DispatchError::Overloaded)?;
    let parked = Parked::fresh(&payload, wants, share);
    let (stored, parked) = Stored::of(&session_key, payload, parked).await.map_err(refused)?;
    let seat = shared.lanes.seat(&shared, &session_key).await.ok_or(DispatchError::ShuttingDown)?;
    let reservation = shared.inbox.reserve().await.map_err(refused)?;
    let (slip, lane, storing) = {
        // The next start works in the order of the inbox: it has to be that of the lanes.
        let _one_at_a_time = shared.placing.lock();
        let slip = new_slip(run_id, session_key, shared.clock.now_ms());
        (slip.clone(), seat.take(), reservation(slip.with(stored)))
    };
    drop(placed);
    let insert = storing.await.map_err(refused)?;
    drop(in_hand);
    let accepted = match insert {
        Insert::New => Accepted::New { accepted_at: slip.accepted_at },
        Insert::Known(Known::Unfinished { accepted_at }) => match shared.registry.record_of(&slip.run_id) {
            Some(record) => Accepted::Finished(record),
            None => Accepted::InFlight { accepted_at },
        },
        Insert::Known(Known::Finished(record)) => Accepted::Finished(record),
        Insert::Conflict => return Err(DispatchError::KeyReused(slip.run_id)),
    };
    if is_old(&accepted) {
        return Ok(Receipt { accepted, _gate: None });
    }
    shared.registry.enter(&slip.run_id, &slip.session_key, slip.accepted_at);
    let gate = CancellationToken::new();
    let since = slip.accepted_at;
    let receipt = Receipt { accepted, _gate: Some(gate.clone().drop_guard()) };
    let row = Arc::new(slip.with(parked));
    // A lane that has ended meanwhile leaves it to the next start.
    let _ = lane.send(Job { row, gate, since, events_as: None, told: false, order: 0 });
    Ok(receipt)
}

/// Hands the rows the last process did not finish to their lanes. A message that is given up if the process dies of it once more
/// comes before all others, and before any client is let in: then nothing else can be what ends the process.
pub(crate) async fn recover(shared: &Arc<Shared>, found: Vec<Unfinished>) {
    if !found.is_empty() {
        tracing::info!(messages = found.len(), "taking up messages the last process did not finish");
    }
    for Unfinished { row, .. } in &found {
        shared.registry.enter(&row.run_id, &row.session_key, row.accepted_at);
    }
    let mut sessions = HashSet::new();
    let (last_tries, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| {
        // What was said before in its session comes before it.
        sessions.insert(found.row.session_key.clone()) && is_last_try(found.attempts)
    });
    let quiet_until = Instant::now() + QUIET;
    for last_try in last_tries {
        let tried = shared.suspects.tried(&last_try.row.run_id);
        take_up(shared, last_try).await;
        // One that takes longer goes on beside the others.
        let _ = tokio::time::timeout_at(quiet_until, tried.cancelled()).await;
    }
    for message in others {
        take_up(shared, message).await;
    }
}

async fn take_up(shared: &Arc<Shared>, found: Unfinished) {
    let Unfinished { mut row, origin, bytes, attempts } = found;
    let mut parked = Parked::found(origin, attempts, bytes, shared.backlog.count(bytes));
    if let Some(payload) = row.payload.take() {
        parked.wants = shared.runner.wants(&payload);
        parked = parked.keeping(payload);
    }
    let gate = CancellationToken::new();
    gate.cancel();
    let (key, since) = (row.session_key.clone(), shared.clock.now_ms());
    let job = Job { row: Arc::new(row.with(parked)), gate, since, events_as: None, told: false, order: 0 };
    shared.lanes.send(shared, &key, Command::Message { job, arrival: Arrival::Recovered }).await;
}

fn refused(error: JournalError) -> DispatchError {
    match error {
        JournalError::Closed => DispatchError::ShuttingDown,
        other => DispatchError::Storage(other.to_string()),
    }
}

fn is_old(accepted: &Accepted) -> bool {
    match accepted {
        Accepted::New { .. } => false,
        Accepted::InFlight { .. } | Accepted::Finished(_) => true,
    }
}

fn new_slip(run_id: RunId, session_key: String, accepted_at: i64) -> Row<()> {
    Row {
        run_id,
        session_key,
        payload: (),
        accepted_at,
        // A version 4 UUID begins with 32 random bits.
        entry_id: format!("{:08x}", uuid::Uuid::new_v4().as_fields().0),
        fresh_id: SessionId::new(uuid::Uuid::new_v4().to_string()),
        session_id: None,
        abort: None,
        recovered: false,
    }
}
