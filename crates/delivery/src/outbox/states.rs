//! Consequences of a try to send a delivery. Pure, except for the random share by which
//! pauses vary (jitter).

use std::time::Duration;

use openclaw_channels::{Receipt, RetryPolicy, SendError};
use openclaw_journal::delivery::{DeliveryFailure, DeliveryState, DeliveryVerdict, MAX_HOLD, Retry};
use openclaw_sessions::ids;

use super::outage::Platform;

/// Pauses before the later rounds of the outbox, of one try each, behind the tries that the platform's policy counts (spec `channels.md`
/// §5.5).
const ROUNDS: [Duration; 4] = [
    Duration::from_secs(5),
    Duration::from_secs(25),
    Duration::from_secs(2 * 60),
    Duration::from_secs(10 * 60),
];
/// Pause behind those if the platform says that it is in trouble: the same as in an outage
/// ([`super::outage`]).
const TROUBLE_PAUSE: Duration = super::outage::LONGEST_PAUSE;
/// Number of such pauses, which take a day. They are counted, not timed: a restart forgets no try,
/// and a clock that jumps gives nothing up.
const TROUBLE_PAUSES: u32 = 24 * 60 / 5;
/// Pauses behind those where nothing came back. Each try may arrive, and nobody is to read the same many times.
const SILENCE_PAUSES: [Duration; 2] = [Duration::from_secs(3600), Duration::from_secs(3 * 3600)];
/// Pause while a channel is not connected.
const NOT_READY: Duration = Duration::from_secs(5);
/// Longest wait that a platform may ask for; asking for a longer one counts as refusing the message
/// (spec `channels.md` §5.4). The conversation waits for it all the same.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(5 * 60);
/// Longest pause from disk that a start waits for: a longer one may be due to a clock that jumped.
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(10 * 60);

/// Judges a request to send. `attempts` counts this one.
pub(super) fn of_sending(
    attempts: u32,
    policy: RetryPolicy,
    sent: Result<Receipt, SendError>,
    platform: Platform,
) -> DeliveryVerdict {
    match sent {
        Ok(receipt) => DeliveryVerdict::Sent(receipt),
        Err(error) => of_error(attempts, policy, DeliveryState::Pending, error, platform),
    }
}

/// Judges a question that got no answer. `attempts` counts this one.
pub(super) fn of_asking(
    attempts: u32,
    policy: RetryPolicy,
    error: SendError,
    platform: Platform,
) -> DeliveryVerdict {
    of_error(attempts, policy, DeliveryState::Uncertain, error, platform)
}

fn of_error(
    attempts: u32,
    policy: RetryPolicy,
    unsent: DeliveryState,
    error: SendError,
    platform: Platform,
) -> DeliveryVerdict {
    let retry = |state, pause, attempts, reason| {
        DeliveryVerdict::Retry(Retry { state, pause, attempts, may_hurry: true, reason })
    };
    // However long the platform is gone: nothing is given up for it. A try that may have arrived counts all the same: nobody is to read
    // the same for hours.
    if platform == Platform::Down
        && let SendError::Unreachable { reason } | SendError::Down { reason } = error
    {
        return retry(unsent, Duration::ZERO, attempts.saturating_sub(1), reason);
    }
    match error {
        SendError::Final { reason } | SendError::File { reason } => DeliveryVerdict::refused(reason),
        SendError::NotReady | SendError::Unreachable { .. } => {
            retry(unsent, NOT_READY, attempts.saturating_sub(1), error.to_string())
        }
        SendError::Retry { reason, after: Some(wish) } if wish > MAX_RETRY_AFTER => DeliveryVerdict::Failed {
            reason: format!("{reason} (not before {} s)", wish.as_secs()),
            why: DeliveryFailure::PutOff,
            hold: Some(wish.min(MAX_HOLD)),
        },
        // The platform says when: that is obeyed, and however often it says so, nothing is given up for it.
        SendError::Retry { reason, after: Some(wish) } => {
            let (pause, attempts) = (policy.requested_backoff(wish), attempts.saturating_sub(1));
            DeliveryVerdict::Retry(Retry { state: unsent, pause, attempts, may_hurry: false, reason })
        }
        SendError::Retry { reason, after: None } => match pause_after(attempts, policy, &[]) {
            Some(pause) => retry(unsent, pause, attempts, reason),
            None => put_off(format!("{reason} (after {attempts} tries)")),
        },
        // The trouble is the platform's, even if no other conversation has it, and may last as long
        // as an outage. A single message that brings it about each time is given up in the end.
        SendError::Down { reason } => {
            let rest = attempts.saturating_sub(policy.backoffs());
            match pause_after(attempts, policy, &[]) {
                Some(pause) => retry(unsent, pause.min(TROUBLE_PAUSE), attempts, reason),
                None if rest <= TROUBLE_PAUSES => retry(unsent, TROUBLE_PAUSE, attempts, reason),
                None => put_off(format!("{reason} (after {attempts} tries in a day)")),
            }
        }
        SendError::Uncertain { reason } => match pause_after(attempts, policy, &SILENCE_PAUSES) {
            Some(pause) => retry(DeliveryState::Uncertain, pause, attempts, reason),
            None => DeliveryVerdict::failed(
                format!("{reason} (after {attempts} tries; it is not known whether it arrived)"),
                DeliveryFailure::Unknown,
            ),
        },
    }
}

fn put_off(reason: String) -> DeliveryVerdict {
    DeliveryVerdict::failed(reason, DeliveryFailure::PutOff)
}

/// The pause after so many tries: a short one, then one before each round, `more` behind the usual ones; `None` when there were enough.
fn pause_after(attempts: u32, policy: RetryPolicy, more: &[Duration]) -> Option<Duration> {
    let attempts = attempts.max(1);
    let later = || {
        let at = usize::try_from(attempts - 1 - policy.backoffs()).ok()?;
        ROUNDS.iter().chain(more).nth(at).copied()
    };
    policy.backoff(attempts, ids::draw_share()).or_else(later)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry(after: Option<u64>) -> SendError {
        SendError::Retry { reason: "busy".to_owned(), after: after.map(Duration::from_secs) }
    }

    #[test]
    fn a_try_that_failed_is_followed_by_another_or_by_giving_up() {
        use DeliveryState::{Pending, Uncertain};
        let unreachable = || SendError::Unreachable { reason: "no route".to_owned() };
        let unsure = || SendError::Uncertain { reason: "silence".to_owned() };
        let gone = || SendError::Final { reason: "no such chat".to_owned() };
        let waits = |state, pause, attempts, may_hurry, reason: &str| {
            DeliveryVerdict::Retry(Retry { state, pause, attempts, may_hurry, reason: reason.to_owned() })
        };
        let again = |state, seconds, attempts, reason: &str| {
            waits(state, Duration::from_secs(seconds), attempts, true, reason)
        };
        let asked = |seconds, attempts| waits(Pending, Duration::from_secs(seconds), attempts, false, "busy");
        let failed = |reason: &str| DeliveryVerdict::refused(reason.to_owned());
        let put_off = |reason: &str| DeliveryVerdict::failed(reason.to_owned(), DeliveryFailure::PutOff);
        let unknown = |reason: &str| DeliveryVerdict::failed(reason.to_owned(), DeliveryFailure::Unknown);
        let held = |reason: &str, seconds| DeliveryVerdict::Failed {
            reason: reason.to_owned(),
            why: DeliveryFailure::PutOff,
            hold: Some(Duration::from_secs(seconds)),
        };
        let down = || SendError::Down { reason: "500".to_owned() };
        let rows = [
            (1, retry(None), again(Pending, 5, 1, "busy")),
            (2, retry(None), again(Pending, 25, 2, "busy")),
            (3, retry(None), again(Pending, 120, 3, "busy")),
            (4, retry(None), again(Pending, 600, 4, "busy")),
            (5, retry(None), put_off("busy (after 5 tries)")),
            (4, down(), again(Pending, 300, 4, "500")),
            (5, down(), again(Pending, 300, 5, "500")),
            (288, down(), again(Pending, 300, 288, "500")),
            (289, down(), put_off("500 (after 289 tries in a day)")),
            (1, retry(Some(3)), asked(3, 0)),
            (9, retry(Some(3)), asked(3, 8)),
            (1, retry(Some(300)), asked(300, 0)),
            (1, retry(Some(301)), held("busy (not before 301 s)", 301)),
            (1, retry(Some(u64::MAX)), held(&format!("busy (not before {} s)", u64::MAX), 24 * 3600)),
            (1, gone(), failed("no such chat")),
            (1, unsure(), again(Uncertain, 5, 1, "silence")),
            (4, unsure(), again(Uncertain, 600, 4, "silence")),
            (5, unsure(), again(Uncertain, 3600, 5, "silence")),
            (6, unsure(), again(Uncertain, 3 * 3600, 6, "silence")),
            (7, unsure(), unknown("silence (after 7 tries; it is not known whether it arrived)")),
            (1, SendError::NotReady, again(Pending, 5, 0, "the channel is not ready")),
            (5, SendError::NotReady, again(Pending, 5, 4, "the channel is not ready")),
        ];
        for (attempts, error, expected) in rows {
            let verdict = of_sending(attempts, RetryPolicy::ONCE, Err(error.clone()), Platform::Works);
            assert_eq!(verdict, expected, "{attempts} {error:?}");
        }
        // While the platform is down nothing counts that comes of it.
        let rows = [
            (1, unreachable(), again(Pending, 0, 0, "no route")),
            (99, unreachable(), again(Pending, 0, 98, "no route")),
            (99, down(), again(Pending, 0, 98, "500")),
            (1, unsure(), again(Uncertain, 5, 1, "silence")),
            (7, unsure(), unknown("silence (after 7 tries; it is not known whether it arrived)")),
            (5, gone(), failed("no such chat")),
            (5, retry(None), put_off("busy (after 5 tries)")),
            (1, retry(Some(3)), asked(3, 0)),
        ];
        for (attempts, error, expected) in rows {
            let verdict = of_sending(attempts, RetryPolicy::ONCE, Err(error.clone()), Platform::Down);
            assert_eq!(verdict, expected, "{attempts} {error:?}");
        }
        let asking = |attempts, error| of_asking(attempts, RetryPolicy::ONCE, error, Platform::Works);
        assert_eq!(asking(2, retry(None)), again(Uncertain, 25, 2, "busy"));
        assert_eq!(asking(1, SendError::NotReady), again(Uncertain, 5, 0, "the channel is not ready"));
        assert_eq!(asking(1, gone()), failed("no such chat"));
        // The first tries are those that the platform's policy counts.
        let policy = RetryPolicy { jitter: 0.0, ..RetryPolicy::default() };
        let ms = Duration::from_millis;
        let rows = [
            (1, retry(None), waits(Pending, ms(400), 1, true, "busy")),
            (2, retry(None), waits(Pending, ms(800), 2, true, "busy")),
            (3, retry(None), again(Pending, 5, 3, "busy")),
            (6, retry(None), again(Pending, 600, 6, "busy")),
            (7, retry(None), put_off("busy (after 7 tries)")),
            (1, unsure(), waits(Uncertain, ms(400), 1, true, "silence")),
            (3, unsure(), again(Uncertain, 5, 3, "silence")),
            (4, unsure(), again(Uncertain, 25, 4, "silence")),
        ];
        for (attempts, error, expected) in rows {
            assert_eq!(of_sending(attempts, policy, Err(error), Platform::Works), expected, "{attempts}");
        }
    }
}
