//! Decides if more jobs are begun, or all texts are embedded by ordinary requests. Pure.

use super::BatchError;

/// Failures after which no more jobs are begun.
const MOST: u32 = 2;

/// Record of the jobs of this process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchHealth {
    failures: u32,
    last_error: Option<String>,
}

impl BatchHealth {
    /// Counts a job that failed. One that ran out of time counts twice, and one that the provider
    /// does not have ends all of them.
    pub fn failed(&mut self, error: &BatchError) {
        let counts = match error {
            BatchError::TimedOut { .. } | BatchError::Unsupported { .. } => MOST,
            BatchError::Dead { .. } | BatchError::Request(_) => 1,
        };
        self.failures = self.failures.saturating_add(counts).min(MOST);
        self.last_error = Some(error.to_string());
    }

    /// A job brought its vectors.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Returns true if another job may be begun.
    pub fn is_enabled(&self) -> bool {
        self.failures < MOST
    }

    /// Failures so far and those that are borne, as status shows them.
    pub fn failures(&self) -> (u32, u32) {
        (self.failures, MOST)
    }

    /// The last failure since a job succeeded.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_failures_end_the_jobs_and_a_success_forgets_one() {
        let dead = BatchError::Dead { message: "openai batch b failed".to_owned() };
        let mut health = BatchHealth::default();
        health.failed(&dead);
        assert_eq!((health.is_enabled(), health.failures()), (true, (1, 2)));
        health.succeeded();
        assert_eq!((health.failures(), health.last_error()), ((0, 2), None));
        health.failed(&dead);
        health.failed(&dead);
        assert_eq!((health.is_enabled(), health.last_error()), (false, Some("openai batch b failed")));
        let mut health = BatchHealth::default();
        health.failed(&BatchError::TimedOut { message: String::new() });
        assert!(!health.is_enabled());
    }
}
