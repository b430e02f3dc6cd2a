//! Conversations that begin, end and are stopped: `command:*`, `session_start`, `session_end`.

use std::sync::Arc;

use openclaw_agent::hooks::payload::{HookContext, SessionEnd, SessionStart};
use openclaw_agent::hooks::{CommandAction, Event, EventKind, HookBus, HookPoint};
use openclaw_journal::clock::Clock;
use openclaw_sessions::transcript::{TranscriptRef, Transcripts};
use openclaw_sessions::{SessionEntry, SessionKey, history};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::hooks::{HookEvents, Hooks, context, has_program, shown_config};
use crate::notices::Notices;
use crate::rows::SessionRows;
use crate::said::{Aside, Destination};
use crate::send_rules::SendRules;

/// Number of a conversation's messages that are counted at most.
const MAX_COUNTED: usize = 100_000;

/// A conversation that begins, as a rule in the place of another.
pub struct Restart<'a> {
    /// Session of the conversation.
    pub key: &'a SessionKey,
    /// Row as it was; `None` if the session is new.
    pub previous: Option<&'a SessionEntry>,
    /// The row as it is now.
    pub current: &'a SessionEntry,
    /// Command that began it; `None` if there was none, as with a session that is new.
    pub command: Option<CommandAction>,
    /// The surface it came over, `rpc` or `auto`.
    pub source: &'a str,
    /// Id of the sender who gave it.
    pub sender: Option<&'a str>,
    /// The chat it was given in.
    pub chat: Option<HookChat>,
}

/// A chat of a platform, in which hooks may have something said.
#[derive(Debug, Clone)]
pub struct HookChat {
    /// Conversation of the platform.
    pub at: Destination,
    /// Id of the hooks' message there: it is sent once, even if the gateway dies in between.
    pub id: String,
}

/// Sender of a command, and the place where it was given.
#[derive(Debug, Clone)]
pub struct GivenBy {
    /// The surface it came over.
    pub source: String,
    /// Sender's id there.
    pub sender: Option<String>,
    /// The chat, if it is one of a platform.
    pub chat: Option<HookChat>,
}

/// Hooks at the beginning and the end of conversations. What programs want said there is said.
pub struct ConversationHooks {
    hooks: Arc<Hooks>,
    events: HookEvents,
    rows: Arc<SessionRows>,
    transcripts: Transcripts,
    send_rules: Arc<SendRules>,
    notices: Arc<Notices>,
    clock: Clock,
}

impl ConversationHooks {
    pub(crate) fn new(
        hooks: Arc<Hooks>,
        events: HookEvents,
        rows: Arc<SessionRows>,
        transcripts: Transcripts,
        send_rules: Arc<SendRules>,
        notices: Arc<Notices>,
        clock: Clock,
    ) -> Self {
        Self { hooks, events, rows, transcripts, send_rules, notices, clock }
    }

    /// Tells the handlers of an event; see [`HookEvents::fire`].
    pub fn fire(&self, bus: &HookBus, event: Event) -> impl Future<Output = Vec<String>> + Send + use<> {
        self.events.fire(bus, event)
    }

    /// Tells of a conversation that begins. Waits for the programs that are told of commands, as
    /// OpenClaw does, so that files they write are there when the agent looks. Once the run is
    /// stopped, they go on beside the work.
    pub async fn restarted(&self, restart: Restart<'_>, stop: &CancellationToken) {
        let Some(bus) = self.hooks.hooks_now() else { return };
        let (key, current) = (restart.key, restart.current);
        if let Some(previous) = restart.previous {
            self.tell_end(&bus, key, previous);
        }
        if let Some(id) = &current.session_id {
            let resumed_from = restart.previous.and_then(|entry| entry.session_id.as_ref());
            let payload =
                SessionStart { session_id: id.as_str(), resumed_from: resumed_from.map(|id| id.as_str()) };
            bus.tell(&payload, &self.of_session(key, id.as_str()));
        }
        let Some(command) = restart.command else { return };
        let kind = EventKind::Command(command);
        if !bus.set().hears(kind) {
            return;
        }
        let context = context([
            ("sessionEntry", serde_json::to_value(current).ok()),
            ("previousSessionEntry", restart.previous.and_then(|entry| serde_json::to_value(entry).ok())),
            ("commandSource", Some(json!(restart.source))),
            ("senderId", restart.sender.map(Value::from)),
            ("cfg", has_program(&bus, kind).then(|| shown_config(&self.hooks.settings()))),
        ]);
        let mut telling = Box::pin(self.events.fire(&bus, self.hooks.event(kind, key, context)));
        let said = tokio::select! { biased;
            said = &mut telling => said,
            () = stop.cancelled() => return bus.tasks().spawn(async move { drop(telling.await) }),
        };
        self.say_for_hooks(key, restart.chat, said).await;
    }

    /// Sends the texts of hooks to the chat of a command. The web chat shows none of them.
    async fn say_for_hooks(&self, key: &SessionKey, chat: Option<HookChat>, said: Vec<String>) {
        let Some(HookChat { at, id }) = chat.filter(|_| !said.is_empty()) else { return };
        let may = self.send_rules.may_deliver(key, &at.address.channel).await;
        if may.inspect_err(|error| tracing::warn!(%error, "what hooks say is not said")).unwrap_or_default() {
            let aside = Aside { text: said.join("\n\n"), ..Aside::default() };
            self.notices.say_aside(key, at, &id, aside).await;
        }
    }

    /// Tells that a session's runs were stopped. Runs beside the work, so that the caller does not
    /// wait.
    pub fn stopped(self: &Arc<Self>, key: &SessionKey, by: GivenBy) {
        let Some(bus) = self.hooks.hooks_now() else { return };
        let kind = EventKind::Command(CommandAction::Stop);
        if !bus.set().hears(kind) {
            return;
        }
        let (own, key, tasks) = (Arc::clone(self), key.clone(), Arc::clone(self.hooks.tasks()));
        tasks.spawn(async move {
            let entry = own.rows.entry_or_none(&key).await;
            let id = entry.as_deref().and_then(|entry| entry.session_id.as_ref());
            let context = context([
                ("sessionEntry", entry.as_deref().and_then(|entry| serde_json::to_value(entry).ok())),
                ("sessionId", id.map(|id| json!(id.as_str()))),
                ("commandSource", Some(json!(by.source))),
                ("senderId", by.sender.map(Value::from)),
            ]);
            let event = own.hooks.event(kind, &key, context);
            let said = own.events.fire(&bus, event).await;
            own.say_for_hooks(&key, by.chat, said).await;
        });
    }

    /// Tells of the end of a row's conversation, beside the work: its messages are counted for it.
    fn tell_end(&self, bus: &HookBus, key: &SessionKey, entry: &SessionEntry) {
        if let Some(ending) = self.ending(bus, key, entry) {
            bus.tasks().spawn(async move { ending.counted().await.tell() });
        }
    }

    fn ending(&self, bus: &HookBus, key: &SessionKey, entry: &SessionEntry) -> Option<EndingConversation> {
        let id = entry.session_id.as_ref().filter(|_| bus.asks(HookPoint::SessionEnd))?;
        Some(EndingConversation {
            bus: bus.clone(),
            context: self.of_session(key, id.as_str()),
            session_id: id.to_string(),
            transcript: self.transcripts.find(&self.rows.key_rules().agent_of(key), entry),
            transcripts: self.transcripts.clone(),
            now: self.clock.now_ms(),
        })
    }

    /// Returns the end of a conversation that is about to be deleted, with its messages counted;
    /// `None` if no hook asks for it.
    pub async fn ended(
        &self,
        bus: &HookBus,
        key: &SessionKey,
        entry: &SessionEntry,
    ) -> Option<EndedConversation> {
        Some(self.ending(bus, key, entry)?.counted().await)
    }
    fn of_session(&self, key: &SessionKey, id: &str) -> HookContext {
        HookContext {
            agent_id: Some(self.rows.key_rules().agent_of(key).to_string()),
            session_key: Some(key.clone()),
            session_id: Some(id.to_owned()),
            ..HookContext::default()
        }
    }
}

/// A conversation that ends.
struct EndingConversation {
    bus: HookBus,
    context: HookContext,
    session_id: String,
    transcript: Option<TranscriptRef>,
    transcripts: Transcripts,
    now: i64,
}

/// An ended conversation whose messages are counted.
pub struct EndedConversation {
    bus: HookBus,
    context: HookContext,
    session_id: String,
    message_count: usize,
    duration_ms: u64,
}

impl EndingConversation {
    async fn counted(self) -> EndedConversation {
        let Self { bus, context, session_id, transcript, transcripts, now } = self;
        let counted =
            tokio::task::spawn_blocking(move || transcript.map(|found| count(&transcripts, &found)));
        let (message_count, begun) = counted.await.ok().flatten().unwrap_or((0, now));
        let duration_ms = u64::try_from(now.saturating_sub(begun)).unwrap_or_default();
        EndedConversation { bus, context, session_id, message_count, duration_ms }
    }
}

impl EndedConversation {
    /// Tells that it has ended.
    pub fn tell(&self) {
        let (message_count, duration_ms) = (self.message_count, self.duration_ms);
        self.bus
            .tell(&SessionEnd { session_id: &self.session_id, message_count, duration_ms }, &self.context);
    }
}

/// Returns the number of messages of a transcript, and the time of the first in Unix milliseconds.
fn count(transcripts: &Transcripts, transcript: &TranscriptRef) -> (usize, i64) {
    let read = history::read(&transcripts.reader(transcript), MAX_COUNTED).unwrap_or_default();
    let first = read.first().and_then(|entry| serde_json::from_str::<Value>(entry.get()).ok());
    let begun = first.and_then(|first| first.get("timestamp")?.as_i64());
    (read.len(), begun.unwrap_or(i64::MAX))
}
