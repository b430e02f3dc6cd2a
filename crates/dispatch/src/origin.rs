//! Where a message of a chat platform was said, and by whom. Fixed when it is accepted: its answer goes there, whatever becomes of
//! its session's route meanwhile.

use openclaw_channels::{Address, Conversation, ConversationKind, Sender};
use openclaw_sessions::entry::inbound::InboundFacts;
use openclaw_sessions::entry::{ChatType, DeliveryContext, ThreadId};
use openclaw_sessions::reset::authority::Authority;
use serde::{Deserialize, Serialize};

use crate::incoming::envelope::place_label;

/// Where a message was said. Stored with it as JSON: fields may be added, none changes its meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Origin {
    /// The conversation.
    pub(crate) address: Address,
    /// What kind that is.
    pub(crate) conversation: Conversation,
    /// Who said it.
    pub(crate) sender: Sender,
    /// The names in lists of the configuration that mean them, as the platform has told (decision 21).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) listed_as: Vec<String>,
    /// The platform's id of the message, which answers refer to. Of several texts that are one message the last, of an album the one with
    /// words.
    pub(crate) message_id: String,
    /// The ids of all of them, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) message_ids: Vec<String>,
    /// Whether its sender may give commands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) may_command: bool,
    /// Whether its words are somebody else's, passed on: none of them is a command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_forwarded: bool,
    /// Whether its sender is one of the owners.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_owner: bool,
    /// Whether whoever reads there may know why something failed and what tools do: the owner, in a chat of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) hears_reasons: bool,
    /// Whether it speaks to the account.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) was_mentioned: bool,
    /// The emoji it is acknowledged with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ack: Option<String>,
    /// The skills that are offered where it was said; all where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) skills: Option<Vec<String>>,
    /// Whether it does so by its words: in a group, a command may speak to it by being one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_named: bool,
    /// Its words as commands are read from them, without mentions.
    #[serde(default)]
    pub(crate) command_text: String,
    /// What the agent reads around its words.
    #[serde(default)]
    pub(crate) frame: Frame,
}

/// What the agent reads around the words of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Frame {
    /// Before everything else: files that came with it. Ends with a line break, or is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) lead: String,
    /// Before the words: what was said in the group meanwhile, and the envelope.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) before: String,
    /// Behind the words: what they answer, who said them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) after: String,
    /// Behind the files, where it is the first message of its session: what the thread began with. Ends with a blank line, or is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) starter: String,
    /// Behind everything else: what strangers wrote about the conversation. Begins with a blank line, or is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) untrusted: String,
}

impl Origin {
    /// Whether its sender may give commands.
    pub(crate) fn authority(&self) -> Authority {
        if self.may_command { Authority::Granted } else { Authority::Denied }
    }

    /// Whether it was said between two.
    pub(crate) fn is_direct(&self) -> bool {
        self.conversation.kind == ConversationKind::Direct
    }

    /// The kind of its conversation, as session rows name it.
    pub(crate) fn chat_type(&self) -> ChatType {
        match self.conversation.kind {
            ConversationKind::Direct => ChatType::Direct,
            ConversationKind::Group => ChatType::Group,
            ConversationKind::Channel => ChatType::Channel,
        }
    }

    /// `From`, such as `telegram:123` or `telegram:group:-100:topic:5`.
    pub(crate) fn from(&self) -> String {
        let Address { channel, target, .. } = &self.address;
        match self.conversation.kind {
            ConversationKind::Direct => format!("{channel}:{target}"),
            ConversationKind::Group => format!("{channel}:group:{target}{}", self.topic()),
            ConversationKind::Channel => format!("{channel}:channel:{target}{}", self.topic()),
        }
    }

    fn topic(&self) -> String {
        let topic = self.address.thread.as_deref().filter(|_| self.conversation.is_forum);
        topic.map(|topic| format!(":topic:{topic}")).unwrap_or_default()
    }

    fn thread(&self) -> Option<ThreadId> {
        let thread = self.address.thread.as_deref()?;
        Some(thread.parse().map_or_else(|_| ThreadId::Text(thread.into()), ThreadId::Number))
    }

    /// About how many bytes it has.
    pub(crate) fn weight(&self) -> usize {
        let Frame { lead, before, after, starter, untrusted } = &self.frame;
        [lead, before, after, starter, untrusted, &self.command_text].into_iter().map(String::len).sum()
    }

    /// Lets a session's row learn where it is talked in (spec `sessions.md` §3.6, §3.7).
    pub(crate) fn note(
        &self,
        key: &openclaw_sessions::SessionKey,
        entry: &mut openclaw_sessions::SessionEntry,
    ) {
        let Self { address, conversation, sender, .. } = self;
        let (from, to) = (self.from(), format!("{}:{}", address.channel, address.target));
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

    /// Where answers to the session's other messages go from now on.
    pub(crate) fn route(&self) -> DeliveryContext {
        let Address { channel, account, target, .. } = &self.address;
        DeliveryContext {
            channel: Some(channel.as_str().into()),
            to: Some(target.as_str().into()),
            account_id: Some(account.as_str().into()),
            thread_id: self.thread(),
            ..DeliveryContext::default()
        }
    }
}
