//! Conversation and sender of a message of a chat platform. Fixed when the message is accepted: its answer goes there, even if the
//! session's route changes meanwhile.

pub mod label;

use openclaw_channels::access::ListedPerson;
use openclaw_channels::{Address, ConversationInfo, ConversationKind, Sender};
use openclaw_sessions::entry::inbound::InboundFacts;
use openclaw_sessions::entry::{ChatType, DeliveryContext, ThreadId};
use serde::{Deserialize, Serialize};

use crate::caller::{Caller, CallerIdentity, CallerRights, ChatSender};
use label::place_label;

/// Conversation and sender of a message. Stored with it as JSON: fields may be added, none changes its meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageOrigin {
    /// Address of the conversation.
    pub address: Address,
    /// Kind, title and other facts of the conversation.
    pub conversation: ConversationInfo,
    /// Sender of the message.
    pub sender: Sender,
    /// Names in the configuration's lists that mean the sender, as the platform resolved them (decision 21).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listed_as: Vec<String>,
    /// The platform's id of the message, which answers refer to. If several texts are one message, the id of the last; of an album, the id
    /// of the one with words.
    pub message_id: String,
    /// Ids of all those messages, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub message_ids: Vec<String>,
    /// Rights of the sender.
    #[serde(flatten)]
    pub rights: CallerRights,
    /// True if the words are not the sender's own
    /// ([`InboundMessage::has_foreign_words`](openclaw_channels::InboundMessage::has_foreign_words)): none of them is a command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_forwarded: bool,
    /// True if it is the press of a button. `message_id` is then the message with the button, which others may press too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_press: bool,
    /// True if the message addresses the account.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_mentioned: bool,
    /// The emoji it is acknowledged with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack: Option<String>,
    /// Skills that are offered in the conversation; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// True if its words address the account. In a group, a command may address it merely by being one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_named: bool,
    /// Text that commands are read from: its words without mentions.
    #[serde(default)]
    pub command_text: String,
    /// Text that the agent reads around its words.
    #[serde(default)]
    pub frame: MessageFrame,
}

/// Text that the agent reads around the words of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MessageFrame {
    /// Text before everything else: attached files. Ends with a line break, or is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lead: String,
    /// Text before the words: earlier messages of the group, and the envelope.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// Text behind the words: the message that they answer, and its sender.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub after: String,
    /// Text behind the files, in the first message of a session: the message that began the thread.
    /// Ends with a blank line, or is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub starter: String,
    /// Text behind everything else: descriptions of the conversation that strangers wrote. Begins
    /// with a blank line, or is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub untrusted: String,
}

impl MessageOrigin {
    /// Returns the sender as a caller.
    pub fn caller(&self) -> Caller<'_> {
        let listed = ListedPerson { sender: &self.sender, names: &self.listed_as };
        let sender = ChatSender { address: &self.address, is_direct: self.is_direct(), listed };
        Caller { identity: CallerIdentity::Sender(sender), rights: self.rights }
    }

    /// True if it was said in a direct chat.
    pub fn is_direct(&self) -> bool {
        self.conversation.kind == ConversationKind::Direct
    }

    /// Returns the kind of the conversation as session rows name it.
    pub fn chat_type(&self) -> ChatType {
        match self.conversation.kind {
            ConversationKind::Direct => ChatType::Direct,
            ConversationKind::Group => ChatType::Group,
            ConversationKind::Channel => ChatType::Channel,
        }
    }

    /// `From`, such as `telegram:123` or `telegram:group:-100:topic:5`.
    pub fn from(&self) -> String {
        let Address { channel, target, .. } = &self.address;
        match self.conversation.kind {
            ConversationKind::Direct => format!("{channel}:{target}"),
            ConversationKind::Group => format!("{channel}:group:{target}{}", self.topic()),
            ConversationKind::Channel => format!("{channel}:channel:{target}{}", self.topic()),
        }
    }

    /// `To`, such as `telegram:123`.
    fn to(&self) -> String {
        format!("{}:{}", self.address.channel, self.address.target)
    }

    fn topic(&self) -> String {
        let topic = self.address.thread.as_deref().filter(|_| self.conversation.is_forum);
        topic.map(|topic| format!(":topic:{topic}")).unwrap_or_default()
    }

    fn thread(&self) -> Option<ThreadId> {
        let thread = self.address.thread.as_deref()?;
        Some(thread.parse().map_or_else(|_| ThreadId::Text(thread.into()), ThreadId::Number))
    }

    /// Returns its approximate size in bytes.
    pub fn weight(&self) -> usize {
        let MessageFrame { lead, before, after, starter, untrusted } = &self.frame;
        [lead, before, after, starter, untrusted, &self.command_text].into_iter().map(String::len).sum()
    }

    /// Notes the conversation in the session's row (spec `sessions.md` §3.6, §3.7).
    pub fn note(&self, key: &openclaw_sessions::SessionKey, entry: &mut openclaw_sessions::SessionEntry) {
        let Self { address, conversation, sender, .. } = self;
        let (from, to) = (self.from(), self.to());
        let (is_direct, label) = (self.is_direct(), place_label(address, conversation, sender));
        let facts = InboundFacts {
            originating_channel: Some(&address.channel),
            surface: Some(&address.channel),
            provider: Some(&address.channel),
            chat_type: Some(self.chat_type()),
            from: Some(&from),
            to: Some(&to),
            originating_to: Some(&to),
            account_id: Some(&address.account),
            thread_id: self.thread(),
            conversation_label: Some(&label),
            thread_label: conversation.thread_title.as_deref(),
            sender_name: sender.name.as_deref().or(sender.username.as_deref()),
            group_channel: None,
            group_subject: conversation.title.as_deref().filter(|_| !is_direct),
            group_space: conversation.space.as_deref(),
        };
        facts.note(key, entry);
    }

    /// Returns the route for answers to the session's other messages from now on, as OpenClaw 2026.2.9 writes it: `telegram:70001`.
    pub fn route(&self) -> DeliveryContext {
        let Address { channel, account, .. } = &self.address;
        DeliveryContext {
            channel: Some(channel.as_str().into()),
            to: Some(self.to().into()),
            account_id: Some(account.as_str().into()),
            thread_id: self.thread(),
            ..DeliveryContext::default()
        }
    }
}
