//! Transcripts: what was said in a session, one JSON line an entry, each the child of another (spec `sessions.md` §4).
//!
//! [`mod@format`] is the file format, [`mod@file`] keeps one file open, as much of its end as is needed, and appends,
//! [`context`] decides what of a branch a model sees, [`guard`] holds what is checked before a message is appended, [`lock`]
//! is OpenClaw's write lock, [`backward`] reads from the end, [`fn@fork`] and [`compact_lines`] copy branches.
//! [`Transcript`] is the handle for asynchronous code.

pub mod backward;
pub mod context;
pub mod file;
mod fork;
pub mod format;
pub mod guard;
pub mod head;
pub mod index;
pub mod inject;
pub mod lock;
mod migrate;
mod rewrite;
pub(crate) mod scan;
mod truncate;
mod turn;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_protocol::message::Message;
use parking_lot::Mutex;

pub use context::Context;
pub use file::{Branch, ModelSettings, NewTranscript, TranscriptFile};
pub use fork::{MAX_FORK_TOKENS, fork, fork_path, fork_to, is_forkable};
pub use format::{Body, Entry, EntryId, Header, StoredMessage};
pub use guard::PendingCalls;
pub use inject::Injector;
pub use lock::{LockError, TranscriptLock};
pub use truncate::{CompactError, DEFAULT_MAX_LINES, LinesCompacted, compact_lines};
pub use turn::{TURN_START, Turn, TurnState};

/// Why a transcript could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// The disk refused. Nothing was appended.
    #[error("cannot {what} the transcript {path}: {source}")]
    Io {
        /// `read`, `write`, …
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// There is no such file.
    #[error("no transcript at {0}")]
    Missing(PathBuf),
    /// The first line is no session header, and the file is not one of the session's own that could be begun anew.
    #[error("{0} is not a transcript, its first line is no session header")]
    NotATranscript(PathBuf),
    /// An entry with this id is there already.
    #[error("transcript {path} already has an entry {id}")]
    DuplicateId {
        /// The file.
        path: PathBuf,
        /// The id.
        id: EntryId,
    },
    /// There is no entry with this id.
    #[error("transcript {path} has no entry {id}")]
    UnknownId {
        /// The file.
        path: PathBuf,
        /// The id.
        id: EntryId,
    },
    /// A tool call has no result yet and did not get one in time.
    #[error("a tool call is under way in {}, nothing can be written into it now; try again in a moment", .0.display())]
    CallUnderWay(PathBuf),
    /// The task that worked on the file was cancelled or panicked.
    #[error("work on the transcript {0} was interrupted")]
    Interrupted(PathBuf),
}

impl TranscriptError {
    pub(crate) fn io(what: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { what, path: path.to_path_buf(), source }
    }
}

/// An open transcript for asynchronous code: every call that touches the disk runs on the blocking pool. One owner at a
/// time, the session's actor.
#[derive(Debug)]
pub struct Transcript {
    path: PathBuf,
    file: Arc<Mutex<TranscriptFile>>,
}

impl Transcript {
    /// Opens an existing transcript; a torn last line is repaired.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, TranscriptError> {
        let path = path.into();
        let at = path.clone();
        run(&path, move || TranscriptFile::open(&at)).await.map(Self::from_file)
    }

    /// Creates a transcript with its header. Fails when there is a file.
    pub async fn create(path: impl Into<PathBuf>, new: NewTranscript) -> Result<Self, TranscriptError> {
        let path = path.into();
        let at = path.clone();
        run(&path, move || TranscriptFile::create(&at, &new)).await.map(Self::from_file)
    }

    /// Opens a transcript, or creates it where there is none. A file of the session's that is no transcript is moved aside.
    pub async fn open_or_create(
        path: impl Into<PathBuf>,
        new: NewTranscript,
    ) -> Result<Self, TranscriptError> {
        let path = path.into();
        let at = path.clone();
        run(&path, move || TranscriptFile::open_or_create(&at, &new)).await.map(Self::from_file)
    }

    /// All that a run needs of its transcript before its first model call, in one go: opens or creates it, notes the
    /// settings, reads the context. A transcript that was kept from an earlier run is used when it is this one and nobody
    /// has touched the file since it was synced.
    pub async fn begin(
        kept: Option<Self>,
        path: impl Into<PathBuf>,
        new: NewTranscript,
        settings: ModelSettings,
    ) -> Result<(Self, Context), TranscriptError> {
        let path = path.into();
        let kept = kept.filter(|kept| kept.path == path);
        let at = path.clone();
        run(&path, move || {
            let begun = Self::reopen_now(kept, &at, &new)?;
            let context = {
                let mut file = begun.file.lock();
                file.note_settings(&settings)?;
                file.context()?
            };
            Ok((begun, context))
        })
        .await
    }

    /// The kept transcript when it is this one and nobody has touched the file since, or else opens or creates it.
    pub async fn reopen(
        kept: Option<Self>,
        path: impl Into<PathBuf>,
        new: NewTranscript,
    ) -> Result<Self, TranscriptError> {
        let path = path.into();
        let kept = kept.filter(|kept| kept.path == path);
        let at = path.clone();
        run(&path, move || Self::reopen_now(kept, &at, &new)).await
    }

    fn reopen_now(kept: Option<Self>, at: &Path, new: &NewTranscript) -> Result<Self, TranscriptError> {
        match kept.filter(|kept| kept.file.lock().is_untouched()) {
            Some(kept) => Ok(kept),
            None => TranscriptFile::open_or_create(at, new).map(Self::from_file),
        }
    }

    fn from_file(file: TranscriptFile) -> Self {
        Self { path: file.path().to_path_buf(), file: Arc::new(Mutex::new(file)) }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The header.
    pub fn header(&self) -> Header {
        self.file.lock().header().clone()
    }

    /// The entry that the next append will be a child of.
    pub fn leaf(&self) -> Option<EntryId> {
        self.file.lock().leaf().cloned()
    }

    /// Whether there is an entry with this id on any branch, or may be in the part of a long file that has not been read.
    pub fn contains(&self, id: &str) -> bool {
        self.file.lock().contains(id)
    }

    /// How many entries are known: all, or the last ones of a long file.
    pub fn len(&self) -> usize {
        self.file.lock().len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends an entry under the leaf and makes it the leaf. `id` fixes its id; otherwise a new one is made. The bytes
    /// are with the system when the future ends, not necessarily on the disk: see [`Self::sync`].
    pub async fn append(&mut self, body: Body, id: Option<EntryId>) -> Result<EntryId, TranscriptError> {
        self.with_file(move |file| file.append(body, id)).await
    }

    /// [`Self::append`] for a message.
    pub async fn append_message(
        &mut self,
        message: Message,
        id: Option<EntryId>,
    ) -> Result<EntryId, TranscriptError> {
        self.append(Body::Message(StoredMessage::Known(message)), id).await
    }

    /// Appends the entries that say which model and thinking level apply from here on, as far as they are not said
    /// already. On a fresh transcript these are its first lines.
    pub async fn note_settings(&mut self, settings: ModelSettings) -> Result<(), TranscriptError> {
        self.with_file(move |file| file.note_settings(&settings)).await
    }

    /// Makes everything appended durable.
    pub async fn sync(&mut self) -> Result<(), TranscriptError> {
        self.with_file(TranscriptFile::sync).await
    }

    /// Takes in what others appended to the file meanwhile. Done by every append as well.
    pub async fn refresh(&mut self) -> Result<(), TranscriptError> {
        self.with_file(TranscriptFile::refresh).await
    }

    /// Lets others write into it between two entries of its owner's, until [`Self::end_lending`].
    pub fn lend(&self) -> Injector {
        self.file.lock().lend(true);
        Injector { path: self.path.clone(), file: Arc::clone(&self.file) }
    }

    /// From now on its owner writes alone. Who still waits for a place learns that nothing was written.
    pub fn end_lending(&self) {
        self.file.lock().lend(false);
    }

    /// Moves the leaf: later appends continue from there. Nothing is written.
    pub async fn branch(&mut self, to: Branch) -> Result<(), TranscriptError> {
        self.with_file(move |file| file.branch(to)).await
    }

    /// What a model should see of the current branch, compaction applied, and the settings in force.
    pub async fn context(&self) -> Result<Context, TranscriptError> {
        self.with_file(TranscriptFile::context).await
    }

    /// The tool calls at the end of the current branch that have no result yet.
    pub async fn pending_calls(&self) -> Result<PendingCalls, TranscriptError> {
        self.with_file(TranscriptFile::pending_calls).await
    }

    /// The turn of a message on the current branch: the last entry of one of these ids that is a person's message of this
    /// time. A message that `is_ours` does not know was said through another program, and begins a turn of its own. Of a long
    /// file no more is read than back to that time.
    pub async fn turn_of(
        &self,
        ids: Vec<EntryId>,
        said_at: i64,
        is_ours: impl Fn(&EntryId) -> bool + Send + 'static,
    ) -> Result<Option<Turn>, TranscriptError> {
        self.with_file(move |file| file.turn_of(&ids, said_at, is_ours)).await
    }

    /// To be called before a message that starts a turn is appended: where the branch ends within another turn, one that
    /// was cut short, an entry says that a new one begins.
    pub async fn begin_turn(&mut self) -> Result<(), TranscriptError> {
        self.with_file(TranscriptFile::begin_turn).await
    }

    /// The entries of the current branch, root first.
    pub async fn entries(&self) -> Result<Vec<Entry>, TranscriptError> {
        self.with_file(TranscriptFile::branch_entries).await
    }

    async fn with_file<T, F>(&self, work: F) -> Result<T, TranscriptError>
    where
        T: Send + 'static,
        F: FnOnce(&mut TranscriptFile) -> Result<T, TranscriptError> + Send + 'static,
    {
        let file = Arc::clone(&self.file);
        run(&self.path, move || work(&mut file.lock())).await
    }
}

async fn run<T, F>(path: &Path, work: F) -> Result<T, TranscriptError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, TranscriptError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(TranscriptError::Interrupted(path.to_path_buf())),
    }
}

/// Whether a file begins with a session header. Blocking.
pub(crate) fn is_transcript(path: &Path) -> bool {
    crate::disk::open_regular(path)
        .and_then(|file| backward::header_of(&file))
        .is_ok_and(|header| header.is_some())
}

/// The old file under a second name: whoever has it open writes into the copy at worst, and finds the new file at the next
/// look. Where there are no such names it is copied.
pub(crate) fn keep_old(path: &Path, archive: &Path) -> std::io::Result<()> {
    if std::fs::hard_link(path, archive).is_ok() {
        return Ok(());
    }
    let copied = std::fs::copy(path, archive).and_then(|_| std::fs::File::open(archive)?.sync_all());
    if copied.is_err() {
        let _ = std::fs::remove_file(archive);
    }
    copied
}

#[cfg(test)]
mod tests;
