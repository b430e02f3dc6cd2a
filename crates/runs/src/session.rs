//! Conversation of a message, and the transcript that it has now (spec `sessions.md` §5).

use std::sync::Arc;

use jiff::tz::TimeZone;
use openclaw_agent::hooks::CommandAction;
use openclaw_config::ResolvedAgent;
use openclaw_journal::api::Occasion;
use openclaw_journal::clock::Clock;
use openclaw_journal::inbox::{InboxRow, Queued};
use openclaw_journal::journal::{Journal, Update};
use openclaw_journal::rights::Rights;
use openclaw_journal::rights::settle;
use openclaw_journal::source::RequestKind;
use openclaw_models::Chosen;
use openclaw_models::choose::Opening;
use openclaw_protocol::{AgentId, SessionId};
use openclaw_runtime::session_model::{RequestedModel, SessionModels};
use openclaw_runtime::setup::{LiveSettings, Settings};
use openclaw_sessions::entry::{ResetKind, new_session_id};
use openclaw_sessions::key::KeyForm;
use openclaw_sessions::layout::{BadSessionId, checked_id};
use openclaw_sessions::reset::trigger::{command_body, slash_command};
use openclaw_sessions::reset::{self, ResetType};
use openclaw_sessions::store::Edit;
use openclaw_sessions::transcript::{TranscriptRef, Transcripts};
use openclaw_sessions::{SessionEntry, SessionKey, SessionStore};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::contact::{self, Contact};
use super::{fork, protections};
use crate::conversation_hooks::{ConversationHooks, HookChat, Restart};
use crate::not_begun::NotBegun;
use crate::stored_messages::StoredMessages;

/// The conversation of one run.
pub(super) struct RunSession {
    pub(super) key: SessionKey,
    pub(super) agent: ResolvedAgent,
    /// The transcript.
    pub(super) id: SessionId,
    /// Place of the transcript, which need not exist yet.
    pub(super) transcript: TranscriptRef,
    /// The row, as it is when the run begins.
    pub(super) entry: Arc<SessionEntry>,
    /// Rights of the run.
    pub(super) rights: Rights,
    /// True if the inbox knows already that the run begins here.
    pub(super) noted: bool,
    /// True if nothing was said in it yet.
    pub(super) is_new: bool,
    /// Text behind a reset trigger.
    pub(super) reset: Option<String>,
    /// Model that its message asks for, for this run alone.
    pub(super) requested: Option<RequestedModel>,
    /// True if a person stopped the run before.
    pub(super) after_abort: bool,
}

/// Facts that decide about the transcript.
struct TranscriptFacts<'a> {
    /// Session in which this very run has begun already.
    begun: Option<&'a SessionId>,
    /// Session that the request names: one to begin, or one to go on with.
    named: Option<&'a str>,
    /// The row's.
    current: Option<&'a SessionId>,
    /// The message's own id for a new conversation.
    fresh_id: &'a SessionId,
    /// True if a transcript with that id exists: the run has begun there, and the note of it was
    /// lost.
    fresh_exists: bool,
    /// True if the message asks for a new conversation.
    resets: bool,
    /// True if the row's conversation goes on.
    goes_on: bool,
}

impl TranscriptFacts<'_> {
    /// Chooses the transcript: the same for the same message, also after a restart.
    fn choose(&self) -> SessionId {
        if let Some(begun) = self.begun {
            return begun.clone();
        }
        match (self.named, self.current) {
            // A session keeps the transcript it has.
            (Some(_), Some(current)) => current.clone(),
            (Some(named), None) => SessionId::new(named),
            (None, Some(current)) if self.goes_on && !self.resets && !self.fresh_exists => current.clone(),
            (None, _) => self.fresh_id.clone(),
        }
    }
}

impl RunSession {
    /// Builds a session from its row, without a message.
    pub(super) fn of_row(
        transcripts: &Transcripts,
        key: &SessionKey,
        agent: &ResolvedAgent,
        entry: &Arc<SessionEntry>,
        rights: Rights,
    ) -> Result<Self, NotBegun> {
        let id = entry.session_id.clone().unwrap_or_else(new_session_id);
        Ok(Self {
            key: key.clone(),
            transcript: transcript_of(transcripts, &agent.id, key, &id, Some(entry))?,
            agent: agent.clone(),
            id,
            entry: Arc::clone(entry),
            rights,
            noted: true,
            is_new: false,
            reset: None,
            requested: None,
            after_abort: false,
        })
    }

    /// Stores in the inbox where the run begins, unless that is stored already.
    pub(super) async fn note(&self, journal: &dyn Journal, row: &InboxRow) -> Result<(), NotBegun> {
        if self.noted { Ok(()) } else { note(journal, row, &self.id).await }
    }
}

/// Parts for finding and beginning the session of a message.
pub(crate) struct SessionOpener {
    store: Arc<dyn SessionStore>,
    models: Arc<SessionModels>,
    transcripts: Transcripts,
    journal: Arc<dyn Journal>,
    clock: Clock,
    hooks: Arc<ConversationHooks>,
}

impl SessionOpener {
    pub(crate) fn new(
        store: Arc<dyn SessionStore>,
        models: Arc<SessionModels>,
        transcripts: Transcripts,
        journal: Arc<dyn Journal>,
        clock: Clock,
        hooks: Arc<ConversationHooks>,
    ) -> Self {
        Self { store, models, transcripts, journal, clock, hooks }
    }

    /// Finds the conversation and makes its row say so, durably. Before anything is written to the transcript it has to be
    /// noted as well ([`RunSession::note`]).
    pub(super) async fn session(
        &self,
        row: &InboxRow,
        settings: &Settings,
        requested: Option<RequestedModel>,
        stop: &CancellationToken,
    ) -> Result<RunSession, NotBegun> {
        let key = row.session_key.clone();
        let agent_id = agent_of(row, settings);
        let agent = settings.config.agent(&agent_id);
        let stored = self.store.get(&key).await?.map(|found| found.entry);
        protections::check(settings, &key, stored.as_deref())?;
        let named = self.asked_reset(row, &agent, settings).await;
        let id = self.choose(row, &agent_id, stored.as_deref(), settings)?;
        let current = stored.as_deref().filter(|entry| entry.session_id.as_ref() == Some(&id));
        let same = current.is_some();
        let mut transcript = transcript_of(&self.transcripts, &agent_id, &key, &id, current)?;
        let is_named =
            current.is_some_and(|entry| self.transcripts.is_named_by(&transcript, &agent_id, entry));
        let after_abort = current.is_some_and(|entry| entry.aborted_last_run == Some(true));
        let contact = Contact::of(row, &key);
        let is_new = stored.is_none();
        let previous = stored.clone();
        let (entry, noted) = match stored {
            Some(entry) if is_named && entry_patch(row).is_none() && contact.is_known(&entry) => {
                (entry, false)
            }
            Some(_) | None => {
                note(&*self.journal, row, &id).await?;
                let choice = named.as_ref().and_then(|named| named.model.clone());
                if choice.is_some() {
                    self.models.chosen_by_hand(&key);
                }
                if let Some(forked) = self.forked((row, settings), &key, &id, &agent, !is_new).await {
                    transcript = forked;
                }
                let file = (!is_named).then(|| transcript.clone());
                let said_at = row.payload.is_interaction().then_some(row.accepted_at);
                let is_beat = row.payload.source.beat().is_some();
                let renewal = Renewal { id: id.clone(), contact, choice, file, said_at, is_beat };
                let entry = self.write_row(&key, row, renewal).await?;
                if !same {
                    let asked = if named.is_some() { IsAsked::ByMessage } else { IsAsked::ByNobody };
                    self.tell_restart(row, previous.as_deref(), &entry, asked, stop).await;
                }
                (entry, true)
            }
        };
        contact::lead_main(&*self.store, row).await?;
        let reset = named.map(|named| named.rest);
        let rights = row.payload.rights.clone().unwrap_or_default();
        let rights = settle::held(rights, (&settings.config, self.store.rules()), (&key, &agent.id));
        Ok(RunSession {
            key,
            agent,
            id,
            transcript,
            entry,
            rights,
            noted,
            is_new: !same,
            reset,
            requested,
            after_abort,
        })
    }

    /// Chooses the conversation that a message goes on with, or begins.
    fn choose(
        &self,
        row: &InboxRow,
        agent: &AgentId,
        stored: Option<&SessionEntry>,
        settings: &Settings,
    ) -> Result<SessionId, NotBegun> {
        let fresh_exists = row.recovered && {
            let transcripts = &self.transcripts;
            // Some looks at directory entries: going to another thread for them would take longer.
            transcripts.exists(&transcripts.of_conversation(agent, &row.session_key, &row.fresh_id)?)
        };
        let zone = self.clock.zone();
        let facts = TranscriptFacts {
            begun: row.session_id.as_ref(),
            named: if row.payload.is_isolated() { None } else { named_session(row)? },
            current: stored.and_then(usable_id),
            fresh_id: &row.fresh_id,
            fresh_exists,
            // Also of a message that was stopped since: what is said next belongs to the new conversation, as in 2.9.
            resets: row.payload.behind_reset().is_some(),
            goes_on: stored.is_some_and(|entry| goes_on(row, entry, settings, &zone)),
        };
        Ok(facts.choose())
    }

    async fn write_row(
        &self,
        key: &SessionKey,
        row: &InboxRow,
        renewal: Renewal,
    ) -> Result<Arc<SessionEntry>, NotBegun> {
        let patch = entry_patch(row).cloned();
        let change = Box::new(move |edit: Edit<'_>| {
            change_row(edit, &renewal, patch.as_ref());
            Ok(())
        });
        Ok(self.store.update(key, change).await?.entry)
    }

    /// Tells hooks of a conversation that begins with a message.
    async fn tell_restart(
        &self,
        row: &InboxRow,
        previous: Option<&SessionEntry>,
        current: &SessionEntry,
        asked: IsAsked,
        stop: &CancellationToken,
    ) {
        let had_one = previous.is_some_and(|entry| entry.session_id.is_some());
        let (command, source) = match asked {
            IsAsked::ByMessage if is_reset_word(row) => (Some(CommandAction::Reset), row.payload.channel()),
            IsAsked::ByMessage => (Some(CommandAction::New), row.payload.channel()),
            IsAsked::ByNobody if had_one && !row.payload.is_isolated() => (Some(CommandAction::New), "auto"),
            IsAsked::ByNobody => (None, "auto"),
        };
        let sender = row.payload.sender_id();
        let key = &row.session_key;
        let origin = row.payload.source.origin().filter(|_| asked == IsAsked::ByMessage);
        let chat = origin.map(|origin| HookChat { at: origin.into(), id: format!("{}:thooks", row.run_id) });
        let restart = Restart { key, previous, current, command, source, sender, chat };
        Box::pin(self.hooks.restarted(restart, stop)).await;
    }

    /// Returns the text behind `/new` or `/reset`, if the message begins so, and the model it
    /// names.
    async fn asked_reset(
        &self,
        row: &InboxRow,
        agent: &ResolvedAgent,
        settings: &Settings,
    ) -> Option<Opening> {
        let rest = row.payload.behind_reset()?;
        let rest = row.payload.to_gateway().words().unwrap_or(rest).to_owned();
        if rest.trim().is_empty() {
            return Some(Opening { model: None, rest });
        }
        Some(self.models.all.choices(&settings.models, &agent.id, &agent.agent_dir).await.opening(&rest))
    }

    /// Makes the transcript of a new session that begins with its parent's conversation; `None` if
    /// it begins with nothing.
    async fn forked(
        &self,
        (row, settings): (&InboxRow, &Settings),
        key: &SessionKey,
        id: &SessionId,
        agent: &ResolvedAgent,
        is_known: bool,
    ) -> Option<TranscriptRef> {
        let parent = row.payload.source.parent_session_key().cloned()?;
        if is_known || row.abort.is_some() || parent == *key {
            return None;
        }
        let child = fork::Child { id, accepted_at: row.accepted_at, workspace: &agent.workspace };
        let parents = parent.agent_or(&settings.sessions.default_agent());
        match fork::fork(&*self.store, &self.transcripts, (&parent, &parents), &child).await {
            Ok(file) => file,
            Err(NotBegun { message: error, .. }) => {
                tracing::warn!(session = %key, %parent, %error, "the session begins without its parent's conversation");
                None
            }
        }
    }
}

/// Returns the place of a transcript, which need not exist yet. `entry` is the row that has it.
pub(super) fn transcript_of(
    transcripts: &Transcripts,
    agent: &AgentId,
    key: &SessionKey,
    id: &SessionId,
    entry: Option<&SessionEntry>,
) -> Result<TranscriptRef, BadSessionId> {
    let named = entry.filter(|entry| entry.session_file.is_some());
    let named = named.map(|entry| transcripts.to_write(agent, entry)).transpose()?.flatten();
    named.map_or_else(|| transcripts.of_conversation(agent, key, id), Ok)
}

/// Looks at the conversations that messages go to.
pub struct MessageConversations {
    sessions: Arc<SessionOpener>,
    messages: Arc<StoredMessages>,
    settings: LiveSettings,
}

impl MessageConversations {
    pub(crate) fn new(
        sessions: Arc<SessionOpener>,
        messages: Arc<StoredMessages>,
        settings: LiveSettings,
    ) -> Self {
        Self { sessions, messages, settings }
    }

    /// True if a message's conversation is the one its session's row has, because it goes on with
    /// that or has begun it. Also true if that can't be read: the caller finds out soon enough.
    pub async fn is_in_current(&self, waiting: &InboxRow<Queued>) -> bool {
        let is_in_current = async {
            let (row, settings) = (self.messages.load(waiting).await?, self.settings.now());
            let stored = self.sessions.store.get(&row.session_key).await?.map(|row| row.entry);
            let chosen =
                self.sessions.choose(&row, &agent_of(&row, &settings), stored.as_deref(), &settings)?;
            Ok::<_, NotBegun>(stored.is_some_and(|entry| entry.session_id.as_ref() == Some(&chosen)))
        };
        is_in_current.await.unwrap_or(true)
    }
}

/// Tells if a new conversation was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IsAsked {
    ByMessage,
    /// No message asked: the old one has expired, or there was none.
    ByNobody,
}

/// True if a message that begins a new conversation does so with `/reset`.
fn is_reset_word(row: &InboxRow) -> bool {
    let body = command_body(row.payload.command_text());
    slash_command(&body).is_some_and(|(name, _)| name.eq_ignore_ascii_case("reset"))
}

/// Changes that a message makes to its session's row.
struct Renewal {
    /// The transcript.
    id: SessionId,
    /// Contact through which the message came.
    contact: Contact,
    /// The model it names.
    choice: Option<Chosen>,
    /// Place of the transcript, if the row does not have it yet.
    file: Option<TranscriptRef>,
    /// Time at which somebody says it, in Unix milliseconds; `None` if nobody does.
    said_at: Option<i64>,
    /// True for a heartbeat.
    is_beat: bool,
}

/// Stores in the inbox where the run begins.
async fn note(journal: &dyn Journal, row: &InboxRow, id: &SessionId) -> Result<(), NotBegun> {
    if row.session_id.as_ref() != Some(id) {
        journal.update(Update::Begin(row.run_id.clone(), id.clone())).await?;
    }
    Ok(())
}

/// Puts the transcript into the row, which begins anew if it had another, and the further changes
/// of the message and the request.
fn change_row(edit: Edit<'_>, renewal: &Renewal, patch: Option<&Map<String, Value>>) {
    let Edit { entry, now, .. } = edit;
    match &entry.session_id {
        Some(id) if *id == renewal.id => {}
        Some(_) => *entry = entry.reset(renewal.id.clone(), now, ResetKind::Chat),
        None => entry.begin(renewal.id.clone()),
    }
    // OpenClaw 2026.2.9 finds title and last message of a session by this field alone.
    if let Some(file) = &renewal.file {
        entry.session_file = Some(file.to_string().into());
    }
    if let Some(Chosen { model, is_default, .. }) = &renewal.choice {
        let model = (!is_default).then_some((model.provider.as_str(), model.model.as_str()));
        entry.switch_model(model, None);
    }
    if let Some(patch) = patch {
        entry.merge(patch, now);
    }
    renewal.contact.note(entry);
    entry.last_interaction_at = entry.last_interaction_at.max(renewal.said_at);
    if !renewal.is_beat {
        entry.touch(now);
    }
}

fn entry_patch(row: &InboxRow) -> Option<&Map<String, Value>> {
    row.payload.source.entry_patch()
}

/// The session id the request names; it becomes a file name.
fn named_session(row: &InboxRow) -> Result<Option<&str>, NotBegun> {
    let named = row
        .payload
        .source
        .as_program()
        .and_then(|program| program.session_id.as_deref())
        .map(str::trim)
        .filter(|id| !id.is_empty());
    Ok(named.map(checked_id).transpose()?)
}

/// Returns the row's conversation; `None` if its id can't name a file, as an edit by hand may leave
/// it: the session begins anew.
fn usable_id(entry: &SessionEntry) -> Option<&SessionId> {
    entry.session_id.as_ref().filter(|id| checked_id(id.as_str()).is_ok())
}

/// Returns the agent whose conversation it is.
fn agent_of(row: &InboxRow, settings: &Settings) -> AgentId {
    let asked = row.payload.agent_id.clone();
    asked.unwrap_or_else(|| row.session_key.agent_or(&settings.sessions.default_agent()))
}

/// True if the row's conversation goes on, judged at the time of acceptance: a restart on the next
/// day chooses the same. An `agent` request never starts a new one by time (2.9 keeps the id), the
/// command line's does.
fn goes_on(row: &InboxRow, entry: &SessionEntry, settings: &Settings, zone: &TimeZone) -> bool {
    let key = &row.session_key;
    let channel = match row.payload.source.kind() {
        RequestKind::Chat => group_channel(key, entry).unwrap_or_else(|| row.payload.channel()),
        RequestKind::Agent => match row.payload.source.occasion() {
            Occasion::Request | Occasion::Heartbeat => return true,
            Occasion::Isolated => return false,
            Occasion::Command => entry.last_channel.as_deref().unwrap_or_default(),
        },
    };
    let in_thread = row.payload.source.parent_session_key().is_some();
    let kind = ResetType::of(key, in_thread, false);
    let policy = reset::policy(&settings.sessions.section, kind, Some(channel));
    reset::is_fresh(&policy, entry.last_used_at(), row.accepted_at, zone)
}

/// Returns the platform of a group or room, whatever client looks in on it.
fn group_channel<'a>(key: &'a SessionKey, entry: &'a SessionEntry) -> Option<&'a str> {
    match key.form() {
        KeyForm::Group { channel, .. } | KeyForm::Channel { channel, .. } => {
            Some(entry.channel.as_deref().unwrap_or(channel))
        }
        KeyForm::Direct { .. } | KeyForm::CronRun { .. } | KeyForm::Opened(..) | KeyForm::Named(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transcript_is_chosen_the_same_way_before_and_after_a_crash() {
        let (begun, current, fresh) =
            (SessionId::new("begun"), SessionId::new("current"), SessionId::new("fresh"));
        let base = TranscriptFacts {
            begun: None,
            named: None,
            current: Some(&current),
            fresh_id: &fresh,
            fresh_exists: false,
            resets: false,
            goes_on: true,
        };
        let cases = [
            ("the row's conversation goes on", TranscriptFacts { ..base }, &current),
            ("it has expired", TranscriptFacts { goes_on: false, ..base }, &fresh),
            ("there is none", TranscriptFacts { current: None, goes_on: false, ..base }, &fresh),
            ("the message resets", TranscriptFacts { resets: true, ..base }, &fresh),
            (
                "it has begun",
                TranscriptFacts { begun: Some(&begun), resets: true, goes_on: false, ..base },
                &begun,
            ),
            (
                "it has begun in its own, and the note was lost",
                TranscriptFacts { fresh_exists: true, ..base },
                &fresh,
            ),
        ];
        for (name, facts, expected) in cases {
            assert_eq!(&facts.choose(), expected, "{name}");
        }
        let named = TranscriptFacts { named: Some("mine"), goes_on: false, ..base };
        assert_eq!(&named.choose(), &current, "a session keeps the transcript it has");
        let mine = SessionId::new("mine");
        assert_eq!(
            TranscriptFacts { current: None, ..named }.choose(),
            mine,
            "a new one has the one that was named"
        );
    }

    #[test]
    fn a_row_keeps_its_settings_when_its_conversation_starts_anew() {
        let renewal = |choice| Renewal {
            id: SessionId::new("new"),
            contact: Contact::Unknown,
            choice,
            file: None,
            said_at: None,
            is_beat: false,
        };
        let mut entry: SessionEntry =
            serde_json::from_str(r#"{"sessionId":"old","updatedAt":5,"label":"x","totalTokens":9}"#).unwrap();
        change_row(Edit { entry: &mut entry, is_new: false, now: 7 }, &renewal(None), None);
        assert_eq!(entry.session_id, Some(SessionId::new("new")));
        assert_eq!(
            (entry.label.as_deref(), entry.total_tokens, entry.updated_at),
            (Some("x"), Some(0), Some(7))
        );
        let patch = serde_json::json!({"label": "y", "spawnedBy": "agent:main:main"});
        change_row(Edit { entry: &mut entry, is_new: false, now: 8 }, &renewal(None), patch.as_object());
        assert_eq!(
            (entry.label.as_deref(), entry.spawned_by.as_deref()),
            (Some("y"), Some("agent:main:main"))
        );
        let chosen = |is_default| {
            let model = openclaw_models::ModelRef::new("openai", "gpt-5.2");
            Some(Chosen { model, is_default, alias: None })
        };
        for (is_default, expected) in [(false, Some((Some("openai"), "gpt-5.2"))), (true, None)] {
            let edit = Edit { entry: &mut entry, is_new: false, now: 9 };
            change_row(edit, &renewal(chosen(is_default)), None);
            assert_eq!(entry.model_override_ref(), expected);
        }
    }
}
