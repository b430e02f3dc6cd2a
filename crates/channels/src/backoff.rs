//! Backoff policy for a request that a platform did not accept (spec `channels.md` §5.4).

use std::time::Duration;

use serde::Deserialize;

/// `channels.⟨platform⟩.retry`: the tries of a request, which follow each other soon. A message that none of them brings goes into the later
/// rounds of the outbox, which no key counts.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RetryPolicy {
    /// Tries in all, the first one included.
    pub attempts: u32,
    /// Milliseconds before the second; each further pause is twice as long.
    pub min_delay_ms: u64,
    /// Milliseconds at most.
    pub max_delay_ms: u64,
    /// Share by which a pause varies, from 0 to 1.
    pub jitter: f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 3, min_delay_ms: 400, max_delay_ms: 30_000, jitter: 0.1 }
    }
}

impl RetryPolicy {
    /// Policy of a single attempt, without short pauses.
    pub const ONCE: Self = Self { attempts: 1, min_delay_ms: 400, max_delay_ms: 30_000, jitter: 0.0 };

    /// Returns the number of short pauses.
    pub fn backoffs(&self) -> u32 {
        self.attempts.saturating_sub(1)
    }

    /// The pause behind so many tries; `None` when there were enough. `draw` is a random number from 0 to 1.
    pub fn backoff(&self, tries: u32, draw: f64) -> Option<Duration> {
        if tries > self.backoffs() {
            return None;
        }
        let doubled = 1u64.checked_shl(tries.max(1) - 1).unwrap_or(u64::MAX);
        let even = self.min_delay_ms.saturating_mul(doubled).min(self.max_delay_ms);
        let varied =
            Duration::from_millis(even).mul_f64(1.0 + self.jitter.clamp(0.0, 1.0) * (2.0 * draw - 1.0));
        Some(varied.min(Duration::from_millis(self.max_delay_ms)))
    }

    /// The pause that a platform asks for: obeyed, however long.
    pub fn requested_backoff(&self, wish: Duration) -> Duration {
        wish.max(Duration::from_millis(self.min_delay_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of spec `channels.md` §5.4.
    #[test]
    fn pauses_double_up_to_the_longest() {
        let even = RetryPolicy { jitter: 0.0, ..RetryPolicy::default() };
        let ms = |policy: RetryPolicy, tries, draw| {
            policy.backoff(tries, draw).map(|pause| u64::try_from(pause.as_millis()).unwrap())
        };
        let many = RetryPolicy { attempts: 100, ..even };
        assert_eq!(
            [1, 2, 3, 4].map(|tries| ms(many, tries, 0.5)),
            [Some(400), Some(800), Some(1600), Some(3200)]
        );
        assert_eq!([1, 2, 3].map(|tries| ms(even, tries, 0.5)), [Some(400), Some(800), None]);
        assert_eq!(ms(many, 99, 0.5), Some(30_000));
        assert_eq!(ms(RetryPolicy { attempts: 1, ..even }, 1, 0.5), None);
        assert_eq!(even.requested_backoff(Duration::from_secs(3)), Duration::from_secs(3));
        assert_eq!(even.requested_backoff(Duration::ZERO), Duration::from_millis(400));
        let varied = RetryPolicy::default();
        assert_eq!([0.0, 0.5, 1.0].map(|draw| ms(varied, 1, draw)), [Some(360), Some(400), Some(440)]);
        let odd = RetryPolicy { attempts: 0, min_delay_ms: u64::MAX, max_delay_ms: 5, jitter: 9.0 };
        assert_eq!(ms(odd, 1, 1.0), None);
        assert_eq!(ms(RetryPolicy { attempts: u32::MAX, ..odd }, 9, 1.0), Some(5));
    }
}
