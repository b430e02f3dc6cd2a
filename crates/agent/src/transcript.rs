//! Storage interface of a run: reads the history and records new messages.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use openclaw_protocol::message::{Message, UserMessage};
use openclaw_sessions::transcript::{Compaction, TranscriptError as Refused, View};

/// The branch a run works on. Every append is on disk (not necessarily synced) when its future ends; the caller syncs
/// at the points `docs/durability.md` names.
pub trait Transcript: Send + Sync {
    /// Messages of the current branch as the model should see them (compaction view applied), oldest first.
    fn context(&self) -> &Arc<Vec<Arc<Message>>>;

    /// Index in the initial context at which the messages of an earlier, interrupted process of
    /// this run begin, right after the run's own message. Equal to the context's length for a new
    /// message.
    fn own_from(&self) -> usize;

    /// Appends a message under the leaf. `id` fixes the entry's id, so that a message can be found again after a crash;
    /// `None` makes one.
    fn append<'a>(&'a mut self, message: &'a Message, id: Option<&'a str>) -> Written<'a, ()>;

    /// Appends an answer that calls tools, and does not wait for the disk: the
    /// context has it at once, and every later operation waits for it first. [`Self::settle`] ends the wait.
    fn append_ahead<'a>(&'a mut self, message: &'a Message) -> Written<'a, ()> {
        self.append(message, None)
    }

    /// Waits until everything appended is on disk (not necessarily synced).
    fn settle(&mut self) -> Written<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Makes what the model said durable, before a call of it acts on something outside: a power
    /// cut must not make the model forget what it has had done. No work is done if the entries are
    /// durable already.
    fn secure(&mut self) -> Written<'_, ()>;

    /// The entries that the context is made of.
    fn view(&mut self) -> Written<'_, View>;

    /// Appends a compaction, durably: the context is what it says from then on, and until then what it was.
    fn compact(&mut self, compaction: Compaction) -> Written<'_, ()>;
}

/// Future result of an operation on a transcript.
pub type Written<'a, T> = Pin<Box<dyn Future<Output = Result<T, TranscriptError>> + Send + 'a>>;

/// The transcript could not be written: the run ends with this as its error, nothing is acknowledged as done.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the transcript {path}: {source}")]
pub struct TranscriptError {
    /// The file.
    pub path: String,
    /// Underlying I/O error.
    #[source]
    pub source: std::io::Error,
}

impl TranscriptError {
    /// The error without the place of the file.
    pub fn without_place(&self) -> String {
        let behind = self.source.get_ref().and_then(|source| source.downcast_ref::<Refused>());
        behind.map_or_else(
            || format!("the conversation can't be written: {}", self.source),
            Refused::without_place,
        )
    }
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
