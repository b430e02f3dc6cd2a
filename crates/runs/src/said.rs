//! Words that runs and the gateway say, and the conversation they are said in.

use openclaw_agent::ReplyPayload;
use openclaw_channels::{Address, Button, ConversationKind};
use openclaw_delivery::reply::settings::{ChatKind, Surface};
use openclaw_delivery::reply::threading::Quoted;
use openclaw_journal::delivery::Author;
use openclaw_journal::origin::MessageOrigin;
use openclaw_journal::request::RunRequest;

/// Replies at the end of a run, with the settings of their delivery.
#[derive(Debug, Clone, Default)]
pub struct FinalReplies {
    /// Replies with all that steers their delivery; `None` if only the outcome is left, as after a crash.
    pub payloads: Option<Vec<ReplyPayload>>,
    /// Thinking level that the model used.
    pub thinking: Option<String>,
    /// Rows of buttons below the last of them.
    pub buttons: Vec<Vec<Button>>,
    /// Author of the replies.
    pub author: Author,
    /// Messages that the turn has quoted already.
    pub quoted: Quoted,
    /// True if the run has spoken before it failed, be it in blocks that were sent already.
    pub has_spoken: bool,
}

/// A message of the gateway itself that is part of no answer.
#[derive(Debug, Clone, Default)]
pub struct Aside {
    /// Words of the message.
    pub text: String,
    /// Rows of buttons below it.
    pub buttons: Vec<Vec<Button>>,
}

impl FinalReplies {
    /// Returns the replies of a message that is answered together with another, or was answered before: none.
    pub fn nothing() -> Self {
        Self { payloads: Some(Vec::new()), ..Self::default() }
    }
}

/// Conversation that something is said in.
#[derive(Debug, Clone)]
pub struct Destination {
    /// Address of the conversation.
    pub address: Address,
    /// Kind of the conversation.
    pub kind: ConversationKind,
    /// The message that is answered, if it was said there.
    pub message_id: Option<String>,
    /// True if it is known to be a direct chat.
    pub is_private: bool,
}

impl From<&MessageOrigin> for Destination {
    fn from(origin: &MessageOrigin) -> Self {
        Self {
            address: origin.address.clone(),
            kind: origin.conversation.kind,
            message_id: Some(origin.message_id.clone()),
            is_private: origin.is_direct(),
        }
    }
}

impl Destination {
    /// Returns the conversation as settings of replies see it.
    pub(crate) fn surface(&self) -> Surface<'_> {
        let Address { channel, account, .. } = &self.address;
        let chat = match self.kind {
            ConversationKind::Direct => ChatKind::Direct,
            ConversationKind::Group => ChatKind::Group,
            ConversationKind::Channel => ChatKind::Channel,
        };
        Surface { channel, account: Some(account), chat }
    }

    /// Returns the conversation that a request is answered in, if it is one of a chat platform.
    pub(crate) fn of(request: &RunRequest) -> Option<Self> {
        let told = |address: &Address| Self {
            address: address.clone(),
            kind: ConversationKind::Direct,
            message_id: None,
            is_private: false,
        };
        request.source.origin().map(Self::from).or_else(|| request.source.deliver_to().map(told))
    }
}
