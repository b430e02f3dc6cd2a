//! A transcript that another process has, and a disk without space: the message waits, however long that takes. It holds no
//! permit of a lane that other sessions could use, and the time does not count against its deadline.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use openclaw_sessions::transcript::{LockError, TranscriptLock, TranscriptRef};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Ending, RunControl, Runner, stopped_early};
use crate::inbox::{Queued, Row};
use crate::journal::JournalError;

/// How long after one try on a full disk comes the next.
pub(super) const PAUSE: Duration = Duration::from_secs(2);

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

/// What is in a message's way, and will pass.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// Another process has its transcript.
    Locked { transcript: TranscriptRef, pid: Option<u32> },
    /// There is no space; what was refused, for people.
    DiskFull(String),
}

impl Obstacle {
    /// The one that an error tells of, however deep; `None` where waiting does not help.
    pub(super) fn behind(error: &(dyn Error + 'static)) -> Option<Self> {
        let told = error.to_string();
        std::iter::successors(Some(error), |&error| error.source()).find_map(|error| {
            if let Some(LockError::Held { transcript, holder, .. }) = error.downcast_ref() {
                return Some(Self::Locked { transcript: transcript.clone(), pid: *holder });
            }
            is_full(error).then(|| Self::DiskFull(told.clone()))
        })
    }

    /// Waits until it is time to try again. Fails with how the message ends when it is stopped meanwhile, or the gateway is.
    pub(super) async fn passed(
        &self,
        runner: &Runner,
        row: &Row<Queued>,
        control: &RunControl,
    ) -> Result<(), Ending> {
        tokio::select! { biased;
            () = control.cancel.cancelled() => Err(stopped_early(runner, row, control).await),
            gone = self.gone(runner, row, control) => gone,
        }
    }

    /// The same for what can't be stopped any more. Logs once a message why it waits.
    pub(super) async fn gone<P>(
        &self,
        runner: &Runner,
        row: &Row<P>,
        control: &RunControl,
    ) -> Result<(), Ending> {
        if control.blocked.is_first() {
            self.log(row);
        }
        let _waiting = control.blocked.begin();
        control.attempt.prepared(runner, &row.run_id).await;
        let gone = async {
            match self {
                Self::Locked { transcript, .. } => {
                    TranscriptLock::until_free(&runner.deps.transcripts, transcript).await;
                }
                Self::DiskFull(_) => tokio::time::sleep(PAUSE).await,
            }
        };
        tokio::select! { biased;
            // It is taken up again by the next start.
            () = runner.shared.stopping.cancelled() => Err(Ending::Interrupted),
            () = gone => Ok(()),
        }
    }

    fn log<P>(&self, row: &Row<P>) {
        let (run_id, session) = (&row.run_id, &row.session_key);
        match self {
            Self::Locked { transcript, pid } => {
                let lock = format_args!("{transcript}.lock");
                tracing::warn!(%run_id, %session, %lock, pid, "another process holds the transcript of this session, the message waits for it");
            }
            Self::DiskFull(why) => {
                tracing::warn!(%run_id, %session, why, "the disk is full: the message waits until there is space");
            }
        }
    }
}

/// Whether an error is that there is no space.
fn is_full(error: &(dyn Error + 'static)) -> bool {
    let io =
        error.downcast_ref::<io::Error>().or_else(|| error.downcast_ref::<Arc<io::Error>>().map(|io| &**io));
    io.is_some_and(|io| matches!(io.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
        || matches!(error.downcast_ref(), Some(JournalError::DiskFull))
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::{AgentId, SessionId};
    use openclaw_sessions::StoreError;
    use openclaw_sessions::transcript::{MemoryTranscripts, Transcripts as _};

    use super::*;

    #[test]
    fn a_lock_that_another_process_holds_will_pass_and_one_that_cannot_be_taken_will_not() {
        let id = SessionId::new("s");
        let transcript = MemoryTranscripts::default().of_new(&AgentId::default(), &id).unwrap();
        let held =
            LockError::Held { waited: Duration::ZERO, holder: Some(7), transcript: transcript.clone() };
        let behind = Obstacle::behind(&held);
        assert!(matches!(behind, Some(Obstacle::Locked { pid: Some(7), .. })), "{behind:?}");
        let source = io::Error::from(ErrorKind::PermissionDenied);
        assert!(Obstacle::behind(&LockError::Io { transcript, source }).is_none());
    }

    #[test]
    fn a_full_disk_is_known_however_deep_it_is() {
        let io = |kind| io::Error::from(kind);
        let store = |kind| StoreError::Io { what: "write", path: "f".into(), source: Arc::new(io(kind)) };
        let rows: [(Box<dyn Error>, bool); 6] = [
            (Box::new(io(ErrorKind::StorageFull)), true),
            (Box::new(io(ErrorKind::QuotaExceeded)), true),
            (Box::new(io(ErrorKind::PermissionDenied)), false),
            (Box::new(store(ErrorKind::StorageFull)), true),
            (Box::new(JournalError::DiskFull), true),
            (Box::new(JournalError::Closed), false),
        ];
        for (error, expected) in rows {
            let is_full = matches!(Obstacle::behind(&*error), Some(Obstacle::DiskFull(_)));
            assert_eq!(is_full, expected, "{error}");
        }
    }

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
