//! The end of work that nobody may wait for: its time is over, or the call was given up.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// Looked at by the work itself, in each loop of it.
#[derive(Debug, Clone)]
pub(super) struct StopSignal {
    until: Instant,
    given_up: CancellationToken,
}

impl StopSignal {
    /// For work that has this long, or until the token is cancelled.
    pub(super) fn within(time: Duration, given_up: CancellationToken) -> Self {
        Self { until: Instant::now() + time, given_up }
    }

    /// The same for a step that has less time.
    pub(super) fn sooner(&self, time: Duration) -> Self {
        Self { until: self.until.min(Instant::now() + time), ..self.clone() }
    }

    /// Whether the work has to end.
    pub(super) fn is_over(&self) -> bool {
        self.given_up.is_cancelled() || Instant::now() >= self.until
    }
}

#[cfg(test)]
impl StopSignal {
    /// A stop for work that nobody ends.
    pub(super) fn never() -> Self {
        Self::within(Duration::from_secs(3600), CancellationToken::new())
    }
}
