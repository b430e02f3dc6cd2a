//! Number of attempts, and the waits between them (spec `memory.md` §12.2). Pure.

use std::time::Duration;

use super::request::TextUse;
use crate::retry::{MAX_WAIT, may_pass};
use crate::stream::ModelFailure;

/// First wait; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Longest wait that nobody asked for.
const LONGEST_BACKOFF: Duration = Duration::from_secs(8);
/// Largest part by which a wait is longer, so that not all come back at once.
const JITTER: f64 = 0.2;

/// Bounds of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AttemptPlan {
    requests: u32,
    /// Longest time that all waits take together.
    pub(super) patience: Duration,
}

impl AttemptPlan {
    pub(super) fn of(of: TextUse) -> Self {
        match of {
            // Somebody waits for the answer.
            TextUse::Query => Self { requests: 3, patience: Duration::from_secs(8) },
            TextUse::Documents => Self { requests: 5, patience: MAX_WAIT },
        }
    }

    /// The wait before the next request after request number `made` failed; `None` if there is none.
    /// `random` is between 0 and 1.
    pub(super) fn wait(
        self,
        made: u32,
        waited: Duration,
        failure: &ModelFailure,
        random: f64,
    ) -> Option<Duration> {
        let wait = failure.retry_after.unwrap_or_else(|| backoff(made, random));
        let goes_on =
            may_pass(failure) && made < self.requests && waited.saturating_add(wait) <= self.patience;
        goes_on.then_some(wait)
    }
}

/// The wait after a number of failures in a row.
pub(super) fn backoff(failures: u32, random: f64) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
    doubled.min(LONGEST_BACKOFF).mul_f64(1.0 + JITTER * random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::FailureKind;

    fn failure(kind: FailureKind, retry_after: Option<u64>) -> ModelFailure {
        let retry_after = retry_after.map(Duration::from_secs);
        ModelFailure { retry_after, ..ModelFailure::new(kind, "") }
    }

    /// The waits of a call that always fails in the same way, in milliseconds.
    fn waits(of: TextUse, failure: &ModelFailure, random: f64) -> Vec<u128> {
        let plan = AttemptPlan::of(of);
        let (mut all, mut waited) = (Vec::new(), Duration::ZERO);
        for made in 1..100 {
            let Some(wait) = plan.wait(made, waited, failure, random) else { break };
            waited += wait;
            all.push(wait.as_millis());
        }
        all
    }

    #[test]
    fn waits_double_until_the_requests_are_used_up() {
        use FailureKind::{Auth, Format, RateLimit, Timeout, Transient};
        use TextUse::{Documents, Query};
        let rows: [(TextUse, ModelFailure, f64, &[u128]); 11] = [
            (Documents, failure(RateLimit, None), 0.0, &[500, 1000, 2000, 4000]),
            (Documents, failure(Transient, None), 1.0, &[600, 1200, 2400, 4800]),
            (Query, failure(Transient, None), 0.0, &[500, 1000]),
            (Documents, failure(RateLimit, Some(20)), 0.0, &[20_000, 20_000, 20_000]),
            (Documents, failure(RateLimit, Some(60)), 0.0, &[60_000]),
            (Documents, failure(RateLimit, Some(61)), 0.0, &[]),
            (Query, failure(RateLimit, Some(5)), 0.0, &[5_000]),
            (Query, failure(RateLimit, Some(9)), 0.0, &[]),
            (Documents, failure(Auth, None), 0.0, &[]),
            (Documents, failure(Format, Some(1)), 0.0, &[]),
            (Documents, failure(Timeout, None), 0.0, &[]),
        ];
        for (of, failure, random, expect) in rows {
            assert_eq!(waits(of, &failure, random), expect, "{of:?} {failure:?}");
        }
        assert_eq!(backoff(40, 0.0), LONGEST_BACKOFF);
    }
}
