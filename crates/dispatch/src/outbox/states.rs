//! The states of a delivery, and what follows from how a try ended. Pure, but for the share by which pauses vary.

use std::time::Duration;

use openclaw_channels::{Part, Receipt, RetryPolicy, SendError};
use openclaw_sessions::ids;

use super::outage::Platform;

/// How far a delivery is (`docs/durability.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// Waits for its turn.
    Pending,
    /// The platform is being asked to take it.
    Sending,
    /// The platform was asked, and what came of it is not known.
    Uncertain,
    /// The platform has it.
    Sent,
    /// It is given up. Only a person brings it back.
    Failed,
}

impl DeliveryState {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sending => "sending",
            Self::Uncertain => "uncertain",
            Self::Sent => "sent",
            Self::Failed => "failed",
        }
    }

    /// The states that may follow.
    pub(crate) fn next_states(self) -> &'static [Self] {
        match self {
            Self::Pending => &[Self::Sending, Self::Failed],
            Self::Sending => &[Self::Sent, Self::Pending, Self::Uncertain, Self::Failed],
            Self::Uncertain => &[Self::Sending, Self::Sent, Self::Uncertain, Self::Failed],
            Self::Sent => &[],
            Self::Failed => &[Self::Pending, Self::Uncertain],
        }
    }

    /// Whether it is still to be sent.
    pub fn is_open(self) -> bool {
        match self {
            Self::Pending | Self::Sending | Self::Uncertain => true,
            Self::Sent | Self::Failed => false,
        }
    }
}

/// Pauses after a failed try, behind the short ones of the platform's policy (spec `channels.md` §5.5). One more try than there are pauses.
const PAUSES: [Duration; 4] =
    [FIRST_PAUSE, Duration::from_secs(25), Duration::from_secs(2 * 60), Duration::from_secs(10 * 60)];
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The pause behind those where the platform says that it is in trouble: as in an outage of all of it ([`super::outage`]).
const TROUBLE_PAUSE: Duration = super::outage::LONGEST_PAUSE;
/// So many of them are a day. That is counted, not timed: a restart forgets no try, and no clock that jumps gives anything up.
const TROUBLE_PAUSES: u32 = 24 * 60 / 5;
/// Pauses behind those where nothing came back. Each try may arrive, and nobody is to read the same many times.
const SILENCE_PAUSES: [Duration; 2] = [Duration::from_secs(3600), Duration::from_secs(3 * 3600)];
/// Pause while a channel is not connected.
const NOT_READY: Duration = Duration::from_secs(5);
/// A platform that asks to wait for longer has refused (spec `channels.md` §5.4). The conversation waits for it all the same.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(5 * 60);
/// No conversation waits longer because its platform asked for it.
const MAX_HOLD: Duration = Duration::from_secs(24 * 3600);
/// A start waits no longer for a pause that is on disk: a longer one may be a clock's that jumped.
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(10 * 60);

/// What follows from a try.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// It is there.
    Sent(Receipt),
    /// It waits for another try.
    Retry(Retry),
    /// The platform does not take its file, and nothing was sent: its words are sent without it, at once.
    WithoutFile {
        /// What is sent in its place: the words, and a note of the file.
        part: Box<Part>,
        /// What is left out and why, for people.
        left_out: String,
    },
    /// It is given up.
    Failed {
        /// Why, for people.
        reason: String,
        /// Why, for what follows from it.
        why: DeliveryFailure,
        /// How long its conversation waits, because the platform asked for it.
        hold: Option<Duration>,
    },
}

impl Verdict {
    /// It will never be sent as it is.
    pub(crate) fn refused(reason: String) -> Self {
        Self::failed(reason, DeliveryFailure::Refused)
    }

    /// It is given up.
    pub(crate) fn failed(reason: String, why: DeliveryFailure) -> Self {
        Self::Failed { reason, why, hold: None }
    }
}

/// A conversation whose platform asked to wait for longer than its message could. Unix milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hold {
    /// When it asked.
    pub(crate) asked_at: i64,
    /// Nothing is sent before this.
    pub(crate) until: i64,
}

impl Hold {
    /// How long it still lasts. A clock that was put back says nothing about it any more: then the platform is asked again, which answers
    /// as it did before.
    pub(crate) fn left(self, now: i64) -> Option<Duration> {
        let millis =
            |from: i64, to: i64| u64::try_from(to.saturating_sub(from)).ok().filter(|left| *left > 0);
        let (left, asked) = (millis(now, self.until)?, millis(self.asked_at, self.until)?);
        (left <= asked.saturating_mul(2)).then(|| Duration::from_millis(left).min(MAX_HOLD))
    }
}

/// Why a delivery is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryFailure {
    /// It can't be sent as it is. What stands behind it in the same message is sent without it.
    Refused,
    /// The platform did not take it for too long. What stands behind it in the same message does not come without it.
    PutOff,
    /// The same, and it may have arrived.
    Unknown,
    /// It was given up, and then a person threw it away: it is remembered, and nothing is left to be sent.
    Discarded,
}

impl DeliveryFailure {
    pub(crate) const ALL: [Self; 4] = [Self::Refused, Self::PutOff, Self::Unknown, Self::Discarded];

    /// Its name in the database.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::PutOff => "put-off",
            Self::Unknown => "unknown",
            Self::Discarded => "discarded",
        }
    }

    /// The state of one that a person wants tried again; `None` where there is nothing left to be sent.
    pub(crate) fn revived(self) -> Option<DeliveryState> {
        match self {
            Self::Refused | Self::PutOff => Some(DeliveryState::Pending),
            Self::Unknown => Some(DeliveryState::Uncertain),
            Self::Discarded => None,
        }
    }

    /// Whether what stands behind it in the same message is given up with it.
    pub(crate) fn takes_the_rest(self) -> bool {
        match self {
            Self::Refused | Self::Discarded => false,
            Self::PutOff | Self::Unknown => true,
        }
    }
}

/// Another try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retry {
    /// [`DeliveryState::Pending`] or [`DeliveryState::Uncertain`].
    pub(crate) state: DeliveryState,
    /// How long it waits at least.
    pub(crate) pause: Duration,
    /// Tries that count so far.
    pub(crate) attempts: u32,
    /// Whether the pause ends when the platform can be reached again: not where the platform asked for it.
    pub(crate) may_hurry: bool,
    /// Why, for people.
    pub(crate) reason: String,
}

impl Retry {
    /// Not before this, for a try that ended at `now`; Unix milliseconds.
    pub(crate) fn at(&self, now: i64) -> i64 {
        now.saturating_add(i64::try_from(self.pause.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Judges a request to send. `attempts` counts this one.
pub(super) fn of_sending(
    attempts: u32,
    policy: RetryPolicy,
    sent: Result<Receipt, SendError>,
    platform: Platform,
) -> Verdict {
    match sent {
        Ok(receipt) => Verdict::Sent(receipt),
        Err(error) => of_error(attempts, policy, DeliveryState::Pending, error, platform),
    }
}

/// Judges a question that got no answer. `attempts` counts this one.
pub(super) fn of_asking(attempts: u32, policy: RetryPolicy, error: SendError, platform: Platform) -> Verdict {
    of_error(attempts, policy, DeliveryState::Uncertain, error, platform)
}

fn of_error(
    attempts: u32,
    policy: RetryPolicy,
    unsent: DeliveryState,
    error: SendError,
    platform: Platform,
) -> Verdict {
    let retry = |state, pause, attempts, reason| {
        Verdict::Retry(Retry { state, pause, attempts, may_hurry: true, reason })
    };
    // However long the platform is gone: nothing is given up for it. A try that may have arrived counts all the same: nobody is to read
    // the same for hours.
    if platform == Platform::Down
        && let SendError::Unreachable { reason } | SendError::Down { reason } = error
    {
        return retry(unsent, Duration::ZERO, attempts.saturating_sub(1), reason);
    }
    match error {
        SendError::Final { reason } | SendError::File { reason } => Verdict::refused(reason),
        SendError::NotReady | SendError::Unreachable { .. } => {
            retry(unsent, NOT_READY, attempts.saturating_sub(1), error.to_string())
        }
        SendError::Retry { reason, after: Some(wish) } if wish > MAX_RETRY_AFTER => Verdict::Failed {
            reason: format!("{reason} (not before {} s)", wish.as_secs()),
            why: DeliveryFailure::PutOff,
            hold: Some(wish.min(MAX_HOLD)),
        },
        // The platform says when: that is obeyed, and however often it says so, nothing is given up for it.
        SendError::Retry { reason, after: Some(wish) } => {
            let (pause, attempts) = (policy.asked(wish), attempts.saturating_sub(1));
            Verdict::Retry(Retry { state: unsent, pause, attempts, may_hurry: false, reason })
        }
        SendError::Retry { reason, after: None } => match pause_after(attempts, policy, &[]) {
            Some(pause) => retry(unsent, pause, attempts, reason),
            None => put_off(format!("{reason} (after {attempts} tries)")),
        },
        // It is the platform's trouble, also where no other conversation has it: that may last as long as an outage. What a single message
        // brings about each time is given up for it in the end.
        SendError::Down { reason } => {
            let rest = attempts.saturating_sub(policy.pauses());
            match pause_after(attempts, policy, &[]) {
                Some(pause) => retry(unsent, pause.min(TROUBLE_PAUSE), attempts, reason),
                None if rest <= TROUBLE_PAUSES => retry(unsent, TROUBLE_PAUSE, attempts, reason),
                None => put_off(format!("{reason} (after {attempts} tries in a day)")),
            }
        }
        // It is to be known first what became of it: that takes a while.
        SendError::Uncertain { reason } => match pause_after(attempts, policy, &SILENCE_PAUSES) {
            Some(pause) => retry(DeliveryState::Uncertain, pause.max(FIRST_PAUSE), attempts, reason),
            None => Verdict::failed(
                format!("{reason} (after {attempts} tries; it is not known whether it arrived)"),
                DeliveryFailure::Unknown,
            ),
        },
    }
}

fn put_off(reason: String) -> Verdict {
    Verdict::failed(reason, DeliveryFailure::PutOff)
}

/// The pause after so many tries, `more` behind the usual ones; `None` when there were enough.
fn pause_after(attempts: u32, policy: RetryPolicy, more: &[Duration]) -> Option<Duration> {
    let attempts = attempts.max(1);
    let later = || {
        let at = usize::try_from(attempts - 1 - policy.pauses()).ok()?;
        PAUSES.iter().chain(more).nth(at).copied()
    };
    policy.pause(attempts, ids::draw_share()).or_else(later)
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
            Verdict::Retry(Retry { state, pause, attempts, may_hurry, reason: reason.to_owned() })
        };
        let again = |state, seconds, attempts, reason: &str| {
            waits(state, Duration::from_secs(seconds), attempts, true, reason)
        };
        let asked = |seconds, attempts| waits(Pending, Duration::from_secs(seconds), attempts, false, "busy");
        let failed = |reason: &str| Verdict::refused(reason.to_owned());
        let put_off = |reason: &str| Verdict::failed(reason.to_owned(), DeliveryFailure::PutOff);
        let unknown = |reason: &str| Verdict::failed(reason.to_owned(), DeliveryFailure::Unknown);
        let held = |reason: &str, seconds| Verdict::Failed {
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
        // The first pauses are those of the platform's policy.
        let policy = RetryPolicy { jitter: 0.0, ..RetryPolicy::default() };
        let ms = Duration::from_millis;
        let rows = [
            (1, retry(None), waits(Pending, ms(400), 1, true, "busy")),
            (2, retry(None), waits(Pending, ms(800), 2, true, "busy")),
            (3, retry(None), again(Pending, 5, 3, "busy")),
            (6, retry(None), again(Pending, 600, 6, "busy")),
            (7, retry(None), put_off("busy (after 7 tries)")),
            (1, unsure(), again(Uncertain, 5, 1, "silence")),
            (4, unsure(), again(Uncertain, 25, 4, "silence")),
        ];
        for (attempts, error, expected) in rows {
            assert_eq!(of_sending(attempts, policy, Err(error), Platform::Works), expected, "{attempts}");
        }
    }
    #[test]
    fn a_hold_ends_whatever_the_clock_does() {
        let minute = 60_000;
        let hold = |asked: i64, until: i64| Hold { asked_at: asked * minute, until: until * minute };
        let minutes = |count: u64| Some(Duration::from_secs(count * 60));
        let rows = [
            (hold(0, 15), 0, minutes(15)),
            (hold(0, 15), 10, minutes(5)),
            (hold(0, 15), 15, None),
            // It was put forward, and back.
            (hold(0, 15), 500_000, None),
            (hold(100, 115), 98, minutes(17)),
            (hold(100, 115), 0, None),
            (hold(100, 115), -500_000, None),
            // Nothing was asked.
            (hold(100, 90), 80, None),
            (hold(0, 90 * 24 * 60), 0, minutes(24 * 60)),
        ];
        for (hold, now, expect) in rows {
            assert_eq!(hold.left(now * minute), expect, "{hold:?} at {now}");
        }
    }
}
