//! What a platform brings, as the inbox keeps it: who said what where, in words that mean the same on every platform. Nothing is
//! decided in it: whether it is answered, by whom and in which session is decided behind the inbox.

use serde::{Deserialize, Serialize};

use crate::Address;

/// Something that happened on a platform. Stored as JSON: fields may be added, none changes its meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inbound {
    /// The platform's id of the event, such as `update:123`, by which people ask for it.
    pub native_id: String,
    /// What tells it from every other event of the channel for ever, such as `7000:update:123:5:11:1735787040`: the bot that it was brought
    /// to, under whatever name the account goes, and what it is about, since ids may begin anew. Nothing in events that were stored before
    /// there was this; those are known by their account and [`native_id`](Self::native_id).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_id: Option<String>,
    /// Where it happened; an answer goes there.
    pub address: Address,
    /// What kind of conversation that is.
    pub conversation: Conversation,
    /// Who did it.
    pub sender: Sender,
    /// What.
    pub event: InboundEvent,
    /// Unix milliseconds at which the platform says it happened.
    pub at: i64,
}

impl Inbound {
    /// What the event is known by: one that is brought twice is taken once.
    pub fn identity(&self) -> String {
        match &self.unique_id {
            // No account has an empty name.
            Some(id) => format!("{}\n\n{id}", self.address.channel),
            None => self.former_identity(),
        }
    }

    /// What it was known by before there were unique ids.
    pub fn former_identity(&self) -> String {
        let Address { channel, account, .. } = &self.address;
        format!("{channel}\n{account}\n{}", self.native_id)
    }

    /// Gives a message other words. `false`: it is none.
    pub fn reword(&mut self, text: &str) -> bool {
        let InboundEvent::Message(message) = &mut self.event else { return false };
        message.text = text.to_owned();
        true
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum InboundEvent {
    /// Somebody said something.
    Message(Box<InboundMessage>),
    /// Somebody pressed a button of a message of ours.
    Button {
        /// The message with the button.
        message_id: String,
        /// What the button carries.
        data: String,
    },
    /// What a message says has changed.
    Edited {
        /// The message.
        message_id: String,
        /// All of its new text.
        text: String,
    },
    /// A reaction was added to a message, or taken back.
    Reaction {
        /// The message.
        message_id: String,
        /// The emoji, or a name of a custom one.
        emoji: String,
        /// Whether it was taken back.
        removed: bool,
    },
    /// What the platform brought can't be read. Kept so that it can be asked what became of it.
    Unreadable {
        /// What is wrong with it.
        why: String,
    },
    /// A group got another id, and is meant by every later message.
    Moved {
        /// The new target.
        to: String,
    },
}

/// A message.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InboundMessage {
    /// The platform's id of the message, which answers refer to.
    pub message_id: String,
    /// Its words, or the words below its media. Links whose words hide the address are written `[words](address)`.
    pub text: String,
    /// Files that come with it, in order; not fetched yet.
    pub media: Vec<MediaRef>,
    /// A place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// What it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Quoted>,
    /// What its thread began with, where the platform tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_starter: Option<String>,
    /// Who said it first, where it is passed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<Forwarded>,
    /// Who is spoken to.
    pub mentions: Mentions,
    /// The words in its text that name the account, as they are written there, such as `@clawd_bot`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub named_as: Vec<String>,
    /// Messages of one sender with the same album are one message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub album: Option<String>,
    /// The platform cut a longer text here: what the sender says next goes on with it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
    /// The command was chosen in the platform's own menu.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_native_command: bool,
}

/// What kind of conversation it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    /// Between two, in a group, in a room.
    pub kind: ConversationKind,
    /// Its title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Title of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_title: Option<String>,
    /// Whether its threads are topics of a forum.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_forum: bool,
    /// The server or workspace it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// What its owners wrote about it: topic, description. Never instructions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub descriptions: Vec<String>,
}

/// Kinds of conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConversationKind {
    /// Between the account and one person.
    Direct,
    /// Among some people.
    Group,
    /// A room that people come to and leave, or follow.
    Channel,
}

/// Who did it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sender {
    /// The platform's id, which never changes; what allowlists are compared with.
    pub id: String,
    /// Name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The parts of that name, where the platform has them apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_name: Option<String>,
    /// The second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_name: Option<String>,
    /// Name that the person chose to be found by, without `@`. It may be given up and taken by another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Telephone number, such as `+15551234567`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// Whether it is a program.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_bot: bool,
    /// Whether it is the account itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_self: bool,
}

/// A file that can be fetched from the platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaRef {
    /// What it is.
    pub kind: MediaKind,
    /// How the platform finds it; only the channel that made it reads it.
    pub handle: String,
    /// As the platform says; may be wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// As the sender named it. Never a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Bytes, where the platform says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// What can be said of it without looking, such as the emoji of a sticker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Kinds of media.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MediaKind {
    /// A picture.
    Image,
    /// A moving picture without sound.
    Animation,
    /// A video.
    Video,
    /// A round video.
    VideoNote,
    /// Music, a recording.
    Audio,
    /// A voice message.
    Voice,
    /// A sticker.
    Sticker,
    /// Any other file.
    Document,
}

/// A place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
    /// Metres.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Name of the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Whether it moves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_live: bool,
}

/// A message that another answers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Quoted {
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Who said it, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// Its words, or the part of them that is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether the text is a part that was chosen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_excerpt: bool,
    /// Whether the account itself said it: to answer it is to speak to the account.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_ours: bool,
}

/// Where a message that is passed on comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Forwarded {
    /// Who said it first, for people.
    pub from: String,
    /// Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
}

/// Who a message speaks to, as the platform marks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Mentions {
    /// The account itself.
    pub ours: bool,
    /// Anybody.
    pub any: bool,
    /// Whether the platform would have marked a mention of the account.
    pub can_tell: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Messages of the version before have the runs that they had then.
    #[test]
    fn what_was_stored_before_is_known_as_before() {
        let stored = json!({
            "nativeId": "update:7",
            "address": {"channel": "telegram", "account": "work", "target": "5", "thread": null},
            "conversation": {"kind": "direct"},
            "sender": {"id": "5"},
            "event": {"kind": "message", "messageId": "11", "text": "hi"},
            "at": 5,
        });
        let mut event: Inbound = serde_json::from_value(stored).unwrap();
        assert_eq!(event.identity(), "telegram\nwork\nupdate:7");
        event.unique_id = Some("7000:update:7:5:11:0".to_owned());
        assert_eq!(event.identity(), "telegram\n\n7000:update:7:5:11:0");
        assert_eq!(event.former_identity(), "telegram\nwork\nupdate:7");
    }
}
