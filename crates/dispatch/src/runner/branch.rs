//! The session's transcript as a run sees it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use openclaw_agent::TranscriptError;
use openclaw_protocol::message::{AssistantMessage, Message, StopReason, UserMessage};
use openclaw_sessions::transcript::{self, Body, EntryId, StoredMessage, Transcript};
use tokio_util::sync::CancellationToken;

use super::lent::{Lent, LentTranscripts};
use super::{inject, result};
use crate::api::AbortReason;
use crate::inbox::Row;
use crate::lane::SteeringQueue;
use crate::system_events::{SystemEvents, SystemLine};

/// An open transcript, its branch in memory for the time of the run.
pub(super) struct RunBranch {
    transcript: Transcript,
    context: Vec<Message>,
    steering: Arc<SteeringQueue>,
    /// Who stopped the run.
    reason: Arc<OnceLock<AbortReason>>,
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
        reason: Arc<OnceLock<AbortReason>>,
        kill: CancellationToken,
    ) -> Self {
        Self { transcript, context, steering, reason, kill, telling: None }
    }

    /// Lets others write between the run's entries.
    pub(super) fn lend(&self, all: &Arc<LentTranscripts>) -> Lent {
        all.enter(self.transcript.path(), self.transcript.lend())
    }

    /// The run writes alone again.
    pub(super) fn end_lending(&self) {
        self.transcript.end_lending();
    }

    /// The run was begun by an earlier process: what others wrote since is not its own.
    pub(super) fn forget_injected(&mut self) {
        inject::without_injected(&mut self.context);
    }

    /// Writes a person's message.
    pub(super) async fn say(&mut self, message: UserMessage, id: &str) -> Result<(), TranscriptError> {
        self.write(&Message::User(message), Some(id)).await
    }

    /// After a run that was stopped by the clock: something is said to the user's last words.
    pub(super) async fn close_timed_out(&mut self, said: AssistantMessage) -> Result<(), TranscriptError> {
        match self.context.last() {
            Some(Message::Assistant(_)) | None => Ok(()),
            Some(Message::User(_) | Message::ToolResult(_)) => {
                self.write(&Message::Assistant(said), None).await
            }
        }
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
        let message = self.explained(message);
        let written = self.transcript.append_message(message.clone(), id.map(EntryId::new)).await;
        written.map_err(|error| self.error(io::Error::other(error)))?;
        if let Some(told) = tells {
            told.events.told(&told.session_key, &told.lines);
        }
        if steered.is_some() {
            self.steering.written();
        }
        self.context.push(message);
        Ok(())
    }

    /// An answer that the message's deadline cut off says so.
    fn explained(&self, message: &Message) -> Message {
        let mut message = message.clone();
        if let Message::Assistant(answer) = &mut message
            && answer.stop_reason == StopReason::Aborted
            && self.reason.get() == Some(&AbortReason::Timeout)
        {
            answer.error_message.get_or_insert_with(|| result::DEADLINE.to_owned());
        }
        message
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
