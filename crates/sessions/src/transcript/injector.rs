//! Writing into a transcript beside the run that has it open: between the run's own entries, never between a tool call and
//! its result.

use std::sync::{Arc, Weak};
use std::time::Duration;

use openclaw_protocol::message::Message;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::format::{Body, EntryId};
use super::lock::WeakLock;
use super::open::OpenTranscript;
use super::storage::TranscriptRef;
use super::{TranscriptError, blocking};

type InjectionResult = Result<EntryId, TranscriptError>;

/// An open transcript with the messages that wait to be injected.
#[derive(Debug)]
pub(super) struct InjectionQueue {
    pub(super) open: OpenTranscript,
    /// True while messages may be injected.
    accepts: bool,
    tickets: u64,
    waiting: Vec<PendingInjection>,
}

#[derive(Debug)]
struct PendingInjection {
    ticket: u64,
    message: Message,
    id: Option<EntryId>,
    written: oneshot::Sender<InjectionResult>,
}

/// State of a message that is to be injected.
enum Put {
    /// The message is written and durable, or cannot be written.
    Done(InjectionResult),
    /// The message waits for the results of tool calls. The ticket takes it back.
    Waits(u64, oneshot::Receiver<InjectionResult>),
    /// The run is done with the transcript.
    Over,
}

impl InjectionQueue {
    pub(super) fn new(open: OpenTranscript) -> Self {
        Self { open, accepts: false, tickets: 0, waiting: Vec::new() }
    }

    /// Allows injections from now on, or ends them. Callers that wait then learn that nothing was
    /// written.
    pub(super) fn accept(&mut self, accepts: bool) {
        self.accepts = accepts;
        self.waiting.clear();
    }

    /// Appends an entry of the owner's, and then what waits, if it may stand there.
    pub(super) fn append(&mut self, body: Body, id: Option<EntryId>) -> InjectionResult {
        self.open.refresh()?;
        let id = self.open.append(body, id)?;
        if let Err(error) = self.write_waiting() {
            // The entry itself is written. What waits goes on waiting.
            tracing::warn!(%error, "messages that are to be injected into the transcript have to wait");
        }
        Ok(id)
    }

    fn put(&mut self, message: Message, id: Option<EntryId>) -> Put {
        if !self.accepts {
            return Put::Over;
        }
        match self.open.pending_calls() {
            Ok(pending) if pending.is_empty() => Put::Done(self.append_durably(message, id)),
            Ok(_) => {
                let (written, done) = oneshot::channel();
                self.tickets += 1;
                self.waiting.push(PendingInjection { ticket: self.tickets, message, id, written });
                Put::Waits(self.tickets, done)
            }
            Err(error) => Put::Done(Err(error)),
        }
    }

    /// True if the message was still waiting; then it is not written any more.
    fn take_back(&mut self, ticket: u64) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.ticket != ticket);
        self.waiting.len() < before
    }

    fn write_waiting(&mut self) -> Result<(), TranscriptError> {
        if self.waiting.is_empty() || !self.open.pending_calls()?.is_empty() {
            return Ok(());
        }
        for PendingInjection { message, id, written, .. } in std::mem::take(&mut self.waiting) {
            // The asker may have gone; the message stays in the transcript.
            let _ = written.send(self.append_durably(message, id));
        }
        Ok(())
    }

    fn append_durably(&mut self, message: Message, id: Option<EntryId>) -> InjectionResult {
        self.open.refresh()?;
        let id = self.open.append(message.into(), id)?;
        self.open.sync()?;
        Ok(id)
    }
}

/// Writes into a transcript that a run has open. Made by [`super::Transcript::injector`].
#[derive(Debug, Clone)]
pub struct Injector {
    pub(super) transcript: TranscriptRef,
    pub(super) lock: WeakLock,
    pub(super) shared: Weak<Mutex<InjectionQueue>>,
}

impl Injector {
    /// The transcript.
    pub fn transcript(&self) -> &TranscriptRef {
        &self.transcript
    }

    /// Appends a message and makes it durable: at once, or as soon as the tool calls under way have their results, if that
    /// takes no longer than `patience`. `id` fixes the entry's. `None`: the run is done with it, and nothing was written.
    ///
    /// # Errors
    /// [`TranscriptError::CallUnderWay`] when it took too long; after an error nothing was written and nothing will be.
    pub async fn put(
        &self,
        message: Message,
        id: Option<EntryId>,
        patience: Duration,
    ) -> Option<Result<EntryId, TranscriptError>> {
        match self.work(move |shared| shared.put(message, id)).await {
            Ok(Some(Put::Done(result))) => Some(result),
            Ok(Some(Put::Waits(ticket, written))) => self.written(ticket, written, patience).await,
            Ok(Some(Put::Over) | None) => None,
            Err(error) => Some(Err(error)),
        }
    }

    async fn written(
        &self,
        ticket: u64,
        mut written: oneshot::Receiver<InjectionResult>,
        patience: Duration,
    ) -> Option<InjectionResult> {
        if let Ok(result) = tokio::time::timeout(patience, &mut written).await {
            return result.ok();
        }
        match self.work(move |shared| shared.take_back(ticket)).await {
            Ok(Some(true)) => Some(Err(TranscriptError::CallUnderWay(self.transcript.clone()))),
            // The message was written, or the run ended, in the last instant.
            Ok(Some(false) | None) => written.await.ok(),
            Err(error) => Some(Err(error)),
        }
    }

    /// `None` when the run has given the transcript back.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut InjectionQueue) -> T + Send + 'static,
    ) -> Result<Option<T>, TranscriptError> {
        let (Some(lock), Some(shared)) = (self.lock.get(), Weak::upgrade(&self.shared)) else {
            return Ok(None);
        };
        let work = move || {
            let done = work(&mut Arc::clone(&shared).lock());
            drop(lock);
            Ok(Some(done))
        };
        blocking(&self.transcript, work).await
    }
}
