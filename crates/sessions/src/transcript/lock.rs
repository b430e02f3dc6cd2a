//! OpenClaw's write lock on a transcript (spec `sessions.md` §4.7): `<transcript>.lock`, held for a
//! whole run. It keeps other processes out; within this one those who want it take turns, so that a
//! transcript has one run at a time (spec `agent-runtime.md` §2.2) whatever session keys lead to
//! it. After a run the file stays for a moment: in a conversation the next turn is near, and making
//! and removing a file is the most expensive part of a lock.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use openclaw_protocol::message::Message;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;
use tokio::time::Instant as Clock;

use super::context::Context;
use super::fork::fork_to;
use super::format::{Body, EntryId, StoredMessage};
use super::open::{ModelSettings, NewTranscript, OpenTranscript};
use super::storage::{HeldLock, TranscriptLogs, TranscriptRef};
use super::truncate::truncate;
use super::{KeptTranscript, LinesCompacted, Transcript, TranscriptError, Transcripts, blocking};

/// Time to wait for another process's lock.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Time for which the lock of a finished run is kept for the next run. OpenClaw's programs wait ten
/// seconds for a lock.
const LINGER: Duration = Duration::from_millis(500);

/// Reason why the lock could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("session file locked (timeout {}ms): pid={} {transcript}.lock", .waited.as_millis(), holder.map_or("unknown".to_owned(), |pid| pid.to_string()))]
    Held {
        /// Time waited.
        waited: Duration,
        /// Process id of the holder.
        holder: Option<u32>,
        /// The transcript.
        transcript: TranscriptRef,
    },
    /// The disk refused.
    #[error(
        "cannot lock {transcript}.lock: {source}; its directory has to be the gateway's, with room on the disk"
    )]
    Io {
        /// The transcript.
        transcript: TranscriptRef,
        /// Error from the system.
        #[source]
        source: std::io::Error,
    },
}

/// The lock of a transcript, and with it the only way to write into it. Given back when nothing that was opened with it is
/// in use any more.
#[derive(Debug, Clone)]
pub struct TranscriptLock(Arc<LockInner>);

/// A lock that others have; it does not keep it from being given back.
#[derive(Debug, Clone)]
pub(super) struct WeakLock(Weak<LockInner>);

impl WeakLock {
    pub(super) fn get(&self) -> Option<TranscriptLock> {
        self.0.upgrade().map(TranscriptLock)
    }
}

struct LockInner {
    // In this order: other processes may have it before the next one in this process has its turn.
    held: Option<HeldLock>,
    turn: OwnedMutexGuard<Idle>,
    logs: Arc<dyn TranscriptLogs>,
    transcript: TranscriptRef,
    lingers: AtomicBool,
}

impl Drop for LockInner {
    fn drop(&mut self) {
        if let Some(held) = self.held.take().filter(|_| self.lingers.load(Ordering::Relaxed)) {
            Idle::keep(&mut self.turn, held);
        }
    }
}

impl fmt::Debug for LockInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.lock", self.transcript)
    }
}

/// A turn belongs to nothing but the transcript: first come, first served.
type LockQueue = tokio::sync::Mutex<Idle>;

/// State that the next run in line finds.
#[derive(Default)]
struct Idle {
    /// The lock of a run that is over, and since when.
    held: Option<(HeldLock, Clock)>,
    /// True if a task will release the lock in time.
    is_watched: bool,
}

impl Idle {
    fn keep(turn: &mut OwnedMutexGuard<Self>, held: HeldLock) {
        // Without a runtime nobody could give it back.
        let Ok(runtime) = Handle::try_current() else { return };
        turn.held = Some((held, Clock::now()));
        if !std::mem::replace(&mut turn.is_watched, true) {
            runtime.spawn(Self::give_back(Arc::clone(OwnedMutexGuard::mutex(turn))));
        }
    }

    /// Gives the lock back when no run took it up for a while. At the end of the runtime it is dropped, and gives it back too.
    async fn give_back(turn: Arc<LockQueue>) {
        let mut until = Clock::now() + LINGER;
        loop {
            tokio::time::sleep_until(until).await;
            until = Clock::now() + LINGER;
            let Ok(mut idle) = turn.try_lock() else { continue };
            match &idle.held {
                Some((_, since)) if since.elapsed() < LINGER => until = *since + LINGER,
                Some(_) | None => {
                    *idle = Self::default();
                    return;
                }
            }
        }
    }

    /// The lock, unless somebody has removed it.
    fn take(&mut self) -> Option<HeldLock> {
        self.held.take().map(|(held, _)| held).filter(|held| held.is_in_place())
    }
}

/// The message that a run begins with.
#[derive(Debug)]
pub struct TurnMessage {
    /// The message itself.
    pub message: Arc<Message>,
    /// Ids for its entry: the first, or the second if an entry has the first already.
    pub ids: [EntryId; 2],
}

impl TurnMessage {
    fn append_to(self, open: &mut OpenTranscript) -> Result<(), TranscriptError> {
        let [id, instead] = self.ids;
        open.begin_turn()?;
        let id = if open.contains(id.as_str()) { instead } else { id };
        open.append(Body::Message(StoredMessage::Known(self.message)), Some(id)).map(drop)
    }
}

static TURNS: Mutex<Option<HashMap<TranscriptRef, Weak<LockQueue>>>> = Mutex::new(None);

fn turn_of(transcript: &TranscriptRef) -> Arc<LockQueue> {
    let mut guard = TURNS.lock();
    let turns = guard.get_or_insert_with(HashMap::new);
    if let Some(turn) = turns.get(transcript).and_then(Weak::upgrade) {
        return turn;
    }
    turns.retain(|_, turn| turn.strong_count() > 0);
    let turn = Arc::new(LockQueue::default());
    turns.insert(transcript.clone(), Arc::downgrade(&turn));
    turn
}

impl TranscriptLock {
    /// Takes the lock of a transcript. Waits its turn for as long as it takes where this process holds it, and then up to
    /// [`LOCK_TIMEOUT`] for another process. Dropping the future gives up the place in the row.
    pub async fn acquire(transcripts: &Transcripts, transcript: &TranscriptRef) -> Result<Self, LockError> {
        Self::acquire_within(transcripts, transcript, LOCK_TIMEOUT).await
    }

    /// [`Self::acquire`] with another patience.
    pub async fn acquire_within(
        transcripts: &Transcripts,
        transcript: &TranscriptRef,
        patience: Duration,
    ) -> Result<Self, LockError> {
        let turn = turn_of(transcript).lock_owned().await;
        Self::keep_others_out(transcripts, transcript, turn, patience).await
    }

    /// [`Self::acquire_within`] that waits no longer than `patience` for this process either.
    pub async fn acquire_soon(
        transcripts: &Transcripts,
        transcript: &TranscriptRef,
        patience: Duration,
    ) -> Result<Self, LockError> {
        let Ok(turn) = tokio::time::timeout(patience, turn_of(transcript).lock_owned()).await else {
            let (holder, transcript) = (Some(std::process::id()), transcript.clone());
            return Err(LockError::Held { waited: patience, holder, transcript });
        };
        Self::keep_others_out(transcripts, transcript, turn, patience).await
    }

    /// Takes the lock if no other process has it. Waits its turn where this process does.
    pub async fn acquire_now(
        transcripts: &Transcripts,
        transcript: &TranscriptRef,
    ) -> Result<Self, LockError> {
        Self::acquire_within(transcripts, transcript, Duration::ZERO).await
    }

    /// Waits until no process holds the lock, however long that takes. Another one may have it before it is taken.
    pub async fn until_free(transcripts: &Transcripts, transcript: &TranscriptRef) {
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause + FIRST_PAUSE).min(LONGEST_PAUSE);
            let (logs, one) = (Arc::clone(transcripts.logs()), transcript.clone());
            let is_held = tokio::task::spawn_blocking(move || logs.is_locked(&one)).await;
            // An error here will come up again in the next attempt to take the lock.
            if !matches!(is_held, Ok(Ok(true))) {
                return;
            }
        }
    }

    async fn keep_others_out(
        transcripts: &Transcripts,
        transcript: &TranscriptRef,
        mut turn: OwnedMutexGuard<Idle>,
        patience: Duration,
    ) -> Result<Self, LockError> {
        let begun = Instant::now();
        let mut pause = FIRST_PAUSE;
        let lock = |held, turn| {
            let (logs, transcript) = (Arc::clone(transcripts.logs()), transcript.clone());
            let lingers = AtomicBool::new(false);
            Self(Arc::new(LockInner { held: Some(held), turn, logs, transcript, lingers }))
        };
        if let Some(held) = turn.take() {
            return Ok(lock(held, turn));
        }
        loop {
            let (logs, one) = (Arc::clone(transcripts.logs()), transcript.clone());
            let attempt = tokio::task::spawn_blocking(move || logs.try_lock(&one)).await;
            let attempt = attempt.unwrap_or_else(|_| Err(std::io::Error::other("interrupted")));
            let holder = match attempt {
                Ok(Ok(held)) => return Ok(lock(held, turn)),
                Ok(Err(holder)) => holder,
                Err(source) => return Err(LockError::Io { transcript: transcript.clone(), source }),
            };
            if begun.elapsed() + pause > patience {
                let transcript = transcript.clone();
                return Err(LockError::Held { waited: patience, holder, transcript });
            }
            tokio::time::sleep(pause).await;
            pause = (pause + FIRST_PAUSE).min(LONGEST_PAUSE);
        }
    }

    /// The transcript.
    pub fn transcript(&self) -> &TranscriptRef {
        &self.0.transcript
    }

    /// Lets the lock linger: after release other processes stay locked out for a moment, for the
    /// next run.
    pub fn linger(&self) {
        self.0.lingers.store(true, Ordering::Relaxed);
    }

    /// Opens the transcript, which is there.
    ///
    /// # Errors
    /// [`TranscriptError::Missing`] when it is not.
    pub async fn open(&self) -> Result<Transcript, TranscriptError> {
        self.work(|lock| Ok(Transcript::new(lock.open_now()?, lock))).await
    }

    /// Opens the transcript, or makes it. A kept transcript is reused if it is the same one and
    /// nobody has touched it since it was synced.
    ///
    /// # Errors
    /// When it can't be read or made.
    pub async fn reopen(
        &self,
        kept: Option<KeptTranscript>,
        new: NewTranscript,
    ) -> Result<Transcript, TranscriptError> {
        self.work(move |lock| lock.reopen_now(kept, &new)).await
    }

    /// All that a run does with its transcript before its first model call, in one go: [`Self::reopen`], notes the settings,
    /// reads the context, and then begins the turn with its message, where that is known not to be there.
    ///
    /// # Errors
    /// When it can't be read or written.
    pub async fn begin(
        &self,
        kept: Option<KeptTranscript>,
        new: NewTranscript,
        settings: ModelSettings,
        message: Option<TurnMessage>,
    ) -> Result<(Transcript, Context), TranscriptError> {
        let begin = move |lock: Self| {
            let transcript = lock.reopen_now(kept, &new)?;
            let context = transcript.now(|open| {
                open.note_settings(&settings)?;
                let context = open.context()?;
                message.map_or(Ok(()), |message| message.append_to(open))?;
                Ok(context)
            })?;
            Ok((transcript, context))
        };
        self.work(begin).await
    }

    /// Begins to open and read the transcript, if it is there, on another thread: [`Self::begin`]
    /// finds it known then. An error here comes up there again.
    pub fn read_ahead(&self) -> JoinHandle<Option<KeptTranscript>> {
        let lock = self.clone();
        tokio::task::spawn_blocking(move || {
            let open = lock.open_now().ok()?;
            let transcript = Transcript::new(open, lock);
            transcript.now(|open| open.context()).ok()?;
            Some(transcript.keep())
        })
    }

    /// Copies the branch of the last entry into a new transcript, in the place of one that is there.
    ///
    /// # Errors
    /// [`TranscriptError::Missing`] and [`TranscriptError::NotATranscript`] when there is nothing to begin with.
    pub async fn fork(&self, child: TranscriptRef, new: NewTranscript) -> Result<(), TranscriptError> {
        self.work(move |lock| fork_to(&lock.0.logs, &lock.0.transcript, &child, new)).await
    }

    /// Cuts the transcript down to at most so many entries of its branch, at once or not at all.
    ///
    /// # Errors
    /// When it can't be read or written; it is as it was then.
    pub async fn truncate(&self, most: NonZeroUsize) -> Result<LinesCompacted, TranscriptError> {
        self.work(move |lock| truncate(&lock.0.logs, &lock.0.transcript, most)).await
    }

    fn reopen_now(
        self,
        kept: Option<KeptTranscript>,
        new: &NewTranscript,
    ) -> Result<Transcript, TranscriptError> {
        match kept.filter(|kept| kept.is_still(&self.0.transcript)) {
            Some(KeptTranscript { shared, .. }) => Ok(Transcript { shared, lock: self }),
            None => {
                let open = OpenTranscript::open_or_create(&self.0.logs, &self.0.transcript, new)?;
                Ok(Transcript::new(open, self))
            }
        }
    }

    pub(super) fn downgrade(&self) -> WeakLock {
        WeakLock(Arc::downgrade(&self.0))
    }

    fn open_now(&self) -> Result<OpenTranscript, TranscriptError> {
        OpenTranscript::open(&self.0.logs, &self.0.transcript)
    }

    /// Runs work on the blocking pool. The lock is kept until that is over.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(Self) -> Result<T, TranscriptError> + Send + 'static,
    ) -> Result<T, TranscriptError> {
        let lock = self.clone();
        blocking(&self.0.transcript, move || work(lock)).await
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::disk;
    use crate::lockfile::LockKind;
    use crate::transcript::testing::{anywhere, lock};

    fn lock_path(transcript: &Path) -> PathBuf {
        disk::beside(transcript, "lock")
    }

    #[tokio::test]
    async fn the_lock_is_had_by_one_after_the_other_and_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let transcript = dir.path().join("a.jsonl");
        let first = lock(&transcript).await.unwrap();
        let content: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(lock_path(&transcript)).unwrap()).unwrap();
        assert_eq!(content["pid"], std::process::id());
        assert!(crate::time::parse_iso(content["createdAt"].as_str().unwrap()).is_some());
        let order = Mutex::new(Vec::new());
        let next = |name: &'static str| {
            let (transcript, order) = (&transcript, &order);
            async move {
                let lock =
                    TranscriptLock::acquire(&anywhere(), &TranscriptRef::new(transcript)).await.unwrap();
                order.lock().push(name);
                drop(lock);
            }
        };
        let (mut gives_up, mut second, mut third) =
            (Box::pin(next("gave up")), Box::pin(next("second")), Box::pin(next("third")));
        for waiting in [&mut gives_up, &mut second, &mut third] {
            let now = tokio::time::timeout(Duration::ZERO, waiting).await;
            assert!(now.is_err(), "the lock is held");
        }
        drop(gives_up);
        drop(first);
        tokio::join!(third, second);
        assert_eq!(*order.lock(), ["second", "third"]);
        assert!(!lock_path(&transcript).exists());
        let _other = lock(&dir.path().join("b.jsonl")).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_lock_of_a_run_is_kept_for_the_next_and_given_back_when_there_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let transcript = dir.path().join("a.jsonl");
        let file = lock_path(&transcript);
        let stamp = || disk::FileVersion::of(&file).unwrap();
        let end_run = async || {
            let run = lock(&transcript).await.unwrap();
            run.linger();
            let held = stamp();
            assert!(held.is_some());
            held
        };
        let first = end_run().await;
        assert_eq!(end_run().await, first, "no new file for the next run");
        tokio::time::sleep(LINGER / 2).await;
        assert_eq!(end_run().await, first);
        tokio::time::sleep(LINGER / 2).await;
        assert_eq!(stamp(), first, "its time begins anew with each run");
        tokio::time::sleep(LINGER * 2).await;
        assert_eq!(stamp(), None);

        // A person may have removed the lock by hand in between: then the file there may be
        // another's.
        end_run().await;
        let theirs = format!("{{\"pid\":{}}}", nix::unistd::getppid());
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, &theirs).unwrap();
        assert!(matches!(lock(&transcript).await, Err(LockError::Held { .. })));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), theirs);
        std::fs::remove_file(&file).unwrap();

        end_run().await;
        drop(lock(&transcript).await.unwrap());
        assert_eq!(stamp(), None, "what is no run gives it back at once");
    }

    #[tokio::test]
    async fn a_living_holder_is_waited_for_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let transcript = dir.path().join("a.jsonl");
        // The parent process lives as long as this test.
        let parent = nix::unistd::getppid();
        std::fs::write(lock_path(&transcript), format!("{{\"pid\":{parent},\"createdAt\":\"x\"}}")).unwrap();
        let error = lock(&transcript).await.unwrap_err();
        let expect =
            format!("session file locked (timeout 0ms): pid={parent} {}", lock_path(&transcript).display());
        assert_eq!(error.to_string(), expect);
        assert!(lock_path(&transcript).exists());
    }

    #[tokio::test]
    async fn locks_of_the_dead_and_of_a_former_self_are_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let transcript = dir.path().join("a.jsonl");
        let before = std::time::SystemTime::now() - Duration::from_secs(24 * 60 * 60);
        for content in ["{\"pid\":2147483646}", &format!("{{\"pid\":{}}}", std::process::id())] {
            std::fs::write(lock_path(&transcript), content).unwrap();
            let file = std::fs::File::options().write(true).open(lock_path(&transcript)).unwrap();
            file.set_modified(before).unwrap();
            let lock = lock(&transcript).await;
            assert!(lock.is_ok(), "{content} {lock:?}");
        }
    }

    #[tokio::test]
    async fn a_lock_of_another_process_is_free_once_it_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let transcript = dir.path().join("a.jsonl");
        std::fs::write(lock_path(&transcript), format!("{{\"pid\":{}}}", nix::unistd::getppid())).unwrap();
        let named = TranscriptRef::new(&transcript);
        let waiting = tokio::spawn(async move { TranscriptLock::until_free(&anywhere(), &named).await });
        let held = lock(&transcript).await;
        assert!(matches!(held, Err(LockError::Held { .. })), "{held:?}");
        assert!(!waiting.is_finished());
        std::fs::remove_file(lock_path(&transcript)).unwrap();
        waiting.await.unwrap();
        assert!(lock(&transcript).await.is_ok());
    }

    /// Values of `sessions.md` §4.7.
    #[test]
    fn the_lock_is_waited_for_as_openclaw_waits() {
        assert_eq!(
            (LOCK_TIMEOUT.as_millis(), LockKind::Transcript.counts_unheld_for().as_secs()),
            (10_000, 30 * 60)
        );
        assert_eq!((FIRST_PAUSE.as_millis(), LONGEST_PAUSE.as_millis()), (50, 1_000));
        let held = LockError::Held {
            waited: LOCK_TIMEOUT,
            holder: Some(7),
            transcript: TranscriptRef::new("/d/a.jsonl"),
        };
        assert_eq!(held.to_string(), "session file locked (timeout 10000ms): pid=7 /d/a.jsonl.lock");
    }

    #[tokio::test]
    async fn a_lock_that_names_nobody_counts_for_half_an_hour() {
        let dir = tempfile::tempdir().unwrap();
        let transcript = dir.path().join("a.jsonl");
        for (minutes, is_held) in [(29, true), (31, false)] {
            std::fs::write(lock_path(&transcript), "{\"createdAt\":\"x\"}").unwrap();
            let made = std::time::SystemTime::now() - Duration::from_secs(minutes * 60);
            let file = std::fs::File::options().write(true).open(lock_path(&transcript)).unwrap();
            file.set_modified(made).unwrap();
            let lock = lock(&transcript).await;
            let held = matches!(lock, Err(LockError::Held { holder: None, .. }));
            assert_eq!((held, lock.is_ok()), (is_held, !is_held), "{minutes} {lock:?}");
        }
    }
}
