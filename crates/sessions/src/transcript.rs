//! Transcripts: what was said in a session, one JSON line an entry, each the child of another (spec `sessions.md` §4).
//!
//! [`Transcripts`] is what the product knows: it finds transcripts and names them
//! ([`TranscriptRef`]). [`TranscriptLock`] is the right to write one, [`Transcript`] the handle for
//! that, both for asynchronous code; [`TranscriptReader`] reads. All of it stands above one small
//! port, [`TranscriptLogs`]: logs of bytes by reference. [`FileLogs`] keeps them in OpenClaw's files.
//!
//! [`mod@format`] is the format of a line. [`OpenTranscript`] keeps one log open, as much of its end as
//! is needed, and appends; [`backward`] reads from the end. [`context`] selects the entries of a branch
//! that a model sees, [`guard`] checks a message before it is appended.

pub(crate) mod backward;
pub mod context;
mod files;
mod fork;
pub mod format;
pub mod guard;
pub mod head;
pub mod index;
pub mod inject;
mod injector;
mod leave;
mod listing;
pub mod lock;
#[cfg(any(test, feature = "contract"))]
mod memory;
mod migrate;
#[cfg_attr(
    not(any(test, feature = "contract")),
    expect(unreachable_pub, reason = "benchmarks look at an open transcript itself")
)]
mod open;
mod reader;
mod refusal;
mod rewrite;
pub(crate) mod scan;
mod storage;
mod tail;
mod transcripts;
mod truncate;
mod turn;

use std::sync::Arc;

use injector::InjectionQueue;
use openclaw_protocol::message::Message;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

pub use context::{Context, View};
#[cfg(test)]
pub(crate) use files::testing;
pub use files::{FileLogs, sweep_locks};
pub use fork::{MAX_FORK_TOKENS, is_forkable};
pub use format::{Body, Compaction, Entry, EntryId, StoredMessage, TranscriptHeader};
pub use guard::PendingCalls;
pub use injector::Injector;
pub use leave::TURN_LEFT;
pub use listing::ListedTranscript;
pub use lock::{LockError, TranscriptLock, TurnMessage};
#[cfg(any(test, feature = "contract"))]
pub use memory::MemoryLogs;
#[cfg(any(test, feature = "contract"))]
pub use open::OpenTranscript;
#[cfg(not(any(test, feature = "contract")))]
use open::OpenTranscript;
pub use open::{Branch, ModelSettings, NewTranscript};
pub use reader::{Part, TranscriptReader, Visit};
pub use refusal::{is_of_disk, may_pass};
pub use storage::{
    FileVersion, HeldLock, KeepsOthersOut, OpenMode, TranscriptLog, TranscriptLogs, TranscriptRef, WriteLog,
};
pub use transcripts::Transcripts;
pub use truncate::{DEFAULT_MAX_LINES, LinesCompacted};
pub use turn::{TURN_START, TranscriptTurn, TurnState};

/// Reason why a transcript could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// The disk refused. Nothing was appended.
    #[error("cannot {what} the transcript {transcript}: {source}")]
    Io {
        /// `read`, `write`, …
        what: &'static str,
        /// Transcript that failed.
        transcript: TranscriptRef,
        /// Error from the system.
        #[source]
        source: std::io::Error,
    },
    /// There is no such transcript.
    #[error("no transcript at {0}")]
    Missing(TranscriptRef),
    /// The first line is not a session header, and the file is not one of the session's own that
    /// could be begun anew.
    #[error("{0} is not a transcript, its first line is no session header")]
    NotATranscript(TranscriptRef),
    /// An entry with this id is there already.
    #[error("transcript {transcript} already has an entry {id}")]
    DuplicateId {
        /// Transcript that failed.
        transcript: TranscriptRef,
        /// The id.
        id: EntryId,
    },
    /// There is no entry with this id.
    #[error("transcript {transcript} has no entry {id}")]
    UnknownId {
        /// Transcript that failed.
        transcript: TranscriptRef,
        /// The id.
        id: EntryId,
    },
    /// A tool call has no result yet and did not get one in time.
    #[error("a tool call is under way in {0}, nothing can be written into it now; try again in a moment")]
    CallUnderWay(TranscriptRef),
    /// The task that worked on the file was cancelled or panicked.
    #[error("work on the transcript {0} was interrupted")]
    Interrupted(TranscriptRef),
}

impl TranscriptError {
    pub(crate) fn io(what: &'static str, transcript: &TranscriptRef, source: std::io::Error) -> Self {
        Self::Io { what, transcript: transcript.clone(), source }
    }
}

/// An open transcript for asynchronous code: every call that touches the disk runs on the blocking
/// pool. The owner has its lock; [`TranscriptLock`] opens it.
#[derive(Debug)]
pub struct Transcript {
    shared: Arc<Mutex<InjectionQueue>>,
    lock: TranscriptLock,
}

impl Transcript {
    fn new(open: OpenTranscript, lock: TranscriptLock) -> Self {
        Self { shared: Arc::new(Mutex::new(InjectionQueue::new(open))), lock }
    }

    /// Reference of the transcript.
    pub fn transcript(&self) -> &TranscriptRef {
        self.lock.transcript()
    }

    /// Gives the lock back, and keeps the known part of the transcript for the next owner.
    pub fn keep(self) -> KeptTranscript {
        self.end_injections();
        KeptTranscript { transcript: self.transcript().clone(), shared: self.shared }
    }

    /// Lets others write into it between two entries of its owner's, until [`Self::end_injections`].
    pub fn injector(&self) -> Injector {
        self.shared.lock().accept(true);
        let (transcript, lock) = (self.transcript().clone(), self.lock.downgrade());
        Injector { transcript, lock, shared: Arc::downgrade(&self.shared) }
    }

    /// Stops injections: from now on its owner writes alone. Callers that still wait learn that
    /// nothing was written.
    pub fn end_injections(&self) {
        self.shared.lock().accept(false);
    }

    /// The header.
    pub fn header(&self) -> TranscriptHeader {
        self.shared.lock().open.header().clone()
    }

    /// The entry that the next append will be a child of.
    pub fn leaf(&self) -> Option<EntryId> {
        self.shared.lock().open.leaf().cloned()
    }

    /// True if there is an entry with this id on any branch, or may be in the part of a long
    /// transcript that has not been read.
    pub fn contains(&self, id: &str) -> bool {
        self.shared.lock().open.contains(id)
    }

    /// Appends an entry under the leaf and makes it the leaf. `id` fixes its id; otherwise a new one is made. The bytes
    /// are with the system when the future ends, not necessarily on the disk: see [`Self::sync`].
    pub async fn append(&mut self, body: Body, id: Option<EntryId>) -> Result<EntryId, TranscriptError> {
        self.work_shared(move |shared| shared.append(body, id)).await
    }

    /// [`Self::append`] for a message.
    pub async fn append_message(
        &mut self,
        message: impl Into<Arc<Message>>,
        id: Option<EntryId>,
    ) -> Result<EntryId, TranscriptError> {
        self.append(Body::Message(StoredMessage::Known(message.into())), id).await
    }

    /// Begins [`Self::append_message`] on the blocking pool. Nothing else may be begun before
    /// [`PendingAppend::written`].
    pub fn begin_append(&mut self, message: Arc<Message>) -> PendingAppend {
        let (shared, lock) = (Arc::clone(&self.shared), self.lock.clone());
        let body = Body::Message(StoredMessage::Known(message));
        let job = tokio::task::spawn_blocking(move || {
            let done = shared.lock().append(body, None);
            drop(lock);
            done
        });
        PendingAppend { transcript: self.transcript().clone(), job }
    }

    /// Makes everything appended durable.
    pub async fn sync(&mut self) -> Result<(), TranscriptError> {
        self.work(|open| open.sync()).await
    }

    /// Moves the leaf: later appends continue from there. Nothing is written.
    pub async fn branch(&mut self, to: Branch) -> Result<(), TranscriptError> {
        self.work(move |open| open.branch(to)).await
    }

    /// Context for a model: the current branch with compaction applied, and the settings in force.
    pub async fn context(&self) -> Result<Context, TranscriptError> {
        self.work(|open| open.context()).await
    }

    /// The entries that is made of, settings and the like among them.
    pub async fn view(&self) -> Result<View, TranscriptError> {
        self.work(|open| open.view()).await
    }

    /// Appends a compaction and makes it durable: a crash leaves either the old context or the new one, which is returned.
    pub async fn compact(&mut self, compaction: Compaction) -> Result<Context, TranscriptError> {
        self.work_shared(move |shared| {
            shared.append(Body::Compaction(compaction), None)?;
            shared.open.sync()?;
            shared.open.context()
        })
        .await
    }

    /// The tool calls at the end of the current branch that have no result yet.
    pub async fn pending_calls(&self) -> Result<PendingCalls, TranscriptError> {
        self.work(|open| open.pending_calls()).await
    }

    /// The turn of a message on the current branch: the last entry of one of these ids that is a
    /// person's message of this time. A message that `is_ours` does not know was said through
    /// another program, and begins a turn of its own. A long transcript is read back to that time
    /// only.
    pub async fn turn_of(
        &self,
        ids: Vec<EntryId>,
        said_at: i64,
        is_ours: impl Fn(&EntryId) -> bool + Send + 'static,
    ) -> Result<Option<TranscriptTurn>, TranscriptError> {
        self.work(move |open| open.turn_of(&ids, said_at, &is_ours)).await
    }

    /// Marks the beginning of a turn; to be called before the message that starts it is appended.
    /// If the branch ends within another turn, one that was cut short, an entry says that a new one
    /// begins.
    pub async fn begin_turn(&mut self) -> Result<(), TranscriptError> {
        let begin = |open: &mut OpenTranscript| {
            open.refresh()?;
            open.begin_turn()
        };
        self.work(begin).await
    }

    /// Goes on from before the turn of a message, where that is the message and one plain answer at the end of the branch; an
    /// entry in its place says so. `false`: it is something else, and stays.
    pub async fn leave_turn(&mut self, ids: Vec<EntryId>, said_at: i64) -> Result<bool, TranscriptError> {
        let leave = move |open: &mut OpenTranscript| {
            open.refresh()?;
            open.leave_turn(&ids, said_at)
        };
        self.work(leave).await
    }

    /// The entries of the current branch, root first.
    pub async fn entries(&self) -> Result<Vec<Entry>, TranscriptError> {
        self.work(|open| open.branch_entries()).await
    }

    fn now<T>(&self, work: impl FnOnce(&mut OpenTranscript) -> T) -> T {
        work(&mut self.shared.lock().open)
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut OpenTranscript) -> Result<T, TranscriptError> + Send + 'static,
    ) -> Result<T, TranscriptError> {
        self.work_shared(move |shared| work(&mut shared.open)).await
    }

    async fn work_shared<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut InjectionQueue) -> Result<T, TranscriptError> + Send + 'static,
    ) -> Result<T, TranscriptError> {
        let (shared, lock) = (Arc::clone(&self.shared), self.lock.clone());
        blocking(self.transcript(), move || {
            let done = work(&mut shared.lock());
            drop(lock);
            done
        })
        .await
    }
}

/// Append that may still be under way. It holds the lock, and ends also when this is dropped.
#[derive(Debug)]
pub struct PendingAppend {
    transcript: TranscriptRef,
    job: JoinHandle<Result<EntryId, TranscriptError>>,
}

impl PendingAppend {
    /// Waits for the append. Must not be called again after it has returned.
    ///
    /// # Errors
    /// When the entry could not be written.
    pub async fn written(&mut self) -> Result<EntryId, TranscriptError> {
        (&mut self.job).await.unwrap_or_else(|_| Err(TranscriptError::Interrupted(self.transcript.clone())))
    }
}

/// Index of a transcript that was open, kept for the next run. It can neither be read nor written:
/// [`TranscriptLock::reopen`] goes on with it.
#[derive(Debug)]
pub struct KeptTranscript {
    transcript: TranscriptRef,
    shared: Arc<Mutex<InjectionQueue>>,
}

impl KeptTranscript {
    /// Reference of the transcript.
    pub fn transcript(&self) -> &TranscriptRef {
        &self.transcript
    }

    /// About how much memory it takes, in bytes.
    pub fn memory(&self) -> usize {
        self.shared.lock().open.memory()
    }

    /// True if this is the given transcript and it has not changed since it was synced.
    fn is_still(&self, transcript: &TranscriptRef) -> bool {
        self.transcript == *transcript && self.shared.lock().open.is_untouched()
    }
}

async fn blocking<T, F>(transcript: &TranscriptRef, work: F) -> Result<T, TranscriptError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, TranscriptError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(TranscriptError::Interrupted(transcript.clone())),
    }
}

#[cfg(test)]
mod tests;
