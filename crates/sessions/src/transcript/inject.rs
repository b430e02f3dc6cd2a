//! Writing into a transcript while a run has it: between the run's own entries, never between a tool call and its result.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::message::Message;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::file::{Put, TranscriptFile};
use super::format::EntryId;
use super::{TranscriptError, run};

/// A second hand on a transcript that has an owner. Made by [`super::Transcript::lend`].
#[derive(Debug, Clone)]
pub struct Injector {
    pub(super) path: PathBuf,
    pub(super) file: Arc<Mutex<TranscriptFile>>,
}

impl Injector {
    /// Appends a message and makes it durable: at once, or as soon as the tool calls under way have their results, if that
    /// takes no longer than `patience`. `None`: the owner has ended meanwhile, and nothing was written.
    ///
    /// # Errors
    /// [`TranscriptError::CallUnderWay`] when it took too long; after an error nothing was written and nothing will be.
    pub async fn put(
        &self,
        message: Message,
        patience: Duration,
    ) -> Option<Result<EntryId, TranscriptError>> {
        let file = Arc::clone(&self.file);
        let put = run(&self.path, move || Ok(file.lock().put(message))).await;
        let (ticket, written) = match put {
            Ok(Put::Done(result)) => return Some(result),
            Ok(Put::Over) => return None,
            Ok(Put::Waits(ticket, written)) => (ticket, written),
            Err(error) => return Some(Err(error)),
        };
        self.written(ticket, written, patience).await
    }

    async fn written(
        &self,
        ticket: u64,
        mut written: oneshot::Receiver<Result<EntryId, TranscriptError>>,
        patience: Duration,
    ) -> Option<Result<EntryId, TranscriptError>> {
        if let Ok(result) = tokio::time::timeout(patience, &mut written).await {
            return result.ok();
        }
        let file = Arc::clone(&self.file);
        match run(&self.path, move || Ok(file.lock().take_back(ticket))).await {
            Ok(true) => Some(Err(TranscriptError::CallUnderWay(self.path.clone()))),
            // It was written, or the owner ended, in the last instant.
            Ok(false) => written.await.ok(),
            Err(error) => Some(Err(error)),
        }
    }
}
