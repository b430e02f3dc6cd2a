//! A part as a request of the Bot API (spec `channels.md` §7.5).

use std::path::Path;

use openclaw_channels::{Button, Content, FormattedText, MediaKind, OutgoingPart, Part, SendAttempt};
use serde_json::{Value, json};

use crate::client::Upload;
use crate::params::{chat_id, set};
use crate::settings::AccountSettings;
use crate::thread;

/// Bytes that a button carries.
const BUTTON_DATA: usize = 64;
/// Characters of a poll's question, and of an answer.
const QUESTION: usize = 300;
const OPTION: usize = 100;
/// Prefix of a message that waited long.
const LATE: &str = "(delayed) ";

/// Request to the Bot API.
#[derive(Debug, Clone)]
pub(super) struct BotRequest {
    pub(super) method: &'static str,
    pub(super) params: Value,
    pub(super) upload: Option<(MediaKind, Upload)>,
}

/// Parts of a message that are left out because Telegram refused them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Without {
    /// The markup.
    pub(super) markup: bool,
    /// The quoted words.
    pub(super) quote: bool,
    /// Media kind: a picture or a voice message is sent as an ordinary file.
    pub(super) kind: bool,
    /// The words below a file.
    pub(super) caption: bool,
    /// The topic.
    pub(super) topic: bool,
}

/// The request for a part.
pub(super) fn request(
    outgoing: OutgoingPart<'_>,
    chat: &str,
    attempt: SendAttempt,
    without: Without,
    settings: &AccountSettings,
) -> BotRequest {
    let part = outgoing.part;
    let late = if attempt.late { LATE } else { "" };
    let mut params = json!({"chat_id": chat_id(chat)});
    if let Some(thread) = thread::to_send(outgoing.address).filter(|_| !without.topic) {
        set(&mut params, "message_thread_id", thread);
    }
    if part.silent {
        set(&mut params, "disable_notification", true);
    }
    if let Some(reply) = reply(part, without) {
        set(&mut params, "reply_parameters", reply);
    }
    if let Some(keyboard) = keyboard(&part.buttons) {
        set(&mut params, "reply_markup", keyboard);
    }
    match &part.content {
        Content::Text(words) => {
            write_words(&mut params, "text", words, late, without);
            if !settings.shows_link_previews() {
                set(&mut params, "link_preview_options", json!({"is_disabled": true}));
            }
            BotRequest { method: "sendMessage", params, upload: None }
        }
        Content::Media { path, sent_as, mime, name, caption } => {
            let kind = kind_of(*sent_as, without);
            let (method, field) = method_of(kind);
            if let Some(words) = caption.as_ref().filter(|_| !without.caption && field != "video_note") {
                write_words(&mut params, "caption", words, late, without);
            }
            let upload =
                Upload { field, path: path.clone(), mime: mime.clone(), name: file_name(name, path) };
            BotRequest { method, params, upload: Some((kind, upload)) }
        }
        Content::Poll { question, options, multiple, hours: _ } => {
            // Polls of bots close after ten minutes at most or never: hours can't be said.
            let options: Vec<Value> =
                options.iter().map(|option| json!({"text": cut(option, OPTION)})).collect();
            set(&mut params, "question", cut(question, QUESTION));
            set(&mut params, "options", options);
            set(&mut params, "allows_multiple_answers", *multiple);
            set(&mut params, "is_anonymous", false);
            BotRequest { method: "sendPoll", params, upload: None }
        }
        Content::Sticker { id } => {
            set(&mut params, "sticker", id.as_str());
            BotRequest { method: "sendSticker", params, upload: None }
        }
    }
}

/// The keyboard below a message; `None` where nothing of it can be sent.
pub(super) fn keyboard(rows: &[Vec<Button>]) -> Option<Value> {
    let fits = |button: &&Button| {
        let fits = !button.text.is_empty() && !button.data.is_empty() && button.data.len() <= BUTTON_DATA;
        if !fits {
            tracing::warn!(bytes = button.data.len(), "a button that Telegram would refuse is left out");
        }
        fits
    };
    let row = |row: &Vec<Button>| -> Vec<Value> {
        let shown = row.iter().filter(fits);
        shown.map(|button| json!({"text": button.text, "callback_data": button.data})).collect()
    };
    let rows: Vec<Vec<Value>> = rows.iter().map(row).filter(|row| !row.is_empty()).collect();
    (!rows.is_empty()).then(|| json!({"inline_keyboard": rows}))
}

fn reply(part: &Part, without: Without) -> Option<Value> {
    let message: i64 = part.reply_to.as_deref()?.parse().ok()?;
    let mut reply = json!({"message_id": message, "allow_sending_without_reply": true});
    if let Some(quote) = part.quote.as_ref().filter(|quote| !without.quote && !quote.is_empty()) {
        set(&mut reply, "quote", quote.as_str());
    }
    Some(reply)
}

fn write_words(params: &mut Value, key: &str, words: &FormattedText, late: &str, without: Without) {
    match words.formatted.as_ref().filter(|_| !without.markup) {
        Some(formatted) => {
            set(params, key, format!("{late}{formatted}"));
            set(params, "parse_mode", "HTML");
        }
        None => set(params, key, format!("{late}{}", words.plain)),
    }
}

/// Returns the kind as which a file is sent.
fn kind_of(kind: MediaKind, without: Without) -> MediaKind {
    match kind {
        MediaKind::Voice if without.kind => MediaKind::Audio,
        _ if without.kind => MediaKind::Document,
        _ => kind,
    }
}

/// The method for a file, and its field.
fn method_of(kind: MediaKind) -> (&'static str, &'static str) {
    match kind {
        MediaKind::Image => ("sendPhoto", "photo"),
        MediaKind::Animation => ("sendAnimation", "animation"),
        MediaKind::Video => ("sendVideo", "video"),
        MediaKind::VideoNote => ("sendVideoNote", "video_note"),
        MediaKind::Audio => ("sendAudio", "audio"),
        MediaKind::Voice => ("sendVoice", "voice"),
        MediaKind::Sticker => ("sendSticker", "sticker"),
        MediaKind::Document => ("sendDocument", "document"),
    }
}

fn file_name(name: &str, path: &Path) -> String {
    let own = || path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = if name.trim().is_empty() { own().unwrap_or_default() } else { name.to_owned() };
    // A line break would end the header that carries it.
    let name: String = name.chars().filter(|c| !c.is_control() && !matches!(c, '/' | '\\' | '"')).collect();
    if name.is_empty() { "file".to_owned() } else { name }
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use openclaw_channels::Address;

    const FIRST: SendAttempt = SendAttempt { number: 1, late: false, may_repeat: false };

    fn part(content: Content) -> Part {
        Part { content, reply_to: None, quote: None, silent: false, buttons: Vec::new(), extra: Map::new() }
    }

    fn built(part: &Part, thread: Option<&str>, attempt: SendAttempt, without: Without) -> BotRequest {
        let address = Address {
            channel: "telegram".to_owned(),
            account: "default".to_owned(),
            target: "-100".to_owned(),
            thread: thread.map(str::to_owned),
        };
        let outgoing = OutgoingPart { id: "r:0", address: &address, part };
        request(outgoing, "-100", attempt, without, &AccountSettings::default())
    }

    fn words() -> FormattedText {
        FormattedText { plain: "a < b".to_owned(), formatted: Some("a &lt; b".to_owned()) }
    }

    #[test]
    fn words_are_sent_with_markup_and_without() {
        let text = part(Content::Text(words()));
        let html = built(&text, None, FIRST, Without::default());
        assert_eq!(html.params, json!({"chat_id": -100, "text": "a &lt; b", "parse_mode": "HTML"}));
        let plain = built(&text, None, FIRST, Without { markup: true, ..Without::default() });
        assert_eq!(plain.params, json!({"chat_id": -100, "text": "a < b"}));
        let late = built(&text, None, SendAttempt { late: true, ..FIRST }, Without::default());
        assert_eq!(late.params["text"], "(delayed) a &lt; b");
    }

    #[test]
    fn every_part_keeps_its_topic_reply_and_silence() {
        let caption = Some(words());
        let media = |sent_as| Content::Media {
            path: "/x/a.bin".into(),
            sent_as,
            mime: "application/octet-stream".to_owned(),
            name: String::new(),
            caption: caption.clone(),
        };
        let poll = Content::Poll {
            question: "q".repeat(400),
            options: vec!["a".to_owned(), "b".to_owned()],
            multiple: true,
            hours: Some(3),
        };
        let rows = [
            (Content::Text(words()), "sendMessage"),
            (media(MediaKind::Image), "sendPhoto"),
            (media(MediaKind::Animation), "sendAnimation"),
            (media(MediaKind::Video), "sendVideo"),
            (media(MediaKind::VideoNote), "sendVideoNote"),
            (media(MediaKind::Audio), "sendAudio"),
            (media(MediaKind::Voice), "sendVoice"),
            (media(MediaKind::Sticker), "sendSticker"),
            (media(MediaKind::Document), "sendDocument"),
            (poll, "sendPoll"),
        ];
        for (content, method) in rows {
            let part = Part {
                reply_to: Some("5".to_owned()),
                quote: Some("q".to_owned()),
                silent: true,
                ..part(content)
            };
            let request = built(&part, Some("42"), FIRST, Without::default());
            assert_eq!(request.method, method);
            assert_eq!(request.params["message_thread_id"], 42, "{method}");
            assert_eq!(request.params["disable_notification"], true, "{method}");
            let reply = json!({"message_id": 5, "allow_sending_without_reply": true, "quote": "q"});
            assert_eq!(request.params["reply_parameters"], reply, "{method}");
            assert_eq!(
                request.params.get("caption").is_some(),
                request.upload.is_some() && method != "sendVideoNote"
            );
            assert!(request.upload.is_none_or(|(_, upload)| upload.name == "a.bin"));
        }
    }

    #[test]
    fn the_general_topic_and_ids_of_presses_are_left_out() {
        let part = Part { reply_to: Some("cb:1".to_owned()), ..part(Content::Text(words())) };
        let params = built(&part, Some("1"), FIRST, Without::default()).params;
        assert!(params.get("message_thread_id").is_none() && params.get("reply_parameters").is_none());
    }

    #[test]
    fn buttons_that_telegram_would_refuse_are_left_out() {
        let button = |data: &str| Button { text: "b".to_owned(), data: data.to_owned() };
        assert_eq!(keyboard(&[]), None);
        assert_eq!(keyboard(&[vec![button(&"x".repeat(65))]]), None);
        let found = keyboard(&[vec![button(&"x".repeat(64)), button("")], Vec::new()]);
        assert_eq!(
            found,
            Some(json!({"inline_keyboard": [[{"text": "b", "callback_data": "x".repeat(64)}]]}))
        );
    }

    #[test]
    fn what_is_no_picture_goes_as_a_file() {
        let without = Without { kind: true, ..Without::default() };
        assert_eq!(method_of(kind_of(MediaKind::Image, without)).0, "sendDocument");
        assert_eq!(method_of(kind_of(MediaKind::Voice, without)).0, "sendAudio");
    }
}
