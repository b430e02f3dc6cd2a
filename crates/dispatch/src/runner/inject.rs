//! `chat.inject`: words put into a transcript in the assistant's name (spec `gateway-protocol.md` §6.4, `sessions.md` §4.3).

use openclaw_protocol::message::{AssistantMessage, Block, Message};
use openclaw_sessions::SessionKey;
use openclaw_sessions::transcript::{Transcript, TranscriptError};

use super::Runner;
use crate::api::{InjectError, InjectMessage, Injected};
use crate::clock::now_ms;

impl Runner {
    /// Appends and syncs.
    pub(crate) async fn inject(&self, message: &InjectMessage) -> Result<Injected, InjectError> {
        let key = SessionKey::parse(&message.session_key).map_err(|_| InjectError::UnknownSession)?;
        let found = self.store.get(&key).await.map_err(|error| InjectError::Storage(error.to_string()))?;
        let entry = found.ok_or(InjectError::UnknownSession)?.entry;
        let agent = key.agent_or(&self.settings().sessions.default_agent());
        let layout = self.layout.clone();
        let path = tokio::task::spawn_blocking(move || layout.find_transcript(&agent, &entry))
            .await
            .map_err(|error| InjectError::Storage(error.to_string()))?
            .ok_or(InjectError::UnknownSession)?;
        let said = injected_message(message, now_ms());
        let message_id =
            append(path, said.clone()).await.map_err(|error| InjectError::Storage(error.to_string()))?;
        Ok(Injected { message_id, message: said })
    }
}

async fn append(path: std::path::PathBuf, message: Message) -> Result<String, TranscriptError> {
    let mut transcript = Transcript::open(path).await?;
    let id = transcript.append_message(message, None).await?;
    transcript.sync().await?;
    Ok(id.as_str().to_owned())
}

/// An assistant message no model produced.
fn injected_message(message: &InjectMessage, now: i64) -> Message {
    let label = message.label.as_deref().map(str::trim).filter(|label| !label.is_empty());
    let text = match label {
        Some(label) => format!("[{label}]\n\n{}", message.text),
        None => message.text.clone(),
    };
    Message::Assistant(AssistantMessage {
        content: vec![Block::text(text)],
        api: "openai-responses".to_owned(),
        provider: "openclaw".to_owned(),
        model: "gateway-injected".to_owned(),
        timestamp: now,
        ..AssistantMessage::default()
    })
}
