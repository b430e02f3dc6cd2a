//! Obstacles that pass: a transcript that another process has, a disk without space, one that
//! refuses for another reason, and a database that can't be written. The message waits, however long that takes. It holds no permit of a lane
//! that other sessions could use, and the time does not count against its deadline.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use openclaw_journal::journal::JournalError;
use openclaw_sessions::StoreError;
use openclaw_sessions::transcript::{LockError, TranscriptError, TranscriptRef, is_of_disk, may_pass};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Pause between two tries on a full disk, and longest one on a disk that refuses.
pub(crate) const PAUSE: Duration = Duration::from_secs(2);
/// First pause on a disk that refuses; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Time for which a message could not begin.
#[derive(Debug, Default)]
pub struct BlockedTime {
    tally: Mutex<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    over: Duration,
    since: Option<Instant>,
    is_logged: bool,
    /// Pause behind the last refusal of the disk.
    pause: Duration,
}

impl BlockedTime {
    /// Time that passed since it was asked for last.
    pub fn take(&self) -> Duration {
        let mut tally = self.tally.lock();
        let now = Instant::now();
        let current = tally.since.map_or(Duration::ZERO, |since| now - since);
        tally.since = tally.since.map(|_| now);
        std::mem::take(&mut tally.over) + current
    }

    pub(crate) fn begin(&self) -> BlockedGuard<'_> {
        self.tally.lock().since = Some(Instant::now());
        BlockedGuard(self)
    }

    /// Pause before the next try on a disk that refuses.
    fn next_pause(&self) -> Duration {
        let mut tally = self.tally.lock();
        tally.pause = (2 * tally.pause).clamp(FIRST_PAUSE, PAUSE);
        tally.pause
    }

    /// True if this is the first time.
    pub(crate) fn is_first(&self) -> bool {
        !std::mem::replace(&mut self.tally.lock().is_logged, true)
    }
}

/// Counts until it is dropped.
pub(crate) struct BlockedGuard<'a>(&'a BlockedTime);

impl Drop for BlockedGuard<'_> {
    fn drop(&mut self) {
        let mut tally = self.0.tally.lock();
        if let Some(since) = tally.since.take() {
            tally.over += since.elapsed();
        }
    }
}

/// Obstacle in a message's way that will pass.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// Another process has the transcript.
    Locked { transcript: TranscriptRef, pid: Option<u32> },
    /// The disk has no space; the text names what was refused, for people.
    DiskFull(String),
    /// The disk, or the system in its place, refuses a transcript or the sessions for a reason that
    /// may pass ([`may_pass`]); the text says what was refused, for people.
    Refused(String),
    /// The disk refuses the database, with this error. No message could end meanwhile, and runs
    /// that ended before wait to be stored.
    Database(String),
}

impl Obstacle {
    /// Finds the obstacle that an error tells of, however deep in its chain; `None` if waiting does
    /// not help.
    pub(crate) fn behind(error: &(dyn Error + 'static)) -> Option<Self> {
        let told = error.to_string();
        let mut refused = None;
        chain(error).find_map(|error| {
            refused = refused.or_else(|| refused_work(error));
            if let Some(LockError::Held { transcript, holder, .. }) = error.downcast_ref() {
                return Some(Self::Locked { transcript: transcript.clone(), pid: *holder });
            }
            if let Some(JournalError::Disk(why)) = error.downcast_ref() {
                return Some(Self::Database(why.clone()));
            }
            if is_full(error) {
                return Some(Self::DiskFull(told.clone()));
            }
            let passes = refused.zip(io_error(error)).is_some_and(|(what, why)| may_be_done(what, why));
            passes.then(|| Self::Refused(told.clone()))
        })
    }

    /// Time until the next try; `None` if it is not a matter of time.
    pub(crate) fn pause(&self, blocked: &BlockedTime) -> Option<Duration> {
        match self {
            Self::Locked { .. } => None,
            Self::DiskFull(_) | Self::Database(_) => Some(PAUSE),
            Self::Refused(_) => Some(blocked.next_pause()),
        }
    }
}

/// The error and its causes.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| cause(error))
}

/// Returns the next error of a chain: `source` skips the error that an [`io::Error`] was made of.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

/// Returns the work on a transcript or on the sessions that an error says was refused.
fn refused_work(error: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(TranscriptError::Io { what, .. }) = error.downcast_ref() {
        return Some(what);
    }
    if let Some(StoreError::Io { what, .. }) = error.downcast_ref() {
        return Some(what);
    }
    matches!(error.downcast_ref(), Some(LockError::Io { .. })).then_some("lock")
}

/// True if such work may be done at the next try. A sync is tried again by whoever syncs, as what
/// was appended stands already; and a disk that can't read something mostly never can.
fn may_be_done(what: &str, why: &io::Error) -> bool {
    what != "sync" && may_pass(why) && !(what == "read" && is_of_disk(why))
}

/// Returns the words for an error of a transcript or of the sessions without the place of the file;
/// `None` for any other error.
pub(crate) fn without_place(error: &(dyn Error + 'static)) -> Option<String> {
    chain(error).find_map(|error| {
        let transcript = error.downcast_ref().map(TranscriptError::without_place);
        let lock = || error.downcast_ref().map(LockError::without_place);
        let store = || error.downcast_ref().map(StoreError::without_place);
        transcript.or_else(lock).or_else(store)
    })
}

fn io_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    error.downcast_ref().or_else(|| error.downcast_ref::<Arc<io::Error>>().map(|io| &**io))
}

/// True if an error means that there is no space.
fn is_full(error: &(dyn Error + 'static)) -> bool {
    io_error(error).is_some_and(|io| matches!(io.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
        || matches!(error.downcast_ref(), Some(JournalError::DiskFull))
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::{AgentId, SessionId};
    use openclaw_sessions::StoreError;
    use openclaw_sessions::transcript::MemoryLogs;

    use super::*;

    #[test]
    fn a_lock_that_another_process_holds_will_pass_and_one_that_cannot_be_taken_will_not() {
        let id = SessionId::new("s");
        let transcript = MemoryLogs::default().transcripts().of_new(&AgentId::default(), &id).unwrap();
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
        let rows: [(Box<dyn Error>, bool); 7] = [
            (Box::new(JournalError::Disk("disk I/O error".to_owned())), false),
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
        assert!(Obstacle::behind(&eio()).is_none(), "it may be any file's");
        let of_store = |what| StoreError::Io { what, path: "f".into(), source: Arc::new(eio()) };
        assert!(matches!(Obstacle::behind(&of_store("write")), Some(Obstacle::Refused(_))));
        assert!(Obstacle::behind(&of_store("read")).is_none(), "it never may be readable");
        let database = io::Error::other(JournalError::Disk("disk I/O error".to_owned()));
        assert!(matches!(Obstacle::behind(&database), Some(Obstacle::Database(_))));
    }

    fn eio() -> io::Error {
        io::Error::from_raw_os_error(5)
    }

    #[test]
    fn a_disk_that_refuses_is_tried_again_and_no_place_of_a_file_is_told() {
        let id = SessionId::new("s");
        let transcript = MemoryLogs::default().transcripts().of_new(&AgentId::default(), &id).unwrap();
        let of = |what| TranscriptError::Io { what, transcript: transcript.clone(), source: eio() };
        for (what, passes) in [("write", true), ("create", true), ("sync", false), ("read", false)] {
            // As the run's transcript has it, and as it is.
            for error in [&io::Error::other(of(what)) as &(dyn Error + 'static), &of(what)] {
                let behind = Obstacle::behind(error);
                assert_eq!(matches!(behind, Some(Obstacle::Refused(_))), passes, "{what} {behind:?}");
                let told = without_place(error).unwrap();
                assert!(!told.contains(&transcript.to_string()), "{told}");
            }
        }
        let lock = LockError::Io { transcript, source: io::Error::from_raw_os_error(24) };
        assert!(matches!(Obstacle::behind(&lock), Some(Obstacle::Refused(_))));
    }

    #[test]
    fn pauses_on_a_disk_that_refuses_grow() {
        let (blocked, refused) = (BlockedTime::default(), Obstacle::Refused(String::new()));
        let pauses: Vec<u128> = (0..7).filter_map(|_| Some(refused.pause(&blocked)?.as_millis())).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(Obstacle::DiskFull(String::new()).pause(&blocked), Some(PAUSE));
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
