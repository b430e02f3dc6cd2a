//! `chat.inject`: words put into a transcript in the assistant's name (spec `gateway-protocol.md` §6.4, `sessions.md` §4.3).

use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_protocol::message::Message;
use openclaw_sessions::SessionKey;
use openclaw_sessions::transcript::inject::{injected, is_injected};
use openclaw_sessions::transcript::{Transcript, TranscriptError, TranscriptLock};
use tokio_util::sync::CancellationToken;

use super::Runner;
use crate::api::{InjectError, InjectMessage, Injected};
use openclaw_sessions::time::now_ms;

/// How long a tool call under way may keep words out of the transcript: less than clients wait for the answer.
const PATIENCE: Duration = Duration::from_secs(8);

impl Runner {
    /// Appends and syncs: while a run is under way between two of its entries.
    pub(crate) async fn inject(
        &self,
        message: &InjectMessage,
        kill: &CancellationToken,
    ) -> Result<Injected, InjectError> {
        let path = self.transcript_to_inject(message).await?;
        let said = injected(&message.text, message.label.as_deref(), now_ms());
        let written = tokio::select! { biased;
            () = kill.cancelled() => return Err(InjectError::ShuttingDown),
            written = self.put(&path, &said) => written,
        };
        let message_id = written.map_err(|error| InjectError::Storage(error.to_string()))?;
        Ok(Injected { message_id, message: said })
    }

    async fn transcript_to_inject(&self, message: &InjectMessage) -> Result<PathBuf, InjectError> {
        let key = SessionKey::parse(&message.session_key).map_err(|_| InjectError::UnknownSession)?;
        let found = self.store.get(&key).await.map_err(|error| InjectError::Storage(error.to_string()))?;
        let entry = found.ok_or(InjectError::UnknownSession)?.entry;
        let agent = key.agent_or(&self.settings().sessions.default_agent());
        let layout = self.layout.clone();
        tokio::task::spawn_blocking(move || layout.find_transcript(&agent, &entry))
            .await
            .map_err(|error| InjectError::Storage(error.to_string()))?
            .ok_or(InjectError::UnknownSession)
    }

    /// By the run that has the transcript, or else under its lock.
    async fn put(
        &self,
        path: &Path,
        said: &Message,
    ) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
        loop {
            let changed = self.lent.changed();
            if let Some(injector) = self.lent.get(path)
                && let Some(written) = injector.put(said.clone(), PATIENCE).await
            {
                return Ok(written?.as_str().to_owned());
            }
            tokio::select! { biased;
                lock = TranscriptLock::acquire(path) => {
                    let _lock = lock?;
                    return Ok(append(path, said.clone()).await?);
                }
                // A run has it now.
                () = changed => {}
            }
        }
    }
}

async fn append(path: &Path, message: Message) -> Result<String, TranscriptError> {
    let mut transcript = Transcript::open(path).await?;
    let id = transcript.append_message(message, None).await?;
    transcript.sync().await?;
    Ok(id.as_str().to_owned())
}

/// Takes out what was put in since a person spoke last: it is no answer to them, and a run that is taken up again must
/// not take it for its own.
pub(super) fn without_injected(context: &mut Vec<Message>) {
    let since = context.iter().rposition(|message| matches!(message, Message::User(_))).unwrap_or(0);
    let mut at = 0;
    context.retain(|message| {
        at += 1;
        at <= since || !is_injected(message)
    });
}
