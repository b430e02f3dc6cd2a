//! The file of a message.

use openclaw_channels::{MediaKind, MediaRef};
use serde_json::Value;

use crate::wire::Wire as _;

/// Fields of a message that hold a file, and what it is. An animation is also given as a document: it stands first.
const FIELDS: &[(&str, MediaKind)] = &[
    ("animation", MediaKind::Animation),
    ("video", MediaKind::Video),
    ("video_note", MediaKind::VideoNote),
    ("voice", MediaKind::Voice),
    ("audio", MediaKind::Audio),
    ("document", MediaKind::Document),
];

/// The file of a message, if it has one.
pub(super) fn of(message: &Value) -> Option<MediaRef> {
    if let Some(photo) = largest(message.list("photo")) {
        return media(photo, MediaKind::Image, Some("image/jpeg"));
    }
    if let Some(sticker) = message.object("sticker") {
        return self::sticker(sticker);
    }
    let (file, kind) = FIELDS.iter().find_map(|(field, kind)| Some((message.object(field)?, *kind)))?;
    let media = media(file, kind, None)?;
    Some(MediaRef { description: recording(file).filter(|_| kind == MediaKind::Audio), ..media })
}

/// `"Interview" by Anna`.
fn recording(audio: &Value) -> Option<String> {
    let title = audio.text("title").map(|title| format!("\"{title}\""));
    let performer = audio.text("performer").map(|performer| format!("by {performer}"));
    let parts: Vec<String> = title.into_iter().chain(performer).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// Returns the placeholder for a file without a caption.
pub(super) fn placeholder(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "<media:image>",
        MediaKind::Animation | MediaKind::Video | MediaKind::VideoNote => "<media:video>",
        MediaKind::Audio | MediaKind::Voice => "<media:audio>",
        MediaKind::Sticker => "<media:sticker>",
        MediaKind::Document => "<media:document>",
    }
}

fn media(file: &Value, kind: MediaKind, mime: Option<&str>) -> Option<MediaRef> {
    Some(MediaRef {
        kind,
        handle: file.text("file_id")?.to_owned(),
        mime: file.text("mime_type").or(mime).map(str::to_owned),
        name: file.text("file_name").map(str::to_owned),
        size: file.int("file_size").and_then(|size| u64::try_from(size).ok()),
        description: None,
    })
}

fn sticker(sticker: &Value) -> Option<MediaRef> {
    let mime = match (sticker.flag("is_animated"), sticker.flag("is_video")) {
        (true, _) => "application/x-tgsticker",
        (false, true) => "video/webm",
        (false, false) => "image/webp",
    };
    let emoji = sticker.text("emoji").map(|emoji| format!(" {emoji}")).unwrap_or_default();
    let set = sticker.text("set_name").map(|set| format!(" from \"{set}\"")).unwrap_or_default();
    let media = media(sticker, MediaKind::Sticker, Some(mime))?;
    Some(MediaRef { description: Some(format!("[Sticker{emoji}{set}]")), ..media })
}

/// The sizes of a picture: the largest.
fn largest(sizes: &[Value]) -> Option<&Value> {
    let area = |size: &Value| {
        let side = |key: &str| size.int(key).unwrap_or_default().clamp(0, 100_000);
        side("width") * side("height")
    };
    sizes.iter().filter(|size| size.text("file_id").is_some()).max_by_key(|size| area(size))
}
