//! Events of platforms as the inbox keeps them: who said what where, in terms that mean the same on every platform. They contain no
//! decisions: whether an event is answered, by which agent and in which session is decided behind the inbox.

mod dedupe;

use serde::{Deserialize, Serialize};

use crate::Address;

/// Event on a platform. Stored as JSON: fields may be added, none changes its meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inbound {
    /// The platform's id of the event, such as `update:123`, by which people ask for it.
    pub native_id: String,
    /// Key that identifies the event among all events of the channel, for ever. For a message: the bot (whatever the account is called),
    /// the conversation and the message's id, such as `7000:message:5:11`, because the same message may come as another event. For all else
    /// the event and what it is about, such as `7000:update:123:5:11:1735787040`, because the numbers of events may start again. Absent in
    /// events of older versions, which are identified by their account and [`native_id`](Self::native_id).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_id: Option<String>,
    /// The [`unique_id`](Self::unique_id) that an older version gave the event, where it is another. Not stored: only
    /// what is delivered again after an update has to be found by it.
    #[serde(skip)]
    pub former_unique_id: Option<String>,
    /// Conversation that it happened in; an answer goes there.
    pub address: Address,
    /// Kind, title and other facts of that conversation.
    pub conversation: ConversationInfo,
    /// Person who did it.
    pub sender: Sender,
    /// Kind and data of the event.
    pub event: InboundEvent,
    /// Unix milliseconds at which the platform says it happened.
    pub at: i64,
}

impl Inbound {
    /// Gives a message other words. `false`: it is none.
    pub fn reword(&mut self, text: &str) -> bool {
        let InboundEvent::Message(message) = &mut self.event else { return false };
        message.text = text.to_owned();
        true
    }
}

/// Kind of an event with its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum InboundEvent {
    /// A person has sent a message.
    Message(Box<InboundMessage>),
    /// A person has pressed a button of one of our messages.
    Button {
        /// The message with the button.
        message_id: String,
        /// Data that the button carries.
        data: String,
    },
    /// The text of a message has changed.
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
        /// True if the reaction was removed.
        removed: bool,
    },
    /// The platform delivered an update that can't be read. Kept so that it can be asked what
    /// became of it.
    Unreadable {
        /// Description of the problem.
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
    /// Text of the message, or the caption of its media. Links whose words hide the address are
    /// written `[words](address)`.
    pub text: String,
    /// Files that come with it, in order; not fetched yet.
    pub media: Vec<MediaRef>,
    /// Location that it shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Descriptions of other content such as a poll or a contact. Anybody may have written their words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Message that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Quoted>,
    /// Text of the message that began its thread, if the platform tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_starter: Option<String>,
    /// First author, if the message is forwarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<Forwarded>,
    /// Name, for people, of the inline bot that wrote it in the sender's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// True if the sender pressed a button that an agent made: its words are those on the button.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_press: bool,
    /// People and bots that it addresses.
    pub mentions: Mentions,
    /// The words in its text that name the account, as they are written there, such as `@clawd_bot`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub named_as: Vec<String>,
    /// Messages of one sender with the same album are one message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub album: Option<String>,
    /// True if the platform cut a longer text here: the sender's next message continues it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
    /// True if the command was chosen in the platform's own menu.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_native_command: bool,
}

impl InboundMessage {
    /// True if its words are not the sender's own: then none of them is a command.
    pub fn has_foreign_words(&self) -> bool {
        self.forwarded.is_some() || self.via.is_some() || self.is_press
    }
}

/// Conversation in which an event happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationInfo {
    /// Between two, in a group, in a room.
    pub kind: ConversationKind,
    /// Title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Title of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_title: Option<String>,
    /// True if the threads are topics of a forum.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_forum: bool,
    /// The server or workspace it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// Texts by the conversation's owners: topic, description. Never instructions.
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

/// Person or bot behind an event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sender {
    /// The platform's id, which never changes. Allowlists are compared with it.
    pub id: String,
    /// Name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// First part of the name, if the platform separates the parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_name: Option<String>,
    /// Second part of the name, if the platform separates the parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_name: Option<String>,
    /// Name that the person chose to be found by, without `@`. It may be given up and taken by another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Telephone number, such as `+15551234567`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// True if it is a bot.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_bot: bool,
    /// True if it is the account itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_self: bool,
}

/// A file that can be fetched from the platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaRef {
    /// Kind of media.
    pub kind: MediaKind,
    /// Handle by which the platform finds the file; only the channel that made it reads it.
    pub handle: String,
    /// Media type as the platform states it; may be wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// File name as the sender gave it. Never a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Bytes, where the platform says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Description that is known without looking at the file, such as the emoji of a sticker.
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

/// Location on the map.
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
    /// Street address of the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// True if it moves: a live location.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_live: bool,
}

/// A message that another answers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Quoted {
    /// Id of the quoted message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Author of the quoted message, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// Text of the quoted message, or the part of it that is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// True if the text stands for a file without words, as the platform's adapter describes it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_placeholder: bool,
    /// True if the text is a part that the person selected.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_excerpt: bool,
    /// True if the account itself is the author: to answer it is to speak to the account.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_ours: bool,
}

/// Origin of a forwarded message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Forwarded {
    /// First author of the message, for people.
    pub from: String,
    /// Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
}

/// Mentions in a message, as the platform marks them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Mentions {
    /// The account itself.
    pub ours: bool,
    /// Anybody.
    pub any: bool,
    /// True if the platform would have marked a mention of the account.
    pub can_tell: bool,
}
