//! An answer as the messages that carry it (spec `channels.md` §7.5).

use std::path::Path;

use openclaw_channels::{Answer, AnswerMedia, Content, FormattedText, MediaKind, Part};
use serde_json::Map;

use crate::html::{self, Cut};
use crate::settings::AccountSettings;

/// UTF-16 units of the words below a file.
const CAPTION: usize = 1024;
/// Bytes of a picture, and of any other file.
const PHOTO_BYTES: u64 = 10 * 1_000_000;
const FILE_BYTES: u64 = 50 * 1_000_000;
/// Width and height of a picture together, and how many times the one may be the other.
const PHOTO_SIDES: u64 = 10_000;
const PHOTO_RATIO: u64 = 20;
/// Types that Telegram shows as pictures.
const PHOTOS: &[&str] = &["image/jpeg", "image/png", "image/webp"];
/// Types that Telegram plays as voice messages.
const VOICES: &[&str] = &["audio/ogg", "audio/opus", "application/ogg"];

/// The messages. The first points to what is answered, the last has the buttons.
pub(super) fn of(answer: &Answer, settings: &AccountSettings) -> Vec<Part> {
    let mut contents: Vec<Content> = Vec::new();
    let text = answer.text.trim();
    let mut caption = caption(text, answer, settings);
    let is_captioned = caption.is_some();
    let mut notes: Vec<String> = Vec::new();
    for media in &answer.media {
        if media.size > FILE_BYTES {
            notes.push(too_large(media));
            continue;
        }
        contents.push(Content::Media {
            path: media.path.clone(),
            sent_as: kind(media, answer.as_voice),
            mime: media.mime.clone(),
            name: media.name.clone(),
            caption: caption.take(),
        });
    }
    if !is_captioned || caption.is_some() {
        contents.extend(chunks(text, settings).into_iter().map(Content::Text));
    }
    contents.extend(notes.into_iter().map(|note| Content::Text(FormattedText::plain(note))));
    let last = contents.len().saturating_sub(1);
    let part = |(at, content)| Part {
        content,
        reply_to: answer.reply_to.clone().filter(|_| at == 0),
        quote: answer.quote.clone().filter(|_| at == 0),
        silent: answer.silent,
        buttons: if at == last { answer.buttons.clone() } else { Vec::new() },
        extra: Map::new(),
    };
    contents.into_iter().enumerate().map(part).collect()
}

/// The text as the words below the first file, if it fits there.
fn caption(text: &str, answer: &Answer, settings: &AccountSettings) -> Option<FormattedText> {
    let takes_one = answer.media.iter().any(|media| media.size <= FILE_BYTES);
    if text.is_empty() || !takes_one {
        return None;
    }
    (html::visible_len(text, settings.tables()) <= CAPTION).then(|| words(text, settings))
}

/// Returns the kind as which a file is sent.
fn kind(media: &AnswerMedia, as_voice: bool) -> MediaKind {
    let mime = media.mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match mime.split('/').next().unwrap_or_default() {
        "image" if mime == "image/gif" => MediaKind::Animation,
        "image" if is_photo(media, &mime) => MediaKind::Image,
        "video" => MediaKind::Video,
        _ if as_voice && VOICES.contains(&mime.as_str()) => MediaKind::Voice,
        "audio" => MediaKind::Audio,
        _ => MediaKind::Document,
    }
}

fn is_photo(media: &AnswerMedia, mime: &str) -> bool {
    PHOTOS.contains(&mime) && media.size <= PHOTO_BYTES && sides(&media.path).is_none_or(is_photo_shaped)
}

/// Width and height; reads the first bytes of a file of our own.
fn sides(path: &Path) -> Option<(u64, u64)> {
    let reader = image::ImageReader::open(path).ok()?.with_guessed_format().ok()?;
    reader.into_dimensions().ok().map(|(width, height)| (u64::from(width), u64::from(height)))
}

fn is_photo_shaped((width, height): (u64, u64)) -> bool {
    let (short, long) = (width.min(height), width.max(height));
    width + height <= PHOTO_SIDES && long <= short * PHOTO_RATIO
}

fn too_large(media: &AnswerMedia) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1_000_000.0;
    let (size, limit) = (megabytes(media.size), megabytes(FILE_BYTES));
    format!("⚠️ {} was not sent: {size:.1} MB > limit {limit:.0} MB", media.name)
}

/// Markdown as one message.
pub(super) fn words(text: &str, settings: &AccountSettings) -> FormattedText {
    html::whole(text, settings.tables())
}

/// Markdown as messages.
fn chunks(text: &str, settings: &AccountSettings) -> Vec<FormattedText> {
    let cut = Cut { limit: settings.text_limit(), mode: settings.chunks.mode, tables: settings.tables() };
    html::messages(text, cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use openclaw_channels::Button;

    fn media(mime: &str, size: u64) -> AnswerMedia {
        AnswerMedia { path: "/nowhere".into(), mime: mime.to_owned(), name: "n".to_owned(), size }
    }

    fn parts(text: &str, media: Vec<AnswerMedia>) -> Vec<Part> {
        let answer = Answer {
            text: text.to_owned(),
            media,
            reply_to: Some("5".to_owned()),
            quote: Some("q".to_owned()),
            buttons: vec![vec![Button { text: "b".to_owned(), data: "d".to_owned() }]],
            ..Answer::default()
        };
        of(&answer, &AccountSettings::default())
    }

    /// Writes each part as a letter: text, file with words, file without.
    fn shape(parts: &[Part]) -> String {
        let letter = |part: &Part| match &part.content {
            Content::Text(_) => 't',
            Content::Media { caption: Some(_), .. } => 'c',
            Content::Media { caption: None, .. } => 'm',
            Content::Poll { .. } => 'p',
            Content::Sticker { .. } => 's',
        };
        parts.iter().map(letter).collect()
    }

    #[test]
    fn files_are_sent_as_what_they_are() {
        let rows = [
            ("image/gif", 1, false, MediaKind::Animation),
            ("image/png", 1, false, MediaKind::Image),
            ("IMAGE/JPEG; q=1", 10_000_000, false, MediaKind::Image),
            ("image/png", 10_000_001, false, MediaKind::Document),
            ("image/svg+xml", 1, false, MediaKind::Document),
            ("video/mp4", 1, false, MediaKind::Video),
            ("audio/mpeg", 1, true, MediaKind::Audio),
            ("audio/ogg", 1, false, MediaKind::Audio),
            ("audio/ogg; codecs=opus", 1, true, MediaKind::Voice),
            ("application/pdf", 1, false, MediaKind::Document),
            ("", 1, false, MediaKind::Document),
        ];
        for (mime, size, as_voice, expect) in rows {
            assert_eq!(kind(&media(mime, size), as_voice), expect, "{mime}");
        }
        let rows = [
            ((5000, 5000), true),
            ((5001, 5000), false),
            ((2000, 100), true),
            ((2001, 100), false),
            ((0, 0), true),
        ];
        for (sides, expect) in rows {
            assert_eq!(is_photo_shaped(sides), expect, "{sides:?}");
        }
    }

    #[test]
    fn words_stand_below_the_first_file_or_after_all() {
        let png = || media("image/png", 1);
        let rows = [
            ("hi".to_owned(), vec![], "t"),
            ("hi".to_owned(), vec![png(), png()], "cm"),
            ("y".repeat(1024), vec![png()], "c"),
            ("y".repeat(1025), vec![png(), png()], "mmt"),
            (String::new(), vec![png()], "m"),
            (" \n".to_owned(), vec![], ""),
            ("hi".to_owned(), vec![media("video/mp4", 51_000_000)], "tt"),
            ("hi".to_owned(), vec![media("video/mp4", 51_000_000), png()], "ct"),
        ];
        for (text, media, expect) in rows {
            assert_eq!(shape(&parts(&text, media)), expect, "{} characters", text.len());
        }
    }

    #[test]
    fn the_first_part_answers_and_the_last_has_the_buttons() {
        let parts = parts(&"y".repeat(1025), vec![media("image/png", 1)]);
        let (first, last) = (&parts[0], &parts[1]);
        assert_eq!((first.reply_to.as_deref(), first.quote.as_deref()), (Some("5"), Some("q")));
        assert_eq!((last.reply_to.as_deref(), last.quote.as_deref()), (None, None));
        assert!(first.buttons.is_empty() && last.buttons.len() == 1);
    }

    #[test]
    fn a_file_that_is_too_large_is_told_of() {
        let parts = parts("", vec![media("video/mp4", 61_200_000)]);
        let Content::Text(words) = &parts[0].content else { panic!("no note") };
        assert_eq!(words.plain, "⚠️ n was not sent: 61.2 MB > limit 50 MB");
    }
}
