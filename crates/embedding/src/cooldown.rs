//! Cooldown of a provider after failures.

use std::fmt;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::EmbedError;

/// The time before which a provider is not asked again. It grows with each failure in a row and ends with a success.
#[derive(Default)]
pub struct Cooldown(Mutex<CooldownState>);

#[derive(Debug, Default, Clone, Copy)]
struct CooldownState {
    until: Option<Instant>,
    failures: u32,
}

impl Cooldown {
    /// Longest wait that a provider can ask for.
    const LONGEST: Duration = Duration::from_secs(60);
    /// Wait after the first failure; each further one doubles it.
    const FIRST: Duration = Duration::from_millis(500);
    /// Wait after a refused credential: long, because a person must act; a change of settings makes a new embedder.
    const REFUSED: Duration = Duration::from_secs(300);

    /// Returns how long nobody may ask from `now` on, or `None` if the provider may be asked.
    #[must_use]
    pub fn remaining(&self, now: Instant) -> Option<Duration> {
        let until = self.0.lock().until?;
        until.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// Records that a request succeeded.
    pub fn succeeded(&self) {
        *self.0.lock() = CooldownState::default();
    }

    /// Records a failure at `now` and returns how long nobody may ask.
    pub fn failed(&self, error: &EmbedError, now: Instant) -> Duration {
        let mut state = self.0.lock();
        state.failures = state.failures.saturating_add(1);
        let backoff = Self::FIRST.saturating_mul(1 << state.failures.saturating_sub(1).min(8));
        let wait = match error {
            EmbedError::RateLimited { retry_after: Some(asked), .. } => {
                (*asked).max(backoff).min(Self::LONGEST)
            }
            EmbedError::RateLimited { retry_after: None, .. } | EmbedError::Unavailable { .. } => {
                backoff.min(Self::LONGEST)
            }
            EmbedError::Unauthorized { .. } => Self::REFUSED,
            EmbedError::TooLarge { .. } | EmbedError::UnderWay { .. } | EmbedError::Invalid { .. } => {
                return Duration::ZERO;
            }
        };
        let until = now + wait;
        state.until = Some(state.until.map_or(until, |before| before.max(until)));
        wait
    }
}

impl fmt::Debug for Cooldown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.lock().fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cooldown_doubles_heeds_retry_after_and_ends_with_a_success() {
        let (cooldown, now) = (Cooldown::default(), Instant::now());
        let busy = EmbedError::Unavailable { message: "502".into() };
        assert_eq!(cooldown.remaining(now), None);
        assert_eq!(cooldown.failed(&busy, now), Duration::from_millis(500));
        assert_eq!(cooldown.failed(&busy, now), Duration::from_secs(1));
        let limited =
            EmbedError::RateLimited { message: "429".into(), retry_after: Some(Duration::from_secs(30)) };
        assert_eq!(cooldown.failed(&limited, now), Duration::from_secs(30));
        assert_eq!(cooldown.remaining(now + Duration::from_secs(10)), Some(Duration::from_secs(20)));
        let long =
            EmbedError::RateLimited { message: "429".into(), retry_after: Some(Duration::from_secs(3_600)) };
        assert_eq!(cooldown.failed(&long, now), Duration::from_secs(60));
        cooldown.succeeded();
        assert_eq!(cooldown.remaining(now), None);
    }
}
