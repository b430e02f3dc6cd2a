//! One try to bring one delivery to its platform. The order of the steps is the promise of
//! `docs/durability.md`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::{
    Account, Address, Content, Part, PartFate, RateTurn, Repeats, RetryPolicy, SendAttempt, SendError,
};
use openclaw_journal::delivery::{Delivery, DeliveryStatus};
use openclaw_journal::delivery::{DeliveryFailure, DeliveryState, DeliveryVerdict, Retry};
use openclaw_journal::journal::{StoredDelivery, Unreadable, Update};
use openclaw_protocol::RunId;

use super::files::file_of;
use super::outage::Platform;
use super::states;
use super::{Became, OutboxInner};

/// Time that a platform may take for a delivery, besides the time that its account grants the
/// request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// A delivery that waited longer tells its reader so (spec `channels.md` §5.5).
const LATE_MS: i64 = 30 * 60 * 1000;
/// Pause when the disk refuses.
const DISK_PAUSE: Duration = Duration::from_secs(5);

/// Consequence of a try for the delivery's place in its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptEnd {
    /// Free for the next delivery.
    Over,
    /// Kept: the delivery is tried again, not sooner than after this time.
    Retry(Duration),
    /// Kept: the delivery is tried again after a pause, or when the platform can be reached again.
    Pause(Duration),
}

/// Tries to send a delivery. One that can't be read or stored is left for a later try.
pub(super) async fn attempt(inner: &OutboxInner, number: i64, account: Arc<dyn Account>) -> AttemptEnd {
    match inner.journal.stored_delivery(number).await {
        Ok(Some(stored)) if stored.state.is_open() => try_it(inner, stored, account.as_ref()).await,
        // Discarded, or over, meanwhile.
        Ok(_) => AttemptEnd::Over,
        Err(error) => {
            tracing::warn!(%error, "the outbox could not be read");
            AttemptEnd::Retry(DISK_PAUSE)
        }
    }
}

async fn try_it(inner: &OutboxInner, stored: StoredDelivery, account: &dyn Account) -> AttemptEnd {
    let StoredDelivery { delivery, state, attempts, accepted_at, is_cut_off, hold } = stored;
    let delivery = match delivery {
        Ok(delivery) => delivery,
        Err(Unreadable { id, why }) => {
            tracing::error!(delivery = id, why, "a delivery is unreadable and is given up");
            return store(inner, id, None, DeliveryVerdict::refused(format!("unreadable: {why}")))
                .await
                .ended;
        }
    };
    let now = inner.clock.now_ms();
    if delivery.expires_at.is_some_and(|end| end <= now) {
        let reason = "it expired before it could be sent".to_owned();
        return settle(inner, delivery, DeliveryVerdict::refused(reason)).await;
    }
    if is_cut_off && state == DeliveryState::Pending {
        let reason = "what stands before it in the same message was given up".to_owned();
        return settle(inner, delivery, DeliveryVerdict::failed(reason, DeliveryFailure::PutOff)).await;
    }
    if let Some(left) = hold.and_then(|hold| hold.left(now)) {
        return AttemptEnd::Retry(left);
    }
    let attempts = attempts.saturating_add(1);
    let mut may_repeat = false;
    if state != DeliveryState::Pending && account.repeats() == Repeats::Doubled {
        match in_time(REQUEST_TIMEOUT, account.confirm(delivery.outgoing())).await {
            Ok(PartFate::Sent(receipt)) => {
                return settle(inner, delivery, DeliveryVerdict::Sent(receipt)).await;
            }
            Ok(PartFate::NotSent) => {}
            Ok(PartFate::Unknown) => {
                may_repeat = true;
                let id = &delivery.id;
                tracing::warn!(delivery = id, "it may have arrived and can't be looked up: it is sent again");
            }
            Err(error) => {
                let came = Err::<(), _>(error.clone());
                let platform = inner.accounts.on_tried(&delivery.address, &came);
                let verdict = states::of_asking(attempts, account.retry(), error, platform);
                return settle(inner, delivery, verdict).await;
            }
        }
    }
    // A delivery that only waits for its turn was not sent, and is not stored as if it might have
    // been.
    if let RateTurn::After(wait) = account.turn(&delivery.address) {
        return AttemptEnd::Retry(wait);
    }
    match inner.journal.update(Update::Sending { id: delivery.id.clone(), attempts }).await {
        Ok(true) => {}
        Ok(false) => {
            // Discarded: what stands behind it goes on. Otherwise what became of the last try is not stored yet.
            let is_over =
                matches!(inner.journal.delivery(&delivery.id).await, Ok(Some(now)) if !now.state.is_open());
            return if is_over { AttemptEnd::Over } else { AttemptEnd::Retry(DISK_PAUSE) };
        }
        Err(error) => {
            tracing::warn!(%error, "a delivery waits for the disk");
            return AttemptEnd::Retry(DISK_PAUSE);
        }
    }
    let late = now.saturating_sub(accepted_at) > LATE_MS;
    // A large file is on its way for a while, and longer than the account waits for it nobody does.
    let patience = REQUEST_TIMEOUT + account.request_limit(&delivery.part);
    let attempt = SendAttempt { number: attempts, late, may_repeat };
    let sent = in_time(patience, account.send(delivery.outgoing(), attempt)).await;
    let platform = inner.accounts.on_tried(&delivery.address, &sent);
    if let Err(SendError::File { reason }) = &sent
        && let Some(verdict) = without_file(inner, &delivery, account, reason).await
    {
        return settle(inner, delivery, verdict).await;
    }
    settle(inner, delivery, states::of_sending(attempts, account.retry(), sent, platform)).await
}

/// Returns the verdict if a platform does not take the file of a part that has words, or whose
/// reader is to hear of it. The note reads like the one for a file that is not there.
async fn without_file(
    inner: &OutboxInner,
    delivery: &Delivery,
    account: &dyn Account,
    reason: &str,
) -> Option<DeliveryVerdict> {
    let part = &delivery.part;
    let left_out = format!("file {} was not sent: {reason}", part.file_name()?);
    let note = account.literal(&format!("({left_out})"));
    let part = match part.without_file(&note) {
        Some(part) => part,
        None if tells_reader(inner, delivery).await => Part { content: Content::Text(note), ..part.clone() },
        None => return None,
    };
    Some(DeliveryVerdict::WithoutFile { part: Box::new(part), left_out })
}

/// True if the reader of a file without words is told that it is not sent: once for each answer of
/// a run. Callers that send by hand, or by a tool, hear of it in the answer to that.
async fn tells_reader(inner: &OutboxInner, delivery: &Delivery) -> bool {
    if !delivery.is_of_answer() {
        return false;
    }
    let run_id = RunId::new(Delivery::message_of(&delivery.id));
    let is_told = |one: &DeliveryStatus| one.left_out.is_some() && one.address == delivery.address;
    match inner.journal.deliveries_of(&run_id).await {
        Ok(parts) => !parts.iter().any(is_told),
        Err(error) => {
            tracing::warn!(%error, "the outbox could not be read");
            false
        }
    }
}

/// Tells the outcome of a delivery, if it has one by now, and stores it.
async fn settle(inner: &OutboxInner, delivery: Delivery, verdict: DeliveryVerdict) -> AttemptEnd {
    let outcome = match &verdict {
        DeliveryVerdict::Sent(_) => Some(Became::Sent),
        DeliveryVerdict::WithoutFile { left_out, .. } => Some(Became::WithoutFile(left_out)),
        DeliveryVerdict::Failed { reason, .. } => Some(Became::Failed(reason)),
        DeliveryVerdict::Retry(_) => None,
    };
    if let (Some(outcome), Some(tell)) = (outcome, inner.tell.get()) {
        tell(&delivery.address, delivery.session_key.as_ref(), &delivery.part, outcome);
    }
    // A delivery that was given up may be tried again by hand: it keeps its file until it is
    // forgotten.
    let is_done_with = matches!(verdict, DeliveryVerdict::Sent(_) | DeliveryVerdict::WithoutFile { .. });
    let file = file_of(&delivery.part).filter(|_| is_done_with).map(Path::to_owned);
    let ended = store(inner, delivery.id, Some(&delivery.address), verdict).await;
    if let Some(file) = file.filter(|_| ended.is_stored) {
        inner.remove_file(&file).await;
    }
    ended.ended
}

async fn in_time<T>(
    patience: Duration,
    asked: impl Future<Output = Result<T, SendError>>,
) -> Result<T, SendError> {
    match tokio::time::timeout(patience, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(SendError::Uncertain { reason: "the platform did not answer in time".to_owned() }),
    }
}

/// Ends a try that panicked, as one that may have succeeded.
pub(super) async fn panicked(inner: &OutboxInner, number: i64) -> AttemptEnd {
    match inner.journal.stored_delivery(number).await {
        Ok(Some(stored)) if stored.state == DeliveryState::Sending => {
            let error = SendError::Uncertain { reason: "sending it ended unexpectedly".to_owned() };
            let verdict = states::of_sending(stored.attempts, RetryPolicy::ONCE, Err(error), Platform::Works);
            let address = stored.delivery.as_ref().ok().map(|delivery| delivery.address.clone());
            store(inner, stored.into_id(), address.as_ref(), verdict).await.ended
        }
        Ok(Some(stored)) if !stored.state.is_open() => AttemptEnd::Over,
        Ok(None) => AttemptEnd::Over,
        Ok(Some(_)) | Err(_) => AttemptEnd::Retry(DISK_PAUSE),
    }
}

/// Result of storing a verdict: the place's fate, and whether the row says so.
struct StoredVerdict {
    ended: AttemptEnd,
    is_stored: bool,
}

/// Stores the verdict. The journal tries again if the disk refuses.
async fn store(
    inner: &OutboxInner,
    id: String,
    at: Option<&Address>,
    verdict: DeliveryVerdict,
) -> StoredVerdict {
    // The lines of a platform are found by its name.
    let (channel, account) = (at.map(|at| at.channel.as_str()), at.map(|at| at.account.as_str()));
    let to = at.map(|at| at.target.as_str());
    let ended = match &verdict {
        DeliveryVerdict::Sent(_) => {
            tracing::debug!(channel, account, to, delivery = id, "sent");
            AttemptEnd::Over
        }
        DeliveryVerdict::Failed { reason, .. } => {
            tracing::warn!(channel, account, to, delivery = id, reason, "a delivery is given up");
            AttemptEnd::Over
        }
        DeliveryVerdict::WithoutFile { left_out, .. } => {
            tracing::warn!(
                channel,
                account,
                to,
                delivery = id,
                left_out,
                "a message is sent without its file"
            );
            AttemptEnd::Retry(Duration::ZERO)
        }
        DeliveryVerdict::Retry(Retry { reason, pause, may_hurry, .. }) => {
            // Without one it waits for the platform.
            let paused = Some(pause).filter(|pause| !pause.is_zero()).map(tracing::field::debug);
            tracing::info!(
                channel,
                account,
                to,
                delivery = id,
                reason,
                pause = paused,
                "a delivery is tried again"
            );
            if *may_hurry { AttemptEnd::Pause(*pause) } else { AttemptEnd::Retry(*pause) }
        }
    };
    let tried = Update::Tried { id, verdict, now: inner.clock.now_ms() };
    let stored = inner.journal.update(tried).await;
    let is_stored = stored.is_ok();
    let ended = match stored {
        Ok(true) => ended,
        // The delivery was thrown away meanwhile: the next look finds it over.
        Ok(false) if ended != AttemptEnd::Over => AttemptEnd::Retry(Duration::ZERO),
        Ok(false) => ended,
        Err(error) => {
            tracing::warn!(%error, "what became of a delivery is not stored yet");
            ended
        }
    };
    inner.tries.send_modify(|count| *count += 1);
    StoredVerdict { ended, is_stored }
}
