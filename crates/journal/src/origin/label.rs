//! Labels of senders and places, for envelopes and lists of sessions (spec `messages.md` §1.1).

use openclaw_channels::{Address, ConversationInfo, ConversationKind, Sender};

use crate::frames::framed_name;

/// Label of a sender in a group: `Bob (42)`.
pub fn sender_label(name: Option<&str>, id: &str) -> String {
    match name.map(framed_name).filter(|name| !name.is_empty()) {
        Some(name) if id.trim().is_empty() || name == id => name,
        Some(name) => format!("{name} ({id})"),
        None => id.to_owned(),
    }
}

/// Sender or place for the envelope: a name, with the id if that says more.
pub fn from_label(name: Option<&str>, id: &str) -> String {
    match name.map(place_name).filter(|name| !name.is_empty()) {
        Some(name) if name != id => format!("{name} id:{id}"),
        Some(_) | None => id.to_owned(),
    }
}

/// A name beside which an id stands: it has no id of its own.
fn place_name(name: &str) -> String {
    let name = format!(" {}", framed_name(name));
    name.replace(" id:", " id ").replace(" topic:", " topic ").trim().to_owned()
}

/// Origin of a message for its envelope and for lists of sessions, a sender or a place: `Ada (@ada)
/// id:5`, `Team id:-1001 topic:7`.
pub fn place_label(address: &Address, conversation: &ConversationInfo, sender: &Sender) -> String {
    if conversation.kind == ConversationKind::Direct {
        let name = match (sender.name.as_deref(), sender.username.as_deref()) {
            (Some(name), Some(username)) => Some(format!("{name} (@{username})")),
            (Some(name), None) => Some(name.to_owned()),
            (None, Some(username)) => Some(format!("@{username}")),
            (None, None) => None,
        };
        return from_label(name.as_deref(), &sender.id);
    }
    let title = conversation.title.as_deref().unwrap_or("Group");
    let topic = address.thread.as_ref().filter(|_| conversation.is_forum);
    let topic = topic.map(|topic| format!(" topic:{topic}")).unwrap_or_default();
    format!("{}{topic}", from_label(Some(title), &address.target))
}
