//! A transcript that another process has, and a disk without space: the message waits, however long that takes. It holds no
//! permit of a lane that other sessions could use, and the time does not count against its deadline.

use std::time::Duration;

use openclaw_sessions::transcript::{LockError, TranscriptLock, TranscriptRef};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Ending, RunControl, Runner, stopped_early};
use crate::inbox::{Queued, Row};

/// How long after one try on a full disk comes the next.
const PAUSE: Duration = Duration::from_secs(2);

/// How long a message could not begin.
#[derive(Debug, Default)]
pub(crate) struct BlockedTime {
    tally: Mutex<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    over: Duration,
    since: Option<Instant>,
    is_logged: bool,
}

impl BlockedTime {
    /// Time that passed since it was asked for last.
    pub(crate) fn take(&self) -> Duration {
        let mut tally = self.tally.lock();
        let now = Instant::now();
        let current = tally.since.map_or(Duration::ZERO, |since| now - since);
        tally.since = tally.since.map(|_| now);
        std::mem::take(&mut tally.over) + current
    }

    pub(super) fn begin(&self) -> Waiting<'_> {
        self.tally.lock().since = Some(Instant::now());
        Waiting(self)
    }

    /// Whether this is the first time.
    pub(super) fn is_first(&self) -> bool {
        !std::mem::replace(&mut self.tally.lock().is_logged, true)
    }
}

/// Counts until it is dropped.
pub(super) struct Waiting<'a>(&'a BlockedTime);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut tally = self.0.tally.lock();
        if let Some(since) = tally.since.take() {
            tally.over += since.elapsed();
        }
    }
}

/// What keeps a message from beginning, and will pass.
pub(super) enum Obstacle {
    /// Another process has its transcript.
    Locked(Held),
    /// There is no space; what was refused, for people.
    DiskFull(String),
}

impl Obstacle {
    /// Waits until it is time to try again. Logs once a message why it waits. Fails with how the message ends when it is
    /// stopped meanwhile, or the gateway is.
    pub(super) async fn passed(
        &self,
        runner: &Runner,
        row: &Row<Queued>,
        control: &RunControl,
    ) -> Result<(), Ending> {
        if control.blocked.is_first() {
            self.log(row);
        }
        let _waiting = control.blocked.begin();
        tokio::select! { biased;
            () = control.cancel.cancelled() => Err(stopped_early(runner, row, control).await),
            // It is taken up again by the next start.
            () = runner.shared.stopping.cancelled() => Err(Ending::Interrupted),
            () = self.gone(runner) => Ok(()),
        }
    }

    async fn gone(&self, runner: &Runner) {
        match self {
            Self::Locked(held) => {
                TranscriptLock::until_free(&runner.deps.transcripts, &held.transcript).await
            }
            Self::DiskFull(_) => tokio::time::sleep(PAUSE).await,
        }
    }

    fn log(&self, row: &Row<Queued>) {
        let (run_id, session) = (&row.run_id, &row.session_key);
        match self {
            Self::Locked(Held { transcript, pid }) => {
                let lock = format_args!("{transcript}.lock");
                tracing::warn!(%run_id, %session, %lock, pid, "another process holds the transcript of this session, the message waits for it");
            }
            Self::DiskFull(why) => {
                tracing::warn!(%run_id, %session, why, "the disk is full: the message waits until there is space");
            }
        }
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
        let wait = BlockedTime::default();
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
        assert_eq!((wait.is_first(), wait.is_first()), (true, false));
    }
}
