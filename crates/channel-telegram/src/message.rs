//! Content of a message: text, files, place, and the quoted message.

use openclaw_channels::{InboundMessage, Location, MediaKind, MediaRef, Quoted};
use serde_json::Value;

use crate::entities::{Me, read as read_marked};
use crate::wire::Wire as _;
use crate::{attachment, kinds, people};

/// A text of this length was cut by Telegram's programs, and goes on in the next message.
const CUT_AT: usize = 4000;

/// Reads a message; `None` for one that says nothing, such as that somebody came or left.
pub(super) fn read(message: &Value, me: &Me) -> Option<InboundMessage> {
    let message_id = message.int("message_id")?.to_string();
    let (text, marks) = match message.text("text") {
        Some(text) => (text, message.list("entities")),
        None => (message.text("caption").unwrap_or_default(), message.list("caption_entities")),
    };
    let words = read_marked(text, marks, me);
    let media: Vec<_> = attachment::of(message).into_iter().collect();
    let location = location(message);
    let is_command = words.is_command;
    let mentions = words.mentions;
    let (text, notes) = (words.text, kinds::told(message));
    if text.is_empty() && media.is_empty() && location.is_none() && notes.is_empty() {
        return None;
    }
    Some(InboundMessage {
        // Bots are not shown how a thread began.
        thread_starter: None,
        message_id,
        goes_on: media.is_empty() && text.encode_utf16().count() >= CUT_AT && !text.starts_with('/'),
        text,
        media,
        location,
        notes,
        reply_to: reply(message, me),
        forwarded: people::forwarded(message),
        via: people::via(message),
        is_press: false,
        mentions,
        named_as: words.named_as,
        album: message.text("media_group_id").map(str::to_owned),
        is_native_command: is_command,
    })
}

fn location(message: &Value) -> Option<Location> {
    let venue = message.object("venue");
    let place = venue.map_or(message, |venue| venue).object("location")?;
    Some(Location {
        latitude: place.number("latitude").filter(|degrees| degrees.abs() <= 90.0)?,
        longitude: place.number("longitude").filter(|degrees| degrees.abs() <= 180.0)?,
        accuracy: place.number("horizontal_accuracy"),
        name: venue.and_then(|venue| venue.text("title")).map(str::to_owned),
        address: venue.and_then(|venue| venue.text("address")).map(str::to_owned),
        is_live: place.int("live_period").is_some(),
    })
}

/// Returns the message that is answered: one of this chat, or of another; with the selected words.
fn reply(message: &Value, me: &Me) -> Option<Quoted> {
    let quote = message.object("quote").and_then(|quote| quote.text("text")).map(str::to_owned);
    // The first message of a topic is what every message in it formally answers.
    let replied = message.object("reply_to_message").filter(|replied| !begins_topic(replied));
    let (message_id, sender, words, file, is_ours) = if let Some(replied) = replied {
        let sender = people::sender(replied, me);
        let is_ours = sender.as_ref().is_some_and(|sender| sender.is_self);
        let name = sender.as_ref().and_then(people::display_name);
        let words = Some(read_quoted(replied, me)).filter(|words| !words.is_empty());
        (replied.int("message_id"), name, words, attachment::of(replied), is_ours)
    } else {
        let external = message.object("external_reply")?;
        let name = people::origin_name(external.at("origin"));
        (external.int("message_id"), name, None, attachment::of(external), false)
    };
    let words = quote.clone().or(words);
    Some(Quoted {
        message_id: message_id.map(|id| id.to_string()),
        sender,
        is_excerpt: quote.is_some(),
        is_placeholder: words.is_none() && file.is_some(),
        text: words.or_else(|| file.map(described)),
        is_ours,
    })
}

fn begins_topic(message: &Value) -> bool {
    message.object("forum_topic_created").is_some()
}

/// A file in a few words.
fn described(media: MediaRef) -> String {
    let described = media.description.filter(|_| media.kind == MediaKind::Sticker);
    described.unwrap_or_else(|| attachment::placeholder(media.kind).to_owned())
}

fn read_quoted(message: &Value, me: &Me) -> String {
    let (text, marks) = match message.text("text") {
        Some(text) => (text, message.list("entities")),
        None => (message.text("caption").unwrap_or_default(), message.list("caption_entities")),
    };
    let words = read_marked(text, marks, me).text;
    if words.is_empty() { kinds::told(message).join("\n") } else { words }
}
