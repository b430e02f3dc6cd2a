//! Stops a run from outside: by cancellation or by its time limit.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

/// Time that a stopped model call or tool gets to return before it is dropped.
const GRACE: Duration = Duration::from_secs(10);

/// Cause that stopped a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// Someone.
    Aborted,
    /// The clock.
    TimedOut,
}

/// Watches over everything a run waits for.
pub(crate) struct StopGuard {
    asked: CancellationToken,
    /// Token for models and tools: cancelled by either cause.
    inner: CancellationToken,
    deadline: Option<Instant>,
    tripped: Option<(StopCause, Instant)>,
}

impl StopGuard {
    pub(crate) fn new(asked: CancellationToken, timeout: Option<Duration>) -> Self {
        let inner = asked.child_token();
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Self { asked, inner, deadline, tripped: None }
    }

    /// The token of everything below the run.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.inner
    }

    /// Returns the cause that stopped the run, if it was stopped.
    pub(crate) fn cause(&mut self) -> Option<StopCause> {
        if self.tripped.is_none() {
            if self.asked.is_cancelled() {
                self.trip(StopCause::Aborted);
            } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.trip(StopCause::TimedOut);
            }
        }
        self.tripped.map(|(cause, _)| cause)
    }

    /// Waits for the future, telling it to stop when the run is stopped. `None`: it did not come back in time.
    pub(crate) async fn guard<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        loop {
            if let Some((_, since)) = self.tripped {
                return timeout_at(since + GRACE, future).await.ok();
            }
            let deadline = self.deadline;
            let expired = async move {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! { biased;
                () = self.asked.cancelled() => self.trip(StopCause::Aborted),
                () = expired => self.trip(StopCause::TimedOut),
                out = &mut future => return Some(out),
            }
        }
    }

    /// Waits this long, or until the run is stopped.
    pub(crate) async fn pause(&mut self, wait: Duration) {
        let inner = self.inner.clone();
        self.guard(async move {
            tokio::select! { biased;
                () = inner.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
        })
        .await;
    }

    fn trip(&mut self, cause: StopCause) {
        self.inner.cancel();
        self.tripped = Some((cause, Instant::now()));
    }
}
