//! Transcript storage: the narrow interface that the product knows. [`super::FileTranscripts`]
//! keeps them in OpenClaw's files. Everything here blocks; [`super::TranscriptLock`] and
//! [`super::Transcript`] are for asynchronous code.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_protocol::{AgentId, SessionId};

use super::context::{Context, View};
use super::file::{Branch, ModelSettings, NewTranscript};
use super::format::{Body, Entry, EntryId, TranscriptHeader};
use super::guard::PendingCalls;
use super::head::Kind;
use super::turn::TranscriptTurn;
use super::{LinesCompacted, TranscriptError};
use crate::entry::SessionEntry;
use crate::key::SessionKey;
use crate::layout::{BadSessionId, topic_of};

/// Names a transcript. Only the implementation that made it knows where that is; its text is for people, for rows
/// (`sessionFile`) and for the wire.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TranscriptRef(Arc<OsStr>);

impl TranscriptRef {
    /// Normalises a path, so that comparing two is comparing bytes.
    pub(crate) fn new(path: impl AsRef<Path>) -> Self {
        let path: PathBuf = path.as_ref().components().collect();
        Self(Arc::from(path.into_os_string()))
    }

    pub(crate) fn path(&self) -> &Path {
        Path::new(&*self.0)
    }
}

impl fmt::Display for TranscriptRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().display().fmt(f)
    }
}

/// Says that the caller holds the lock of a transcript. Only [`super::TranscriptLock`] makes it.
#[derive(Debug, Clone, Copy)]
pub struct Locked<'a>(pub(super) &'a TranscriptRef);

impl Locked<'_> {
    /// The transcript.
    pub fn transcript(&self) -> &TranscriptRef {
        self.0
    }
}

/// The lock file, or whatever keeps other processes out. Given back on drop.
pub type HeldLock = Box<dyn KeepsOthersOut>;

/// Guard that locks other processes out of a transcript while it lives.
pub trait KeepsOthersOut: Send + Sync {
    /// True if the guard still holds: a person may have removed it, or another process may have
    /// taken its place.
    fn is_in_place(&self) -> bool;
}

/// Gives a reader for each transcript ([`Transcripts::readers`]).
pub type Readers = Box<dyn FnMut(&TranscriptRef) -> Box<dyn TranscriptReader> + Send>;

/// Result of opening a transcript.
pub type Opened = Result<Box<dyn OpenTranscript>, TranscriptError>;

/// Transcripts by reference. Every implementation keeps the laws of the module `transcript_contract`.
pub trait Transcripts: fmt::Debug + Send + Sync {
    /// The transcript that a new session id gets.
    ///
    /// # Errors
    /// When the id is not fit for it.
    fn of_new(&self, agent: &AgentId, id: &SessionId) -> Result<TranscriptRef, BadSessionId>;

    /// The same for a conversation in a topic of a group.
    ///
    /// # Errors
    /// When the id is not fit for it.
    fn of_topic(&self, agent: &AgentId, id: &SessionId, topic: &str) -> Result<TranscriptRef, BadSessionId>;

    /// The transcript of a session's conversation that no row names, or not yet: the one that is
    /// there, under the name of its topic or, as earlier versions made it, under its id alone; else
    /// the one to be made. A transcript that a crash left behind is found this way.
    ///
    /// # Errors
    /// When the id is not fit for it.
    fn of_conversation(
        &self,
        agent: &AgentId,
        key: &SessionKey,
        id: &SessionId,
    ) -> Result<TranscriptRef, BadSessionId> {
        let bare = SessionEntry { session_id: Some(id.clone()), ..SessionEntry::default() };
        let Some(topic) = topic_of(key) else {
            return self.to_write(agent, &bare)?.map_or_else(|| self.of_new(agent, id), Ok);
        };
        let named = self.of_topic(agent, id, topic)?;
        if self.exists(&named) {
            return Ok(named);
        }
        Ok(self.find(agent, &bare).unwrap_or(named))
    }

    /// The transcript of a row, if there is one.
    fn find(&self, agent: &AgentId, row: &SessionEntry) -> Option<TranscriptRef>;

    /// The transcript that a run of a row goes on in: the one that [`Self::find`] finds, else the one to be made. `None` when
    /// the row names none.
    ///
    /// # Errors
    /// When the row's id is not fit for it.
    fn to_write(&self, agent: &AgentId, row: &SessionEntry) -> Result<Option<TranscriptRef>, BadSessionId>;

    /// True if a row itself says that this is its transcript.
    fn is_named_by(&self, transcript: &TranscriptRef, agent: &AgentId, row: &SessionEntry) -> bool;

    /// True if the transcript exists.
    fn exists(&self, transcript: &TranscriptRef) -> bool;

    /// All transcripts that go when a row is deleted: its own, and those of its topics.
    fn all_of(&self, agent: &AgentId, row: &SessionEntry) -> Vec<TranscriptRef>;

    /// The transcript of a session that begins with a parent's branch at this time (Unix milliseconds).
    fn of_fork(&self, parent: &TranscriptRef, id: &SessionId, at: i64) -> TranscriptRef;

    /// Reader of a transcript. Opens nothing yet.
    fn reader(&self, transcript: &TranscriptRef) -> Box<dyn TranscriptReader>;

    /// The same for many, one behind the other: what they have in common is looked at once.
    fn readers(&self) -> Readers;

    /// Keeps other processes out, if none has the transcript; else the one that has it, where that is known.
    ///
    /// # Errors
    /// When it can't be told.
    fn try_lock(&self, transcript: &TranscriptRef) -> io::Result<Result<HeldLock, Option<u32>>>;

    /// True if a process holds the transcript's lock.
    ///
    /// # Errors
    /// When it can't be told.
    fn is_locked(&self, transcript: &TranscriptRef) -> io::Result<bool>;

    /// Opens a transcript that is there.
    ///
    /// # Errors
    /// [`TranscriptError::Missing`] when there is none.
    fn open(&self, lock: Locked<'_>) -> Opened;

    /// Opens a transcript, or makes it.
    ///
    /// # Errors
    /// When it can't be read or made.
    fn open_or_create(&self, lock: Locked<'_>, new: &NewTranscript) -> Opened;

    /// Copies the branch of the parent's last entry into a new transcript, in the place of one that is there.
    ///
    /// # Errors
    /// [`TranscriptError::Missing`] and [`TranscriptError::NotATranscript`] when there is nothing to begin with.
    fn fork(
        &self,
        parent: Locked<'_>,
        child: &TranscriptRef,
        new: NewTranscript,
    ) -> Result<(), TranscriptError>;

    /// Cuts a transcript down to at most so many entries of its branch, at once or not at all.
    ///
    /// # Errors
    /// When it can't be read or written; it is as it was then.
    fn truncate(&self, lock: Locked<'_>, most: NonZeroUsize) -> Result<LinesCompacted, TranscriptError>;

    /// Puts a transcript away, for its session was deleted. Returns what it is called from now on.
    ///
    /// # Errors
    /// When it stays.
    fn archive(&self, transcript: &TranscriptRef) -> io::Result<String>;
}

/// Callback that is shown entries: kind, id, and JSON text.
pub type Visit<'a> = dyn FnMut(Kind, Option<&EntryId>, &[u8]) -> ControlFlow<()> + 'a;

/// Entries that [`TranscriptReader::visit`] shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The branch of the last entry, leaf first.
    Branch,
    /// The same, as far as it stands in the last bytes.
    End {
        /// Bytes at most.
        bytes: u64,
    },
    /// The first entries in their order, of all branches.
    Beginning {
        /// Lines at most, the header counted.
        lines: usize,
        /// Bytes at most.
        bytes: u64,
    },
}

/// Reads a transcript.
pub trait TranscriptReader: Send {
    /// Shows entries until `visit` breaks.
    ///
    /// # Errors
    /// When it can't be read; [`io::ErrorKind::NotFound`] when there is none.
    fn visit(&self, part: Part, visit: &mut Visit<'_>) -> io::Result<()>;
}

/// An open transcript.
pub trait OpenTranscript: fmt::Debug + Send {
    /// The header.
    fn header(&self) -> &TranscriptHeader;

    /// The entry that the next append will be a child of.
    fn leaf(&self) -> Option<&EntryId>;

    /// True if there is an entry with this id on any branch, or may be in a part that has not been
    /// read.
    fn contains(&self, id: &str) -> bool;

    /// Number of known entries.
    fn len(&self) -> usize;

    /// About how much memory it takes while it is kept, in bytes.
    fn memory(&self) -> usize;

    /// True if no entry is known.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes in changes by others. Later reads and appends build on the file as it is at this
    /// moment.
    ///
    /// # Errors
    /// [`TranscriptError::Missing`] when it is gone; when it can't be read.
    fn refresh(&mut self) -> Result<(), TranscriptError>;

    /// Appends an entry under the leaf and makes it the leaf. A message is stored as [`super::guard`] has it, after results
    /// for tool calls that get none any more.
    ///
    /// # Errors
    /// [`TranscriptError::DuplicateId`]; after any error nothing but such results was appended.
    fn append(&mut self, body: Body, id: Option<EntryId>) -> Result<EntryId, TranscriptError>;

    /// Appends the entries that say which model and thinking level apply, as far as the branch does not say it.
    ///
    /// # Errors
    /// When it can't be read or written.
    fn note_settings(&mut self, settings: &ModelSettings) -> Result<(), TranscriptError>;

    /// Appends an entry that marks the beginning of a new turn, if the branch ends within another
    /// turn.
    ///
    /// # Errors
    /// When it can't be read or written.
    fn begin_turn(&mut self) -> Result<(), TranscriptError>;

    /// Makes everything appended durable.
    ///
    /// # Errors
    /// When the disk refuses.
    fn sync(&mut self) -> Result<(), TranscriptError>;

    /// True if nobody has touched the transcript since it was synced.
    fn is_untouched(&self) -> bool;

    /// Moves the leaf. Nothing is written.
    ///
    /// # Errors
    /// [`TranscriptError::UnknownId`]
    fn branch(&mut self, to: Branch) -> Result<(), TranscriptError>;

    /// Context for a model: the branch as it should see it.
    ///
    /// # Errors
    /// When it can't be read.
    fn context(&mut self) -> Result<Context, TranscriptError>;

    /// The entries that is made of, settings and the like among them.
    ///
    /// # Errors
    /// When it can't be read.
    fn view(&mut self) -> Result<View, TranscriptError>;

    /// Tool calls at the end of the branch that have no result.
    ///
    /// # Errors
    /// When it can't be read.
    fn pending_calls(&mut self) -> Result<PendingCalls, TranscriptError>;

    /// The turn of the last entry of one of these ids that is a person's message of this time. A message that `is_ours` does
    /// not know was said through another program, and begins a turn of its own.
    ///
    /// # Errors
    /// When it can't be read.
    fn turn_of(
        &mut self,
        ids: &[EntryId],
        said_at: i64,
        is_ours: &dyn Fn(&EntryId) -> bool,
    ) -> Result<Option<TranscriptTurn>, TranscriptError>;

    /// Goes on from before the turn of a message (as [`Self::turn_of`] finds it), where that is the message and one plain answer
    /// at the end of the branch, and appends an entry that says so. `false`: it is something else, and stays.
    ///
    /// # Errors
    /// When it can't be read or written; the branch is as it was then.
    fn leave_turn(&mut self, ids: &[EntryId], said_at: i64) -> Result<bool, TranscriptError>;

    /// The entries of the branch, root first.
    ///
    /// # Errors
    /// When it can't be read.
    fn entries(&mut self) -> Result<Vec<Entry>, TranscriptError>;
}
