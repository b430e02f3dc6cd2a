//! The session's transcript as a run sees it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use openclaw_agent::TranscriptError;
use openclaw_protocol::message::{Message, UserMessage};
use openclaw_sessions::transcript::{self, Body, EntryId, StoredMessage, Transcript};
use tokio_util::sync::CancellationToken;

use crate::inbox::Row;
use crate::lane::SteeringQueue;
use crate::system_events::{SystemEvents, SystemLine};

/// An open transcript, its branch in memory for the time of the run.
pub(super) struct RunBranch {
    transcript: Transcript,
    context: Vec<Message>,
    steering: Arc<SteeringQueue>,
    /// Once cancelled nothing is written any more: the run is left as a crash would leave it.
    kill: CancellationToken,
    telling: Option<Telling>,
}

/// System events that one message carries.
pub(super) struct Telling {
    /// The message's entry.
    pub(super) entry_id: String,
    /// Where they wait until the entry is written.
    pub(super) events: Arc<SystemEvents>,
    /// Their queue.
    pub(super) session_key: String,
    /// The lines.
    pub(super) lines: Vec<SystemLine>,
}

/// Whether a message is in the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Prompted {
    /// It is.
    Yes,
    /// It is not; this id is free for it.
    NotYet(String),
}

impl RunBranch {
    /// A transcript and what was read of it.
    pub(super) fn new(
        transcript: Transcript,
        context: Vec<Message>,
        steering: Arc<SteeringQueue>,
        kill: CancellationToken,
    ) -> Self {
        Self { transcript, context, steering, kill, telling: None }
    }

    /// The transcript, when the run is over.
    pub(super) fn into_transcript(self) -> Transcript {
        self.transcript
    }

    /// Once its message is written, the lines have been told.
    pub(super) fn tell(&mut self, telling: Telling) {
        self.telling = Some(telling);
    }

    /// Whether the message of a row was written by an earlier process. Ids are 32 random bits: an entry counts only if it
    /// is a user message of the very millisecond, and a taken id is replaced by the message's UUID.
    pub(super) async fn prompted(&self, row: &Row) -> Result<Prompted, transcript::TranscriptError> {
        let ids = [row.entry_id.as_str(), row.fresh_id.as_str()];
        if !ids.iter().any(|id| self.transcript.contains(id)) {
            return Ok(Prompted::NotYet(row.entry_id.clone()));
        }
        let entries = self.transcript.entries().await?;
        let ours = entries
            .iter()
            .any(|entry| ids.contains(&entry.id.as_str()) && is_said_at(&entry.body, row.accepted_at));
        Ok(if ours {
            Prompted::Yes
        } else {
            Prompted::NotYet(self.free_id(&row.entry_id, row.fresh_id.as_str()))
        })
    }

    /// Makes everything written durable.
    pub(super) async fn sync(&mut self) -> Result<(), transcript::TranscriptError> {
        self.transcript.sync().await
    }

    fn free_id(&self, id: &str, instead: &str) -> String {
        if self.transcript.contains(id) { instead.to_owned() } else { id.to_owned() }
    }

    async fn write(&mut self, message: &Message, id: Option<&str>) -> Result<(), TranscriptError> {
        if self.kill.is_cancelled() {
            return Err(
                self.error(io::Error::new(io::ErrorKind::Interrupted, "the gateway is shutting down"))
            );
        }
        let steered = self.steering.writing().filter(|job| id == Some(job.row.entry_id.as_str()));
        let id = match &steered {
            Some(job) => Some(self.free_id(&job.row.entry_id, job.row.fresh_id.as_str())),
            None => id.map(str::to_owned),
        };
        let tells = self.telling.take_if(|telling| id.as_deref() == Some(telling.entry_id.as_str()));
        let written = self.transcript.append_message(message.clone(), id.map(EntryId::new)).await;
        written.map_err(|error| self.error(io::Error::other(error)))?;
        if let Some(told) = tells {
            told.events.told(&told.session_key, &told.lines);
        }
        if steered.is_some() {
            self.steering.written();
        }
        self.context.push(message.clone());
        Ok(())
    }

    fn error(&self, source: io::Error) -> TranscriptError {
        TranscriptError { path: self.transcript.path().display().to_string(), source }
    }
}

/// Whether an entry is a user message with this timestamp.
fn is_said_at(body: &Body, at: i64) -> bool {
    matches!(
        body,
        Body::Message(StoredMessage::Known(Message::User(UserMessage { timestamp, .. }))) if *timestamp == at
    )
}

impl openclaw_agent::Transcript for RunBranch {
    fn context(&self) -> Vec<Message> {
        self.context.clone()
    }

    fn append<'a>(
        &'a mut self,
        message: &'a Message,
        id: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = Result<(), TranscriptError>> + Send + 'a>> {
        Box::pin(self.write(message, id))
    }
}
