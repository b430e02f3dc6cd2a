//! `session-memory`: writes the end of a conversation that was left into the agent's workspace.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use openclaw_agent::Redactor;
use openclaw_agent::hooks::session_memory::{
    self, Kept, document, file_name, slug, slug_question, time_slug,
};
use openclaw_agent::hooks::{Bundled, Event, HookBus};
use openclaw_agent::place::{Place, PlaceError};
use openclaw_config::ResolvedAgent;
use openclaw_models::{
    Ask, AskedThinking, CacheRetention, KeptRequest, ModelEvent, ModelRequest, Models, ThinkingLevel,
};
use openclaw_protocol::message::{Message, StopReason, UserMessage};
use openclaw_runtime::setup::{LiveSettings, Settings};
use openclaw_sessions::transcript::Transcripts;
use openclaw_sessions::{SessionEntry, SessionKey, history};
use tokio_util::sync::CancellationToken;

use crate::rows::SessionRows;
use crate::secrets::{KnownSecrets, Shield};

/// Time that a model may take to find a name (spec `agent-runtime.md` §8.3).
const NAMING: Duration = Duration::from_secs(15);
const NAME_TOKENS: u32 = 64;
/// Entries of the transcript that are looked at, tools among them.
const LOOKED_AT: usize = 2_000;
/// Files of one day and one name.
const MAX_NUMBER: u32 = 1_000;

/// Data needed to write the file.
struct Memory {
    event: Event,
    left: SessionEntry,
    agent: ResolvedAgent,
    count: usize,
    settings: Arc<Settings>,
    shield: Arc<Shield>,
    models: Models,
    transcripts: Transcripts,
}

/// The bundled hook that keeps the end of a conversation in a file of the workspace.
pub(crate) struct MemoryHook {
    settings: LiveSettings,
    secrets: Arc<KnownSecrets>,
    rows: Arc<SessionRows>,
    models: Models,
    transcripts: Transcripts,
}

impl MemoryHook {
    pub(crate) fn new(
        settings: LiveSettings,
        secrets: Arc<KnownSecrets>,
        rows: Arc<SessionRows>,
        models: Models,
        transcripts: Transcripts,
    ) -> Self {
        Self { settings, secrets, rows, models, transcripts }
    }

    /// Begins to write, beside the work.
    pub(super) fn keep(&self, bus: &HookBus, event: &Event) {
        let left = event.context.get("previousSessionEntry").or_else(|| event.context.get("sessionEntry"));
        let left = left.and_then(|entry| serde_json::from_value::<SessionEntry>(entry.clone()).ok());
        let (Some(left), Ok(key)) = (left, SessionKey::parse(&event.session_key)) else { return };
        let settings = self.settings.now();
        let Ok(shield) = self.secrets.known(&settings) else {
            return;
        };
        let agent = settings.config.agent(&self.rows.key_rules().agent_of(&key));
        let entry = settings.config.hooks.internal.entries.get(Bundled::SessionMemory.name());
        let memory = Memory {
            count: session_memory::message_count(&entry.cloned().unwrap_or_default().settings),
            event: event.clone(),
            left,
            agent,
            shield,
            models: self.models.clone(),
            transcripts: self.transcripts.clone(),
            settings,
        };
        bus.tasks().spawn(async move {
            if let Err(error) = memory.write().await {
                tracing::warn!(error, "session-memory kept nothing of a conversation");
            }
        });
    }
}

impl Memory {
    async fn write(self) -> Result<(), String> {
        let lines = self.lines().await?;
        let name = match lines.is_empty() {
            true => None,
            false => self.name(&lines).await,
        };
        let name = name.unwrap_or_else(|| time_slug(self.event.timestamp));
        let kept = Kept {
            at: self.event.timestamp,
            session_key: &self.event.session_key,
            session_id: self.left.session_id.as_ref().map_or("unknown", |id| id.as_str()),
            source: self.event.text("commandSource").unwrap_or("unknown"),
        };
        let (text, at) = (document(&kept, &lines), kept.at);
        let workspace = self.agent.workspace.clone();
        let written = tokio::task::spawn_blocking(move || put(&workspace, at, &name, &text));
        let path = written.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        tracing::info!(file = %path, "session-memory kept the end of a conversation");
        Ok(())
    }

    /// Lines of the conversation, without secrets.
    async fn lines(&self) -> Result<Vec<String>, String> {
        let Some(found) = self.transcripts.find(&self.agent.id, &self.left) else { return Ok(Vec::new()) };
        let transcripts = self.transcripts.clone();
        let read = tokio::task::spawn_blocking(move || history::read(&transcripts.reader(&found), LOOKED_AT));
        let read = read.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let messages: Vec<Message> =
            read.iter().filter_map(|entry| serde_json::from_str(entry.get()).ok()).collect();
        let lines = session_memory::lines(messages.iter(), self.count);
        let redactor: &Redactor = &self.shield.redactor;
        Ok(lines.iter().map(|line| redactor.redact_text(line)).collect())
    }

    /// Asks the agent's model for a name; `None` if there is no model, or it does not answer in
    /// time.
    async fn name(&self, lines: &[String]) -> Option<String> {
        let cancel = CancellationToken::new();
        let _stop = cancel.clone().drop_guard();
        match tokio::time::timeout(NAMING, self.ask_name(lines, cancel)).await {
            Ok(name) => name,
            Err(_) => {
                tracing::debug!("the model found no name for a conversation in time");
                None
            }
        }
    }

    async fn ask_name(&self, lines: &[String], cancel: CancellationToken) -> Option<String> {
        let ask = Ask {
            thinking: AskedThinking::Explicit(ThinkingLevel::Off),
            ..Ask::new(&self.agent.id, &self.agent.agent_dir)
        };
        let selected = self.models.select(&self.settings.models, &ask).await.ok()?;
        let candidate = selected.candidates.first().filter(|first| first.model.provider() != "offline")?;
        let question = Message::User(UserMessage::text(slug_question(lines), self.event.timestamp));
        let request = ModelRequest {
            system: Arc::from("You name conversations."),
            messages: Arc::new(vec![Arc::new(question)]),
            tools: Arc::from([]),
            thinking: candidate.thinking,
            max_tokens: Some(NAME_TOKENS),
            temperature: None,
            cache: CacheRetention::default(),
            session_id: None,
            kept: KeptRequest::default(),
        };
        let mut stream = candidate.model.stream(request, cancel);
        while let Some(event) = stream.next().await {
            if let ModelEvent::Done { message, failure } = event {
                let is_answer =
                    failure.is_none() && matches!(message.stop_reason, StopReason::Stop | StopReason::Length);
                return is_answer.then(|| slug(&message.text())).flatten();
            }
        }
        None
    }
}

/// Writes the file under the first name that is free. Nothing leads out of the workspace.
fn put(workspace: &Path, at: i64, name: &str, text: &str) -> Result<String, PlaceError> {
    let mut number = 1;
    loop {
        let asked = format!("memory/{}", file_name(at, name, number));
        let place = Place::create_beneath(workspace, Path::new(&asked), &asked)?;
        match place.open() {
            Err(error) if error.is_not_found() => {
                place.replace(text.as_bytes())?;
                return Ok(asked);
            }
            Ok(_) | Err(PlaceError::NotAFile(_) | PlaceError::SymbolicLink(_)) if number < MAX_NUMBER => {
                number += 1
            }
            Ok(_) => return Err(PlaceError::NotAFile(asked)),
            Err(error) => return Err(error),
        }
    }
}
