//! Replies to a chat platform when a message that was said there is done. They are stored together with the end of the run, so that they
//! are neither lost nor sent twice (`docs/durability.md`).

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::text::silent::is_silent;
use openclaw_agent::{NO_ANSWER, ReplyPayload};
use openclaw_channels::text::{Limit, chunk_text};
use openclaw_channels::{Account, Answer, Button, Part, Platforms};
use openclaw_config::Config;
use openclaw_delivery::outbox::{Outbox, OutboxError};
use openclaw_delivery::reply::normalise::{failed_run, normalised};
use openclaw_delivery::reply::pipeline::media;
use openclaw_delivery::reply::prefix::{PrefixContext, prefix};
use openclaw_delivery::reply::sent_blocks::SentBlocks;
use openclaw_delivery::reply::settings::ReplySettings;
use openclaw_delivery::reply::threading::{Quoted, ReplyFilter};
use openclaw_journal::api::{AbortReason, RunOutcome, RunRecord};
use openclaw_journal::clock::Clock;
use openclaw_journal::delivery::{Author, Delivery, DeliveryState};
use openclaw_journal::inbox::{InboxRow, RequestForm};
use openclaw_journal::journal::{Journal, NewDelivery};
use openclaw_journal::origin::MessageOrigin;
use openclaw_journal::rights::Rights;
use openclaw_journal::run_result::RunResult;
use openclaw_protocol::{AgentId, RunId};
use openclaw_sessions::SessionKey;

use super::reply_media::{LoadedMedia, file_name};
use super::talk_step;
use crate::error_policy::ErrorRules;
use crate::hooks::Hooks;
use crate::prefixes::Prefixes;
use crate::reply_media::ReplyFiles;
use crate::said::{Destination, FinalReplies};
use crate::secrets::KnownSecrets;
use crate::session_rights::SessionRights;
use crate::stored_messages::StoredMessages;
use openclaw_runtime::messages::turn::MessageTurn;
use openclaw_runtime::setup::{LiveSettings, Settings};

/// Longest error text in a group, in characters.
const GROUP_ERROR_CHARS: usize = 160;

/// Settings for answering one message. Fixed when its run begins, so that blocks and the end of an answer are shaped alike.
#[derive(Clone)]
pub(super) struct AnswerSettings<'a> {
    answers: &'a ChatAnswers,
    run_id: &'a RunId,
    key: &'a SessionKey,
    author: Author,
    pub(super) to: Destination,
    pub(super) settings: ReplySettings,
    pub(super) account: Option<Arc<dyn Account>>,
    workspace: PathBuf,
    prefix: Option<String>,
    quotes: ReplyFilter,
    /// True if there were words, even if none was sent.
    has_words: bool,
}

impl<'a> AnswerSettings<'a> {
    /// Creates the reply to a message.
    pub(super) fn new<P: RequestForm>(
        answers: &'a ChatAnswers,
        row: &'a InboxRow<P>,
        to: Destination,
        context: &PrefixContext,
        quoted: Quoted,
    ) -> Self {
        let rights = row.payload.rights();
        Self::of(answers, &row.run_id, (&row.session_key, rights), to, context, quoted)
    }

    /// Creates the reply of a run. Without `rights` it is a run that nobody asked for.
    pub(super) fn of(
        answers: &'a ChatAnswers,
        run_id: &'a RunId,
        (key, rights): (&'a SessionKey, Option<&Rights>),
        to: Destination,
        context: &PrefixContext,
        quoted: Quoted,
    ) -> Self {
        let current = answers.settings.now();
        let config = Arc::clone(&current.config);
        let address = &to.address;
        let agent = config.agent(&key.agent_or(&config.default_agent()));
        let settings = ReplySettings::of(&config, config.human_delay_of(&agent.id), to.surface());
        let prefix = prefix(settings.prefix.as_deref(), context);
        let quotes = ReplyFilter::sharing(settings.reply_to, settings.keeps_tags, quoted);
        let account = answers.platforms.account(&config, &address.channel, &address.account);
        let workspace = answers.rights.files_of(&current, &agent, key, rights);
        let author = Author::default();
        Self {
            answers,
            run_id,
            key,
            author,
            to,
            settings,
            account,
            workspace,
            prefix,
            quotes,
            has_words: false,
        }
    }

    /// Returns the deliveries to chat platforms.
    pub(super) fn outbox(&self) -> &Outbox {
        &self.answers.outbox
    }

    /// Returns the same reply with another author than an agent.
    pub(super) fn by(self, author: Author) -> Self {
        Self { author, ..self }
    }

    /// Returns the payload as it is said, with the message it quotes; `None` if it says nothing.
    pub(super) fn worded(&mut self, payload: ReplyPayload) -> Option<ReplyPayload> {
        self.has_words |= !payload.text.trim().is_empty() && !is_silent(&payload.text);
        let payload = normalised(payload, self.prefix.as_deref())?;
        Some(self.quotes.apply(payload, self.to.message_id.as_deref()))
    }

    /// Cuts a payload into parts; `None` if a hook holds it back. Hooks are given `id`.
    pub(super) async fn parts(&self, payload: ReplyPayload, id: &str) -> Option<Vec<Part>> {
        let LoadedMedia { media, notes } = self.answers.files.load_media(&payload, &self.workspace).await;
        let text = [Some(payload.text.as_str()), notes.as_deref()].into_iter().flatten();
        let text = text.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
        let had_words = !text.trim().is_empty();
        let text = self.answers.hooks.hooked_words(id, &self.to.address, Some(self.key), text).await?;
        // A hook that leaves no words keeps them back too.
        if had_words && text.trim().is_empty() && media.is_empty() {
            return None;
        }
        let answer = Answer {
            text,
            media,
            silent: payload.is_error && self.answers.errors.tells_errors_silently(&self.to.address),
            reply_to: payload.reply_to.and_then(openclaw_agent::ReplyTo::into_id),
            as_voice: payload.voice,
            ..Answer::default()
        };
        Some(cut(self.account.as_ref(), &answer, self.settings.text_limit))
    }

    /// The deliveries of its last payloads, with buttons below them.
    async fn last(mut self, payloads: Vec<ReplyPayload>, buttons: Vec<Vec<Button>>) -> Vec<NewDelivery> {
        let (mut parts, mut named, mut is_withheld) = (Vec::new(), HashSet::new(), false);
        for payload in payloads {
            let payload = with_new_files(payload, &mut named);
            let Some(payload) = self.worded(payload) else { continue };
            let id = format!("{}:{}", self.run_id, parts.len() + 1);
            match self.parts(payload, &id).await {
                Some(more) => parts.extend(more),
                None => is_withheld = true,
            }
        }
        if parts.is_empty() && self.has_words && !is_withheld {
            parts.push(Part::text(NO_ANSWER));
        }
        if let Some(last) = parts.last_mut() {
            last.buttons = buttons;
        }
        let numbered = parts.into_iter().enumerate();
        numbered.map(|(at, part)| self.delivery(format!("{}:{}", self.run_id, at + 1), part)).collect()
    }

    /// Sends one payload by itself, as all parts of one message.
    pub(super) async fn send_alone(
        &mut self,
        id: &str,
        payload: ReplyPayload,
        buttons: Vec<Vec<Button>>,
    ) -> Result<(), OutboxError> {
        let Some(payload) = self.worded(payload) else { return Ok(()) };
        let mut parts = self.parts(payload, id).await.unwrap_or_default();
        if let Some(last) = parts.last_mut() {
            last.buttons = buttons;
        }
        for (at, part) in parts.into_iter().enumerate() {
            let delivery = self.delivery(format!("{id}.{}", at + 1), part).delivery;
            self.answers.outbox.accept(delivery).await?;
        }
        Ok(())
    }

    /// Makes the delivery of a part, to the place where the message was said.
    pub(super) fn delivery(&self, id: String, part: Part) -> NewDelivery {
        let (address, session_key) = (self.to.address.clone(), Some(self.key.clone()));
        let (author, expires_at, asked) = (self.author.clone(), None, None);
        let delivery = Delivery { id, address, session_key, author, part, expires_at, asked };
        let now = self.answers.clock.now_ms();
        NewDelivery { delivery, accepted_at: now, not_before: now }
    }
}

/// Returns a payload without the files that the answer named before: each is sent once, as in
/// blocks.
fn with_new_files(payload: ReplyPayload, named: &mut HashSet<String>) -> ReplyPayload {
    let mut media_urls = media(&payload);
    media_urls.retain(|name| named.insert(name.clone()));
    ReplyPayload { media_url: media_urls.first().cloned(), media_urls, ..payload }
}

/// Parts for making and sending answers to chats.
pub(crate) struct ChatAnswers {
    settings: LiveSettings,
    platforms: Arc<Platforms>,
    rights: Arc<SessionRights>,
    hooks: Arc<Hooks>,
    errors: ErrorRules,
    files: ReplyFiles,
    outbox: Outbox,
    clock: Clock,
}

impl ChatAnswers {
    pub(crate) fn new(
        settings: LiveSettings,
        platforms: Arc<Platforms>,
        rights: Arc<SessionRights>,
        hooks: Arc<Hooks>,
        files: ReplyFiles,
        outbox: Outbox,
        clock: Clock,
    ) -> Self {
        let errors = ErrorRules::new(settings.clone());
        Self { settings, platforms, rights, hooks, errors, files, outbox, clock }
    }

    /// Returns the settings in force.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.now()
    }

    /// Returns the time, in Unix milliseconds.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }
}

/// The answers at the end of runs.
pub(crate) struct Replies {
    answers: Arc<ChatAnswers>,
    prefixes: Arc<Prefixes>,
    messages: Arc<StoredMessages>,
    secrets: Arc<KnownSecrets>,
}

impl Replies {
    pub(crate) fn new(
        answers: Arc<ChatAnswers>,
        prefixes: Arc<Prefixes>,
        messages: Arc<StoredMessages>,
        secrets: Arc<KnownSecrets>,
    ) -> Self {
        Self { answers, prefixes, messages, secrets }
    }

    /// Returns the deliveries of an ended message; none if it was not said on a chat platform.
    pub(crate) async fn replies<P: RequestForm>(
        &self,
        row: &InboxRow<P>,
        record: &RunRecord,
        said: FinalReplies,
    ) -> Vec<NewDelivery> {
        let payloads = match said.payloads {
            Some(payloads) if payloads.is_empty() => return Vec::new(),
            Some(payloads) if is_worth_telling(&record.outcome) => payloads,
            Some(_) | None => told(&record.outcome),
        };
        let payloads = if payloads.is_empty() {
            payloads
        } else {
            talk_step::announced(&self.messages, row, record, payloads).await
        };
        if payloads.is_empty() {
            return Vec::new();
        }
        let Some(to) = self.destination_of(row).await else { return Vec::new() };
        let told = |payload: ReplyPayload| match payload.is_error {
            true => ReplyPayload { text: self.told_error(&payload.text, to.is_private), ..payload },
            false => payload,
        };
        let mut payloads = with_frame(payloads, &record.outcome, said.has_spoken);
        // OpenClaw tells the error of a run first, ahead of the words that were said before it.
        payloads.sort_by_key(|payload| payload.is_error);
        let payloads = payloads.into_iter().map(told).collect();
        let payloads = self.answers.errors.without_unwanted_errors(&row.run_id, &to, payloads);
        if payloads.is_empty() {
            return Vec::new();
        }
        let context =
            self.prefixes.prefix_context(&row.session_key, &to, &record.outcome, said.thinking).await;
        let reply = AnswerSettings::new(&self.answers, row, to, &context, said.quoted).by(said.author);
        reply.last(payloads, said.buttons).await
    }

    /// Returns an error as it is told: without known secrets, and in groups as one short line.
    fn told_error(&self, text: &str, is_private: bool) -> String {
        let text = self.secrets.redacted(text);
        if is_private { text } else { in_short(&text) }
    }

    /// Returns the conversation in which a message is answered.
    async fn destination_of<P: RequestForm>(&self, row: &InboxRow<P>) -> Option<Destination> {
        if let Some(origin) = row.gathering.as_ref().and_then(|gathering| gathering.answer_to.as_deref()) {
            return Some(origin.into());
        }
        self.messages.of_request(row, Destination::of).await
    }
}

/// True if an answer is shown in a draft while it grows, as far as the account allows it.
pub(crate) fn has_drafts(config: &Config, origin: &MessageOrigin, agent: &AgentId) -> bool {
    let to = Destination::from(origin);
    let settings = ReplySettings::of(config, config.human_delay_of(agent), to.surface());
    origin.is_direct() && origin.address.thread.is_some() && settings.draft.is_some()
}

/// Returns the payloads that are still to be said if an earlier process began the run: without
/// those that it sent as blocks. A text whose beginning was sent is said to its end, even if a
/// tool has answered since. The flag tells if there was anything to say.
pub(super) async fn left_of_resumed(
    journal: &dyn Journal,
    turn: &MessageTurn,
    payloads: Vec<ReplyPayload>,
) -> (bool, Vec<ReplyPayload>) {
    let mut names = Vec::new();
    for run_id in &turn.runs() {
        let sent = journal.deliveries_of(run_id).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "what was said may be said a second time");
            Vec::new()
        });
        let sent = sent.into_iter().filter(|delivery| delivery.state != DeliveryState::Failed);
        // The first part of each stands for all.
        let name = |id: &str| {
            Some(id.strip_prefix(run_id.as_str())?.strip_prefix(':')?.strip_suffix(".1")?.to_owned())
        };
        names.extend(sent.filter_map(|delivery| name(&delivery.id)));
    }
    let mut blocks = SentBlocks::new(names.iter().map(String::as_str));
    let (mut had_some, mut left) = (false, Vec::new());
    for payload in payloads {
        if payload.is_error {
            had_some = true;
            left.extend(turn.left_of(payload));
            continue;
        }
        let text = blocks.left_of(&payload.text);
        let mut media_urls = media(&payload);
        media_urls.retain(|file| !names.contains(&file_name(file)));
        if text.is_empty() && media_urls.is_empty() {
            continue;
        }
        had_some = true;
        let is_rest = text.len() < payload.text.len();
        let payload = ReplyPayload { text, media_url: media_urls.first().cloned(), media_urls, ..payload };
        left.extend(if is_rest { Some(payload) } else { turn.left_of(payload) });
    }
    (had_some, left)
}

/// Cuts an answer into parts. An account that can't be made any more has no markup of its own: its
/// answers wait for it in plain words.
fn cut(account: Option<&Arc<dyn Account>>, answer: &Answer, limit: usize) -> Vec<Part> {
    match account {
        Some(account) => account.parts(answer),
        None => chunk_text(&answer.text, Limit::utf16(limit)).into_iter().map(Part::text).collect(),
    }
}

/// True if people want to read the outcome: false for a run that somebody stopped.
pub(super) fn is_worth_telling(outcome: &RunOutcome) -> bool {
    match outcome {
        RunOutcome::Ok { .. } | RunOutcome::Error { .. } => true,
        RunOutcome::Aborted { reason, .. } => reason == AbortReason::Timeout.as_str(),
    }
}

/// Payloads made from an outcome alone.
fn told(outcome: &RunOutcome) -> Vec<ReplyPayload> {
    if !is_worth_telling(outcome) {
        return Vec::new();
    }
    let payloads = outcome.result().map(RunResult::payloads).unwrap_or_default();
    match outcome.failure() {
        Some(failure) if !payloads.iter().any(|payload| payload.is_error) => {
            let text = match outcome {
                RunOutcome::Error { .. } => failure.to_owned(),
                RunOutcome::Ok { .. } | RunOutcome::Aborted { .. } => format!("⚠️ {failure}"),
            };
            let told = ReplyPayload { text, is_error: true, ..ReplyPayload::default() };
            payloads.into_iter().chain([told]).collect()
        }
        Some(_) | None => payloads,
    }
}

/// Adds the usual words around the error of a run that failed before it said anything, with a hint
/// to the logs. What was sent in blocks counts as said.
fn with_frame(payloads: Vec<ReplyPayload>, outcome: &RunOutcome, has_spoken: bool) -> Vec<ReplyPayload> {
    let is_said = |payload: &ReplyPayload| !payload.is_error && !payload.text.is_empty();
    let of_run = outcome.result().map(RunResult::payloads).unwrap_or_default();
    let has_replied = has_spoken || payloads.iter().chain(&of_run).any(is_said);
    if has_replied || !matches!(outcome, RunOutcome::Error { .. }) {
        return payloads;
    }
    let framed = |payload: ReplyPayload| match payload.is_error {
        true => ReplyPayload { text: failed_run(&payload.text), ..payload },
        false => payload,
    };
    payloads.into_iter().map(framed).collect()
}

/// Returns the first line of an error, cut if it is long.
fn in_short(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().count() <= GROUP_ERROR_CHARS {
        return line.to_owned();
    }
    let cut: String = line.chars().take(GROUP_ERROR_CHARS - 1).collect();
    format!("{}…", cut.trim_end())
}
