//! A transcript that another process has: its message waits, however long that takes. It holds no place in a lane that other
//! sessions could use, and the time does not count against its deadline.

use std::sync::Arc;
use std::time::Duration;

use openclaw_sessions::transcript::{LockError, TranscriptLock, TranscriptRef};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Ending, RunControl, stopped_early};
use crate::inbox::{Parked, Row};
use crate::shared::Shared;

/// How long a message has waited for other processes.
#[derive(Debug, Default)]
pub(crate) struct LockWait {
    tally: Mutex<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    over: Duration,
    since: Option<Instant>,
    is_told: bool,
}

impl LockWait {
    /// Time that passed since it was asked for last.
    pub(crate) fn take(&self) -> Duration {
        let mut tally = self.tally.lock();
        let now = Instant::now();
        let current = tally.since.map_or(Duration::ZERO, |since| now - since);
        tally.since = tally.since.map(|_| now);
        std::mem::take(&mut tally.over) + current
    }

    pub(super) fn begin(self: &Arc<Self>) -> Waiting {
        self.tally.lock().since = Some(Instant::now());
        Waiting(Arc::clone(self))
    }

    /// Whether this is the first time.
    pub(super) fn tells(&self) -> bool {
        !std::mem::replace(&mut self.tally.lock().is_told, true)
    }
}

/// Counts until it is dropped.
pub(super) struct Waiting(Arc<LockWait>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut tally = self.0.tally.lock();
        if let Some(since) = tally.since.take() {
            tally.over += since.elapsed();
        }
    }
}

/// Waits until nobody holds the lock. Says once a message who does. Fails with how the message ends when it is stopped
/// meanwhile, or the gateway is.
pub(super) async fn until_free(
    shared: &Shared,
    row: &Row<Parked>,
    control: &RunControl,
    held: &Held,
) -> Result<(), Ending> {
    if control.lock_wait.tells() {
        let (lock, pid) = (format_args!("{}.lock", held.transcript), held.pid);
        let (run_id, session) = (&row.run_id, &row.session_key);
        tracing::warn!(%run_id, %session, %lock, pid, "another process holds the transcript of this session, the message waits for it");
    }
    let _waiting = control.lock_wait.begin();
    tokio::select! { biased;
        () = control.cancel.cancelled() => Err(stopped_early(shared, row, control).await),
        // It is taken up again by the next start.
        () = shared.stopping.cancelled() => Err(Ending::Interrupted),
        () = TranscriptLock::until_free(&shared.runner.transcripts, &held.transcript) => Ok(()),
    }
}

/// A transcript that another process has.
#[derive(Debug)]
pub(super) struct Held {
    transcript: TranscriptRef,
    pid: Option<u32>,
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "another process holds {}.lock", self.transcript)?;
        self.pid.map_or(Ok(()), |pid| write!(f, " (pid {pid})"))
    }
}

impl Held {
    /// Where that is why a lock could not be had; else the reason.
    pub(super) fn of(error: LockError) -> Result<Self, LockError> {
        match error {
            LockError::Held { transcript, holder, .. } => Ok(Self { transcript, pid: holder }),
            LockError::Io { .. } => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_spent_waiting_is_counted_once() {
        let wait = Arc::new(LockWait::default());
        let second = Duration::from_secs(1);
        assert_eq!(wait.take(), Duration::ZERO);
        let waiting = wait.begin();
        tokio::time::advance(second).await;
        assert_eq!(wait.take(), second);
        tokio::time::advance(second).await;
        drop(waiting);
        tokio::time::advance(second).await;
        drop(wait.begin());
        assert_eq!((wait.take(), wait.take()), (second, Duration::ZERO));
        assert_eq!((wait.tells(), wait.tells()), (true, false));
    }
}
