//! Where a run reads its history and writes what happens.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use openclaw_protocol::message::{Message, UserMessage};
use openclaw_sessions::transcript::{Compaction, View};

/// The branch a run works on. Every append is on disk (not necessarily synced) when its future ends; the caller syncs
/// at the points `docs/durability.md` names.
pub trait Transcript: Send + Sync {
    /// Messages of the current branch as the model should see them (compaction view applied), oldest first.
    fn context(&self) -> &Arc<Vec<Arc<Message>>>;

    /// Where in the context, before the run begins, what an earlier process has written in it begins: behind the run's own message. Its
    /// end for a new message.
    fn own_from(&self) -> usize;

    /// Appends a message under the leaf. `id` fixes the entry's id, so that a message can be found again after a crash;
    /// `None` makes one.
    fn append<'a>(&'a mut self, message: &'a Message, id: Option<&'a str>) -> Written<'a, ()>;

    /// The entries that the context is made of.
    fn view(&mut self) -> Written<'_, View>;

    /// Appends a compaction, durably: the context is what it says from then on, and until then what it was.
    fn compact(&mut self, compaction: Compaction) -> Written<'_, ()>;
}

/// What comes of work on a transcript.
pub type Written<'a, T> = Pin<Box<dyn Future<Output = Result<T, TranscriptError>> + Send + 'a>>;

/// The transcript could not be written: the run ends with this as its error, nothing is acknowledged as done.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the transcript {path}: {source}")]
pub struct TranscriptError {
    /// The file.
    pub path: String,
    /// What the system said.
    #[source]
    pub source: std::io::Error,
}

/// Brings what the user says while a run is under way.
pub trait Steering: Send + Sync {
    /// The oldest queued message, if any; one at a time (spec `agent-runtime.md` §2.4).
    fn poll(&self) -> Option<QueuedMessage>;
}

/// A message that joins a run under way.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedMessage {
    /// The message as the model should see it.
    pub message: UserMessage,
    /// Id of its transcript entry; `None` makes one.
    pub entry_id: Option<String>,
}
