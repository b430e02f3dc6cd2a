//! Times of updates, and of asking a `qmd` again that failed. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// Pause after a second failure in a row; the first one has none.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// Longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Pause before vectors are tried again.
const EMBED_PAUSE: Duration = Duration::from_secs(60);

/// Times of updates and of making vectors.
#[derive(Debug, Default)]
pub(crate) struct UpdateClock {
    updated: Option<Instant>,
    embedded: Option<Instant>,
    embed_failures: u32,
    embed_again: Option<Instant>,
}

impl UpdateClock {
    /// True if the last update is so young that no other one is made.
    pub(crate) fn is_debounced(&self, now: Instant, debounce: Duration) -> bool {
        self.updated.is_some_and(|at| now.duration_since(at) < debounce)
    }

    pub(crate) fn updated(&mut self, now: Instant) {
        self.updated = Some(now);
    }

    /// True if vectors are to be made: they never were, or too long ago. After a failure they wait.
    pub(crate) fn is_embed_due(&self, now: Instant, interval: Option<Duration>) -> bool {
        if self.embed_again.is_some_and(|again| now < again) {
            return false;
        }
        match (self.embedded, interval) {
            (None, _) => true,
            (Some(at), Some(interval)) => now.duration_since(at) >= interval,
            (Some(_), None) => false,
        }
    }

    pub(crate) fn embedded(&mut self, now: Instant) {
        (self.embedded, self.embed_failures, self.embed_again) = (Some(now), 0, None);
    }

    pub(crate) fn embed_failed(&mut self, now: Instant, interval: Option<Duration>) {
        let pause = EMBED_PAUSE * 2_u32.saturating_pow(self.embed_failures.min(10));
        self.embed_failures += 1;
        self.embed_again = Some(now + pause.min(interval.unwrap_or(LONGEST_PAUSE).max(EMBED_PAUSE)));
    }
}

/// Failures of searches.
#[derive(Debug, Default)]
pub(crate) struct FailureBackoff {
    failures: u32,
    again: Option<Instant>,
    reason: Option<String>,
}

impl FailureBackoff {
    /// The last failure, until a search succeeds.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Returns the last failure while nothing is to be asked.
    pub(crate) fn pausing(&self, now: Instant) -> Option<&str> {
        self.again.filter(|again| now < *again).and_then(|_| self.reason())
    }

    /// Records a failure. The request after the first one may ask at once; after further ones the pause doubles.
    pub(crate) fn failed(&mut self, now: Instant, reason: String) {
        let doublings = self.failures.checked_sub(1).map(|times| times.min(10));
        let pause = doublings.map(|times| (FIRST_PAUSE * 2_u32.pow(times)).min(LONGEST_PAUSE));
        self.failures = self.failures.saturating_add(1);
        (self.again, self.reason) = (pause.map(|pause| now + pause), Some(reason));
    }

    /// Records a success, and returns true if the search before had failed.
    pub(crate) fn succeeded(&mut self) -> bool {
        std::mem::take(self).failures > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_failure_is_followed_by_another_try_and_then_by_pauses() {
        let (mut backoff, start) = (FailureBackoff::default(), Instant::now());
        for pause in [0, 10, 20, 40, 80, 160, 300, 300] {
            backoff.failed(start, "boom".to_owned());
            assert_eq!(backoff.reason(), Some("boom"));
            if pause > 0 {
                assert_eq!(backoff.pausing(start + SECOND * (pause - 1)), Some("boom"), "{pause}");
            }
            assert_eq!(backoff.pausing(start + SECOND * pause), None);
        }
        assert!(backoff.succeeded());
        assert!(!backoff.succeeded());
        assert_eq!(backoff.reason(), None);
    }

    #[test]
    fn updates_are_debounced_and_vectors_made_once_in_a_while() {
        let (mut clock, start) = (UpdateClock::default(), Instant::now());
        assert!(!clock.is_debounced(start, SECOND));
        clock.updated(start);
        assert!(clock.is_debounced(start, SECOND) && !clock.is_debounced(start + SECOND, SECOND));
        let hour = Some(SECOND * 3_600);
        assert!(clock.is_embed_due(start, hour));
        clock.embed_failed(start, hour);
        assert!(
            !clock.is_embed_due(start + SECOND * 59, hour) && clock.is_embed_due(start + SECOND * 60, hour)
        );
        clock.embedded(start);
        assert!(!clock.is_embed_due(start + SECOND * 3_599, hour));
        assert!(clock.is_embed_due(start + SECOND * 3_600, hour));
        assert!(!clock.is_embed_due(start + SECOND * 7_200, None));
    }
}
