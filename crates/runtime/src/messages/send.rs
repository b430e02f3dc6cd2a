//! Actions that make a message of their own: text, files, polls, stickers. Such a message is stored
//! in the outbox, part by part, and then awaited: the caller is told what the platform made of it,
//! or that it waits.

use std::time::Duration;

use openclaw_agent::text::directive;
use openclaw_agent::text::silent::{is_silent, spoken};
use openclaw_agent::{ReplyPayload, ReplyTo};
use openclaw_channels::{Answer, Content, Part};
use openclaw_delivery::outbox::{Enqueued, Posted};
use openclaw_delivery::reply::settings::{ReplySettings, Surface};
use openclaw_delivery::reply::threading::ReplyFilter;
use openclaw_journal::delivery::{Author, Delivery};
use openclaw_protocol::SessionKey;
use serde_json::{Map, Value, json};

use super::arguments::ActionArguments;
use super::guard::OriginMark;
use super::perform::Acting;
use super::place::MessageTarget;
use super::{DeliverError, MessageError};

/// Time that a platform may take before the caller is told that the message waits.
const PATIENCE: Duration = Duration::from_secs(20);

/// Outcome of a message.
struct Letter {
    /// Outcome of its parts.
    posted: Posted,
    /// True if a hook kept all of it back.
    is_withheld: bool,
}

impl Letter {
    /// True if its reader has it, or will: its words, or its files if it has no words.
    fn has_said(&self, text: &str) -> bool {
        let has_content = !text.trim().is_empty() || self.posted.left_out.is_empty();
        self.posted.failures.is_empty() && !self.is_withheld && has_content
    }
}

/// Sends text and files.
pub(super) async fn letter(
    acting: &Acting<'_>,
    place: &MessageTarget,
    mark: &OriginMark,
    args: ActionArguments<'_>,
) -> Result<Value, MessageError> {
    let written = args.text("message").or_else(|| args.text("caption")).unwrap_or_default();
    let parsed = directive::parse(written);
    let mut names: Vec<String> =
        ["media", "mediaUrl", "path", "filePath"].iter().filter_map(|key| args.word(key)).collect();
    names.extend(args.list("mediaUrls"));
    names.extend(parsed.media.iter().cloned());
    names.dedup();
    let buffer = args.text("buffer");
    let has_files = !names.is_empty() || buffer.is_some();
    let is_silenced = is_silent(&parsed.text);
    let text = if is_silenced { String::new() } else { mark.around(spoken(&parsed.text)) };
    if text.trim().is_empty() && !has_files {
        if is_silenced {
            let note = "The text says that nothing is to be said: nothing was sent.";
            return Ok(json!({"ok": true, "suppressed": true, "note": note}));
        }
        return Err(MessageError::Invalid("message required: give message, media, or both".to_owned()));
    }
    let buttons = args.buttons()?;
    if !buttons.is_empty() {
        let permitted = place.account.permits_buttons(&place.address);
        permitted.map_err(|error| MessageError::Invalid(error.to_string()))?;
    }
    check_reply_to(place, args)?;
    if acting.is_dry_run {
        for name in &names {
            acting.files.check(name).await.map_err(MessageError::Invalid)?;
        }
        return Ok(dry(place, json!({"mediaUrl": names.first(), "mediaUrls": several(&names)})));
    }
    let mut media = Vec::new();
    for name in &names {
        media.push(acting.files.take(name).await.map_err(MessageError::Invalid)?);
    }
    if let Some(buffer) = buffer {
        let mime = args.first(&["contentType", "mimeType"]);
        let taken = acting.files.take_buffer(buffer, args.word("filename").as_deref(), mime.as_deref()).await;
        media.push(taken.map_err(MessageError::Invalid)?);
    }
    let answer = Answer {
        text: text.clone(),
        media,
        reply_to: reply_to(acting, place, args, parsed.reply_to),
        quote: args.text("quoteText").map(str::to_owned),
        silent: args.flag("silent"),
        buttons,
        as_voice: args.flag("asVoice") || parsed.voice,
    };
    let files = answer.media.len();
    let mut parts = place.account.parts(&answer);
    if args.flag("gifPlayback") {
        parts.iter_mut().for_each(Part::play_as_gif);
    }
    too_large(&parts, files)?;
    let letter = acting.post(place, parts).await?;
    if let Some(turn) = acting.turn
        && letter.has_said(&text)
    {
        turn.sent(&text, &place.address);
    }
    told(
        place,
        &letter,
        args.flag("bestEffort"),
        json!({"mediaUrl": names.first(), "mediaUrls": several(&names)}),
    )
}

/// Asks a question with answers to choose from.
pub(super) async fn poll(
    acting: &Acting<'_>,
    place: &MessageTarget,
    args: ActionArguments<'_>,
) -> Result<Value, MessageError> {
    let info = place.channel.info();
    let most = place.channel.capabilities().poll_options;
    let most = most.ok_or_else(|| MessageError::Invalid(format!("unsupported poll channel: {}", info.id)))?;
    let required = |what: &str| MessageError::Invalid(format!("{what} required"));
    let question = args.word("pollQuestion").ok_or_else(|| required("pollQuestion"))?;
    let options = args.list("pollOption");
    if options.len() < 2 {
        return Err(MessageError::Invalid("pollOption requires at least two values".to_owned()));
    }
    if options.len() > most {
        return Err(MessageError::Invalid(format!("{} takes at most {most} options", info.label)));
    }
    let multiple = args.flag("pollMulti");
    let hours = args.count("pollDurationHours");
    let selections = if multiple { options.len() } else { 1 };
    let asked = json!({"question": question, "options": options, "maxSelections": selections, "durationHours": hours});
    if acting.is_dry_run {
        return Ok(dry(place, asked));
    }
    let part = Part {
        content: Content::Poll { question, options, multiple, hours },
        silent: args.flag("silent"),
        ..Part::text("")
    };
    let letter = acting.post(place, vec![part]).await?;
    told(place, &letter, false, asked)
}

/// Sends a sticker.
pub(super) async fn sticker(
    acting: &Acting<'_>,
    place: &MessageTarget,
    args: ActionArguments<'_>,
) -> Result<Value, MessageError> {
    let id = args.word("fileId").or_else(|| args.list("stickerId").into_iter().next());
    let id = id.ok_or_else(|| {
        MessageError::Invalid("stickerId (or fileId) required; sticker-search finds one".to_owned())
    })?;
    check_reply_to(place, args)?;
    if acting.is_dry_run {
        return Ok(dry(place, json!({"stickerId": id})));
    }
    let part = Part {
        content: Content::Sticker { id },
        reply_to: args.word("replyTo"),
        silent: args.flag("silent"),
        ..Part::text("")
    };
    let letter = acting.post(place, vec![part]).await?;
    told(place, &letter, false, json!({}))
}

impl Acting<'_> {
    /// Stores the parts, and waits for the platform. One that was stored before, by the same call, is not sent again.
    async fn post(&self, place: &MessageTarget, parts: Vec<Part>) -> Result<Letter, MessageError> {
        let (mut ids, mut withheld) = (Vec::new(), 0);
        for (at, part) in parts.into_iter().enumerate() {
            let id = format!("{}.{}", self.id, at + 1);
            match self.store(place, &id, part, self.session_key.clone()).await? {
                Enqueued::New | Enqueued::Known(_) => ids.push(id),
                Enqueued::Withheld => withheld += 1,
            }
        }
        // It is unknown when an account that is not at work will be.
        let patience = if place.is_at_work { PATIENCE } else { Duration::ZERO };
        let posted = tokio::select! { biased;
            () = self.is_cancelled() => return Err(MessageError::Stopped),
            posted = self.host.outbox().posted(&ids, patience) => posted,
        };
        let posted = posted.map_err(|error| MessageError::Failed(error.to_string()))?;
        Ok(Letter { posted, is_withheld: withheld > 0 && ids.is_empty() })
    }

    async fn store(
        &self,
        place: &MessageTarget,
        id: &str,
        part: Part,
        session_key: Option<SessionKey>,
    ) -> Result<Enqueued, MessageError> {
        let address = place.address.clone();
        let (id, author) = (id.to_owned(), Author::with(&part, self.rights()));
        let delivery = Delivery { id, address, session_key, author, part, expires_at: None, asked: None };
        self.host.deliver(delivery).await.map_err(|error| match error {
            DeliverError::Session(error) => MessageError::Invalid(error.to_string()),
            DeliverError::Outbox(error) => MessageError::Failed(error.to_string()),
        })
    }
}

/// Checks that the message to be answered is one that the platform can have.
fn check_reply_to(place: &MessageTarget, args: ActionArguments<'_>) -> Result<(), MessageError> {
    let Some(id) = args.word("replyTo") else { return Ok(()) };
    let read = place.channel.message_id(&id);
    read.map(drop).map_err(|error| MessageError::Invalid(format!("replyTo: {error}")))
}

/// Returns the message that is quoted: the named one, or one that a tag in the text asks for, as
/// far as the mode lets the turn quote.
fn reply_to(
    acting: &Acting<'_>,
    place: &MessageTarget,
    args: ActionArguments<'_>,
    tag: Option<ReplyTo>,
) -> Option<String> {
    let bound = acting.bound.as_ref().filter(|bound| {
        bound.address.channel == place.address.channel && bound.address.target == place.address.target
    });
    let quoted = acting.turn.map(|turn| turn.quoted.clone()).filter(|_| bound.is_some()).unwrap_or_default();
    if let Some(id) = args.word("replyTo") {
        quoted.set();
        return Some(id);
    }
    let surface = Surface {
        channel: &place.address.channel,
        account: Some(&place.address.account),
        chat: openclaw_delivery::reply::settings::ChatKind::default(),
    };
    let mode =
        ReplySettings::of(&acting.config, openclaw_config::settings::HumanDelay::default(), surface).reply_to;
    let payload = ReplyPayload { reply_to: tag, ..ReplyPayload::default() };
    let current = bound.and_then(|bound| bound.message_id.as_deref());
    ReplyFilter::sharing(mode, false, quoted).apply(payload, current).reply_to.and_then(ReplyTo::into_id)
}

/// Returns an error if a file is too large for the platform: a model that hears of success would
/// tell its reader so.
fn too_large(parts: &[Part], files: usize) -> Result<(), MessageError> {
    let sent = parts.iter().filter(|part| matches!(part.content, Content::Media { .. })).count();
    if sent >= files {
        return Ok(());
    }
    let words: Vec<&str> =
        parts.iter().filter_map(Part::words).filter(|words| words.contains("was not sent")).collect();
    Err(MessageError::Invalid(match words.as_slice() {
        [] => "the platform can't take the file".to_owned(),
        words => words.join("\n"),
    }))
}

fn several(names: &[String]) -> Option<&[String]> {
    (names.len() > 1).then_some(names)
}

/// Fields of every result.
fn frame(place: &MessageTarget) -> Map<String, Value> {
    let address = &place.address;
    let fields = [
        ("channel", json!(address.channel)),
        ("accountId", json!(address.account)),
        ("to", json!(address.target)),
        ("threadId", json!(address.thread)),
        ("via", json!("direct")),
    ];
    fields
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn with(mut fields: Map<String, Value>, more: Value) -> Value {
    if let Value::Object(more) = more {
        fields.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Value::Object(fields)
}

/// Result of a dry run: the place, and these fields.
pub(super) fn dry(place: &MessageTarget, more: Value) -> Value {
    let mut fields = frame(place);
    fields.insert("dryRun".to_owned(), json!(true));
    with(fields, more)
}

/// Result of a message that was sent or stored; an error if it failed.
fn told(
    place: &MessageTarget,
    letter: &Letter,
    best_effort: bool,
    more: Value,
) -> Result<Value, MessageError> {
    let Letter { posted, is_withheld } = letter;
    if let Some(why) =
        posted.failure().filter(|_| !best_effort || posted.sent == 0 && !posted.failures.is_empty())
    {
        return Err(MessageError::Failed(why));
    }
    if *is_withheld {
        return Err(MessageError::Failed("a hook keeps the message back".to_owned()));
    }
    let mut fields = frame(place);
    fields.insert("ok".to_owned(), json!(true));
    let several = (posted.message_ids.len() > 1).then_some(&posted.message_ids);
    let mut result = json!({"chatId": place.address.target});
    if let Some(fields) = result.as_object_mut() {
        fields.extend(posted.message_ids.last().map(|id| ("messageId".to_owned(), json!(id))));
        fields.extend(several.map(|ids| ("messageIds".to_owned(), json!(ids))));
    }
    fields.insert("result".to_owned(), result);
    if let Some(reason) = posted.waiting.first() {
        let reason = reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        fields.insert("status".to_owned(), json!("queued"));
        let note = format!(
            "It is stored and waits for {}{reason}. It is sent by itself as soon as that works: do not send it again.",
            place.channel.info().label
        );
        fields.insert("note".to_owned(), json!(note));
    }
    let errors: Vec<&String> = posted.failures.iter().chain(&posted.left_out).collect();
    if !errors.is_empty() {
        fields.insert("errors".to_owned(), json!(errors));
    }
    Ok(with(fields, more))
}
