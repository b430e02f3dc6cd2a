//! What a chat platform is told when a message that was said there is done: stored with the end of the run, so that it is neither lost
//! nor told twice (`docs/durability.md`).

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::ReplyPayload;
use openclaw_agent::text::silent::is_silent;
use openclaw_channels::text::{Limit, chunk_text};
use openclaw_channels::{Account, Address, Answer, Button, ConversationKind, Part};
use openclaw_protocol::RunId;
use openclaw_sessions::SessionKey;
use serde_json::Value;

use super::Runner;
use super::live::file_name;
use super::reply_media::LoadedMedia;
use super::sandbox;
use crate::api::{AbortReason, RunOutcome, RunRecord};
use crate::inbox::{Asked, Row};
use crate::journal::NewDelivery;
use crate::messages::turn::MessageTurn;
use crate::origin::Origin;
use crate::outbox::{Delivery, DeliveryState, OutboxError};
use crate::reply::normalise::{NOTHING_SENT, failed_run, known_error, normalised};
use crate::reply::pipeline::media;
use crate::reply::prefix::{PrefixContext, prefix};
use crate::reply::sent_blocks::SentBlocks;
use crate::reply::settings::{ChatKind, ReplySettings, Surface};
use crate::reply::threading::{Quoted, ReplyFilter};
use crate::request::Request;

/// What people other than the owner are told of a run that failed.
const FAILED: &str = "⚠️ Something went wrong here, and there is no answer. Please try again later.";

/// What a run says at its end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    /// Its replies with all that steers their delivery; `None` where only the outcome is left, as after a crash.
    pub(crate) payloads: Option<Vec<ReplyPayload>>,
    /// How much the model thought.
    pub(crate) thinking: Option<String>,
    /// Rows of buttons below the last of them.
    pub(crate) buttons: Vec<Vec<Button>>,
    /// What the turn has quoted already.
    pub(crate) quoted: Quoted,
}

impl Said {
    /// Another message's answer says it, or it was said before.
    pub(crate) fn nothing() -> Self {
        Self { payloads: Some(Vec::new()), ..Self::default() }
    }
}

/// Where something is said.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    /// The conversation.
    pub(crate) address: Address,
    /// What kind that is.
    pub(crate) kind: ConversationKind,
    /// The message that is answered, if it was said there.
    pub(crate) message_id: Option<String>,
    /// Whether it is known that the owner alone reads there.
    pub(crate) is_owners: bool,
}

impl From<&Origin> for Destination {
    fn from(origin: &Origin) -> Self {
        Self {
            address: origin.address.clone(),
            kind: origin.conversation.kind,
            message_id: Some(origin.message_id.clone()),
            is_owners: origin.hears_reasons,
        }
    }
}

impl Destination {
    /// Where the answer to a request is said, if on a chat platform.
    fn of(request: &Request) -> Option<Self> {
        let told = |address: &Address| Self {
            address: address.clone(),
            kind: ConversationKind::Direct,
            message_id: None,
            is_owners: false,
        };
        request.origin.as_deref().map(Self::from).or_else(|| request.deliver_to.as_ref().map(told))
    }
}

/// How one message is answered: fixed when its run begins, so that blocks and the end of an answer are shaped alike.
#[derive(Clone)]
pub(super) struct Reply<'a> {
    pub(super) runner: &'a Runner,
    run_id: &'a RunId,
    key: &'a SessionKey,
    pub(super) to: Destination,
    pub(super) settings: ReplySettings,
    pub(super) account: Option<Arc<dyn Account>>,
    workspace: PathBuf,
    prefix: Option<String>,
    quotes: ReplyFilter,
    /// Whether there were words, although none may have been sent.
    has_words: bool,
}

impl<'a> Reply<'a> {
    /// For a message, answered where that goes.
    pub(super) fn new<P>(
        runner: &'a Runner,
        row: &'a Row<P>,
        to: Destination,
        context: &PrefixContext,
        quoted: Quoted,
    ) -> Self {
        Self::of(runner, &row.run_id, &row.session_key, to, context, quoted)
    }

    /// For what a run says.
    pub(super) fn of(
        runner: &'a Runner,
        run_id: &'a RunId,
        key: &'a SessionKey,
        to: Destination,
        context: &PrefixContext,
        quoted: Quoted,
    ) -> Self {
        let current = runner.settings();
        let config = Arc::clone(&current.config);
        let address = &to.address;
        let agent = config.agent(&key.agent_or(&config.default_agent()));
        let settings = ReplySettings::of(&config, config.human_delay_of(&agent.id), surface(&to));
        let prefix = prefix(settings.prefix.as_deref(), context);
        let quotes = ReplyFilter::sharing(settings.reply_to, settings.keeps_tags, quoted);
        let account = runner.deps.platforms.account(&config, &address.channel, &address.account);
        let workspace = sandbox::files_of(&current, &agent, key);
        Self { runner, run_id, key, to, settings, account, workspace, prefix, quotes, has_words: false }
    }

    /// What a payload says, with what it quotes; nothing for one that says nothing.
    pub(super) fn worded(&mut self, payload: ReplyPayload) -> Option<ReplyPayload> {
        self.has_words |= !payload.text.trim().is_empty() && !is_silent(&payload.text);
        let payload = normalised(payload, self.prefix.as_deref())?;
        Some(self.quotes.apply(payload, self.to.message_id.as_deref()))
    }

    /// Its parts. The id is the one hooks are told.
    pub(super) async fn parts(&self, payload: ReplyPayload, id: &str) -> Vec<Part> {
        let LoadedMedia { media, notes } = self.runner.load_media(&payload, &self.workspace).await;
        let text = [Some(payload.text.as_str()), notes.as_deref()].into_iter().flatten();
        let text = text.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
        let hooked = self.runner.hooked_words(id, &self.to.address, Some(self.key), text).await;
        let Some(text) = hooked else { return Vec::new() };
        let answer = Answer {
            text,
            media,
            silent: payload.is_error && self.runner.tells_errors_silently(&self.to.address),
            reply_to: payload.reply_to.and_then(openclaw_agent::ReplyTo::into_id),
            as_voice: payload.voice,
            ..Answer::default()
        };
        cut(self.account.as_ref(), &answer, self.settings.text_limit)
    }

    /// The deliveries of its last payloads, with buttons below them.
    async fn last(mut self, payloads: Vec<ReplyPayload>, buttons: Vec<Vec<Button>>) -> Vec<NewDelivery> {
        let (mut parts, mut named) = (Vec::new(), HashSet::new());
        for payload in payloads {
            let payload = with_new_files(payload, &mut named);
            let Some(payload) = self.worded(payload) else { continue };
            let id = format!("{}:{}", self.run_id, parts.len() + 1);
            parts.extend(self.parts(payload, &id).await);
        }
        if parts.is_empty() && self.has_words {
            parts.push(Part::text(NOTHING_SENT));
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
        let mut parts = self.parts(payload, id).await;
        if let Some(last) = parts.last_mut() {
            last.buttons = buttons;
        }
        for (at, part) in parts.into_iter().enumerate() {
            let delivery = self.delivery(format!("{id}.{}", at + 1), part).delivery;
            self.runner.shared.outbox.accept(delivery).await?;
        }
        Ok(())
    }

    /// A part on its way to where the message was said.
    pub(super) fn delivery(&self, id: String, part: Part) -> NewDelivery {
        let (address, session_key) = (self.to.address.clone(), Some(self.key.clone()));
        let delivery = Delivery { id, address, session_key, part, expires_at: None, asked: None };
        let now = self.runner.shared.clock.now_ms();
        NewDelivery { delivery, accepted_at: now, not_before: now }
    }
}

/// A payload without the files that the answer named before: each is sent once, as where it is sent in blocks.
fn with_new_files(payload: ReplyPayload, named: &mut HashSet<String>) -> ReplyPayload {
    let mut media_urls = media(&payload);
    media_urls.retain(|name| named.insert(name.clone()));
    ReplyPayload { media_url: media_urls.first().cloned(), media_urls, ..payload }
}

impl Runner {
    /// The deliveries of an ended message; none where it was not said on a chat platform.
    pub(crate) async fn replies<P: Asked>(
        &self,
        row: &Row<P>,
        record: &RunRecord,
        said: Said,
    ) -> Vec<NewDelivery> {
        let payloads = match said.payloads {
            Some(payloads) if payloads.is_empty() => return Vec::new(),
            Some(payloads) if is_worth_telling(&record.outcome) => payloads,
            Some(_) | None => told(&record.outcome),
        };
        let payloads =
            if payloads.is_empty() { payloads } else { self.announced(row, record, payloads).await };
        if payloads.is_empty() {
            return Vec::new();
        }
        let Some(to) = self.destination_of(row).await else { return Vec::new() };
        let payloads = match to.is_owners {
            true => with_frame(payloads, &record.outcome),
            false => without_reasons(payloads, &record.outcome),
        };
        let payloads = self.without_unwanted_errors(&row.run_id, &to, payloads);
        if payloads.is_empty() {
            return Vec::new();
        }
        let context = self.prefix_context(&row.session_key, &to, &record.outcome, said.thinking).await;
        Reply::new(self, row, to, &context, said.quoted).last(payloads, said.buttons).await
    }

    /// What of a run's payloads is still to be said where an earlier process began it: not what that sent as blocks. A text whose beginning was
    /// sent is said to its end, also where a tool has answered since. And whether there was anything to say.
    pub(super) async fn left_of_resumed(
        &self,
        turn: &MessageTurn,
        payloads: Vec<ReplyPayload>,
    ) -> (bool, Vec<ReplyPayload>) {
        let mut names = Vec::new();
        for run_id in &turn.runs() {
            let sent = self.shared.journal.deliveries_of(run_id).await.unwrap_or_else(|error| {
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
            let payload =
                ReplyPayload { text, media_url: media_urls.first().cloned(), media_urls, ..payload };
            left.extend(if is_rest { Some(payload) } else { turn.left_of(payload) });
        }
        (had_some, left)
    }

    /// Where a message is answered.
    async fn destination_of<P: Asked>(&self, row: &Row<P>) -> Option<Destination> {
        if let Some(origin) = row.gathering.as_ref().and_then(|gathering| gathering.answer_to.as_deref()) {
            return Some(origin.into());
        }
        self.of_request(row, Destination::of).await
    }

    /// Where a message was said, if on a chat platform.
    pub(crate) async fn origin_of<P: Asked>(&self, row: &Row<P>) -> Option<Box<Origin>> {
        self.of_request(row, |request| request.origin.clone()).await
    }

    /// Something of a message's request, which is on disk if it is big.
    pub(crate) async fn of_request<P: Asked, T>(
        &self,
        row: &Row<P>,
        take: fn(&Request) -> Option<T>,
    ) -> Option<T> {
        if let Some(request) = row.payload.request() {
            return take(request);
        }
        let read = self.shared.journal.payload(&row.run_id).await;
        let read = read.inspect_err(|error| tracing::error!(run_id = %row.run_id, %error, "a message can't be read: nobody is told of its end"));
        take(&read.ok()?)
    }
}

/// An account that can't be made any more has no markup of its own: its answers wait for it in plain words.
fn cut(account: Option<&Arc<dyn Account>>, answer: &Answer, limit: usize) -> Vec<Part> {
    match account {
        Some(account) => account.parts(answer),
        None => chunk_text(&answer.text, Limit::utf16(limit)).into_iter().map(Part::text).collect(),
    }
}

/// The surface that settings are for.
pub(super) fn surface(to: &Destination) -> Surface<'_> {
    let Address { channel, account, .. } = &to.address;
    Surface { channel, account: Some(account), chat: chat_kind(to.kind) }
}

fn chat_kind(kind: ConversationKind) -> ChatKind {
    match kind {
        ConversationKind::Direct => ChatKind::Direct,
        ConversationKind::Group => ChatKind::Group,
        ConversationKind::Channel => ChatKind::Channel,
    }
}

pub(super) fn result_of(outcome: &RunOutcome) -> Option<&Value> {
    match outcome {
        RunOutcome::Ok { result } => Some(result),
        RunOutcome::Error { result, .. } | RunOutcome::Aborted { result, .. } => result.as_ref(),
    }
}

/// Whether people want to read what there is of it: not of a run that somebody stopped.
pub(super) fn is_worth_telling(outcome: &RunOutcome) -> bool {
    match outcome {
        RunOutcome::Ok { .. } | RunOutcome::Error { .. } => true,
        RunOutcome::Aborted { reason, .. } => reason == AbortReason::Timeout.as_str(),
    }
}

/// What is told of an outcome alone.
fn told(outcome: &RunOutcome) -> Vec<ReplyPayload> {
    if !is_worth_telling(outcome) {
        return Vec::new();
    }
    let payloads = result_of(outcome).and_then(|result| result.get("payloads")?.as_array());
    let payloads: Vec<ReplyPayload> = payloads.into_iter().flatten().map(read).collect();
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

/// What the owner is told: of a run that failed before it said anything also where more is to be read.
fn with_frame(payloads: Vec<ReplyPayload>, outcome: &RunOutcome) -> Vec<ReplyPayload> {
    let has_replied = payloads.iter().any(|payload| !payload.is_error && !payload.text.is_empty());
    if has_replied || !matches!(outcome, RunOutcome::Error { .. }) {
        return payloads;
    }
    let framed = |payload: ReplyPayload| match payload.is_error {
        true => ReplyPayload { text: failed_run(&payload.text), ..payload },
        false => payload,
    };
    payloads.into_iter().map(framed).collect()
}

/// What people other than the owner are told (spec `channels.md` §5.2): that a run failed, not why, and nothing of tools that failed.
fn without_reasons(payloads: Vec<ReplyPayload>, outcome: &RunOutcome) -> Vec<ReplyPayload> {
    let failed = outcome.failure().map(|failure| {
        // What troubles a provider is no secret.
        let text = known_error(failure).unwrap_or(FAILED).to_owned();
        ReplyPayload { text, is_error: true, ..ReplyPayload::default() }
    });
    payloads.into_iter().filter(|payload| !payload.is_error).chain(failed).collect()
}

/// A payload as it is stored with an outcome.
fn read(stored: &Value) -> ReplyPayload {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let urls = stored.get("mediaUrls").and_then(Value::as_array);
    ReplyPayload {
        text: stored.get("text").and_then(text).unwrap_or_default(),
        media_url: stored.get("mediaUrl").and_then(text),
        media_urls: urls.into_iter().flatten().filter_map(text).collect(),
        is_error: stored.get("isError").and_then(Value::as_bool).unwrap_or_default(),
        ..ReplyPayload::default()
    }
}
