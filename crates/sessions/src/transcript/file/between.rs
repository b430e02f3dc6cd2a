//! Messages of others that wait for a place between the entries of whoever has the file.

use openclaw_protocol::message::Message;
use tokio::sync::oneshot;

use super::TranscriptFile;
use crate::transcript::TranscriptError;
use crate::transcript::format::{Body, EntryId, StoredMessage};

/// What became of a message that was put in.
#[derive(Debug)]
pub(in crate::transcript) enum Put {
    /// It is written and durable, or cannot be written.
    Done(Result<EntryId, TranscriptError>),
    /// It waits for the results of tool calls. The ticket takes it back.
    Waits(u64, oneshot::Receiver<Result<EntryId, TranscriptError>>),
    /// Nobody has the file any more.
    Over,
}

/// Those who wait.
#[derive(Debug, Default)]
pub(super) struct Between {
    lent: bool,
    tickets: u64,
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    message: Message,
    id: Option<EntryId>,
    written: oneshot::Sender<Result<EntryId, TranscriptError>>,
}

impl TranscriptFile {
    /// From now on others may put messages in, or no longer. Who waits then is told that nothing was written.
    pub(in crate::transcript) fn lend(&mut self, lent: bool) {
        self.between.lent = lent;
        self.between.waiting.clear();
    }

    /// Appends a message now, or as soon as no tool call is without its result. `id` fixes the entry's.
    pub(in crate::transcript) fn put(&mut self, message: Message, id: Option<EntryId>) -> Put {
        if !self.between.lent {
            return Put::Over;
        }
        match self.pending_calls() {
            Ok(pending) if pending.is_empty() => Put::Done(self.append_durably(message, id)),
            Ok(_) => {
                let (written, done) = oneshot::channel();
                self.between.tickets += 1;
                let ticket = self.between.tickets;
                self.between.waiting.push(Waiting { ticket, message, id, written });
                Put::Waits(ticket, done)
            }
            Err(error) => Put::Done(Err(error)),
        }
    }

    /// Whether the message still waited; then it is not written any more.
    pub(in crate::transcript) fn take_back(&mut self, ticket: u64) -> bool {
        let before = self.between.waiting.len();
        self.between.waiting.retain(|waiting| waiting.ticket != ticket);
        self.between.waiting.len() < before
    }

    /// After an append: writes what waits, if this is a place for it.
    pub(super) fn write_waiting(&mut self) -> Result<(), TranscriptError> {
        if self.between.waiting.is_empty() || !self.pending_calls()?.is_empty() {
            return Ok(());
        }
        for Waiting { message, id, written, .. } in std::mem::take(&mut self.between.waiting) {
            // Who asked may have gone; the message stays in the transcript.
            let _ = written.send(self.append_durably(message, id));
        }
        Ok(())
    }

    fn append_durably(&mut self, message: Message, id: Option<EntryId>) -> Result<EntryId, TranscriptError> {
        let id = self.append(Body::Message(StoredMessage::Known(message)), id)?;
        self.sync()?;
        Ok(id)
    }
}
