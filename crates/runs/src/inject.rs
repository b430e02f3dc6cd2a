//! `chat.inject`: words put into a transcript in the assistant's name (spec `gateway-protocol.md` §6.4, `sessions.md` §4.3).

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_journal::api::{InjectError, InjectMessage, Injected, StillActive};
use openclaw_journal::inbox::{InboxRow, Queued};
use openclaw_protocol::SessionId;
use openclaw_protocol::message::Message;
use openclaw_runtime::events::{Hub, injected as injected_event};
use openclaw_runtime::setup::LiveSettings;
use openclaw_sessions::transcript::inject::{injected, is_injected, mirrored};
use openclaw_sessions::transcript::{
    Body, Entry, EntryId, Injector, LockError, NewTranscript, Part, StoredMessage, Transcript,
    TranscriptError, TranscriptLock, TranscriptRef, Transcripts,
};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::kept::KeptTranscripts;
use crate::rows::SessionRows;
use crate::session::MessageConversations;
use openclaw_sessions::time::now_ms;

/// Patience for answers that a tool call under way keeps out of the transcript: a day is longer
/// than any call takes.
const ALL_THE_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Time for which words may wait for their turn and for a tool call under way: less than clients
/// wait for the answer.
pub const PATIENCE: Duration = Duration::from_secs(8);

/// The transcript of the run under way, while it has one open.
pub type RunTranscript = watch::Receiver<Option<Injector>>;

/// The transcript an answer goes into.
#[derive(Debug)]
pub(crate) struct AnsweredIn {
    pub(crate) transcript: TranscriptRef,
    /// Header for a transcript that has to be made.
    pub(crate) new: NewTranscript,
}

impl AnsweredIn {
    pub(crate) fn new(transcript: TranscriptRef, id: &SessionId, workspace: &Path) -> Self {
        let (session_id, cwd) = (id.to_string(), workspace.display().to_string());
        Self { transcript, new: NewTranscript { session_id, cwd, parent: None } }
    }
}

/// Run under way beside which something is done.
#[derive(Debug, Clone)]
pub struct RunBeside {
    /// Message of the run.
    pub row: Arc<InboxRow<Queued>>,
    /// Transcript of the run.
    pub transcript: RunTranscript,
}

/// Parts for putting words of clients and of the gateway into conversations.
pub struct Injections {
    words: Arc<TranscriptWords>,
    conversations: Arc<MessageConversations>,
    rows: Arc<SessionRows>,
    settings: LiveSettings,
    transcripts: Transcripts,
    hub: Arc<Hub>,
    /// Cancelled when runs stop where they are.
    kill: CancellationToken,
}

impl Injections {
    pub(crate) fn new(
        words: Arc<TranscriptWords>,
        conversations: Arc<MessageConversations>,
        rows: Arc<SessionRows>,
        settings: LiveSettings,
        transcripts: Transcripts,
        hub: Arc<Hub>,
        kill: CancellationToken,
    ) -> Self {
        Self { words, conversations, rows, settings, transcripts, hub, kill }
    }

    /// Appends and syncs: beside a run between two of its entries. Clients are told before the answer is given. `asked_at` is when it
    /// began to wait.
    pub async fn work(
        &self,
        message: InjectMessage,
        run: Option<RunBeside>,
        asked_at: Instant,
    ) -> Result<Injected, InjectError> {
        let words = (message.text.clone(), message.label.clone());
        let said = move |now| injected(&words.0, words.1.as_deref(), now);
        self.put_said(message, said, run, asked_at).await
    }

    /// Appends a delivery that was made to a chat platform in the session's name: its text, or else the
    /// names of its files.
    pub async fn mirror(
        &self,
        message: InjectMessage,
        media: Vec<String>,
        run: Option<RunBeside>,
        asked_at: Instant,
    ) -> Result<Injected, InjectError> {
        let text = message.text.clone();
        let said = move |now| mirrored(&text, &media, now).unwrap_or_else(|| injected(&text, None, now));
        self.put_said(message, said, run, asked_at).await
    }

    async fn put_said(
        &self,
        message: InjectMessage,
        said: impl FnOnce(i64) -> Message + Send,
        run: Option<RunBeside>,
        asked_at: Instant,
    ) -> Result<Injected, InjectError> {
        let injected = tokio::select! { biased;
            () = self.kill.cancelled() => return Err(InjectError::ShuttingDown),
            injected = self.inject(&message, said, run, asked_at + PATIENCE) => injected?,
        };
        let event = injected_event(&message.session_key, &injected.message_id, &injected.message);
        self.hub.publish(event).await;
        self.hub.flush().await;
        Ok(injected)
    }

    async fn inject(
        &self,
        message: &InjectMessage,
        said: impl FnOnce(i64) -> Message + Send,
        mut run: Option<RunBeside>,
        until: Instant,
    ) -> Result<Injected, InjectError> {
        let found = tokio::time::timeout_at(until, self.transcript_to_inject(message, &mut run)).await;
        let transcript = found.map_err(|_| StillActive(message.session_key.clone()))??;
        let said = said(now_ms());
        let patience = until.saturating_duration_since(Instant::now());
        let words = InjectedMessage { said: &said, id: None, new: None, patience };
        let written = self.words.put(&transcript, &words, run.map(|run| run.transcript)).await;
        let message_id = written.map_err(|error| InjectError::Storage(error.to_string()))?;
        Ok(Injected { message_id, message: said })
    }

    /// Returns the transcript that the run has open, or that it goes on with. Waits for a run that
    /// begins its own.
    async fn transcript_to_inject(
        &self,
        message: &InjectMessage,
        run: &mut Option<RunBeside>,
    ) -> Result<TranscriptRef, InjectError> {
        while let Some(RunBeside { row, transcript }) = run {
            if let Some(injector) = &*transcript.borrow_and_update() {
                return Ok(injector.transcript().clone());
            }
            if self.conversations.is_in_current(row).await {
                match self.transcript_of_session(message).await {
                    // The run has yet to make it.
                    Err(InjectError::UnknownSession) => {}
                    found => return found,
                }
            }
            if transcript.changed().await.is_err() {
                break;
            }
        }
        self.transcript_of_session(message).await
    }

    async fn transcript_of_session(&self, message: &InjectMessage) -> Result<TranscriptRef, InjectError> {
        let key = &message.session_key;
        let found = self.rows.get(key).await.map_err(|error| InjectError::Storage(error.to_string()))?;
        let entry = found.ok_or(InjectError::UnknownSession)?.entry;
        let agent = key.agent_or(&self.settings.now().sessions.default_agent());
        let transcripts = self.transcripts.clone();
        tokio::task::spawn_blocking(move || transcripts.find(&agent, &entry))
            .await
            .map_err(|error| InjectError::Storage(error.to_string()))?
            .ok_or(InjectError::UnknownSession)
    }

    /// Writes the gateway's words about a message that goes to the agent: once, under this id.
    pub async fn put_aside(
        &self,
        row: &InboxRow,
        said: &Message,
        id: EntryId,
        mut run: Option<RunBeside>,
    ) -> Result<(), InjectError> {
        let stored = |error: PutError| InjectError::Storage(error.to_string());
        let whose = InjectMessage { session_key: row.session_key.clone(), text: String::new(), label: None };
        let transcript = self.transcript_to_inject(&whose, &mut run).await?;
        if row.recovered
            && self.words.is_there(&transcript, std::slice::from_ref(&id), said).await.map_err(stored)?
        {
            return Ok(());
        }
        let words = InjectedMessage { said, id: Some(id), new: None, patience: ALL_THE_TIME };
        match self.words.put(&transcript, &words, run.map(|run| run.transcript)).await {
            Ok(_) | Err(PutError::Transcript(TranscriptError::DuplicateId { .. })) => Ok(()),
            Err(error) => Err(stored(error)),
        }
    }
}

/// Parts for putting words into transcripts beside the runs that hold them.
pub(crate) struct TranscriptWords {
    transcripts: Transcripts,
    kept: Arc<KeptTranscripts>,
}

impl TranscriptWords {
    pub(crate) fn new(transcripts: Transcripts, kept: Arc<KeptTranscripts>) -> Self {
        Self { transcripts, kept }
    }

    /// Writes the gateway's own answer to a message: once, under an id of the message's, into a
    /// transcript that is made if there is none.
    pub(super) async fn put_once<P: Sync>(
        &self,
        row: &InboxRow<P>,
        AnsweredIn { transcript, new }: &AnsweredIn,
        said: &Message,
        run: Option<RunTranscript>,
    ) -> Result<(), PutError> {
        let ids = [EntryId::new(&row.entry_id), EntryId::new(row.fresh_id.as_str())];
        if row.recovered && self.is_there(transcript, &ids, said).await? {
            return Ok(());
        }
        for id in ids.into_iter().map(Some).chain([None]) {
            let words = InjectedMessage { said, id, new: Some(new.clone()), patience: ALL_THE_TIME };
            match self.put(transcript, &words, run.clone()).await {
                // Another entry has the id: 8 hex digits are not many.
                Err(PutError::Transcript(TranscriptError::DuplicateId { .. })) => {}
                put => return put.map(drop),
            }
        }
        Ok(())
    }

    /// Writes between two entries of the run that has the transcript open, or else under the
    /// transcript's lock.
    async fn put(
        &self,
        transcript: &TranscriptRef,
        words: &InjectedMessage<'_>,
        mut run: Option<RunTranscript>,
    ) -> Result<String, PutError> {
        loop {
            let injector = run.as_mut().and_then(|run| run.borrow_and_update().clone());
            if let Some(injector) = injector.filter(|injector| injector.transcript() == transcript)
                && let Some(written) =
                    injector.put(words.said.clone(), words.id.clone(), words.patience).await
            {
                return Ok(written?.as_str().to_owned());
            }
            tokio::select! { biased;
                lock = TranscriptLock::acquire(&self.transcripts, transcript) => {
                    return self.append(&lock?, words).await;
                }
                () = changed(&mut run) => {}
            }
        }
    }

    async fn append(&self, lock: &TranscriptLock, words: &InjectedMessage<'_>) -> Result<String, PutError> {
        let Some(new) = &words.new else { return write(&mut lock.open().await?, words).await };
        let (kept, asked) = self.kept.take(lock.transcript()).unzip();
        let mut transcript = lock.reopen(kept, new.clone()).await?;
        let id = write(&mut transcript, words).await?;
        self.kept.put(transcript, asked.unwrap_or_default());
        Ok(id)
    }

    /// True if an earlier process has written an answer: an entry with one of its ids and its very
    /// words.
    async fn is_there(
        &self,
        transcript: &TranscriptRef,
        ids: &[EntryId],
        said: &Message,
    ) -> Result<bool, PutError> {
        let (reader, ids, said_at) = (self.transcripts.reader(transcript), ids.to_vec(), timestamp(said));
        let look = move || {
            let mut is_there = false;
            let visited = reader.visit(Part::Branch, &mut |_, id, line| {
                let is_named = id.is_some_and(|id| ids.contains(id));
                is_there =
                    is_named && Entry::parse(line).is_some_and(|entry| is_injected_at(&entry, said_at));
                if is_there { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            match visited {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                visited => visited.map(|()| is_there),
            }
        };
        Ok(tokio::task::spawn_blocking(look).await.unwrap_or_else(|error| Err(error.into()))?)
    }
}

/// Writes words and syncs them; their id.
async fn write(transcript: &mut Transcript, words: &InjectedMessage<'_>) -> Result<String, PutError> {
    let id = transcript.append_message(words.said.clone(), words.id.clone()).await?;
    transcript.sync().await?;
    Ok(id.as_str().to_owned())
}

fn is_injected_at(entry: &Entry, said_at: Option<i64>) -> bool {
    match &entry.body {
        Body::Message(StoredMessage::Known(message)) => is_injected(message) && timestamp(message) == said_at,
        _ => false,
    }
}

fn timestamp(message: &Message) -> Option<i64> {
    match message {
        Message::Assistant(said) => Some(said.timestamp),
        Message::User(_) | Message::ToolResult(_) => None,
    }
}

/// Completes when the run has opened its transcript, or is done with it. Never once it has ended.
async fn changed(run: &mut Option<RunTranscript>) {
    if let Some(run) = run
        && run.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Words that are put into a transcript.
struct InjectedMessage<'a> {
    said: &'a Message,
    /// Fixes the entry's id.
    id: Option<EntryId>,
    /// Header with which a missing transcript is made.
    new: Option<NewTranscript>,
    /// Time for which a tool call under way may keep it out.
    patience: Duration,
}

/// Reasons for which words are not in a transcript.
#[derive(Debug, thiserror::Error)]
pub(super) enum PutError {
    /// Another program has the transcript.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The transcript can't be read.
    #[error("cannot read the transcript: {0}")]
    Read(#[from] io::Error),
    /// The transcript can't be written.
    #[error(transparent)]
    Transcript(#[from] TranscriptError),
}

/// Removes the gateway's words before anybody spoke to the agent: a model's conversation begins
/// with a person.
pub(super) fn without_preface(context: &mut Vec<Arc<Message>>) {
    let preface = context.iter().take_while(|message| is_injected(message)).count();
    context.drain(..preface);
}

/// Removes entries that were put in since a person spoke last: they are no answer to the person,
/// and a run that is taken up again must not take them for its own.
pub(super) fn without_injected(context: &mut Vec<Arc<Message>>) {
    let since = context.iter().rposition(|message| matches!(**message, Message::User(_))).unwrap_or(0);
    let mut at = 0;
    context.retain(|message| {
        at += 1;
        at <= since || !is_injected(message)
    });
}
