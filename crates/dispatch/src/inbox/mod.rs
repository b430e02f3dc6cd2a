//! The inbox: every accepted message until its run has ended, and for a while how it ended (`docs/durability.md`).
//!
//! One thread writes. It takes whatever has queued up, applies it in one transaction and syncs once, so that many clients
//! share one fsync; readers use a connection of their own beside it.

mod format;
mod reader;
mod refused;
mod schema;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_protocol::{RunId, SessionId};
use tokio::sync::{mpsc, oneshot};

pub(crate) use format::Payload;
#[cfg(test)]
pub(crate) use format::{AgentPayload, ChatPayload};

use crate::api::{AbortReason, RunRecord};
use reader::Reader;
use refused::Refused;
use writer::{Command, Writer};

/// Name of the database in the state directory.
pub(crate) const FILE_NAME: &str = "gateway.sqlite";

/// Commands that may wait for the writer before those who send them have to.
const MAILBOX: usize = 1024;

/// A message in the inbox.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The run, unique: this is the dedupe key.
    pub(crate) run_id: RunId,
    /// Canonical session key.
    pub(crate) session_key: String,
    /// What was asked.
    pub(crate) payload: Payload,
    /// Unix milliseconds. Also the timestamp of the user message, by which its entry is recognised.
    pub(crate) accepted_at: i64,
    /// Id of the transcript entry that will hold the user message: 8 hex digits.
    pub(crate) entry_id: String,
    /// A UUID of this message's own: the session id if the run opens a new session, and the entry id should `entry_id`
    /// be taken.
    pub(crate) fresh_id: SessionId,
    /// The session the run has begun in.
    pub(crate) session_id: Option<SessionId>,
    /// Someone asked to stop it.
    pub(crate) abort: Option<AbortReason>,
}

/// What the inbox knows of a run id.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Known {
    /// Still to be done.
    Unfinished {
        /// Unix milliseconds.
        accepted_at: i64,
    },
    /// Done.
    Finished(RunRecord),
}

/// What came of [`Inbox::accept`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Insert {
    /// It is on disk.
    New,
    /// The run id was there already.
    Known(Known),
}

/// Nothing was written.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum InboxError {
    /// SQLite said no: full disk, unwritable directory, broken file.
    #[error("{0}")]
    Storage(String),
    /// The writer has ended.
    #[error("the inbox is closed")]
    Closed,
}

impl From<rusqlite::Error> for InboxError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Storage(error.to_string())
    }
}

/// Handle to the inbox.
#[derive(Clone)]
pub(crate) struct Inbox {
    commands: mpsc::Sender<Command>,
    reader: Arc<Reader>,
    refused: Refused,
}

/// The thread behind an [`Inbox`], to be joined at shutdown.
pub(crate) type WriterThread = std::thread::JoinHandle<()>;

/// An open inbox: the handle, its thread, and what is left to do, oldest first.
pub(crate) struct Opened {
    /// The handle.
    pub(crate) inbox: Inbox,
    /// Ends once every handle is gone or after [`Inbox::close`].
    pub(crate) thread: WriterThread,
    /// Every row that is not finished, in order of acceptance.
    pub(crate) unfinished: Vec<Row>,
}

impl Inbox {
    /// Opens or creates the database. Blocking.
    pub(crate) fn open(state_dir: &Path) -> Result<Opened, InboxError> {
        let path: PathBuf = state_dir.join(FILE_NAME);
        let connection = schema::open(&path)?;
        let unfinished = reader::unfinished(&connection)?;
        let reader = Arc::new(Reader::new(schema::open_reader(&path)?));
        let (commands, mailbox) = mpsc::channel(MAILBOX);
        let refused = Refused::default();
        let writer = Writer::new(connection, refused.clone());
        let thread = std::thread::Builder::new()
            .name("inbox".to_owned())
            .spawn(move || writer.run(mailbox))
            .map_err(|error| InboxError::Storage(format!("cannot start the inbox thread: {error}")))?;
        Ok(Opened { inbox: Self { commands, reader, refused }, thread, unfinished })
    }

    /// Stores a message; when this returns [`Insert::New`] it is synced to disk.
    pub(crate) async fn accept(&self, row: Row) -> Result<Insert, InboxError> {
        self.ask(|reply| Command::Accept { row: Box::new(row), reply }).await
    }

    /// Notes the session in which a run begins.
    pub(crate) async fn begin(&self, run_id: &RunId, session_id: &SessionId) -> Result<(), InboxError> {
        let (run_id, session_id) = (run_id.clone(), session_id.clone());
        self.ask(|reply| Command::Begin { run_id, session_id, reply }).await
    }

    /// Notes that runs are to be stopped, so that they are not taken up again after a crash.
    pub(crate) async fn mark_aborted(&self, runs: Vec<RunId>, reason: AbortReason) -> Result<(), InboxError> {
        self.ask(|reply| Command::Abort { runs, reason, reply }).await
    }

    /// Marks a run finished. Should the disk refuse, the writer keeps trying; the answer is the error of the first try.
    pub(crate) async fn finish(&self, record: RunRecord) -> Result<(), InboxError> {
        self.ask(|reply| Command::Finish { record, reply }).await
    }

    /// What is known of a run id.
    pub(crate) async fn find(&self, run_id: &RunId) -> Result<Option<Known>, InboxError> {
        // It has ended, whatever the disk says of it.
        if let Some(record) = self.refused.find(run_id) {
            return Ok(Some(Known::Finished(record)));
        }
        let (reader, run_id) = (Arc::clone(&self.reader), run_id.clone());
        tokio::task::spawn_blocking(move || reader.find(&run_id)).await.map_err(|_| InboxError::Closed)?
    }

    /// Ends the writer after what is queued.
    pub(crate) async fn close(&self) {
        // The writer has ended already: nothing to close.
        let _ = self.commands.send(Command::Close).await;
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, InboxError>>) -> Command,
    ) -> Result<T, InboxError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| InboxError::Closed)?;
        answer.await.map_err(|_| InboxError::Closed)?
    }
}

#[cfg(test)]
mod tests;
