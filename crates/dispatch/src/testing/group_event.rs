//! Something that is said in a group, as its platform brings it.

use openclaw_channels::{
    Address, Conversation, ConversationKind, Inbound, InboundEvent, InboundMessage, Sender,
};

/// Said by somebody with the id 7, to whom `..group_event(…)` may give other things.
pub(crate) fn group_event(native_id: &str, group: &str, message: InboundMessage) -> Inbound {
    Inbound {
        native_id: native_id.to_owned(),
        unique_id: None,
        address: Address {
            channel: "telegram".to_owned(),
            account: "default".to_owned(),
            target: group.to_owned(),
            thread: None,
        },
        conversation: Conversation {
            kind: ConversationKind::Group,
            title: None,
            thread_title: None,
            is_forum: false,
            space: None,
            descriptions: Vec::new(),
        },
        sender: Sender { id: "7".to_owned(), ..Sender::default() },
        event: InboundEvent::Message(Box::new(message)),
        at: 0,
    }
}
