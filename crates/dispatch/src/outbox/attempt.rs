//! One try to bring one delivery to its platform. The order of the steps is the promise of `docs/durability.md`.

use std::sync::Arc;
use std::time::Duration;

use super::Inner;
use super::changes::{Fail, Sent, Start, Wait};
use super::delivery::{Attempt, Deliver, Found, Parcel, Receipt, Repeats, SendError};
use super::rows::{self, Stored, ToSend};
use super::states::{self, Again, DeliveryState, Verdict};
use crate::journal::JournalError;

/// How long a platform may take for one request; large files are on their way for a while.
const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// A delivery that waited longer tells its reader so (spec `channels.md` §5.5).
const LATE_MS: i64 = 30 * 60 * 1000;
/// Pause when the disk refuses.
const DISK: Duration = Duration::from_secs(5);

/// What becomes of the delivery's place in its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// It is free for the next.
    Over,
    /// It is tried again after a pause.
    Again(Duration),
}

/// Tries. A delivery that can't be read or stored is left where it is for a later one.
pub(super) async fn attempt<P: Parcel>(inner: &Inner<P>, number: i64, courier: Arc<dyn Deliver<P>>) -> Ended {
    match inner.journal.read(move |db| rows::to_send::<P>(db, number)).await {
        // Discarded meanwhile.
        Ok(None) => Ended::Over,
        Ok(Some(Stored::Unreadable { id, error })) => {
            tracing::error!(delivery = id, %error, "a delivery is unreadable and is given up");
            fail(inner, id, format!("unreadable: {error}")).await
        }
        Ok(Some(Stored::Whole(item))) if item.state.is_open() => try_it(inner, item, courier.as_ref()).await,
        Ok(Some(_)) => Ended::Over,
        Err(error) => {
            tracing::warn!(%error, "the outbox could not be read");
            Ended::Again(DISK)
        }
    }
}

async fn try_it<P: Parcel>(inner: &Inner<P>, item: ToSend<P>, courier: &dyn Deliver<P>) -> Ended {
    let now = inner.clock.now_ms();
    if item.delivery.expires_at.is_some_and(|end| end <= now) {
        return fail(inner, item.delivery.id, "it expired before it could be sent".to_owned()).await;
    }
    let attempts = item.attempts.saturating_add(1);
    let in_doubt = item.state != DeliveryState::Pending;
    let mut may_repeat = false;
    if in_doubt && courier.repeats() == Repeats::Doubled {
        match in_time(courier.confirm(&item.delivery)).await {
            Ok(Found::Sent(receipt)) => return store(inner, item.delivery.id, Verdict::Sent(receipt)).await,
            Ok(Found::NotSent) => {}
            Ok(Found::Unknown) => {
                may_repeat = true;
                let id = &item.delivery.id;
                tracing::warn!(delivery = id, "it may have arrived and can't be looked up: it is sent again");
            }
            Err(error) => {
                return store(inner, item.delivery.id, states::of_asking(attempts, error)).await;
            }
        }
    }
    match inner.journal.change(Start { id: item.delivery.id.clone(), attempts }).await {
        Ok(true) => {}
        // Discarded, or what became of the last try is not stored yet.
        Ok(false) => return Ended::Again(DISK),
        Err(error) => {
            tracing::warn!(%error, "a delivery waits for the disk");
            return Ended::Again(DISK);
        }
    }
    let late = now.saturating_sub(item.accepted_at) > LATE_MS;
    let sent = in_time(courier.send(&item.delivery, Attempt { number: attempts, late, may_repeat })).await;
    store(inner, item.delivery.id, states::of_sending(attempts, sent)).await
}

async fn in_time<T>(asked: impl Future<Output = Result<T, SendError>>) -> Result<T, SendError> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(SendError::Uncertain { reason: "the platform did not answer in time".to_owned() }),
    }
}

/// A try that panicked: whatever it did, it may have been done.
pub(super) async fn panicked<P: Parcel>(inner: &Inner<P>, number: i64) -> Ended {
    match inner.journal.read(move |db| rows::to_send::<P>(db, number)).await {
        Ok(Some(Stored::Whole(item))) if item.state == DeliveryState::Sending => {
            let error = SendError::Uncertain { reason: "sending it ended unexpectedly".to_owned() };
            store(inner, item.delivery.id, states::of_sending(item.attempts, Err(error))).await
        }
        Ok(Some(Stored::Whole(item))) if item.state.is_open() => Ended::Again(DISK),
        Ok(_) => Ended::Over,
        Err(_) => Ended::Again(DISK),
    }
}

/// Stores what follows. The journal insists: a refusal of the disk changes nothing of it.
async fn store<P: Parcel>(inner: &Inner<P>, id: String, verdict: Verdict) -> Ended {
    match verdict {
        Verdict::Sent(receipt) => sent(inner, id, receipt).await,
        Verdict::Failed(reason) => fail(inner, id, reason).await,
        Verdict::Again(again) => wait(inner, id, again).await,
    }
}

async fn sent<P: Parcel>(inner: &Inner<P>, id: String, receipt: Receipt) -> Ended {
    tracing::debug!(delivery = id, "sent");
    let now = inner.clock.now_ms();
    told(inner.journal.change(Sent { id, receipt, now }).await);
    Ended::Over
}

async fn fail<P: Parcel>(inner: &Inner<P>, id: String, reason: String) -> Ended {
    tracing::warn!(delivery = id, reason, "a delivery is given up");
    let now = inner.clock.now_ms();
    told(inner.journal.change(Fail { id, reason, now }).await);
    Ended::Over
}

async fn wait<P: Parcel>(inner: &Inner<P>, id: String, again: Again) -> Ended {
    let pause = again.pause;
    tracing::info!(delivery = id, reason = again.reason, ?pause, "a delivery is tried again");
    let ms = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
    let next_at = inner.clock.now_ms().saturating_add(ms);
    told(inner.journal.change(Wait { id, again, next_at }).await);
    Ended::Again(pause)
}

fn told(stored: Result<bool, JournalError>) {
    if let Err(error) = stored {
        tracing::warn!(%error, "what became of a delivery is not stored yet");
    }
}
